"""The charged scores: their sensitivity and noise, what they say where the truth is known, and their intervals."""

from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.translation import to_dp_accounting
from dpmodels.audit.made import pictures
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.cell_counts import STEP
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.report.charged import ScoreMeasurement, Scores, read_measurement, tables_of
from dpmodels.report.charged_facts import accuracy, auroc, charged_facts
from tests.kit.errors import refused
from tests.kit.support import make_records, make_schema, measured

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
ROWS = 3000


def scores_of(made: Records, schema: Schema, **settings: object) -> tuple[Scores, Line]:
    scores = Scores(ScoreMeasurement(**settings), [made.take(slice(0, 700)), made.take(slice(700, None))])
    return scores, scores.plan(schema, BUDGET.model_copy(update={"unit": schema.unit}))


def l2_of(line: Line) -> int:
    return Scores.reading(line).of(line).embedding([]).l2_sensitivity


def trained(scores: Scores, plan: Line) -> tuple[Embedding, np.ndarray]:
    """Return what the programme counts, and what it keeps of the synthetic rows."""
    programme = scores.steps(plan)
    kept = next(programme).integers()
    return programme.send(kept).embedding, kept


@pytest.fixture(scope="module")
def exact() -> tuple[Line, np.ndarray, Release]:
    """A release without noise, of rows of the same population as the synthetic ones."""
    scores, plan = scores_of(make_records(ROWS, seed=1), make_schema())
    embedding, kept = trained(scores, plan)
    vector = embedding.lattice_sum(make_records(ROWS)).numpy()
    return plan, vector, Release(line=plan, vector=vector, entry="e", chosen=kept)


@pytest.mark.parametrize("unit", ["record", {"user": "patient", "max_rows": 3}])
def test_one_unit_more_moves_the_vector_by_exactly_the_sensitivity(unit):
    schema = make_schema(unit=unit)
    scores, plan = scores_of(make_records(500, seed=1), schema)
    embedding, _ = trained(scores, plan)
    rows, extreme = make_records(100), make_records(100).take([int(np.argmax(make_records(100).values[:, 0]))])
    worst = extreme.take([0] * schema.unit.max_rows)  # all rows of a user in the same cells
    step = embedding.lattice_sum(Records.concat([rows, worst])) - embedding.lattice_sum(rows)
    assert l2_of(plan) - schema.unit.max_rows < np.linalg.norm(step.double().numpy()) <= l2_of(plan)
    assert step.min() >= 0 and step.sum() == schema.unit.max_rows * STEP * len(embedding.sizes)


@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (2 / 3, False), (3 / 2, False)])
def test_noise_has_the_charged_scale_and_no_other(tmp_path, exact, scale, accepted):
    plan, total, _ = exact
    scores, _ = scores_of(make_records(ROWS, seed=1), make_schema())
    noise = []
    for run in range(3):
        release, ledger = measured(scores, tmp_path / str(run), plan, make_records(ROWS))
        noise.append(release.value.vector - total)
        assert [entry.kind for entry in ledger.entries(account="a")] == ["open", "reserve", "draw", "seal", "commit"]
    drawn = np.concatenate(noise) / (scale * plan.noise_stddev(0, l2_of(plan)))
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(drawn))
    assert (low < (drawn**2).sum() < high) == accepted


def test_both_lines_together_cost_what_dp_accounting_says():
    from dp_accounting.pld import PLDAccountant

    lines = [Nacre().plan(make_schema(), BUDGET), scores_of(make_records(50), make_schema())[1]]
    accountant = PLDAccountant()
    for line in lines:
        accountant.compose(to_dp_accounting(line.event))
        assert float(spent_epsilon([line.event], Decimal("1e-5"))) <= BUDGET.epsilon
    ours = float(spent_epsilon([line.event for line in lines], Decimal("1e-5")))
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3) and 1.3 < ours < 1.6


