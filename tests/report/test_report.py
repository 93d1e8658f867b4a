"""The publishable report: its expected errors against true ones, its fit against good and bad generators, its page."""

import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest

from dpmodels.accounting.events import leaves
from dpmodels.codec.encode import Codec, Records
from dpmodels.embeddings.vectors import transform_vectors
from dpmodels.gate.expectations import Gate
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.methods.registry import create, of_kind
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.methods.tables.pearl import Pearl, PearlMeasurement
from dpmodels.methods.tables.privbayes import PrivBayes
from dpmodels.pages.checks import render_checks
from dpmodels.pages.figures.dependences import dependence_figures
from dpmodels.pages.multiples import pair_tables
from dpmodels.pages.report import DONE, render
from dpmodels.privacy import Sensitive
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, NoisySum, Step, Sum
from dpmodels.report.bins import Bins, CellTally
from dpmodels.report.fidelity import (
    NORMAL_95,
    Measured,
    Summed,
    compare_with_release,
    expected_distance,
    noise_distance_95,
    number_moves,
)
from dpmodels.report.report import summarise
from dpmodels.report.within import DRAWN
from dpmodels.statistics.normal import HALF_NORMAL
from tests.kit.every_kind import make
from tests.kit.reports import BUDGET, facts_of, release_of
from tests.kit.support import make_records, make_schema, make_table, measured

NACRE = Nacre(NacreMeasurement(fine_cells=32))
ROWS = 4000


@pytest.fixture(scope="module")
def real() -> Records:
    return make_records(ROWS)


@pytest.fixture(scope="module")
def facts(real: Records) -> dict:
    return facts_of(NACRE, real, resampled(real))


def resampled(real: Records) -> Records:
    """Draw rows as a perfect generator would: from the real table itself."""
    return real.take(np.random.default_rng(0).integers(0, ROWS, ROWS))


def test_the_expected_distance_is_that_of_the_release_to_the_real_table(real):
    """Over columns and draws, the distance that was foretold is the one that comes about, within sampling error."""
    ratios = []
    for _ in range(6):
        release = release_of(NACRE, real, make_schema())
        marginals = NACRE.marginals(release)
        tally = CellTally(marginals.codec)
        tally.add(real)
        for counts, (_name, one) in zip(tally.cells, marginals.columns.items(), strict=True):
            true = np.bincount(one.cell_of, counts, minlength=len(one.pooled))
            expected = np.sqrt(2 / np.pi) * one.pooled_stddev.sum()
            ratios.append(np.abs(one.pooled - true).sum() / expected)
            assert np.abs(one.counts - counts).max() < 6 * one.stddev
    assert 0.8 < np.mean(ratios) < 1.25


def test_privbayes_foretells_the_distance_of_every_column_from_all_tables_it_is_in(real, tmp_path):
    ratios, once = [], []
    system = PrivBayes()
    plan = system.plan(make_schema(), BUDGET)
    for draw in range(8):
        release = measured(system, tmp_path / str(draw), plan, real)[0].value
        marginals = system.marginals(release)
        tally = CellTally(marginals.codec)
        tally.add(real)
        for counts, one in zip(tally.cells, marginals.columns.values(), strict=True):
            true = np.bincount(one.cell_of, counts, minlength=len(one.pooled))
            ratios.append(np.abs(one.pooled - true).sum() / (np.sqrt(2 / np.pi) * one.pooled_stddev.sum()))
            once.append(one.pooled_stddev.mean() / (one.stddev * np.sqrt(np.bincount(one.cell_of).mean())))
    assert 0.8 < np.mean(ratios) < 1.25
    assert np.mean(once) < 0.9  # the tables tell something beside the histogram
    facts = summarise(Measured.of(release), tally, [real], [], "0" * 64)
    assert all("expected_distance" in column for column in facts["columns"])


