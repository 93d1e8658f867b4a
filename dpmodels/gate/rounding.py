"""Whether rows that break a formula differ from it by rounding alone, and which formula they keep."""

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.codec.derive import follows, off_by_one_unit, otherwise_rounded, with_computed
from dpmodels.contract.columns import Number, computed
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.nested import named
from dpmodels.contract.formula import Misread, parsed
from dpmodels.contract.schema import Schema
from dpmodels.limits import LONGEST_FORMULA

ROUND = re.compile(r"(?<![\w.])(?:round|floor)\(")
WHOLE = re.compile(r"(?<![\w.])round\(([^()]+)\) / (10+)\b")
"""A part in whole units of its last decimal, such as cents, whose halves may be off by what float64 leaves of them."""
NOTHING = re.compile(r" / (10+) \* \1(?![\w.]| \*\*)")
"""A quotient that is multiplied again."""
HALF = "0.500001"
"""What is added before decimals are cut off, as tills, spreadsheets and databases round halves up: a half, and what
float64 may lack of one."""
FINER, MOST_DECIMALS = (1, 2), 12
POWERS = tuple(10**decimals for decimals in range(MOST_DECIMALS + 1))
"""Further decimals of a computed share that are tried, and the most that a column may have."""
OF_SHARES = (
    "in {broken:,} rows the file differs from its formula since {shares} to {decimals} decimals {are} too coarse for "
    "it; with `round: {finer}` for {shares} it holds in every row"
)
EXACTLY = "; `{formula}` has the last decimal of the file in every row"
SAID = (
    "in {near:,} of the {broken:,} rows that break its formula the file differs from it by one unit of the last "
    "decimal ({unit}) at most, so the file rounds otherwise"
)
INSTEAD = "; `{formula}` with `round: {decimals}` holds in every row{beside}"
PARTS = (
    "; with `round: {decimals}` for {parts} too it holds in every row, since a sum may have been reckoned before its "
    "parts were rounded"
)
ADMITS = ", since it admits a half that is rounded up or down; sums of such columns may be off by that unit"
MODELED = (
    "; no other way of rounding that was tried holds in every row: correct the rows, or write the column as one of its "
    "own, `{{type: number, min: …, max: …, round: {decimals}}}`"
)


class Rounding:
    """The rows in which one derived column differs from its formula, counted over a stream of batches.

    Privacy: exact counts of raw rows, which no run keeps: they are for whoever has the rows at hand.
    """

    def __init__(self, name: str, schema: Schema, decimals: int | None = None) -> None:
        """Count the rows of a column that keeps ``decimals``; by default those that the schema says of it."""
        self.name, self._schema = name, schema
        kept = decimals_of(schema.derived[name]) if decimals is None else decimals
        self._column = schema.derived[name].model_copy(update={"round": kept})
        self._breaking = dict.fromkeys(filter(_is_read, _otherwise(self._column)), 0)
        self._finer = dict.fromkeys(_with_finer_shares(self._column, schema), 0)
        self._parts, self._unrounded = _with_rounded_parts(self._column, schema)
        self._broken = self._near = self._breaking_parts = 0

    @property
    def count(self) -> int:
        """Return in how many rows the file differs by rounding; none where most rows differ by more."""
        return self._near if 2 * self._near > self._broken else self._broken if self._decimals else 0

    @property
    def _decimals(self) -> int:
        """Return the decimals of its shares with which no row breaks it; 0 if it has none, or none of these do."""
        return next((decimals for decimals, breaking in self._finer.items() if self._broken and not breaking), 0)

    @property
    def text(self) -> str:
        """Say in how many rows it is rounding alone, and which formula holds in every row."""
        if finer := self._decimals:
            shares, are = " and ".join(f"`{one}`" for one in self._shares), "are" if len(self._shares) > 1 else "is"
            coarse = max(self._shares.values())
            return OF_SHARES.format(broken=self._broken, shares=shares, decimals=coarse, finer=finer, are=are)
        decimals = self._column.round or 0
        said = SAID.format(near=self._near, broken=self._broken, unit=f"{10.0**-decimals:.{decimals}f}")
        return said + self.remedy

    @property
    def is_explained(self) -> bool:
        """Tell whether other decimals or another formula hold in every row."""
        return bool(self._decimals or self._formula or (self._unrounded and not self._breaking_parts))

    @property
    def _formula(self) -> str:
        return next((one for one, breaking in self._breaking.items() if not breaking), "")

    @property
    def remedy(self) -> str:
        """Say which formula holds in every row, or that none of those does which were tried."""
        decimals, formula = self._column.round or 0, self._formula
        if not formula and self._unrounded and not self._breaking_parts:
            return PARTS.format(decimals=decimals, parts=" and ".join(f"`{one}`" for one in self._unrounded))
        if not formula:
            return MODELED.format(decimals=decimals)
        is_plain = not ROUND.search(formula)
        said = named(formula, self.name, self._schema.columns)
        return INSTEAD.format(formula=said, decimals=decimals, beside=ADMITS if is_plain else "")

    @property
    def _shares(self) -> dict[str, int]:
        return _shares_of(self._column, self._schema)

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"

    def see(self, batch: pa.RecordBatch) -> None:
        """Count one more batch, whose columns are of the types that the schema asks for."""
        columns = self._schema.columns
        breaks = ~follows(self.name, columns, batch, raw=True)
        self._broken += int(breaks.sum())
        if breaks.any():
            near = off_by_one_unit(self.name, {**columns, self.name: self._column}, batch)
            self._near += int((breaks & near).sum())
        if breaks.any() and self._unrounded and not self._breaking_parts:
            self._breaking_parts = int(np.count_nonzero(~follows(self.name, self._parts, batch, raw=True)))
        for formula in [one for one, breaking in self._breaking.items() if not breaking]:
            column = self._column.model_copy(update={"formula": formula})
            fits = follows(self.name, {**columns, self.name: column}, batch)
            self._breaking[formula] = int(np.count_nonzero(~fits))
        for decimals in [one for one, breaking in self._finer.items() if not breaking]:
            (finer,) = with_computed([batch], _with_decimals(self._schema, self._shares, decimals))
            self._finer[decimals] = int(np.count_nonzero(~follows(self.name, columns, finer)))

    def add(self, other: "Rounding") -> None:
        """Add what was counted in other rows."""
        self._broken, self._near = self._broken + other._broken, self._near + other._near
        self._breaking_parts += other._breaking_parts
        self._breaking = {one: breaking + other._breaking[one] for one, breaking in self._breaking.items()}
        self._finer = {one: breaking + other._finer[one] for one, breaking in self._finer.items()}