def test_without_noise_the_scores_are_those_of_the_textbook(exact):
    from sklearn.metrics import accuracy_score, roc_auc_score

    plan, vector, _ = exact
    table = tables_of(ScoreMeasurement(), plan.table)[1]
    assert table.kind == "trees"
    counts = vector[table.cells * 2 : table.cells * 4].reshape(2, table.cells) / STEP
    label, score = (np.repeat(places.ravel(), counts.ravel().astype(int)) for places in np.indices(counts.shape))
    right = np.repeat(np.eye(2), table.cells // 2, axis=1)
    assert auroc(counts, 0.0)[0] == pytest.approx(roc_auc_score(label, score), abs=1e-4)
    assert accuracy(counts, right, 0.0)[0] == pytest.approx(accuracy_score(label, score >= 10), abs=1e-4)
    assert roc_auc_score(label, score) > 0.75  # the models learned what there is


def with_noise(exact: tuple[Line, np.ndarray, Release], draws: int, epsilon_scale: float = 1.0) -> list[dict]:
    plan, vector, release = exact
    stddev = plan.noise_stddev(0, l2_of(plan))
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        noise = np.rint(rng.normal(0, stddev * epsilon_scale, len(vector))).astype(np.int64)
        found.append(charged_facts(release.model_copy(update={"vector": vector + noise})))
    return found


def test_intervals_hold_the_truth_19_times_in_20_and_no_wider_than_needed(exact):
    (truth,), drawn = with_noise(exact, 1, 0.0), with_noise(exact, 200)
    for place in range(2):
        for score in range(2):
            true = truth["classifiers"][place]["scores"][score]["value"]
            noisy = [facts["classifiers"][place]["scores"][score] for facts in drawn]
            held = np.mean([one["low"] - 1e-4 <= true <= one["high"] + 1e-4 for one in noisy])
            assert held >= 0.9  # 5 % of 200 draws are 10, and 20 hardly ever
            width = np.mean([one["high"] - one["low"] for one in noisy])
            assert width < 6 * np.std([one["value"] for one in noisy])
            assert abs(np.mean([one["value"] for one in noisy]) - true) < 0.3 * width
    for part in ("columns", "columns_with_target"):
        for place, column in enumerate(truth[part]):
            noisy = [facts[part][place] for facts in drawn]
            assert {one["name"] for one in noisy} == {column["name"]}
            assert np.mean([one["low"] <= column["measured"] <= one["high"] for one in noisy]) >= 0.95
            lift = np.mean([one["measured"] for one in noisy]) - column["measured"]
            assert -0.3 < lift / noisy[0]["noise_alone"] < 1.1  # what noise adds, never more than is said


def test_the_noise_alone_is_what_equal_tables_are_measured_at(exact):
    plan, vector, release = exact
    sizes = [table.classes * table.cells for table in tables_of(ScoreMeasurement(), plan.table)]
    seen = release.chosen.copy()
    seen[2:] = vector // STEP  # the synthetic table is the real one
    drawn = with_noise((plan, vector, release.model_copy(update={"chosen": seen})), 60)
    assert len(sizes) == 6
    for part in ("columns", "columns_with_target"):
        for place in range(len(drawn[0][part])):
            noisy = [facts[part][place] for facts in drawn]
            assert np.mean([one["measured"] / one["noise_alone"] for one in noisy]) == pytest.approx(1, abs=0.2)


def test_a_broken_margin_and_a_broken_model_show(exact):
    broken = make_records(ROWS, seed=1)
    broken.states[:, 3] = 1  # everybody smokes
    scores, plan = scores_of(broken, make_schema())
    embedding, kept = trained(scores, plan)
    vector = embedding.lattice_sum(make_records(ROWS)).numpy()
    facts = charged_facts(Release(line=plan, vector=vector, entry="e", chosen=kept))
    smoker = next(one for one in facts["columns"] if one["name"] == "smoker")
    assert smoker["low"] > 0.5 and facts["columns"][0]["name"] == "sick" and facts["columns"][0]["low"] == 0
    best = {one["model"]: one["scores"][0]["value"] for one in facts["classifiers"]}
    good = {one["model"]: one["scores"][0]["value"] for one in with_noise(exact, 1, 0.0)[0]["classifiers"]}
    assert all(best[model] < good[model] - 0.05 for model in good)


def test_pictures_are_scored_by_a_model_of_their_pixels():
    schema, real = pictures.make_schema(), pictures.make_records(400)
    scores, plan = scores_of(pictures.make_records(400, seed=1), schema)
    embedding, kept = trained(scores, plan)
    vector = embedding.lattice_sum(real).numpy()
    facts = charged_facts(Release(line=plan, vector=vector, entry="e", chosen=kept))
    assert [one["model"] for one in facts["classifiers"]] == ["logistic regression"] and facts["columns"] == []
    assert facts["classifiers"][0]["scores"][-1]["value"] > 0.8


@pytest.mark.parametrize(
    ("target", "models", "columns", "pairs"),
    [("ward", ["accuracy"] * 2, 5, 4), ("age", [], 5, 0), (None, [], 5, 0)],
)
def test_a_target_of_more_classes_or_of_none_gets_the_scores_that_it_can_have(target, models, columns, pairs):
    schema = make_schema(target=target)
    scores, plan = scores_of(make_records(600, seed=1), schema)
    embedding, kept = trained(scores, plan)
    vector = embedding.lattice_sum(make_records(600)).numpy()
    facts = charged_facts(Release(line=plan, vector=vector, entry="e", chosen=kept))
    assert [score["score"] for one in facts["classifiers"] for score in one["scores"]] == models
    assert (len(facts["columns"]), len(facts["columns_with_target"])) == (columns, pairs)
    assert facts["records"] == 600 and all(one["measured"] < 0.1 for one in facts["columns"])


def test_a_synthetic_table_with_one_class_only_is_scored_all_the_same():
    made = make_records(100, seed=1)
    made.states[:, 4] = 1
    scores, plan = scores_of(made, make_schema())
    embedding, kept = trained(scores, plan)
    vector = embedding.lattice_sum(make_records(400)).numpy()
    facts = charged_facts(Release(line=plan, vector=vector, entry="e", chosen=kept))
    assert facts["classifiers"][0]["scores"][0]["value"] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("score_bins", 7), ("cells", 1), ("classifiers.0", ["svm"]), ("shuffle", True), ("training_rows", 1)],
)
def test_impossible_settings_are_refused_by_name(name, value):
    with refused(InvalidArgument, name=f"report.{name}"):
        read_measurement({name.removesuffix(".0"): value})


def test_a_report_of_nothing_is_refused():
    with pytest.raises(Unsuitable, match="name at least one score"):
        scores_of(make_records(20), make_schema(target=None), marginals=False)


def test_scores_are_planned_beside_a_workload_which_they_do_not_read() -> None:
    plain, asked = (make_schema(**more) for more in ({}, {"workload": [{"by": "ward"}]}))
    budget = PrivacyBudget(epsilon=1, delta=1e-5)
    assert Scores().plan(asked, budget).event == Scores().plan(plain, budget).event