@pytest.mark.parametrize("method", ["dp-vae", "dp-gm", "p3gm", "p3gm-ae", "dp-gan", "dpkg"])
def test_a_method_trained_with_noisy_gradients_states_its_classes_and_nothing_else(real, method):
    system = create(method, {}, {})
    plan = system.plan(make_schema(), BUDGET)
    phases, events = system.of(plan), list(leaves([plan.event]))
    data = Data(transform_vectors(phases.vectors, Sensitive([real])))
    true, scores = np.bincount(real.states[:, 4], minlength=2), []
    for _ in range(10):
        looks: list[NoisySum] = []

        def noisy(step: Step, looks: list[NoisySum] = looks) -> NoisySum | None:
            """Answer as a draw does; nothing is trained."""
            if not isinstance(step, Sum):
                return None
            scale = {"l2_sensitivity": step.l2_sensitivity, "noise_multiplier": events[len(looks)].noise_multiplier}
            vector = measure_gaussian(step.total(data), **scale).value
            looks.append(NoisySum(vector, plan.noise_stddev(len(looks), step.l2_sensitivity)))
            return looks[-1]

        built = phases.networks(phases.estimate(noisy, lambda data: data.records), start=False)
        weights = sum(p.numel() for objective in built.objectives for p in objective.released.parameters())
        vectors = [look.vector for look in looks]
        release = Release(line=plan, vector=np.concatenate([*vectors, np.zeros(weights, dtype=np.int64)]), entry="e")
        ((name, one),) = system.marginals(release).columns.items()
        scores.append((one.counts - true) / one.stddev)
    assert name == "sick" and 2 < (np.array(scores) ** 2).sum() < 60  # chi squared of 20: 20 +- 6
    page = render(summarise(Measured.of(release), CellTally(Measured.of(release).codec), [], [], "0" * 64))
    assert "For the other 4 columns no error can be derived" in page


def test_a_column_is_off_by_what_the_report_says(facts, real):
    columns = {column["name"]: column for column in facts["columns"]}
    assert set(columns) == {"age", "ward", "dose", "smoker", "sick"}
    codec = Codec(make_schema())
    for name in ("ward", "smoker", "sick"):
        index = list(codec.columns).index(name)
        true = np.bincount(real.states[:, index], minlength=codec.cell_sizes[index]) / ROWS
        column = columns[name]
        assert np.abs(np.array(column["released"]) - true).max() < 5 * max(column["released_stddev"])
        assert 0 < column["expected_distance"] < 0.2
        assert sum(column["synthetic"]) == pytest.approx(1, abs=1e-6)


def test_the_fit_is_close_for_the_same_distribution_and_far_for_another(real, facts):
    names = [look["look"] for look in facts["fit"]]
    assert names == ["zoom 1", "zoom 2", "zoom 3", "fine one-way", "one- and two-way"]
    events = leaves([NACRE.plan(make_schema(), BUDGET).event])
    assert [name.rstrip(" 123") for name in names] == [event.mechanism for event in events]
    for look in facts["fit"]:
        band = max(0.1, 4 / math.sqrt(2 * look["coordinates"]))  # zooms count a few cells only
        assert abs(look["left"] / look["explained"] - 1) < band and look["explained"] < 1.6
        assert look["signal"] > 2
    independent = make_records(ROWS, seed=1)
    rng = np.random.default_rng(0)
    for index in range(independent.states.shape[1]):
        order = rng.permutation(ROWS)
        independent.states[:, index] = independent.states[order, index]
        independent.values[:, index] = independent.values[order, index]
    release = release_of(NACRE, real, make_schema())
    looks = NACRE.sums(release)
    broken = compare_with_release(release.line, looks, Summed.of(release.line, looks, [independent]))
    assert broken[-1]["left"] > 1.2 * facts["fit"][-1]["left"]  # its margins are right, its pairs are not
    collapsed = real.take(np.zeros(ROWS, dtype=np.int64))
    collapsed_sums = Summed.of(release.line, looks, [collapsed])
    assert compare_with_release(release.line, looks, collapsed_sums)[-1]["left"] > 2 * facts["fit"][-1]["left"]