class LastDecimals:
    """Formulas that round as the file may, which a formula that admits both ways does not, counted over batches.

    Privacy: as ``Rounding``.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        self._name, self._schema, self._column = name, schema, schema.derived[name]
        self._differing = dict.fromkeys(filter(_is_read, _as_files_round(self._column)), 0)

    @property
    def text(self) -> str:
        """Name the formula that has the last decimal of the file in every row; nothing where none of them has."""
        formula = next((one for one, differing in self._differing.items() if not differing), "")
        return EXACTLY.format(formula=named(formula, self._name, self._schema.columns)) if formula else ""

    def see(self, batch: pa.RecordBatch) -> None:
        """Count one more batch, whose columns are of the types that the schema asks for."""
        for formula in [one for one, differing in self._differing.items() if not differing]:
            column = self._column.model_copy(update={"formula": formula})
            columns = {**self._schema.columns, self._name: column}
            fits = follows(self._name, columns, batch) & ~otherwise_rounded(self._name, columns, batch)
            self._differing[formula] = int(np.count_nonzero(~fits))

    def add(self, other: "LastDecimals") -> None:
        """Add what was counted in other rows."""
        self._differing = {one: differing + other._differing[one] for one, differing in self._differing.items()}


def decimals_of(column: Derived) -> int | None:
    """Return the decimals that a derived column keeps, or that its formula rounds to itself; None if it does neither.

    Of ``round(share * 100) / 100`` these are 2.
    """
    if column.round is not None or not column.formula:
        return column.round
    parts = [one for one in ast.walk(parsed(column.formula)) if isinstance(one, ast.BinOp) and _rounds_itself(one)]
    powers = [one.right.value for one in parts if isinstance(one.right, ast.Constant)]
    return max((POWERS.index(power) for power in powers if power in POWERS), default=None)


def _rounds_itself(node: ast.AST) -> bool:
    """Tell whether what a formula gives is rounded by it at last, but for a power of ten and a smallest or largest."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant):
        return _rounds_itself(node.left)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in ("round", "floor") or (
        node.func.id in ("min", "max") and any(map(_rounds_itself, node.args))
    )


def _shares_of(column: Derived, schema: Schema) -> dict[str, int]:
    """Return the decimals of the columns of a formula that are computed to some, such as shares."""
    names = [name for name in column.operands if name in computed(schema.columns)]
    decimals = {name: getattr(schema.columns[name], "round", None) for name in names}
    return {name: number for name, number in decimals.items() if number is not None}


