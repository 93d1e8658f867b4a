"""The schema as Great Expectations: a gate before a budget is touched, and again before a hand-off."""

import logging
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Floats
from dpmodels.codec.convert import as_numbers, check_type, is_whole, plain, to_keys
from dpmodels.codec.derive import follows
from dpmodels.codec.pixels import check_image_type, images_fit
from dpmodels.codec.rules import breaking_encoded, keeping
from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Continuous, Datetime, Derived, Discrete, Identifier, Image, Integer
from dpmodels.contract.documents import Documents
from dpmodels.contract.implications import HELD
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.policies import Counted, Policies
from dpmodels.gate.repeats import Repeats
from dpmodels.gate.suite import NOT_NULL, ROW_COUNT, UNIQUE, WHOLE, Rule, judged_by_row, suite_for
from dpmodels.gate.witnesses import Witnesses, gap

WIDE = 2.0**62  # stands for an infinite whole number: far outside any bounds, and still an int64
COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 0}  # counts of failing rows, no example of any


@dataclass
class Outcome:
    """What has come of one rule so far: rows checked, rows that broke it, and whether a whole batch did.

    ``lacking`` are columns that the rule asks for and that were not there.

    Privacy: exact counts; those of a raw table stay in the sensitive zone, and only ``passed`` is ever shown.
    """

    rule: Rule
    checked: int = 0
    failed: int = 0
    sound: bool = True
    lacking: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The rule in words, and which columns of the schema are missing, whose names are public."""
        return f"{self.rule.text}; missing: {', '.join(self.lacking)}" if self.lacking else self.rule.text

    @property
    def passed(self) -> bool:
        """Tell whether the table as a whole keeps the rule."""
        if self.rule.expectation == ROW_COUNT:
            low, high = self.rule.arguments["min_value"], self.rule.arguments["max_value"]
            return bool(low <= self.checked and (high is None or self.checked <= high))
        return self.sound and self.failed <= (1 - self.rule.share) * self.checked


class Verdicts:
    """What has come of every rule of a contract, for a stream of batches that must keep them as a whole.

    Attributes:
        form: how the text of a synthetic table is written, as its schema says; None of one with points and ISO dates.
    """

    form: TextForm | None = None

    def __init__(self, contract: Schema | Documents | Tree, rules: Sequence[Rule], raw: bool = False) -> None:
        self.contract, self.raw, self.outcomes = contract, raw, tuple(map(Outcome, rules))

    @property
    def sound(self) -> bool:
        """Tell whether every single row so far fits the contract."""
        return all(outcome.sound for outcome in self.outcomes)

    def settle(self) -> None:
        """Check what is checked once for all batches, after the last of them."""

    def add(self, other: "Verdicts") -> None:
        """Add what was found by the same rules in other rows of the table."""
        for mine, theirs in zip(self.outcomes, other.outcomes, strict=True):
            mine.checked += theirs.checked
            mine.failed += theirs.failed
            mine.sound &= theirs.sound
            mine.lacking = mine.lacking or theirs.lacking

    @property
    def policies(self) -> list[Counted]:
        """List what columns' policies leave out or change, where that is counted."""
        return []

    @property
    def broken(self) -> tuple[Rule, ...]:
        """List the rules that the table breaks; ask once every batch was checked."""
        return tuple(outcome.rule for outcome in self.outcomes if not outcome.passed)

    @property
    def by_severity(self) -> list[Outcome]:
        """List broken rules first: those of the whole table, then by their share of rows; others keep their order."""
        return sorted(self.outcomes, key=lambda one: (one.passed, one.failed > 0, -one.failed / max(one.checked, 1)))

    def results(self) -> list[dict[str, Any]]:
        """List every expectation with its column, its rule and its success; no values, no counts."""
        return [
            {
                "expectation": outcome.rule.expectation,
                "column": outcome.rule.column or None,
                "rule": outcome.rule.text,
                "success": outcome.passed,
            }
            for outcome in self.outcomes
        ]