def test_a_method_without_counts_says_so(real):
    facts = facts_of(Pearl(PearlMeasurement()), real, resampled(real))
    known = [column["name"] for column in facts["columns"] if "released" in column]
    assert known == ["sick"] and facts["pairs"] is None
    assert 0.7 < facts["fit"][0]["left"] < 1.1 * facts["fit"][0]["explained"]
    no_target = make_schema(target=None)
    facts = facts_of(Pearl(PearlMeasurement()), real, make_records(50, seed=1), no_target)
    assert facts["released_records"] is None and "no error of a single column is reckoned" in render(facts)


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ("{type: integer, min: 0, max: 5}", ("0", "1", "2", "3", "4", "5")),
        ("{type: integer, min: 0, max: 1, zero_inflated: true, nullable: true}", ("1", "exactly 0", "null")),
        ("{type: categorical, values: [b, a], nullable: true}", ("b", "a", "null")),
        ("{type: boolean}", ("false", "true")),
        ("{type: number, min: 0, max: 1, cells: 2}", ("0 to 0.5", "0.5 to 1")),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-04, cells: 2}",
            ("2020-01-01 to 2020-01-02", "2020-01-03 to 2020-01-04"),
        ),
    ],
)
def test_bins_are_named_in_the_schemas_own_units(column, labels):
    (modelled,) = make(f"name: one\ncolumns:\n  x: {column}\n").modelled.values()
    assert Bins.of(modelled).labels == labels


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_many_cells_become_two_dozen_bins_that_hold_every_value_once(scale):
    schema = make(f"name: one\ncolumns:\n  x: {{type: integer, min: 0, max: 999, cells: 1000, scale: {scale}}}\n")
    bins = Bins.of(schema.modelled["x"])
    assert len(bins.labels) <= 24 and bins.bin_of_cell[0] == 0 and set(np.diff(bins.bin_of_cell)) == {0, 1}
    assert bins.sizes.sum() == 1000 and (bins.sizes[-1] > 5 * bins.sizes[0]) == (scale == "log")


