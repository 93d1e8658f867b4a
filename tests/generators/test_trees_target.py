"""A tree's target is measured with every other column, class by class, and drawn with its table."""

from typing import Any

import numpy as np
import pytest
import yaml

from dpmodels.audit.desks import measured
from dpmodels.audit.made import firm
from dpmodels.codec.encode import Records
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.tree import Tree
from dpmodels.generators.load import load_generator
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.trees.given import GivenColumns
from dpmodels.generators.trees.tree import TreeModel
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

QUICK = {"components": 32, "steps": 60}


def fitted(target: str, folder: Any) -> tuple[TreeRecords, TreeModel]:
    """Return the firm with a target, and a model of it from a release of little noise."""
    tree, real = Tree.model_validate({**yaml.safe_load(firm.SCHEMA_TEXT), "target": target}), firm.make_records(600)
    records = TreeRecords(tree, real.codes, real.parents)
    system = create("nacre-tree", {"zooms": 1, "fine_cells": 32, "runs": 12, "least_runs": 4}, QUICK)
    line = system.plan(tree, PrivacyBudget(epsilon=100, delta=1e-5, unit=tree.unit))
    release, _ = measured(system, folder / "run", line, records)
    return records, system.fit(release, Craft(seed=0))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return fitted("purchase.kind", tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    return fitted("address.town", tmp_path_factory.mktemp("towns"))


def test_a_target_below_the_root_keeps_its_shares_and_what_goes_with_it(kinds):
    real, model = kinds
    assert len(model.models["purchase"].probabilities) == 3 and len(model.models["item"].probabilities) == 1
    made = model.draw(600, np.random.default_rng(0))
    shares = [np.bincount(each.codes["purchase"][1], minlength=3) / each.rows("purchase") for each in (real, made)]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.06
    for records in (real, made):
        assert 2.5 < records.counts("item")[records.codes["purchase"][1] == 2].mean() <= 4  # tools have most items
        assert 0.6 < repeats(records) < 0.95
    table = TreeCodec(real.tree).decode(made)
    assert TreeCodec(real.tree).decode(TreeCodec(real.tree).encode(table)).equals(table)


def repeats(records: TreeRecords) -> float:
    """Return how often a purchase is of the kind of the one before."""
    kind, who = records.codes["purchase"][1], records.parents["purchase"]
    after = np.flatnonzero(np.diff(who) == 0)
    return float((kind[after] == kind[after + 1]).mean())


def test_a_target_in_a_part_is_never_null_where_it_may_not_be_and_goes_with_the_unit(towns):
    real, model = towns
    for records in (real, model.draw(600, np.random.default_rng(0))):
        town, age = records.codes["address"][0], records.codes["customer"][0][records.parents["address"]]
        assert 0.35 < len(town) / len(records) < 0.65 and set(town) <= {0, 1, 2}
        assert (town == 0)[age > 40].mean() > 0.85 and (town == 0)[age < 25].mean() < 0.15


def test_a_class_is_drawn_given_the_others_as_its_components_say(kinds):
    """Against the sum over classes and components, written out for one row."""
    mixture: MixtureModel = kinds[1].models["purchase"]
    mixture = MixtureModel(**{**vars(mixture), "labels": None, "coupling": None})
    names = mixture.partition.names
    draw = GivenColumns(mixture, {"purchase.kind"}, [name for name in names if name != "customer.age"])
    row = Records(np.zeros((1, len(names) + 1), dtype=np.int32), np.full((1, len(names) + 1), 0.3))
    cell = int(mixture.partition.cells(row)[0, names.index("customer.age")])
    begin = mixture.partition.offsets[names.index("customer.age")]
    shares = mixture.class_counts.clamp_min(0).numpy()
    odds = shares / shares.sum() * mixture.probabilities[:, :, begin + cell].numpy().mean(axis=1)
    drawn = draw.draw(row.take(np.zeros(4000, dtype=int)), np.random.default_rng(0))
    labels = drawn.states[:, mixture.partition.class_column]
    assert np.bincount(labels, minlength=3) / 4000 == pytest.approx(odds / odds.sum(), abs=0.03)


def test_a_model_with_a_target_is_read_back_as_it_was_written(kinds, tmp_path):
    real, model = kinds
    model.save(tmp_path / "generator.safetensors")
    again = load_generator(tmp_path / "generator.safetensors", real.tree, {"tree"})
    one, other = (each.draw(50, np.random.default_rng(3)) for each in (model, again))
    assert all((x == y).all() for name in one.codes for x, y in zip(one.codes[name], other.codes[name], strict=True))
