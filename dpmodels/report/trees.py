"""What a report says of every table of a tree: its columns, each unit weighing one (contract/tree.py).

Privacy: post-processing of what was released, the synthetic rows and public parameters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from dpmodels.codec.encode import Codec
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.derivation.derived import Derived
from dpmodels.methods.parts.marginals import Marginals
from dpmodels.methods.registry import create
from dpmodels.methods.tables.tree import NacreTree
from dpmodels.releases.contract import tree_of
from dpmodels.report.bins import CellTally
from dpmodels.report.derived.shares import derived_facts
from dpmodels.report.fidelity import Measured
from dpmodels.report.report import column_facts, with_cut


class TreeTally(CellTally):
    """Counts units by the cells of the root's columns, and the rows of every other table, each unit weighing one."""

    def __init__(self, root: str, marginals: Mapping[str, Marginals]) -> None:
        super().__init__(marginals[root].codec)
        self.root, self.marginals = root, marginals
        self.below = {name: CellTally(one.codec) for name, one in marginals.items() if name != root}

    @classmethod
    def of(cls, measured: Measured) -> "TreeTally":
        """Return a count of no rows, on the cells that were released."""
        line = measured.release.line
        system = cast(NacreTree, create(line.method, line.measurement, {}))
        return cls(tree_of(line.contract).root, system.marginals_of(measured.release))

    def add_units(self, records: TreeRecords) -> None:
        """Count more units with all their rows."""
        self.add(records.flat(self.root))
        for name, tally in self.below.items():
            weights = 1.0 / records.shares[name]
            tally.add(records.flat(name), float(weights.sum()), weights)

    def join(self, other: CellTally) -> None:
        super().join(other)
        if isinstance(other, TreeTally):
            for name, tally in self.below.items():
                tally.join(other.below[name])


def facts_of_tables(measured: Measured, first: Sequence[Any], tally: TreeTally) -> dict[str, Any]:
    """Describe the columns of every table; of those below the root, shares are of the units that have rows there.

    Those that follow from others are described by the ``first`` synthetic units.
    """
    line = measured.release.line
    tree = tree_of(line.contract)
    columns, derived = list[dict[str, Any]](), list[dict[str, Any]]()
    for name in tree.measured:
        here, marginals = tally if name == tally.root else tally.below[name], tally.marginals[name]
        cells = dict(zip(here.codec.columns, here.cells, strict=True))
        for key in tree.attributes(name):
            column = here.codec.columns[key]
            shares = cells[key] / (here.rows or 1)
            facts = column_facts(key, column, np.asarray(shares), marginals, line.measurement, here.mean(key))
            columns.append({"table": name} | with_cut(facts, column, line))
        made = _derived(tree.schema_of(name).derived, here.codec, name, first, columns)
        derived += [{"table": name} | one for one in made]
    return {"columns": columns, **({"derived": derived} if derived else {})}


def _derived(
    derived: Mapping[str, Derived], codec: Codec, table: str, first: Sequence[Any], columns: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Describe the derived columns of a table, each unit weighing one."""
    if not derived or not first:
        return []
    units = TreeRecords.concat(first)
    return derived_facts(derived, codec, units.flat(table), columns, 1.0 / units.shares[table], prefix=f"{table}.")
