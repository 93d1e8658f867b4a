"""The internal report: planted defects are caught by the check that names them, and nothing else takes it down."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.comparison import report as internal
from dpmodels.comparison.frame import Frame, Rows
from dpmodels.comparison.report import Options, evaluate_table, load_real
from dpmodels.errors import DataError
from dpmodels.pages.internal import render_internal
from dpmodels.privacy import Sensitive
from tests.kit import population
from tests.kit.errors import refused
from tests.kit.every_kind import EVERY_KIND, make
from tests.kit.population import SCHEMA, draw, judge, rows_of

ROWS = 2000
CHEAP = ("marginals", "rare categories", "correlations", "coverage", "overfitting", "copied rows")
CHECKED = (*CHEAP, "membership inference", "utility of the target")


@pytest.fixture(scope="module")
def tables():
    """Three draws from one population: the real rows, held-out rows, and a synthetic table nobody could better."""
    return [draw(ROWS, seed) for seed in range(3)]


@pytest.fixture(scope="module")
def healthy(tables):
    real, held, made = tables
    return judge(made, real, held)


def failing(report) -> set[str]:
    return {check["name"] for check in report["checks"] if check["holds"] is False}


def test_a_fresh_draw_passes_every_check(healthy):
    assert failing(healthy) == set()
    assert {check["name"] for check in healthy["checks"] if check["holds"]} >= {"overfitting", "membership inference"}
    assert {one["status"] for one in healthy["metrics"].values()} == {"done"}


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (population.copied, "copied rows"),
        (population.copied, "overfitting"),
        (population.unrelated, "correlations"),
        (population.collapsed, "mode collapse"),
        (population.narrowed, "mode collapse"),
        (population.purged, "rare categories"),
        (population.stretched, "one-way marginals"),
        (population.foreign, "categories of the schema"),
    ],
)
def test_a_planted_defect_is_caught_by_its_check(tables, plant, check):
    real, held, made = tables
    report = judge(plant(made, real), real, held, only=CHEAP)
    assert check in failing(report)
    assert "overfitting" not in failing(report) or plant is population.copied


def test_copies_show_in_membership_inference_and_without_held_out_rows(tables):
    real, held, made = tables
    everything = judge(real.iloc[:1500], real, held, only=("membership inference",))
    assert failing(everything) == {"membership inference"}
    found = everything["metrics"]["membership inference"]["result"]
    assert found["distance"]["epsilon_lower_bound"] > 1
    alone = judge(population.copied(made, real), real, None, only=("copied rows", "overfitting"))
    assert failing(alone) == {"copied rows"}
    assert "--test" in next(check["finding"] for check in alone["checks"] if check["name"] == "overfitting")


def test_a_useless_table_fails_on_utility_and_a_group_that_pays_is_named(tables):
    real, held, made = tables
    useless = made.assign(ill=np.random.default_rng(0).permutation(made["ill"]))
    wrong = made.assign(ill=np.where((made["ward"] == "west") & (made["ill"] == "yes"), "no", made["ill"]))
    assert "utility" in failing(judge(useless, real, held, only=("utility of the target",)))
    found = judge(wrong, real, held, only=("utility by group",))["metrics"]["utility by group"]["result"]
    assert (found["groups"][0]["column"], found["groups"][0]["value"]) == ("ward", "west")
    assert found["distributions"][0]["value"] == "west"
    assert found["distributions"][0]["total_variation"] > 0.2


def test_utility_of_every_column_has_intervals_that_hold_its_score(healthy):
    for name in SCHEMA.modelled:
        metric = "utility of the target" if name == SCHEMA.target else f"utility of column {name}"
        found = healthy["metrics"][metric]["result"]
        for score in ("tstr", "trtr", "difference"):
            low, high = found[f"{score}_interval"]
            assert low < found[score] < high
        assert low < 0.02 and high > -0.02  # a fresh draw is as good as the real rows


def test_a_classifier_tells_a_bad_table_and_not_a_fresh_one(tables, healthy):
    real, held, made = tables
    fair = {name: healthy["metrics"][name]["result"] for name in ("two-sample test", "pMSE")}
    assert fair["two-sample test"]["auroc_interval"][0] < 0.51
    assert 0.3 < fair["pMSE"]["ratio"] < 2.5
    bad = judge(population.stretched(made, real), real, held, only=("two-sample test", "pMSE"))["metrics"]
    assert bad["two-sample test"]["result"]["auroc"] > 0.8
    assert next(iter(bad["two-sample test"]["result"]["what_gives_it_away"])) == "age"
    assert bad["pMSE"]["result"]["ratio"] > 10


def test_test_rows_that_are_training_rows_are_refused_and_chance_is_not(tables):
    real, held, made = tables
    for leaked in (real, real.iloc[:300], pd.concat([held.iloc[:1500], real.iloc[:300]]), real.iloc[[7]]):
        with refused(DataError, "kept from it", column="") as refusal:
            judge(made, real, leaked, only=CHEAP)
        assert not any(character.isdigit() for character in str(refusal.value))
    few = [table.assign(age=table["age"] // 50, income=0, rent=0) for table in tables]  # most rows have a twin
    assert judge(few[2], few[0], few[1], only=("marginals",))["rows"]["held_out"] == ROWS


@pytest.mark.parametrize("rows", [1, 3, 12])
def test_no_metric_fails_on_a_table_of_few_rows(tables, rows):
    real, held, _ = tables
    for made in (draw(rows, 5), draw(1, 6).iloc[[0] * rows]):
        report = judge(made, real.iloc[:150], held.iloc[:150])
        assert {one["status"] for one in report["metrics"].values()} <= {"done", "skipped"}


def test_one_failing_metric_is_shown_and_costs_no_other(tables, monkeypatch):
    real, held, made = tables

    def broken(case):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(internal, "correlation_facts", broken)
    report = judge(made, real, held, only=CHEAP)
    assert report["metrics"]["correlations"]["status"] == "failed"
    assert {report["metrics"][name]["status"] for name in CHEAP if name != "correlations"} == {"done"}
    verdict = next(check for check in report["checks"] if check["name"] == "correlations")
    assert verdict["holds"] is None and "ZeroDivisionError" in verdict["finding"]
    page = render_internal(report)
    assert "(ZeroDivisionError)" in page and "planted" not in page, "a library may quote a value"


def test_the_result_is_the_same_on_one_thread_and_on_four(tables):
    real, held, made = tables
    one, four = (judge(made, real, held, only=CHECKED, workers=workers) for workers in (1, 4))
    assert [one["checks"], one["rows"]] == [four["checks"], four["rows"]]


def test_results_are_sensitive_until_they_are_written(tables):
    real, _, made = tables
    options = Options(only=("marginals",))
    side = load_real(Sensitive(rows_of(real)), None, SCHEMA, options)
    report = evaluate_table(side, rows_of(made), options)
    assert isinstance(side, Sensitive) and isinstance(report, Sensitive)
    with pytest.raises(TypeError, match="never pickled"):
        __import__("pickle").dumps(report)


def test_marginals_count_every_row_of_a_table_larger_than_the_sample(tables, monkeypatch):
    real, _, made = tables
    whole = judge(made, real, None, only=("marginals", "rare categories"))
    monkeypatch.setattr(internal, "SAMPLE", 500)
    sampled = judge(made, real, None, only=("marginals", "rare categories"))
    assert sampled["rows"]["real"] == sampled["rows"]["synthetic"] == ROWS
    first, second = (one["metrics"]["marginals"]["result"]["total_variation_1_way"] for one in (whole, sampled))
    assert {name: first[name] for name in ("ward", "smoker", "ill")} == {
        name: second[name] for name in ("ward", "smoker", "ill")
    }


def test_a_sample_is_uniform_whole_when_small_and_does_not_depend_on_batches(tables):
    real = tables[0]
    rows = rows_of(real)
    np.testing.assert_array_equal(rows.sample(10**6, 0).values[:, 0], real["age"])
    means = [rows.sample(200, seed).values[:, 2].mean() for seed in range(40)]
    assert len(rows.sample(200, 0)) == 200
    spread = real["rent"].std() / 200**0.5
    assert abs(np.mean(means) - real["rent"].mean()) < 4 * spread / 40**0.5
    assert 0.6 * spread < np.std(means) < 1.4 * spread
    places = np.concatenate([Rows(SCHEMA, rows.batches).sample(200, seed).values[:, 2] for seed in range(40)])
    late = set(real["rent"].iloc[1900:])
    assert 0.02 < np.mean([value in late for value in places]) < 0.08  # the end of the table is drawn from as well


def test_the_page_and_the_figures_hold_together(healthy, tmp_path):
    page = render_internal(healthy)
    assert page.count("SENSITIVE") >= 2 and "http" not in page.replace("http-equiv", "")
    target = internal.write_report(Sensitive(healthy), tmp_path)
    assert json.loads(target.read_text())["checks"] == healthy["checks"]
    assert "<svg" in page and "lower bound, not proof" in page and target.with_suffix(".html").exists()


def test_a_table_of_nothing_but_nulls_or_one_row_still_gets_its_report(tables):
    real, held, made = tables
    partial(judge, made.iloc[:1], real, held)()
    report = judge(made.assign(income=np.nan), real, held)
    assert "one-way marginals" in failing(report)
    assert report["metrics"]["marginals"]["result"]["null_share"]["income"][1] == 1.0


def test_columns_of_every_kind_are_compared_encoded_or_as_written():
    schema = make(EVERY_KIND)
    codec, rng = Codec(schema), np.random.default_rng(0)
    cells = np.stack([rng.integers(0, size, 900) for size in codec.cell_sizes], axis=1).astype(np.int32)
    records = codec.from_cells(cells, rng)
    parts = [records.take(slice(start, start + 300)) for start in (0, 300, 600)]
    written = [codec.decode(part).to_batches() for part in parts]
    for part, batches in zip(parts, written, strict=True):
        np.testing.assert_array_equal(
            Frame.concat(list(Rows(schema, [part]).each(lambda frame: frame))).values,
            Frame.concat(list(Rows(schema, batches).each(lambda frame: frame))).values,
        )
    side = load_real(Sensitive(Rows(schema, [parts[0]])), Sensitive(Rows(schema, written[1])), schema, Options())
    report = evaluate_table(side, Rows(schema, written[2]), Options()).reveal()
    assert {name: one for name, one in report["metrics"].items() if one["status"] == "failed"} == {}
    assert failing(report) <= {"utility"}  # nothing can be learnt from columns that are drawn without each other
