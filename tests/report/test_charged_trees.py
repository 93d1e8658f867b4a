"""The charged scores of a tree of tables: whatever a unit holds, it moves all of them together by what is charged."""

from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from dpmodels.audit.desks import measured
from dpmodels.audit.made import firm
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.tree import Tree
from dpmodels.embeddings.cell_counts import STEP
from dpmodels.errors import Unsuitable
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.report.charged import ScoreMeasurement, Scores
from dpmodels.report.charged_facts import charged_facts
from tests.kit.errors import refused
from tests.kit.trees import some_tree, some_units

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)


def firm_with(target: str | None) -> Tree:
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    return Tree.model_validate(content | ({"target": target} if target else {}))


def units(tree: Tree, number: int, seed: int = 0) -> TreeRecords:
    records = firm.make_records(number, seed)
    return TreeRecords(tree, records.codes, records.parents)


def scores_of(tree: Tree, made: TreeRecords, **settings: Any) -> tuple[Scores, Line]:
    half = len(made) // 2
    scores = Scores(ScoreMeasurement(**settings), [made.take(slice(0, half)), made.take(slice(half, None))])
    return scores, scores.plan(tree, BUDGET.model_copy(update={"unit": tree.unit}))


def trained(scores: Scores, line: Line) -> tuple[Any, np.ndarray]:
    """Return what the programme counts, and what it keeps of the synthetic units."""
    programme = scores.steps(line)
    kept = next(programme).integers()
    return programme.send(kept).embedding, kept


@pytest.mark.parametrize("seed", range(20))
def test_a_unit_of_any_tree_moves_all_scores_together_by_the_sensitivity_at_most(seed):
    rng = np.random.default_rng(seed)
    tree = some_tree(rng)
    scores, line = scores_of(tree, some_units(tree, 30, rng), classifiers=["logistic"])
    embedding, _ = trained(scores, line)
    others, bound = some_units(tree, 4, rng), Scores.reading(line).of(line).embedding([]).l2_sensitivity
    assert embedding.l2_sensitivity == bound and embedding.dim == len(embedding.coordinates()["cell"])
    without = embedding.lattice_sum(others).numpy()
    for full in (True, False):
        one, moves = some_units(tree, 1, rng, full), []
        for place in (0, 2, 4):
            parts = [others.take(slice(0, place)), one, others.take(slice(place, None))]
            moves.append(embedding.lattice_sum(TreeRecords.concat(parts)).numpy() - without)
        assert all((move == moves[0]).all() for move in moves)
        assert moves[0].min() >= 0 and np.linalg.norm(moves[0]) <= bound
    same = embedding.lattice_sum(alike(tree, rng)).numpy()  # all rows of a unit in the same cells: the most there is
    assert bound * 0.98 < np.linalg.norm(same) <= bound


def alike(tree: Tree, rng: np.random.Generator) -> TreeRecords:
    """Return a unit with one row in every table, which moves each histogram by a whole record."""
    unit = some_units(tree, 1, rng, full=True)
    codes, parents = {tree.root: unit.codes[tree.root]}, {}
    for name in unit.parents:
        codes[name] = [column[:1] for column in unit.codes[name]]
        parents[name] = np.zeros(1, dtype=np.int64)
    return TreeRecords(tree, {name: codes[name] for name in tree.tables}, parents)


@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (2 / 3, False), (3 / 2, False)])
def test_noise_has_the_charged_scale_and_no_other(tmp_path, scale, accepted):
    tree = firm_with("purchase.kind")
    scores, line = scores_of(tree, units(tree, 300, 1))
    embedding, _ = trained(scores, line)
    total, noise = embedding.lattice_sum(units(tree, 300)).numpy(), []
    for run in range(6):
        release, _ = measured(scores, tmp_path / str(run), line, units(tree, 300))
        noise.append(release.value.vector - total)
    drawn = np.concatenate(noise) / (scale * line.noise_stddev(0, embedding.l2_sensitivity))
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(drawn))
    assert (low < (drawn**2).sum() < high) == accepted


def facts_of(tree: Tree, made: TreeRecords, real: TreeRecords) -> dict[str, Any]:
    """Return what is said of scores without noise."""
    scores, line = scores_of(tree, made)
    embedding, kept = trained(scores, line)
    return charged_facts(Release(line=line, vector=embedding.lattice_sum(real).numpy(), entry="e", chosen=kept))


@pytest.mark.parametrize("target", ["purchase.kind", "address.town", "item.price", None])
def test_every_column_is_compared_once_and_a_target_within_its_table(target):
    tree = firm_with(target)
    real = units(tree, 1000)
    facts = facts_of(tree, units(tree, 1000, 1), real)
    names = [one["name"] for one in facts["columns"]]
    assert sorted(names) == sorted(tree.overview.columns) and len(set(names)) == len(names)
    assert facts["records"] == 1000 and all(one["measured"] < 0.12 for one in facts["columns"])
    classed = target if target in ("purchase.kind", "address.town") else None
    assert facts["target"] == classed and names[0] == (classed or "customer.age")
    table = next((name for name in tree.measured if classed in tree.attributes(name)), None)
    beside = [name for name in tree.attributes(table) if name != target] if table else []
    assert [one["name"] for one in facts["columns_with_target"]] == beside
    assert [one["scores"][-1]["score"] for one in facts["classifiers"]] == (["accuracy"] * 2 if classed else [])
    assert all(one["scores"][-1]["value"] > 0.6 for one in facts["classifiers"])  # the kind of the purchase before


def test_shares_are_of_units_each_weighing_one_whatever_it_holds():
    """A third of the purchases are of customers with three of them, but these are not a third of the customers."""
    tree = firm_with(None)
    real = units(tree, 1000)
    embedding, _ = trained(*scores_of(tree, units(tree, 100, 1)))
    part = next(part for part in embedding.parts if part.table == "purchase")
    (of_kind,) = [counts for counts in part.rows.unpack(part.lattice_sum(real).numpy()) if len(counts) == 3]
    who, counts = real.parents["purchase"], real.counts("purchase")
    by_hand = np.bincount(real.codes["purchase"][1], weights=1 / counts[who], minlength=3)
    assert of_kind == pytest.approx(by_hand, rel=1e-3) and by_hand.sum() == pytest.approx((counts > 0).sum())


def test_a_broken_table_below_shows_and_no_other():
    tree = firm_with("purchase.kind")
    made = units(tree, 1000, 1)
    broken = {**made.codes, "item": [np.zeros_like(made.codes["item"][0])]}
    facts = facts_of(tree, TreeRecords(tree, broken, made.parents), units(tree, 1000))
    assert [one["name"] for one in facts["columns"] if one["low"] > 0.2] == ["item.price"]


def test_what_is_kept_of_synthetic_units_counts_parts_of_rows():
    tree = firm_with(None)
    made = units(tree, 200, 1)
    embedding, kept = trained(*scores_of(tree, made))
    assert (kept[2:] == embedding.lattice_sum(made).numpy()).all() and (kept[2:] % STEP != 0).any()
    assert kept[0] + kept[1] == len(made)


def test_scores_of_nothing_are_refused():
    with refused(Unsuitable, "name at least one score"):
        scores_of(firm_with(None), units(firm_with(None), 20), marginals=False)