def _with_finer_shares(column: Derived, schema: Schema) -> Iterator[int]:
    """Yield the decimals that its shares may have instead."""
    if shares := _shares_of(column, schema):
        yield from (max(shares.values()) + more for more in FINER if max(shares.values()) + more <= MOST_DECIMALS)


def _with_decimals(schema: Schema, names: dict[str, int], decimals: int) -> Schema:
    """Return the schema with so many decimals of some columns, as rows are computed by it."""
    finer = {name: schema.columns[name].model_copy(update={"round": decimals}) for name in names}
    return schema.model_copy(update={"columns": {**schema.columns, **finer}})


def _with_rounded_parts(column: Derived, schema: Schema) -> tuple[dict[str, Any], list[str]]:
    """Return the columns with the decimals of a sum for those of its parts that say none, and name these."""
    names = [name for name in column.operands if isinstance(one := schema.columns[name], Number) and one.round is None]
    rounded = {name: schema.columns[name].model_copy(update={"round": column.round}) for name in names}
    return {**schema.columns, **rounded}, names if column.round is not None else []


class _HalvesUp(ast.NodeTransformer):
    """Rounds halves up wherever a formula rounds, or cuts decimals off."""

    def visit_Call(self, node: ast.Call) -> ast.expr:  # as ast calls it
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in ("round", "floor"):
            return node
        return parsed(_halves_up(ast.unparse(node.args[0])))


class _SumsRounded(ast.NodeTransformer):
    """Rounds a sum or a difference to the decimals of a column before it is multiplied, as a file of cents has it."""

    def __init__(self, power: int) -> None:
        self._power = power

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:  # as ast calls it
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult):
            node.left, node.right = self._rounded(node.left), self._rounded(node.right)
        return node

    def _rounded(self, part: ast.expr) -> ast.expr:
        is_sum = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub)
        written = f"round(({ast.unparse(part)}) * {self._power}) / {self._power}"
        return parsed(written) if is_sum else part


def _with_rounded_sums(formula: str, power: int) -> str:
    return ast.unparse(_SumsRounded(power).visit(copy.deepcopy(parsed(formula))))


def _halves_up(formula: str) -> str:
    return f"floor({NOTHING.sub('', formula)} + {HALF})"


def _is_read(formula: str) -> bool:
    """Tell whether a schema takes a formula, which is longer and deeper than the one that it is made of."""
    try:
        parsed(formula)
    except Misread:
        return False
    return len(formula) <= LONGEST_FORMULA


def _as_files_round(column: Derived) -> Iterator[str]:
    """Yield formulas that round to the column's decimals themselves: halves up, or as ``round`` does.

    What a part is rounded to, such as a total in whose place its formula stands, may have been rounded so too.
    """
    formula = str(column.formula)
    if not _rounds_itself(parsed(formula)):
        for one in dict.fromkeys((formula, _with_halves_up(formula))):
            yield from _as_rounded(one, 10 ** (column.round or 0))


def _as_rounded(formula: str, power: int) -> Iterator[str]:
    """Yield a formula that is rounded to units of a power of ten: halves up, or as ``round`` does."""
    is_product = re.search(r"[-+%(]|//|\*\*|[<>=]", formula) is None
    if is_product and formula.endswith(f" / {power}"):  # as a rate in percent is
        units = formula.removesuffix(f" / {power}")
    else:
        part = formula if is_product else f"({formula})"
        units = part if power == 1 else f"{part} * {power}"
    for rounded in (_halves_up(units), f"round({units})"):
        written = rounded if power == 1 else f"{rounded} / {power}"
        yield written


def _otherwise(column: Derived) -> Iterator[str]:
    """Yield formulas that round otherwise: by the quotient, halves up, by the column's own decimals, or by cutting."""
    formula, power = str(column.formula), 10 ** (column.round or 0)
    if WHOLE.search(formula):
        yield WHOLE.sub(r"round(\1 / \2 * \2) / \2", formula)
    if ROUND.search(formula):
        yield _with_halves_up(formula)
        if (rounded := _with_rounded_sums(formula, power)) != ast.unparse(parsed(formula)):
            yield rounded
            yield _with_halves_up(rounded)
        yield ROUND.sub("(", formula)
        yield ROUND.sub("floor(", formula)
    if not _rounds_itself(parsed(formula)):
        for one in dict.fromkeys((formula, _with_halves_up(formula))):
            yield f"floor(({one}) * {power}) / {power}" if power > 1 else f"floor({one})"


def _with_halves_up(formula: str) -> str:
    """Round halves up wherever a formula rounds; one that does not stays as it is written."""
    return ast.unparse(_HalvesUp().visit(copy.deepcopy(parsed(formula)))) if ROUND.search(formula) else formula
