"""A discovery is planned within its budget, drawn as it was planned, and read as it was drawn."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import GaussianEvent, ThresholdEvent, leaves
from dpmodels.contract.discovery.discovery import Discovery, MarkedKeys
from dpmodels.errors import ArtifactError, DataError, InvalidArgument
from dpmodels.mechanisms import gaussian
from dpmodels.methods.tables.thresholded_counts import DiscoveryMeasurement, DiscoverySystem
from dpmodels.privacy import PrivacyBudget, PrivacyUnit, Sensitive
from dpmodels.reading.load import RawRows
from dpmodels.releases.release import read_release
from dpmodels.releases.steps import Data
from tests.kit.errors import refused
from tests.kit.support import desk_in, measured
from tests.releases.make_golden_discovery import BUDGET, CONTRACT, GOLDEN, facts_of, make_rows

SYSTEM = DiscoverySystem()
LINE = SYSTEM.plan(CONTRACT, BUDGET)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-6, 3e-9])
def test_its_events_keep_the_budget_and_waste_none_of_it(epsilon, delta):
    line = SYSTEM.plan(CONTRACT, PrivacyBudget(epsilon=epsilon, delta=delta))
    spent = spent_epsilon([line.event], line.budget.delta_exact)
    assert Decimal(str(epsilon)) * Decimal("0.9999") < spent <= Decimal(str(epsilon))
    noise, threshold = leaves([line.event])
    assert isinstance(noise, GaussianEvent) and isinstance(threshold, ThresholdEvent)
    assert threshold.delta == delta / 2


def test_without_an_open_set_there_is_no_threshold_and_all_of_delta_is_for_the_noise():
    contract = CONTRACT.model_copy(update={"wanted": {"age": CONTRACT.wanted["age"]}})
    line = SYSTEM.plan(contract, BUDGET)
    assert isinstance(line.event, GaussianEvent) and line.measurement["threshold"] == 0
    assert line.event.noise_multiplier < next(leaves([LINE.event])).noise_multiplier


def test_pure_differential_privacy_is_refused():
    with refused(InvalidArgument, name="delta", value=0):
        SYSTEM.plan(CONTRACT, PrivacyBudget(epsilon=1.0, delta=0.0))


@pytest.mark.parametrize("columns", [1, 2, 6])
@pytest.mark.parametrize("max_rows", [1, 3])
def test_the_worst_unit_moves_the_counts_by_what_is_said_and_by_no_more(columns, max_rows):
    unit = PrivacyUnit(user="u", max_rows=max_rows) if max_rows > 1 else PrivacyUnit()
    names = [f"c{index}" for index in range(columns)]
    wanted = {name: MarkedKeys(type="categorical", keys=("values",)) for name in names}
    contract = Discovery(name="a", unit=unit, columns=("u", *names), wanted=wanted)
    line = SYSTEM.plan(contract, PrivacyBudget(epsilon=1.0, delta=1e-6, unit=unit))
    (step,) = SYSTEM.steps(line)
    rows = pa.table({name: ["x"] * max_rows for name in names})
    exact = step.counts(Data(Sensitive(rows.to_batches()))).reveal()
    moved = np.linalg.norm(np.concatenate([exact.public, exact.found]))
    assert 0.999 * step.l2_sensitivity <= moved <= step.l2_sensitivity


@pytest.mark.parametrize("other", ["x", None, "2020-02-30"])
@pytest.mark.parametrize("place", [1, 3])
def test_of_json_lines_one_text_decides_for_no_other_what_it_is(tmp_path, other, place):
    """Left to itself, Arrow reads text as moments if all of it in a block is moments."""
    contract = Discovery(
        name="a",
        columns=("id", "code", "day"),
        wanted={
            "code": MarkedKeys(type="categorical", keys=("values",)),
            "day": MarkedKeys(type="datetime", keys=("min", "max")),
        },
    )
    rows = [{"id": 1, "code": "2020-01-01", "day": "2020-12-31T23:30:00-05:00"}] * 3
    one = {"id": 2, "code": other, "day": other}
    (step,) = SYSTEM.steps(SYSTEM.plan(contract, BUDGET))
    counts = []
    for index, table in enumerate((rows, [*rows[:place], one, *rows[place:]])):
        path = tmp_path / f"{index}.jsonl"
        path.write_text("\n".join(map(json.dumps, table)))
        exact = step.counts(Data(Sensitive(RawRows(path, contract.reading(), 100)))).reveal()
        counts.append(dict(zip(exact.keys.to_pylist(), exact.found.tolist(), strict=True)) | {"": exact.public})
    moved = [counts[1].get(key, 0) - counts[0].get(key, 0) for key in {**counts[0], **counts[1]}]
    assert np.linalg.norm(np.hstack(moved)) <= step.l2_sensitivity


@pytest.mark.parametrize("place", [0, 150, 300])
def test_with_the_noise_copied_a_neighbor_leaves_the_same_names(tmp_path, monkeypatch, place):
    """The noise of each count is that of its name, so that neighbors differ in what they hold and in nothing else."""
    rows, one = make_rows(), pa.table({"ward": ["Zebulon only"], "age": [51], "day": make_rows()["day"][:1]})
    worlds = [rows, pa.concat_tables([rows[:place], one, rows[place:]])]
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    left = [measured(SYSTEM, tmp_path / str(index), LINE, *world.to_batches()) for index, world in enumerate(worlds)]
    first, second = (release.value for release, _ in left)
    assert first.columns.equals(second.columns) and "sZebulon only" not in second.columns["key"].to_pylist()
    moved = np.linalg.norm(second.vector - first.vector)
    assert moved <= SYSTEM.of(LINE).l2_sensitivity


def test_one_charge_is_made_and_the_draw_is_entered_before_the_noise(tmp_path, monkeypatch):
    states = []

    def sampler(values, stddev):
        states.append([entry.kind for entry in desk.ledger.entries()])
        return gaussian.discrete_gaussian(values, stddev)

    monkeypatch.setattr(gaussian, "_sampler", sampler)
    desk = desk_in(tmp_path, LINE)
    SYSTEM.measure(Sensitive(make_rows().to_batches()), LINE, desk)
    assert states == [["open", "reserve", "draw"]]
    assert [entry.kind for entry in desk.ledger.entries()] == ["open", "reserve", "draw", "seal", "commit"]


def test_a_step_with_a_lower_threshold_than_is_paid_for_is_not_drawn(tmp_path, monkeypatch):
    real = DiscoverySystem.programme

    def lower(self, design):
        return real(self, replace(design, spec=design.spec.model_copy(update={"threshold": design.spec.threshold - 1})))

    monkeypatch.setattr(DiscoverySystem, "programme", lower)
    with pytest.raises(ArtifactError, match="threshold"):
        measured(SYSTEM, tmp_path, LINE, *make_rows().to_batches())


@pytest.mark.parametrize("changed", [{"threshold": 1}, {"steps_per_row": 1}, {"threshold_share": 0.9}])
def test_a_line_with_other_rules_than_its_events_pay_for_is_refused(tmp_path, changed):
    line = LINE.model_copy(update={"measurement": {**LINE.measurement, **changed}})
    with pytest.raises(ArtifactError, match="not the one that this version makes"):
        measured(DiscoverySystem.of_line(line), tmp_path, line, *make_rows().to_batches())


def test_what_is_found_is_what_is_there(tmp_path):
    release, _ = measured(SYSTEM, tmp_path, LINE, *make_rows().to_batches())
    found = SYSTEM.found(release.value)
    assert found["ward"].values == ("north", "south")
    assert (found["age"].low, found["age"].high) == (20.0, 100.0)
    assert (found["day"].low, found["day"].high) == (2020.0, 2021.0)
    assert 0.1 < found["age"].null_share < 0.5
    assert SYSTEM.found(release.value) == found


def test_numbers_at_few_places_are_named_to_the_last_digit(tmp_path):
    places = [-1.204084686093323, 0.1, 7.0, 1e300]
    column = pa.array([place for place in places for _ in range(20_000)])
    wanted = {"score": MarkedKeys(type="categorical", keys=("values",))}
    contract = Discovery(name="a", columns=("score",), wanted=wanted)
    line = SYSTEM.plan(contract, PrivacyBudget(epsilon=1.0, delta=1e-6))
    release, _ = measured(SYSTEM, tmp_path, line, *pa.table({"score": column}).to_batches())
    found = SYSTEM.found(release.value)["score"]
    assert found.values == (-1.204084686093323, 0.1, 7) and 19_000 < found.unread < 21_000


def test_a_few_far_outliers_do_not_make_the_bounds(tmp_path):
    counts = {"C": 20000, "far": 4}
    ages = [5] * counts["C"] + [1_000_000] * counts["far"]
    contract = Discovery(name="a", columns=("age",), wanted={"age": MarkedKeys(type="integer", keys=("min", "max"))})
    line = SYSTEM.plan(contract, PrivacyBudget(epsilon=100.0, delta=1e-6))
    release, _ = measured(SYSTEM, tmp_path, line, *pa.table({"age": ages}).to_batches())
    found = SYSTEM.found(release.value)["age"]
    assert (found.low, found.high) == (5.0, 10.0)


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda folder: folder.name)
def test_a_kept_release_is_read_for_ever(folder):
    assert facts_of(folder / "discovery.parquet") == json.loads((folder / "facts.json").read_text())


def test_a_version_with_other_defaults_reads_it_to_the_same_bits(monkeypatch):
    (folder,) = GOLDEN.iterdir()
    release = read_release(folder / "discovery.parquet").value
    others = DiscoverySystem(DiscoveryMeasurement(tail=0.4, longest=3, most_power=2, null_room=0.0))
    assert others.found(release) == DiscoverySystem.of_line(release.line).found(release)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_text_file_that_breaks_its_rule_is_refused_before_the_charge(tmp_path: Path, name: str) -> None:
    """The check reads it to its end: what it holds is counted inside a charge."""
    whole = {"t.csv": "fee,day\n1,2\n", "t.jsonl": '{"fee": 1, "day": 2}\n'}[name]
    reading = Discovery(
        name="t", columns=("fee", "day"), wanted={"fee": MarkedKeys(type="number", keys=("min", "max"))}
    ).reading()
    (tmp_path / name).write_text(whole)
    RawRows(tmp_path / name, reading, 10).check()
    (tmp_path / name).write_text(whole + '3,"')
    with pytest.raises(DataError):
        RawRows(tmp_path / name, reading, 10).check()
