"""Whatever a unit holds, it moves the sum over a table of a tree as one record does at most (embeddings/branch.py)."""

import numpy as np
import pytest
import torch

from dpmodels.audit.made import firm
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.tree import Tree
from dpmodels.embeddings.branch import BranchSum
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.zoom import Zoom, ZoomCounts
from dpmodels.methods.tables.tree import BranchLooks, TreeMeasurement
from tests.kit.trees import some_tree, some_units

ONE_WAY, TWO_WAY = 1 << 20, 1 << 18


def sums_of(tree: Tree) -> list[BranchSum]:
    """Return moments of every flat table, with all pairs, as nacre weighs them, and of cells that are zoomed into."""
    sums = []
    for name in tree.measured:
        looks = BranchLooks(TreeMeasurement(), tree, name)
        fine = Partition.fine(tree.flat_of(name), 8)
        sums.append(BranchSum(name, Moments(fine, ONE_WAY, TWO_WAY, 1)))
        sums.append(BranchSum(name, looks.second_on(fine, looks.one_way, looks.two_way)))
        sums.append(BranchSum(name, ZoomCounts(Zoom.coarse(fine, 2, 1), 1)))
    return sums


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.nightly_if("[2-5]?")  # beside twenty other trees
def test_a_unit_of_any_tree_moves_every_sum_as_one_record_does_wherever_it_is_put(seed):
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    crowd = some_units(tree, 6, rng)
    for unit in (some_units(tree, 1, rng), some_units(tree, 1, rng, full=True)):
        worlds = [TreeRecords.concat([crowd.take(slice(0, at)), unit, crowd.take(slice(at, None))]) for at in (0, 3, 6)]
        for each in sums_of(tree):
            without, alone = each.lattice_sum(crowd), each.lattice_sum(unit)
            for world in worlds:
                moved = each.lattice_sum(world) - without
                assert torch.equal(moved, alone)  # a unit adds the same in any company, at any place
                assert squared(moved) <= each.l2_sensitivity**2


def squared(vector: torch.Tensor) -> int:
    return sum(int(x) ** 2 for x in vector.tolist())


def test_alike_rows_of_a_unit_reach_the_bound_and_rows_that_all_weigh_one_pass_it():
    tree = firm.make_schema()
    unit = some_units(tree, 1, np.random.default_rng(0), full=True)
    codes = {name: [np.full_like(each, 1) for each in unit.codes[name]] for name in unit.codes}
    alike = TreeRecords(tree, codes, unit.parents)
    each = BranchSum("item", Moments(Partition.fine(tree.flat_of("item"), 8), ONE_WAY, 0, 1))
    reach = squared(each.lattice_sum(alike)) ** 0.5 / each.l2_sensitivity
    assert 0.8 < reach <= 1  # places among the rows differ
    unweighed = each.rows.weighed_sum(alike.flat("item"), "cpu", 1)
    assert squared(unweighed) > (5 * each.l2_sensitivity) ** 2


@pytest.mark.parametrize("seed", range(20))
def test_the_weights_of_a_units_rows_add_up_to_one_in_every_table_that_it_has_rows_in(seed):
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    units = some_units(tree, 5, rng)
    unit = {tree.root: np.arange(5)}
    for name, above in units.parents.items():
        unit[name] = unit[str(tree.tables[name].parent)][above]
        weight = np.bincount(unit[name], 1 / units.shares[name], minlength=5)
        assert (weight <= 1 + 1e-9).all()
        direct = tree.tables[name].parent == tree.root
        assert not direct or np.allclose(weight[weight > 0], 1)


def test_rules_change_nothing_that_is_measured():
    content = firm.make_schema().model_dump()
    content["tables"]["purchase"]["constraints"] = ["when kind = books then customer.age >= 20"]
    content["tables"]["address"]["constraints"] = ["when town = north then customer.age >= 20"]
    ruled, free = Tree.model_validate(content), firm.make_schema()
    units = firm.make_records(20)
    for one, other in zip(sums_of(ruled), sums_of(free), strict=True):
        same = TreeRecords(ruled, units.codes, units.parents)
        assert one.l2_sensitivity == other.l2_sensitivity
        assert torch.equal(one.lattice_sum(same), other.lattice_sum(units))