class Page(HTMLParser):
    """Collects what a page would fetch, and its drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.drawings = 0

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.fetched += [value for key, value in attrs if key in ("src", "srcset") or (tag == "link" and key == "href")]
        assert tag != "script" and not any(key.startswith("on") for key in found)
        self.drawings += tag == "svg" and found.get("role") == "img"


def test_the_page_fetches_nothing_and_draws_every_column(facts):
    page = Page()
    text = render(json.loads(json.dumps(facts)))  # the page is a function of the JSON
    page.feed(text)
    tables = len(pair_tables(facts))
    by_group = len(facts["rates"]["columns"]) + len(facts["groups"])
    drawn = len(facts["columns"]) + 1 + len(dependence_figures(facts)) + tables + by_group
    assert page.drawings == drawn  # the map of pairs, how they depend, some of them, rates and means
    assert 1 <= tables <= len(facts["pairs"]["tables"]) <= DRAWN and text.index('id="pairs"') < text.index(
        ", the farthest off"
    )
    order = [
        text.index(one)
        for one in (
            facts["headline"].partition(";")[0],
            'id="use"',
            'id="columns"',
            'id="pairs"',
            'id="rates"',
            'id="budget"',
            'id="done"',
        )
    ]
    assert order == sorted(order) and text.count("<title>") == text.count("<desc>") + 1 == page.drawings + 1
    assert "zoom" not in text.replace('"mechanism": "zoom"', "") and "rough counts of single columns, round 1" in text
    assert all(address.startswith("data:") for address in page.fetched)
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert (
        "guess right in <strong>73.2 %</strong> of cases" in text and "such a guess is right in 55.4 % of cases" in text
    )
    assert "2.72 times" in text


def test_the_page_says_beneath_the_means_what_was_clipped(facts):
    assert "set to the bound" not in render(facts)
    columns = [one | ({"clipped": [0, 2000]} if "mean" in one else {}) for one in facts["columns"]]
    page = render({**facts, "columns": columns}).replace("\n", " ")
    assert page.index('id="pairs"') < page.index('id="means"') < page.index('id="warnings"')
    assert page.index("Means and large values") < page.index("the figures of these columns are of what was left")


def test_the_table_of_means_has_what_they_could_be_only_where_noise_leaves_one_open(facts):
    columns = [{key: value for key, value in one.items() if key != "unseen"} for one in facts["columns"]]
    assert "the mean could be from" not in render({**facts, "columns": columns})
    doubted = [one | ({"unseen": {"means": [1.0, 2.0]}} if "mean" in one else {}) for one in columns]
    assert "the mean could be from" in render({**facts, "columns": doubted})


def test_names_and_categories_are_text_and_never_markup():
    text = "name: x\ncolumns:\n  '<b>&': {type: categorical, values: ['<script>alert(1)</script>', b]}\n"
    text += "  n: {type: integer, min: 0, max: 3}\n"
    schema = make(text)
    made = Codec(schema).from_cells(np.zeros((20, 2), dtype=np.int32), np.random.default_rng(0))
    page = render(facts_of(NACRE, made, made, schema))
    assert "<script" not in page and "<b>" not in page and "&lt;b&gt;&amp;" in page
    gate = Gate(schema, raw=True)
    gate.check(Codec(schema).decode(made))
    checks = render_checks(gate)
    assert "<b>" not in checks and "&lt;b&gt;&amp;" in checks and "SENSITIVE" in checks


def test_the_number_of_synthetic_rows_is_said_to_be_no_rule_of_the_schema():
    schema = make("name: x\ncolumns:\n  n: {type: integer, min: 0, max: 3}\n")
    counted, uncounted, raw = (render_checks(Gate(schema, *kind)) for kind in ((False, 20), (False,), (True,)))
    one = "One is none of these: how many rows, users or documents were made is what the run"
    assert "among them 0 rules (<code>constraints</code> of schema.yaml)" in counted
    assert f"{one} was asked for or, where it was asked for no number, what noisy counts say;" in counted
    assert "must have 20 rows" in counted and "One is none of these" not in uncounted + raw
    assert "These files may be sent and used once an officer signed" in counted and "officer" not in raw


def test_a_user_as_the_unit_is_said_in_words():
    event = {"kind": "pure", "epsilon": 2.0}
    facts = {"unit": "user:patient:4", "rows_of_a_unit": 4, "spent_epsilon": 2.0, "delta": 1e-6, "event": event}
    from dpmodels.pages.report import _privacy_in_words

    words = _privacy_in_words(facts, None)
    assert (
        words["unit"] == "one user, with at most 4 rows" and words["factor"] == "7.39" and words["guesses"] == "88.1 %"
    )


def test_summaries_count_every_row():
    tally = CellTally(Codec(make_schema()))
    for seed in (0, 1):
        tally.add(make_records(100, seed))
    assert tally.rows == 200 and all(cells.sum() == 200 for cells in tally.cells)
    assert tally.cells[3].tolist() == [
        sum(not smoker for s in (0, 1) for smoker in make_table(100, s)["smoker"].to_pylist()),
        sum(smoker for s in (0, 1) for smoker in make_table(100, s)["smoker"].to_pylist()),
    ]


def test_every_method_is_described_in_words_of_its_own():
    described = {method.removesuffix("-ae") for method in of_kind("table")}
    assert described == set(DONE) and len(set(DONE.values())) == len(DONE)


@pytest.mark.parametrize(("epsilon", "factor"), [(2.0, "7.39"), (700.0, "10^305"), (1000.0, "10^435")])
def test_how_far_odds_move_is_said_of_every_epsilon_that_can_be_spent(epsilon, factor):
    from dpmodels.pages import federated, report

    event = {"kind": "gaussian", "noise_multiplier": 0.1}
    facts = {"unit": "record", "rows_of_a_unit": 1, "spent_epsilon": epsilon, "delta": 1e-6, "event": event}
    assert report._privacy_in_words(facts, None)["factor"] == federated._words(facts)["factor"] == factor


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.5, 0.5), (0.7, 0.2, 0.1), (0.125,) * 8])
def test_the_noise_of_shares_is_what_cells_and_the_number_of_records_make(shares: tuple[float, ...]) -> None:
    rng, real, drawn = np.random.default_rng(0), np.array(shares), []
    for _ in range(1500):
        records = 1000 + rng.normal(0, 4.2)
        noisy = Marginal.plain(1000 * real + rng.normal(0, 3, len(real)), 3.0)
        whole = noisy.adding_up_to(records)
        drawn.append(np.abs(whole.pooled / records - real).sum() / 2)
    moved = 4.2 * number_moves(noisy, whole, records) / records
    mean = np.hypot(expected_distance(whole.pooled_stddev, records), HALF_NORMAL * moved)
    likely = np.hypot(noise_distance_95(noisy.pooled_stddev, records), NORMAL_95 * moved)
    assert np.mean(drawn) == pytest.approx(mean, rel=0.05) and 0.03 < np.mean(np.array(drawn) > likely) < 0.07
