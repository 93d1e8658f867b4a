"""The schema as Great Expectations: a gate before a budget is touched, and again before a hand-off."""

import logging
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.errors import DataError
from dpmodels.schema.base import Modelled
from dpmodels.schema.columns import Boolean, Categorical, Continuous, Datetime, Identifier, Image, Integer
from dpmodels.schema.convert import check_type, plain, to_floats, to_keys, to_ticks
from dpmodels.schema.image import check_image_type, images_fit
from dpmodels.schema.schema import Schema

Expectation = tuple[str, dict[str, Any]]
WIDE = 2.0**62  # stands for an infinite whole number: far outside any bounds, and still an int64


def suite_for(schema: Schema, *, raw: bool) -> list[Expectation]:
    """List the expectations as (class name, arguments).

    A raw table is not held to values that the encoding clips, maps to another or drops by policy; a synthetic one
    (``raw=False``) is held to everything, and has no dropped identifiers.
    """
    dropped = {name for name, c in schema.columns.items() if isinstance(c, Identifier) and c.keep == "drop" and not raw}
    names = [name for name in schema.columns if name not in dropped]
    suite: list[Expectation] = [("ExpectTableColumnsToMatchSet", {"column_set": names, "exact_match": True})]
    for name, column in schema.modelled.items():
        outside = getattr(column, "outside", "refuse") if raw else "refuse"
        if not column.nullable and outside != "reject-row":
            suite.append(("ExpectColumnValuesToNotBeNull", {"column": name}))
        if isinstance(column, Integer):
            suite.append(("ExpectColumnValuesToBeInTypeList", {"column": name, "type_list": ["Int64Dtype"]}))
        if outside == "refuse":
            suite.append(_value_rule(name, column))
    if schema.image:  # shown to the suite as true or false: whether every image of the batch fits
        suite.append(("ExpectColumnValuesToBeInSet", {"column": schema.image[0], "value_set": [True]}))
    return suite


def _value_rule(name: str, column: Modelled) -> Expectation:
    if isinstance(column, Continuous):
        low, high = _moments(column) if isinstance(column, Datetime) else (column.low, column.high)
        return "ExpectColumnValuesToBeBetween", {"column": name, "min_value": low, "max_value": high}
    keys = column.keys if isinstance(column, Categorical) else [False, True]
    return "ExpectColumnValuesToBeInSet", {"column": name, "value_set": keys}


def _moments(column: Datetime) -> Any:
    """Return the first and the last tick as datetimes."""
    ticks = np.array([column.low, column.high]).astype(np.int64)
    return ticks.astype(f"datetime64[{column.tick}]").astype("datetime64[s]").tolist()


class Gate:
    """A suite that a stream of batches must pass; it remembers which rules failed, never by which values."""

    def __init__(self, schema: Schema, raw: bool) -> None:
        self.schema = schema
        self.suite = suite_for(schema, raw=raw)
        self._passed = [True] * len(self.suite)

    def check(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Check one more batch against the whole suite.

        Privacy: reads raw rows; what it keeps is one bit a rule, which the operator sees and no release contains.

        Raises:
            DataError: a column is there twice, or of a type that cannot hold its declared values.
        """
        frame = {name: self._series(name, batch) for name in batch.schema.names}
        for index, success in self._validate(frame).items():
            column = self.suite[index][1].get("column")
            if column is None or column in frame:
                self._passed[index] &= success

    @property
    def failures(self) -> tuple[tuple[str, str], ...]:
        """Return what failed so far as (column, rule of the schema)."""
        failed = [rule for rule, passed in zip(self.suite, self._passed, strict=True) if not passed]
        return tuple((arguments.get("column", ""), self._rule(kind, arguments)) for kind, arguments in failed)

    def results(self) -> list[dict[str, Any]]:
        """List every expectation with its column and success; no values, no counts."""
        return [
            {"expectation": kind, "column": arguments.get("column"), "success": passed}
            for (kind, arguments), passed in zip(self.suite, self._passed, strict=True)
        ]

    def _rule(self, kind: str, arguments: Mapping[str, Any]) -> str:
        if kind == "ExpectTableColumnsToMatchSet":
            return "the columns must be exactly those of the schema"
        if kind == "ExpectColumnValuesToNotBeNull":
            return "must not be null"
        if kind == "ExpectColumnValuesToBeInTypeList":
            return "must hold whole numbers"
        column = self.schema.columns[arguments["column"]]
        return "" if isinstance(column, Identifier) else column.rule

    def _series(self, name: str, batch: pa.RecordBatch | pa.Table) -> Any:
        """Return a column in the pandas form in which null stays null and integers stay integers."""
        if batch.schema.names.count(name) > 1:
            raise DataError(name, "is in the data more than once")
        column = self.schema.columns.get(name)
        if isinstance(column, Image):
            array = plain(batch.column(name))
            check_image_type(name, array.type)
            return np.full(batch.num_rows, images_fit(column, array))
        if column is None or isinstance(column, Identifier):
            return np.zeros(batch.num_rows)  # identifiers and unknown columns are judged by name alone
        array = plain(batch.column(name))
        check_type(name, column, array.type)
        return _to_pandas(column, array)

    def _validate(self, frame: Mapping[str, Any]) -> dict[int, bool]:
        import pandas as pd

        with warnings.catch_warnings():  # third-party deprecations are no business of the caller
            warnings.simplefilter("ignore")
            return self._run(pd.DataFrame(frame))

    @cached_property
    def _run(self) -> Callable[[Any], dict[int, bool]]:
        """Build the Great Expectations suite once; the function runs it on a frame: rule number -> success."""
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

        logging.getLogger(ProgressBarsConfig.__module__).setLevel(logging.WARNING)  # announces temporary folders
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        asset = context.data_sources.add_pandas("tables").add_dataframe_asset("table")
        batches = asset.add_batch_definition_whole_dataframe("all")
        suite = context.suites.add(gx.ExpectationSuite(name="schema"))
        for index, (kind, arguments) in enumerate(self.suite):
            suite.add_expectation(getattr(gx.expectations, kind)(**arguments, meta={"index": index}))

        def run(frame: Any) -> dict[int, bool]:
            batch = batches.get_batch(batch_parameters={"dataframe": frame})
            report = batch.validate(suite, result_format="BOOLEAN_ONLY")
            return {_meta(result)["index"]: bool(result.success) for result in report.results}

        return run


def _meta(result: Any) -> Any:
    return result.expectation_config.meta


def _to_pandas(column: Modelled, array: pa.Array) -> Any:
    import pandas as pd

    if isinstance(column, Datetime):
        ticks = to_ticks(array, column.tick)
        moments = np.where(np.isnan(ticks), 0, ticks).astype(np.int64).astype(f"datetime64[{column.tick}]")
        return np.where(np.isnan(ticks), np.datetime64("NaT"), moments.astype("datetime64[s]"))
    if isinstance(column, Boolean) or (isinstance(column, Categorical) and column.kind == "boolean"):
        return array.cast(pa.bool_()).to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
    if isinstance(column, Categorical):
        return array.cast(pa.large_string()).to_pandas() if column.kind == "text" else to_keys(column, array)
    x = to_floats(array)
    if not isinstance(column, Integer):
        return x
    wide = np.clip(np.where(np.isnan(x), 0, x), -WIDE, WIDE)
    whole = bool((wide == np.floor(wide)).all())
    return pd.arrays.IntegerArray(wide.astype(np.int64), np.isnan(x)) if whole else x