class Gate(Verdicts):
    """A suite that a stream of batches must pass as one table; it remembers how often, never by which values.

    ``tells`` has it count what the policies of columns leave out or change, for whoever has the rows at hand.
    """

    def __init__(
        self, schema: Schema, raw: bool, rows: int | None = None, secret: bytes = b"", tells: bool = False
    ) -> None:
        super().__init__(schema, suite_for(schema, raw=raw, rows=rows), raw)
        self.schema = schema
        self._witnesses, self._waiting = Witnesses(schema), dict[str, list[pa.RecordBatch]]()
        unique = (one.rule.column for one in self.outcomes if one.rule.expectation == UNIQUE)
        self._repeats = Repeats(unique, secret)
        self._policies = Policies(schema) if tells else None

    def beside(self) -> "Gate":
        """Return a gate for other rows of the same raw table, which is to be added to this one."""
        return Gate(self.schema, self.raw, secret=self._repeats.secret, tells=self._policies is not None)

    @property
    def policies(self) -> list[Counted]:
        """List what columns' policies leave out or change, where that is counted."""
        return [] if self._policies is None else self._policies.used

    def see_outside(self, batch: pa.RecordBatch) -> None:
        """Count what the policies of columns do in one more batch, where that is counted."""
        if self._policies is not None:
            self._policies.count(batch)

    def check(self, batch: pa.RecordBatch | pa.Table) -> bool:
        """Check one more batch against the whole suite; tell whether every single row so far fits the schema.

        Privacy: reads raw rows; what it keeps are counts, of which the operator sees one bit a rule and no release
            contains anything.

        Raises:
            DataError: a column is there twice, or of a type that cannot hold its declared values.
        """
        frame = self._frame(batch)
        self._repeats.see(batch)
        names = [name for name in self.outcomes[0].rule.arguments["column_set"] if not name.startswith(HELD)]
        self.outcomes[0].lacking = self.outcomes[0].lacking or tuple(name for name in names if name not in frame)
        encoded = self._broken_encoded(batch, frame)
        for index, (success, failed) in self._validate(frame).items():
            outcome = self.outcomes[index]
            if set(outcome.rule.columns) <= frame.keys():
                once_encoded = encoded.get(outcome.rule.columns, 0)
                success, failed = success and not once_encoded, max(failed, once_encoded)
                outcome.checked += batch.num_rows
                outcome.failed += failed
                outcome.sound &= success or outcome.rule.share < 1 or outcome.rule.expectation == ROW_COUNT
        return self.sound

    def _broken_encoded(self, batch: pa.RecordBatch | pa.Table, there: Collection[str]) -> dict[tuple[str, ...], int]:
        """Count the raw rows that break each rule of two columns once they are encoded, by the columns of the suite."""
        rules = [one for one in self.schema.rules if self.raw and {one.lower, one.upper} <= {*there}]
        every = ((rule, int(breaking_encoded(rule, self.schema.columns, batch).sum())) for rule in rules)
        return {(rule.upper, rule.lower): broken for rule, broken in every if broken}

    def check_encoded(self, batch: pa.RecordBatch) -> bool:
        """Check a batch that the codec has encoded, and so found to fit column by column; a hundred times faster.

        Its rows are counted here; the suite itself sees the batch's witnesses, which must break what any row breaks,
        together with those of other batches, in ``settle``.

        Privacy: as ``check``.
        """
        rules = {HELD + rule.text for rule in judged_by_row(self.schema)}
        names = set(batch.schema.names) == set(self.outcomes[0].rule.arguments["column_set"]) - rules
        gaps = (gap(self.schema, rule, batch) for rule in self.schema.rules)
        near = zip(self.schema.rules, gaps, strict=True)
        broken = any(((apart <= 0) if rule.strict else (apart < 0)).any() for rule, apart in near)
        broken |= bool(names and self._broken_encoded(batch, batch.schema.names))
        broken |= names and not all(keeping(one, self.schema.columns, batch).all() for one in self.schema.implications)
        derived = self.schema.derived if names else ()
        broken |= not all(follows(name, self.schema.columns, batch, self.raw).all() for name in derived)
        bounds = self.schema.derived_bounds if names else ()
        if not names or broken or not all(keeping(one, self.schema.columns, batch).all() for one in bounds):
            return self.check(batch)
        self._repeats.see(batch)
        for outcome in self.outcomes:
            outcome.checked += batch.num_rows
            if outcome.rule.expectation == NOT_NULL:
                null = pc.is_null(batch.column(outcome.rule.column), nan_is_null=True)
                outcome.failed += pc.sum(null).as_py() or 0
        if batch.num_rows:
            waiting = self._waiting.setdefault(str(batch.schema), [])
            waiting.append(self._witnesses.pick(batch, self.schema.rules))
        return self.sound

    def settle(self) -> None:
        """Run the suite on the witnesses that wait for it, and count repeated values; once every batch was checked.

        Raises:
            DataError: files type an identifier differently that no two rows may have the same value of.
        """
        repeated = self._repeats.settle()
        for outcome in self.outcomes:
            outcome.failed += repeated.get(outcome.rule.column, 0) if outcome.rule.expectation == UNIQUE else 0
        for waiting in self._waiting.values():
            table = pa.Table.from_batches(waiting)
            for index, (success, failed) in self._validate(self._frame(table)).items():
                outcome = self.outcomes[index]
                if outcome.rule.share == 1 and outcome.rule.expectation != ROW_COUNT and not success:
                    outcome.failed += failed
                    outcome.sound = False
        self._waiting.clear()

    def add(self, other: Verdicts) -> None:
        """Add what a gate of the same suite found in other rows of the table."""
        super().add(other)
        for types, waiting in (other._waiting if isinstance(other, Gate) else {}).items():
            self._waiting.setdefault(types, []).extend(waiting)
        if isinstance(other, Gate):
            self._repeats.add(other._repeats)
            if self._policies is not None and other._policies is not None:
                self._policies.add(other._policies)

    def __getstate__(self) -> dict[str, Any]:
        """Travel without the suite, which is built again where it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_run"}

    def _frame(self, batch: pa.RecordBatch | pa.Table) -> dict[str, Any]:
        frame = {name: self._series(name, batch) for name in batch.schema.names}
        for rule in judged_by_row(self.schema):
            if set(rule.columns) <= frame.keys():
                frame.setdefault(HELD + rule.text, keeping(rule, self.schema.columns, batch))
        return frame

    def _series(self, name: str, batch: pa.RecordBatch | pa.Table) -> Any:
        """Return a column in the pandas form in which null stays null and integers stay integers."""
        column = self.schema.columns.get(name)
        if batch.schema.names.count(name) > 1:
            raise DataError(name if column else "", "is in the data more than once: keep one of them, or rename it")
        if isinstance(column, Image):
            array = plain(batch.column(name))
            check_image_type(name, array.type)
            return np.full(batch.num_rows, images_fit(column, array))
        if isinstance(column, Derived):
            return follows(name, self.schema.columns, batch, self.raw)
        if column is None or isinstance(column, Identifier):
            return np.arange(batch.num_rows)  # identifiers and unknown columns are judged by name alone, or by repeats
        array = plain(batch.column(name))
        check_type(name, column, array.type)
        if not is_whole(array):
            clock = pa.types.is_time(array.type)
            raise DataError(name, f"must hold {'times before 24:00:00' if clock else 'UTF-8 text'} in every row")
        rejects = self.raw and isinstance(column, Continuous) and column.outside == "reject-row"
        return _to_pandas(column, array, rejects)

    def _validate(self, frame: Mapping[str, Any]) -> dict[int, tuple[bool, int]]:
        import pandas as pd

        with warnings.catch_warnings():  # third-party deprecations are no business of the caller
            warnings.simplefilter("ignore")
            return self._run(pd.DataFrame(frame))

    @cached_property
    def _run(self) -> Callable[[Any], dict[int, tuple[bool, int]]]:
        """Build the Great Expectations suite once; the function runs it on a frame: rule -> success, rows that fail."""
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

        logging.getLogger(ProgressBarsConfig.__module__).setLevel(logging.WARNING)  # announces temporary folders
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        asset = context.data_sources.add_pandas("tables").add_dataframe_asset("table")
        batches = asset.add_batch_definition_whole_dataframe("all")
        rules = [outcome.rule for outcome in self.outcomes]
        kinds = [getattr(gx.expectations, rule.expectation) for rule in rules]
        each = [
            kind(**rule.arguments, meta={"index": i}) for i, (kind, rule) in enumerate(zip(kinds, rules, strict=True))
        ]
        suite = gx.ExpectationSuite(name="schema", expectations=each)  # all at once: each addition stores all anew

        def run(frame: Any) -> dict[int, tuple[bool, int]]:
            batch = batches.get_batch(batch_parameters={"dataframe": frame})
            report: Any = batch.validate(suite, result_format=COUNTS)
            return {
                (index := result.expectation_config.meta["index"]): (
                    bool(result.success),
                    int(result.result.get("unexpected_count") or _not_whole(rules[index], frame, bool(result.success))),
                )
                for result in report.results
            }

        return run


def _not_whole(rule: Rule, frame: Any, holds: bool) -> int:
    """Count the rows with decimals in a column of whole numbers, which the suite tells by its type alone."""
    if holds or rule.expectation != WHOLE or rule.column not in frame:
        return 0
    values = frame[rule.column]
    return int((values.notna() & (values != np.floor(values))).sum())


def _to_pandas(column: Modelled, array: pa.Array, rejects: bool) -> Any:
    """Lay a column out for pandas; where the row of a value out of bounds is rejected anyway, the value is null."""
    import pandas as pd

    def seen(x: Floats) -> Floats:
        visible: Floats = np.where((x < column.low) | (x > column.high), np.nan, x) if rejects else x  # type: ignore[attr-defined]
        return visible

    if isinstance(column, Datetime):
        ticks = seen(as_numbers(column, array))
        moments = np.where(np.isnan(ticks), 0, ticks).astype(np.int64).astype(f"datetime64[{column.tick}]")
        return np.where(np.isnan(ticks), np.datetime64("NaT"), moments.astype("datetime64[s]"))
    if isinstance(column, Discrete) and column.kind == "boolean":
        return array.cast(pa.bool_()).to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
    if isinstance(column, Discrete):
        return array.cast(pa.large_string()).to_pandas() if column.kind == "text" else to_keys(column, array)
    x = as_numbers(column, array)  # type: ignore[arg-type]
    if not isinstance(column, Integer):
        return seen(x)
    wide = np.clip(np.where(np.isnan(x), 0, x), -WIDE, WIDE)
    whole = bool((wide == np.floor(wide)).all())
    return pd.arrays.IntegerArray(wide.astype(np.int64), np.isnan(seen(x))) if whole else x
