"""The expectations a schema asks for, as Great Expectations names them, each with the rule in words."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Continuous, Datetime, Discrete, Identifier, Integer, computed, helpers
from dpmodels.contract.derivation.bounds import DerivedBound
from dpmodels.contract.derivation.nested import in_names
from dpmodels.contract.formula import names_in
from dpmodels.contract.identifiers.identifier import uniques_of
from dpmodels.contract.implications import HELD, Implication
from dpmodels.contract.schema import Schema

ROW_COUNT = "ExpectTableRowCountToBeBetween"
NOT_NULL = "ExpectColumnValuesToNotBeNull"
WHOLE = "ExpectColumnValuesToBeInTypeList"
UNIQUE = "ExpectColumnValuesToBeUnique"
REPEATED = "must not have the same value in two rows"
ONCE_CLIPPED = ", also once `outside: clip` has set values to bounds"
ONCE_ROUNDED = ", also once they are rounded: give both the same `round` or `resolution`"
MORE_NULLS = f"{NOT_NULL} in most rows"
FIXES = {
    "ExpectTableColumnsToMatchSet": "give the data the columns of the schema, or the schema those of the data",
    ROW_COUNT: "see that the file is whole, or correct `rows` in the schema",
    NOT_NULL: "write `nullable: true` in the schema",
    MORE_NULLS: "raise its `max_null_share` in the schema",
    "ExpectColumnValuesToBeBetween": "correct the values, widen `min` and `max` from what is public, or write "
    "`outside: clip`",
    "ExpectColumnValuesToBeInSet": "correct the values (upper and lower case and spaces count, and empty text is a "
    "value, no null), add to `values` what is public, or write `outside: other`",
    UNIQUE: "leave out rows that are there twice, or write `unit: {user: COLUMN, max_rows: N}` for `unique: true`",
    WHOLE: "write `type: number` in the schema, or round the values",
}
"""What to do about a broken expectation."""
COMPUTED = (
    "{name} is not in the file but computed from {operands}, and without a result in some row, as where one of these "
    "is empty: fill that in, or write `nullable: true` for {name} in the schema"
)
FIXES_OF_ROWS = {
    "ExpectColumnValuesToBeBetween": " or `outside: reject-row`",
    "ExpectColumnValuesToBeInSet": " or `outside: reject-row`",
}
"""What else can be done where rows may be left out one by one, which beside ``users`` they may not."""


@dataclass(frozen=True)
class Rule:
    """One expectation.

    Attributes:
        expectation: class name in Great Expectations.
        arguments: of that class.
        text: what it asks for, in the schema's words.
        operands: the columns that its column is computed from, or follows from by a formula.
    """

    expectation: str
    arguments: dict[str, Any]
    text: str
    operands: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """Name the column it is about; empty for the whole table and for a rule of several columns."""
        name = str(self.arguments.get("column", ""))
        return "" if name.startswith(HELD) else name

    @property
    def columns(self) -> tuple[str, ...]:
        """Name every column it reads."""
        return tuple(self.arguments[key] for key in ("column", "column_A", "column_B") if key in self.arguments)

    @property
    def is_formula(self) -> bool:
        """Tell whether it holds a column to a formula."""
        return self.arguments.get("value_set") == [True] and bool(self.column and self.operands)

    @property
    def share(self) -> float:
        """Return the share of rows that must keep it."""
        return float(self.arguments.get("mostly", 1.0))

    def fix(self, of_users: bool) -> str:
        """Say what to do about a table that breaks it; a bound or a list is widened from public knowledge alone."""
        whole = self.arguments.get("value_set") == [True]  # an image, or a column that follows from others
        kind = MORE_NULLS if self.expectation == NOT_NULL and "mostly" in self.arguments else self.expectation
        if self.operands and kind == NOT_NULL:
            return f"to fix it: {COMPUTED.format(name=self.column, operands=' and '.join(self.operands))}"
        remedy = FIXES.get("" if whole else kind, "correct the rows, or what the schema says of them")
        return f"to fix it: {remedy}" + ("" if of_users or whole else FIXES_OF_ROWS.get(self.expectation, ""))

    def __str__(self) -> str:
        column = f"column {self.column} " if self.column else ""
        return f"{column}{self.text}"


def columns_of_table(columns: Mapping[str, Any], there: Collection[str]) -> dict[str, Any]:
    """Return the columns of a table that may have been made, and which has these names.

    What is not modeled may be missing, unless a column that is missing too is computed from it. A computed column that
    the table has is a plain one.
    """
    needed = {one for name, formula in computed(columns).items() if name not in there for one in names_in(formula)}
    kept = {n: one for n, one in columns.items() if n in there or n in needed or isinstance(one, Modelled)}
    plain = {name: kept[name].model_copy(update={"computed": None}) for name in computed(columns) if name in there}
    return kept | plain


def dropped_from(schema: Schema) -> frozenset[str]:
    """Name the identifiers of a raw table that no synthetic one has."""
    columns = schema.columns.items()
    return frozenset(name for name, column in columns if isinstance(column, Identifier) and column.keep == "drop")


def lacking_from(schema: Schema) -> frozenset[str]:
    """Name the columns of a schema that a table which was handed over lacks."""
    return dropped_from(schema) | helpers(schema.columns)


def names_tell(schema: Schema) -> bool:
    """Tell whether the names of a table's columns say that it is raw: some are dropped from it, or computed."""
    return bool(dropped_from(schema) or computed(schema.columns).keys() - helpers(schema.columns))


