"""A tree's hash is of all its tables: the same for the same units in any order, and another for any other ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmodels.codec.codes import code_count
from dpmodels.codec.encode import Records
from dpmodels.codec.fingerprint import Fingerprint
from dpmodels.codec.tree import TreeRecords
from dpmodels.codec.tree_fingerprint import TreeFingerprint
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from tests.kit.trees import some_tree, some_units

SECRET = b"k" * 32


def digest(*parts: TreeRecords, secret: bytes = SECRET) -> str:
    whole = TreeFingerprint(parts[0].tree, secret)
    for part in parts:
        fingerprint = TreeFingerprint(part.tree, secret)
        fingerprint.add(part)
        whole.merge(fingerprint)
    return whole.digest


def reordered(records: TreeRecords, table: str, order: NDArray[Any]) -> TreeRecords:
    """Return rows of a table without children in another order, which keeps those of a parent together."""
    codes = {**records.codes, table: [column[order] for column in records.codes[table]]}
    return TreeRecords(records.tree, codes, {**records.parents, table: records.parents[table][order]})


@pytest.mark.parametrize("seed", range(8))
def test_units_and_rows_in_any_order_are_the_same_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    units = some_units(tree, 30, rng)
    order = rng.permutation(30)
    assert digest(units) == digest(units.take(order[:11]), units.take(order[11:]))
    assert digest(units) != digest(units, secret=b"l" * 32)
    for name in tree.tables:
        if name != tree.root and not tree.children(name):
            parents = units.parents[name]
            shuffled = np.lexsort((rng.random(len(parents)), parents))
            assert digest(reordered(units, name, shuffled)) == digest(units)


@pytest.mark.parametrize("seed", range(8))
def test_one_other_code_parent_or_unit_makes_another_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    units = some_units(tree, 30, rng)
    others = [digest(units), digest(units.take(np.arange(29))), digest(units, units.take([0]))]
    for name, branch in tree.tables.items():
        for place, column in enumerate(branch.modelled.values()):
            if len(units.codes[name][place]):
                codes = [each.copy() for each in units.codes[name]]
                row = rng.integers(len(codes[place]))
                codes[place][row] = (codes[place][row] + 1) % code_count(column)
                others.append(digest(replace(units, codes={**units.codes, name: codes})))
        if name != tree.root and len(above := units.parents[name]):
            moved = above.copy()
            moved[-1] = units.rows(str(branch.parent)) - 1
            changed = replace(units, parents={**units.parents, name: moved})
            others += [digest(changed)] if moved[-1] != above[-1] and not tree.children(name) else []
    assert len(set(others)) == len(others)


def test_a_row_that_moves_to_an_equal_parent_stays_where_it_counts() -> None:
    content: dict[str, Any] = {"columns": {"k": {"type": "identifier", "keep": "regenerate"}}, "key": "k"}
    content["columns"]["a"] = {"type": "boolean"}
    below = {"parent": "t", "most": 3, "columns": {"k": {"type": "identifier"}, "b": {"type": "boolean"}}}
    tree = Tree.model_validate({"name": "x", "tables": {"t": content, "u": below}})

    def units(parents: Sequence[int], values: Sequence[int] = (0, 1, 0)) -> TreeRecords:
        return TreeRecords(tree, {"t": [np.zeros(2, np.uint8)], "u": [np.array(values)]}, {"u": np.array(parents)})

    assert digest(units([0, 0, 1])) == digest(units([0, 1, 1], (0, 0, 1)))  # the units changed places
    assert len({digest(units(parents, (0, 0, 1))) for parents in ([0, 0, 0], [0, 0, 1], [0, 1, 1])}) == 3


def test_public_rows_count_by_their_keys_and_not_by_their_places() -> None:
    def units(rows: Mapping[str, list[str]], codes: list[int]) -> TreeRecords:
        towns = {"key": "town", "columns": {"town": {"type": "identifier"}}, "rows": rows}
        columns = {"k": {"type": "identifier", "keep": "regenerate"}, "town": {"type": "identifier"}}
        refers = [{"to": "towns", "by": "town", "nullable": True}]
        tables = {"t": {"key": "k", "columns": {**columns, "a": {"type": "boolean"}}, "refers": refers}}
        tree = Tree.model_validate({"name": "x", "tables": tables, "public": {"towns": towns}})
        return TreeRecords(tree, {"t": [np.zeros(3, np.uint8), np.array(codes)]}, {})

    first = digest(units({"town": ["a", "b"]}, [0, 1, 2]))
    assert first == digest(units({"town": ["c", "b", "a"]}, [2, 1, 3]))
    assert first != digest(units({"town": ["c", "b", "a"]}, [2, 0, 3]))


def test_tables_have_the_hashes_that_earlier_versions_remembered() -> None:
    columns = {"b": {"type": "integer", "min": 0, "max": 9}, "a": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "x", "columns": columns})
    codes = [np.arange(10).astype(np.uint8), (np.arange(10) % 2).astype(np.uint8)]
    digests = []
    for by_name in (False, True):
        fingerprint = Fingerprint(schema, SECRET, by_name, kinds=7)
        fingerprint.add(Records.coded(list(schema.modelled.values()), codes))
        digests.append(fingerprint.digest[:16])
        assert fingerprint.kinds == 7
    assert digests == ["f564c6d8afe22d71", "9e02df0479de67df"]
