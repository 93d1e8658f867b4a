"""Rows that are drawn keep the rules of their table and with those above it, whatever noise the release is of."""

from typing import Any

import numpy as np
import pytest
import yaml

from dpmodels.audit.desks import measured
from dpmodels.codec.codes import code_count, code_type
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.tree_gate import TreeGate
from dpmodels.generators.trees.ruled import caution_of_tree
from dpmodels.generators.trees.tree import TreeModel
from dpmodels.hand_off.check_words import are_cautions
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from tests.kit.errors import refused

DAY = "{type: datetime, min: 2024-01-01, max: 2024-03-31, resolution: day}"
TREE = f"""
name: clinic
tables:
  patient:
    key: id
    constraints: [since <= until]
    columns: {{id: {{type: identifier, keep: regenerate}}, since: {DAY}, until: {DAY}}}
  card:
    parent: patient
    constraints: [issued >= patient.since, when color = red then rate > 0.5]
    columns:
      id: {{type: identifier}}
      issued: {DAY}
      color: {{type: categorical, values: [red, blue]}}
      rate: {{type: number, min: 0, max: 1, nullable: true}}
  visit:
    parent: patient
    most: 4
    order: begin
    constraints: [begin >= patient.since, begin <= end, when urgent then end = null, load <= card.rate]
    columns:
      id: {{type: identifier}}
      begin: {DAY}
      end: {{type: datetime, min: 2024-01-01, max: 2024-12-31, resolution: day, nullable: true}}
      urgent: {{type: boolean}}
      load: {{type: number, min: 0, max: 2}}
"""


def tree_of(**changes: Any) -> Tree:
    content = yaml.safe_load(TREE)
    content["tables"]["visit"] |= changes
    return Tree.model_validate(content)


def some_rows(tree: Tree, units: int = 200) -> TreeRecords:
    """Return rows of any values, which no rule has formed."""
    rng = np.random.default_rng(0)
    parents = {"card": np.flatnonzero(rng.random(units) < 0.6), "visit": np.repeat(np.arange(units), 3)}
    rows = {"patient": units, **{name: len(above) for name, above in parents.items()}}
    codes = {
        name: [rng.integers(0, code_count(one), rows[name]).astype(code_type(one)) for one in branch.modelled.values()]
        for name, branch in tree.tables.items()
    }
    return TreeRecords(tree, codes, parents)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> TreeModel:
    """Return a model of hardly anything but noise."""
    tree = tree_of()
    system = create("nacre-tree", {"zooms": 1, "fine_cells": 16}, {"components": 16, "directions": 2, "steps": 5})
    line = system.plan(tree, PrivacyBudget(epsilon=1, delta=1e-5, unit=tree.unit))
    release, _ = measured(system, tmp_path_factory.mktemp("ruled") / "run", line, some_rows(tree))
    return system.fit(release, Craft(seed=0))


def gate_of(tree: Tree, made: TreeRecords) -> TreeGate:
    gate = TreeGate(tree, len(made))
    gate.check(TreeCodec(tree).decode(made))
    gate.settle()
    return gate


@pytest.mark.parametrize("changes", [{}, {"follows": ["begin", "load"]}, {"follows": ["begin"], "unique": True}])
def test_no_row_breaks_a_rule_whether_rows_follow_each_other_or_not(model, changes, tmp_path):
    tree = tree_of(**changes)
    if changes:
        system = create("nacre-tree", {"zooms": 1, "fine_cells": 16}, {"components": 8, "directions": 2, "steps": 3})
        line = system.plan(tree, PrivacyBudget(epsilon=1, delta=1e-5, unit=tree.unit))
        real = some_rows(tree)
        real.codes["visit"][0][:] = np.tile([1, 5, 9], len(real))
        model = system.fit(measured(system, tmp_path / "run", line, real)[0], Craft(seed=0))
    made = model.draw(600, np.random.default_rng(1))
    gate = gate_of(tree, made)
    assert not gate.broken and len(gate.rules.outcomes) == 3
    assert len(made) == 600 and made.rows("visit") > 600 and made.rows("card") > 100


def test_rules_leave_out_hardly_any_row(model):
    content = model.schema.model_dump()
    for table in content["tables"].values():
        table.pop("constraints", None)
    free = Tree.model_validate(content)
    ruled, plain = model.draw(600, np.random.default_rng(2)), None
    model.schema, tree = free, model.schema
    try:
        plain = model.draw(600, np.random.default_rng(2))
    finally:
        model.schema = tree
    assert gate_of(tree, plain).broken
    assert 0.8 < ruled.rows("visit") / plain.rows("visit") < 1.25  # hardly any row is left out


def test_the_same_seed_draws_the_same_rows_and_rules_that_nothing_keeps_are_refused(model):
    one, two = (next(model.sample(50, seed=3)) for _ in range(2))
    assert all((x == y).all() for name in one.codes for x, y in zip(one.codes[name], two.codes[name], strict=True))
    content = yaml.safe_load(TREE)
    content["tables"]["patient"]["constraints"] = [
        "when since >= 2024-01-01 then until < 2024-02-01",
        "when until < 2024-02-01 then since > 2024-03-01",
        "when since > 2024-03-01 then until > 2024-03-01",
    ]
    tree, model.schema = model.schema, Tree.model_validate(content)
    try:
        with refused(DataError, "these rules contradict each other", column=""):
            model.draw(20, np.random.default_rng(0))
    finally:
        model.schema = tree


def test_a_table_that_hardly_keeps_its_rules_is_cautioned_of(model):
    caution = caution_of_tree(model, 0)
    assert caution.startswith("Of the rows that the generator draws, about ") and "`" in caution
    assert are_cautions([caution], model.schema) and not are_cautions(["Of the rows, all are real."], model.schema)
    content = yaml.safe_load(TREE)
    for table in content["tables"].values():
        table.pop("constraints")
    tree, model.schema = model.schema, Tree.model_validate(content)
    try:
        assert caution_of_tree(model, 0) == ""
    finally:
        model.schema = tree