def judged_by_row(schema: Schema) -> tuple[Implication | DerivedBound, ...]:
    """Return the rules that Great Expectations see as columns of true and false."""
    return (*schema.implications, *schema.derived_bounds)


def suite_for(schema: Schema, *, raw: bool, rows: int | None = None) -> list[Rule]:
    """List the expectations of a raw table, or of a synthetic one that should have ``rows`` rows.

    A raw table is not held to values that the encoding clips, maps to another or drops by policy; a synthetic one
    (``raw=False``) is held to everything, and has no dropped identifiers.
    """
    dropped = frozenset() if raw else dropped_from(schema)
    names = [name for name in schema.columns if name not in dropped]
    rules = [HELD + rule.text for rule in judged_by_row(schema)]  # shown to the suite as columns of true and false
    exactly = {"column_set": names + rules, "exact_match": True}
    without = f", without {', '.join(sorted(dropped))}" if dropped else ""
    text = f"the columns must be exactly those of the schema{without}"
    suite = [Rule("ExpectTableColumnsToMatchSet", exactly, text)]
    suite += _row_count(schema, raw, rows)
    suite += [Rule(UNIQUE, {"column": name}, REPEATED) for name in uniques_of(schema.columns) if raw]
    for name, column in schema.modelled.items():
        suite += _column_rules(name, column, "refuse" if not raw else getattr(column, "outside", "refuse"))
    if schema.image:  # shown to the suite as true or false: whether every image of the batch fits
        name, image = schema.image
        suite.append(Rule("ExpectColumnValuesToBeInSet", {"column": name, "value_set": [True]}, image.rule))
    for name, derived in schema.derived.items():  # as images: whether every row holds what is derived
        said = in_names(name, schema.columns) if raw else derived  # a hand-off's words stay as they were
        kept = {"column": name, "value_set": [True]}
        suite.append(Rule("ExpectColumnValuesToBeInSet", kept, said.rule, tuple(said.operands)))
    for rule in schema.rules:
        pair = {"column_A": rule.upper, "column_B": rule.lower, "or_equal": not rule.strict}
        pair["ignore_row_if"] = "either_value_is_missing"
        columns = [schema.columns[name] for name in (rule.lower, rule.upper)]
        is_clipped = raw and any(getattr(one, "outside", "") == "clip" for one in columns)
        forms = {(getattr(one, "round", None), getattr(one, "resolution", None)) for one in columns}
        is_rounded = raw and columns[0].type == columns[1].type and len(forms) > 1
        also = ONCE_CLIPPED * is_clipped + ONCE_ROUNDED * is_rounded
        text = f"`{rule}` must hold in every row{also}"
        suite.append(Rule("ExpectColumnPairValuesAToBeGreaterThanB", pair, text))
    for text in rules:
        holds = {"column": text, "value_set": [True]}
        suite.append(Rule("ExpectColumnValuesToBeInSet", holds, f"`{text.strip()}` must hold in every row"))
    return suite


def _row_count(schema: Schema, raw: bool, rows: int | None) -> Iterator[Rule]:
    """Hold a raw table to the declared number of rows, a synthetic one to the number that was asked for."""
    if raw and schema.rows:
        low, high = schema.rows.min, schema.rows.max
        words = f"at least {low}" if high is None else f"{low} to {high}"
    elif not raw and rows is not None:
        low = high = rows
        words = f"{rows}"
    else:
        return
    yield Rule(ROW_COUNT, {"min_value": low, "max_value": high}, f"the table must have {words} rows")


def _column_rules(name: str, column: Modelled, outside: str) -> Iterator[Rule]:
    if column.max_null_share is not None:
        share = {"column": name, "mostly": 1 - column.max_null_share}
        yield Rule(NOT_NULL, share, f"may be null in {100 * column.max_null_share:g} % of the rows at most")
    elif not column.nullable and outside != "reject-row":
        formula = getattr(column, "computed", None)
        yield Rule(NOT_NULL, {"column": name}, "must not be null", tuple(names_in(formula)) if formula else ())
    if isinstance(column, Integer):
        whole = {"column": name, "type_list": ["Int64Dtype"]}
        yield Rule(WHOLE, whole, "must hold whole numbers")
    if outside != "refuse":
        return
    if isinstance(column, Continuous):
        low, high = moments(column) if isinstance(column, Datetime) else (column.low, column.high)
        bounds = {"column": name, "min_value": low, "max_value": high}
        yield Rule("ExpectColumnValuesToBeBetween", bounds, column.rule)
    elif isinstance(column, Discrete):
        yield Rule("ExpectColumnValuesToBeInSet", {"column": name, "value_set": column.keys}, column.rule)


def moments(column: Datetime) -> Any:
    """Return the first and the last tick as datetimes."""
    ticks = np.array([column.low, column.high]).astype(np.int64)
    return ticks.astype(f"datetime64[{column.tick}]").astype("datetime64[s]").tolist()
