"""Trees of tables of any shape, and units that hold anything."""

from typing import Any

import numpy as np

from dpmodels.codec.codes import code_count, code_type
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.tree import Tree


def some_tree(rng: np.random.Generator) -> Tree:
    """Return a tree of two to five tables of any shape, of few columns, with references, and half with a target."""
    tables: dict[str, Any] = {}
    towns = {"key": "town", "groups": int(rng.integers(1, 6)), "columns": {"town": {"type": "identifier"}}}
    towns["rows"] = {"town": [f"town {number}" for number in range(4)]}
    for number in range(int(rng.integers(2, 6))):
        name, parent = f"t{number}", f"t{rng.integers(0, number)}" if number else None
        if parent is not None and depth(tables, parent) > 2:
            parent = "t0"
        key: dict[str, Any] = {f"k{number}": {"type": "identifier", "keep": "regenerate"}}
        columns = {f"a{n}": {"type": "integer", "min": 0, "max": int(rng.integers(1, 6))} for n in range(2)}
        columns["b"] = {"type": "boolean"}
        tables[name] = {"key": f"k{number}", "columns": {**key, **columns}}
        if rng.random() < 0.5:
            tables[name]["columns"]["town"] = {"type": "identifier"}
            tables[name]["refers"] = [{"to": "towns", "by": "town", "nullable": bool(rng.random() < 0.5)}]
        if parent is not None:
            tables[name]["columns"][tables[parent]["key"]] = {"type": "identifier"}
            tables[name] |= {"parent": parent, "most": int(rng.integers(1, 5))}
            tables[name] |= {"follows": ["a0"]} if rng.random() < 0.5 else {}
    target = {"target": f"{rng.choice(list(tables))}.b"} if rng.random() < 0.5 else {}
    return Tree.model_validate({"name": "some", "tables": tables, "public": {"towns": towns}, **target})


def depth(tables: dict[str, Any], name: str) -> int:
    parent = tables[name].get("parent")
    return 1 + depth(tables, parent) if parent else 0


def some_units(tree: Tree, units: int, rng: np.random.Generator, full: bool = False) -> TreeRecords:
    """Return units with any number of rows, or with all the rows there may be."""
    rows, parents = {tree.root: units}, {}
    for name, branch in tree.tables.items():
        if branch.parent is not None:
            counts = np.full(rows[branch.parent], branch.most)
            counts = counts if full else rng.integers(0, branch.most + 1, rows[branch.parent])
            parents[name] = np.repeat(np.arange(rows[branch.parent]), counts)
            rows[name] = len(parents[name])
    codes = {
        name: [rng.integers(0, code_count(one), rows[name]).astype(code_type(one)) for one in branch.modelled.values()]
        for name, branch in tree.tables.items()
    }
    return TreeRecords(tree, codes, parents)
