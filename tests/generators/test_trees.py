"""Units that are drawn have the rows that their tables say, and rows go with what is known of them."""

import numpy as np
import pytest

from dpmodels.audit.desks import measured
from dpmodels.audit.made import firm
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.tree import Tree
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

TREE = firm.make_schema()
QUICK = {"components": 64, "steps": 80}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return the firm as it is drawn from a release of little noise, and as it is."""
    real = firm.make_records(800)
    system = create("nacre-tree", {"zooms": 1, "fine_cells": 32, "runs": 12, "least_runs": 4}, QUICK)
    line = system.plan(TREE, PrivacyBudget(epsilon=100, delta=1e-5, unit=TREE.unit))
    release, _ = measured(system, tmp_path_factory.mktemp("tree") / "run", line, real)
    return real, system.fit(release, Craft(seed=0)).draw(800, np.random.default_rng(0))


def test_every_row_stands_below_one_that_counts_it_and_no_parent_has_too_many(drawn):
    _, made = drawn
    for name, branch in TREE.tables.items():
        if branch.parent:
            assert made.counts(name).max() <= branch.most
            assert (np.diff(made.parents[name]) >= 0).all()
    table = TreeCodec(TREE).decode(made)
    assert TreeCodec(TREE).decode(TreeCodec(TREE).encode(table)).equals(table)


def test_numbers_of_rows_and_what_they_hold_are_about_the_real_ones(drawn):
    for real, made in zip(*(shares(records) for records in drawn), strict=True):
        assert made == pytest.approx(real, abs=0.08)  # what is at its bound can only be less
    assert correlation(drawn[1]) > 0.7 < correlation(drawn[0])


def shares(records):
    """Return figures that hang together across tables, as shares."""
    age, town = records.codes["customer"][0], records.codes["address"][0]
    old = age > 32
    purchases, items = records.counts("purchase"), records.counts("item")
    kind, who = records.codes["purchase"][1], records.parents["purchase"]
    next_one = np.flatnonzero(np.diff(who) == 0)
    return [
        len(town) / len(age),
        float((town == 0)[old[records.parents["address"]]].mean()),
        float(purchases[old].mean() - purchases[~old].mean()) / 3,
        float((kind[next_one] == kind[next_one + 1]).mean()),
        float(items[kind == 0].mean()) / 4,
        float(items[kind == 2].mean()) / 4,
    ]


def correlation(records):
    """Return how the price of an item goes with the age of the customer who bought it."""
    price = records.codes["item"][0]
    payer = records.codes["customer"][0][records.parents["purchase"][records.parents["item"]]]
    known = price < price.max()
    return float(np.corrcoef(payer[known], price[known])[0, 1])


def test_an_order_never_falls_and_rises_where_it_is_unique(tmp_path):
    content = TREE.model_dump()
    content["tables"]["purchase"] |= {"unique": True, "order": "day", "follows": ["kind"]}
    content["tables"]["purchase"]["columns"]["day"] = {"type": "integer", "min": 0, "max": 3}
    tree = Tree.model_validate(content)
    real = firm.make_records(400)
    codes = {**real.codes, "purchase": [(real.positions("purchase") - 1).astype(np.uint8), real.codes["purchase"][1]]}
    records = type(real)(tree, codes, real.parents)
    system = create("nacre-tree", {"zooms": 1}, {"components": 16, "directions": 2, "steps": 5})
    line = system.plan(tree, PrivacyBudget(epsilon=0.5, delta=1e-5, unit=tree.unit))
    release, _ = measured(system, tmp_path / "run", line, records)
    made = system.fit(release, Craft(seed=0)).draw(500, np.random.default_rng(0))
    below = np.diff(made.parents["purchase"]) == 0
    assert (np.diff(made.codes["purchase"][0].astype(int))[below] > 0).all() and made.rows("purchase") > 100


@pytest.mark.parametrize("rules", [[], ["when town = north then customer.age >= 18"]])
def test_a_part_that_is_there_is_never_null_where_its_table_does_not_allow_for_it_whatever_the_mixture_says(
    tmp_path, rules
):
    """Noise can leave no component that knows of a part anything but that it is null."""
    content = TREE.model_dump()
    content["tables"]["address"]["columns"]["town"].pop("nullable")
    content["tables"]["address"]["constraints"] = rules
    tree, real = Tree.model_validate(content), firm.make_records(100)
    real.codes["address"][0][:] %= 2  # null was the third
    records = TreeRecords(tree, real.codes, real.parents)
    system = create("nacre-tree", {"zooms": 1, "fine_cells": 16}, {"components": 16, "steps": 5})
    line = system.plan(tree, PrivacyBudget(epsilon=100, delta=1e-5, unit=tree.unit))
    release, _ = measured(system, tmp_path / "run", line, records)
    model = system.fit(release, Craft(seed=0))
    root = model.models["customer"]
    at = root.partition.names.index("address.town")
    town = slice(*root.partition.offsets[at : at + 2])
    root.probabilities[..., town] = 0
    root.probabilities[..., root.partition.offsets[at + 1] - 1] = 1
    made = model.draw(300, np.random.default_rng(0))
    assert set(made.codes["address"][0].tolist()) == {0, 1} and made.rows("address") > 50
    assert TreeCodec(tree).from_arrow(TreeCodec(tree).to_arrow(made)).rows("address") == made.rows("address")
