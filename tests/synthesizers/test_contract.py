"""What every method promises, whatever paper it is from: cost, noise, neighbours, one charge, and the way back.

The methods are those of the registry; a new one is one line in ``tests/every_method.py``.
"""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logit, ndtr

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import ComposedEvent, Event, Leaf, ParallelEvent, SampledGaussianEvent, leaves
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.load import load_generator
from dpmodels.ledger.ledger import Ledger
from dpmodels.mechanisms.gaussian import SMOOTHING
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.schema.documents import Documents
from dpmodels.schema.embedded import codec_of, labels_of
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.registry import METHODS, create
from tests import mails, support
from tests.every_method import (
    OF_TABLES,
    QUICK,
    Killed,
    Step,
    Tap,
    crowd,
    extremes,
    fit,
    inserted,
    quick,
    quick_plan,
    tap,
)

__all__ = ["tap"]  # a fixture

TRAINED = [method for method in QUICK if QUICK[method].trained]
every_method = pytest.mark.parametrize("method", METHODS)


def measured(method: str, folder: Path, plan: Line, *batches: Any) -> tuple[Released[Release], Ledger]:
    return support.measured(quick(method), folder, plan, *batches)


def file(folder: Path) -> bytes:
    return (folder / "public" / "r.parquet").read_bytes()


def is_one_sentence(fault: BaseException) -> bool:
    return len(str(fault)) > 20 and ". " not in str(fault) and "\n" not in str(fault)


def with_users(method: str, rows: int) -> Schema | Documents:
    """Return a contract whose unit is a user with so many rows."""
    data = QUICK[method].data
    if data is mails:
        return mails.make_schema(protects="user", user="who", most_documents=rows)
    columns = {"who": {"type": "identifier"}, **data.make_schema().model_dump()["columns"]}
    return data.make_schema(unit={"user": "who", "max_rows": rows}, columns=columns)


def test_every_method_of_the_registry_has_quick_settings():
    assert QUICK.keys() == METHODS.keys()


COSTS = [(method, epsilon) for method in METHODS for epsilon in (0.1, 1.0, 10.0)]
SLOW = [(method, 10.0) for method in TRAINED]  # privacy loss distributions of little noise are long


@pytest.mark.parametrize(
    ("method", "epsilon"), [pytest.param(*cost, marks=pytest.mark.slow if cost in SLOW else ()) for cost in COSTS]
)
def test_it_spends_its_budget_and_no_more(method, epsilon):
    settings = QUICK[method].measurement
    if epsilon > 1 and method in TRAINED:
        settings = {**settings, "sgd": {"steps": 200, "sampling_probability": 0.5}}
    contract = QUICK[method].data.make_schema()
    plan = create(method, settings, {}).plan(contract, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=contract.unit))
    assert 0.99 * epsilon <= spent_epsilon([plan.event], Decimal("1e-5")) <= Decimal(repr(epsilon))


def moved(one: Step, other: Step) -> float:
    """Return how far a neighbour moved what noise was added to: of scores the largest, of vectors the norm."""
    assert (one.kind, one.scale, one.values.shape) == (other.kind, other.scale, other.values.shape)
    step = (other.values - one.values).astype(np.float64)
    return float(np.abs(step).max() if one.kind == "exponential" else np.linalg.norm(step))


def sensitivity(kind: str, scale: float, noise_multiplier: float) -> float:
    """Return the sensitivity for which noise of this scale is what an event of this noise multiplier charges."""
    if kind == "exponential":
        return scale * float(logit(ndtr(0.5 / noise_multiplier)))  # mechanisms/exponential.py proves it
    squared = scale**2 - (SMOOTHING if kind == "gaussian" else 0)
    return math.sqrt(max(squared, 0)) / noise_multiplier


def is_charged_for(kind: str, scale: float, noise_multiplier: float, reach: float) -> bool:
    """Tell whether noise of a scale hides what moves by ``reach`` at most, and is not half as much again."""
    covered = sensitivity(kind, scale, noise_multiplier) * (1 + 1e-9)
    return 2 / 3 * covered < reach <= covered


def plain(event: Event) -> list[Leaf]:
    """Return the releases of an event; of parts side by side those that one event stands for."""
    parts = [plain(each.events[0]) if isinstance(each, ParallelEvent) else [each] for each in leaves([event])]
    return [each for part in parts for each in part]


def charged(plan: Line, tap: Tap) -> list[Leaf]:
    """Return the event that each step is charged for; all steps of DP-SGD are those of the last event."""
    events = plain(plan.event)
    if isinstance(last := events[-1], SampledGaussianEvent):
        assert tap.probabilities == {last.sampling_probability}
        trainings = {key: [step for own, step in tap.streams if own == key] for key, _ in tap.streams}
        assert all(taken == list(range(last.steps)) for taken in trainings.values())  # each on records of its own
        events += [last] * (len(trainings) * last.steps - 1)
    return events


KEYS = [bytes([number] * 32) for number in range(9)]


def reaches(method: str, tap: Tap, folder: Path, plan: Line, unit: int) -> list[tuple[Step, Leaf, float]]:
    """Measure neighbours, with what was released first copied; return steps, their events, and how far they moved.

    Steps with equal events are judged together: nobody is in every batch of DP-SGD. There the neighbours with one more
    at the end are judged, for whoever is behind an inserted record is in other batches.
    """
    data = QUICK[method].data
    table, more = crowd(data), extremes(data)
    tap.silent, tap.given = True, list(KEYS)
    measured(method, folder / "d", plan, table)
    events, steps = charged(plan, tap), tap.restart()
    far = dict.fromkeys(events, 0.0)
    neighbours = [(who, len(table)) for who in range(len(more))] + [(0, 0), (0, len(table) // 2)]
    for number, (who, place) in enumerate(neighbours):
        tap.copy(steps, "gaussian", "exponential", "sgd")
        tap.given = list(KEYS)
        measured(method, folder / str(number), plan, inserted(table, more.take([who] * unit), place))
        assert file(folder / "d") == file(folder / str(number)) and not any(tap.copies.values())
        for one, other, event in zip(steps, tap.restart(), events, strict=True):
            if one.kind != "sgd" or place == len(table):
                far[event] = max(far[event], moved(one, other))
    return [(step, event, far[event]) for step, event in zip(steps, events, strict=True)]


@pytest.mark.parametrize("unit", [1, 2])
@every_method
def test_with_the_release_copied_neighbours_are_one_file_and_a_step_moves_as_far_as_its_noise_hides(
    tmp_path, tap, method, unit
):
    """An extreme record, or user of two, is put first, in the middle and last."""
    schema = QUICK[method].data.make_schema() if unit == 1 else with_users(method, unit)
    if unit > 1 and method in TRAINED:
        with pytest.raises(InvalidArgument, match="one record") as refused:
            quick_plan(method, schema)
        assert is_one_sentence(refused.value)
        return
    for step, event, reach in reaches(method, tap, tmp_path, quick_plan(method, schema), unit):
        for wrong in (1, 2 / 3, 3 / 2):
            is_right = is_charged_for(step.kind, step.scale * wrong, event.noise_multiplier, reach)
            assert is_right == (wrong == 1), (event, reach)


@every_method
def test_any_chunks_and_where_no_batch_is_drawn_any_order_give_the_same_bits(tmp_path, tap, method):
    table, plan = QUICK[method].data.make_records(70), quick_plan(method)
    tap.silent, places = True, np.arange(len(table))
    shuffled = places if method in TRAINED else np.random.default_rng(1).permutation(places)
    for name, chunks in (("whole", [places]), ("cut", np.array_split(shuffled, [0, 1, 30, 30, 69]))):
        tap.given = list(KEYS)
        measured(method, tmp_path / name, plan, *(table.take(rows) for rows in chunks))
    assert file(tmp_path / "whole") == file(tmp_path / "cut")


NUMBER = {"size": {"type": "number", "min": 0, "max": 1, "round": 3}}
IMAGE = {"picture": {"type": "image", "height": 12, "width": 10}}
WARD = {"ward": {"type": "categorical", "values": ["north", "south", "west"]}}
FORMS = {
    "no target": {"target": None, "columns": {**WARD, **NUMBER}},
    "numeric target": {"target": "size", "columns": {**WARD, **NUMBER}},
    "one column": {"target": None, "columns": WARD},
    "one number": {"target": None, "columns": NUMBER},
    "only the target": {"target": "ward", "columns": WARD},
    "images": {"target": "ward", "columns": {**IMAGE, **WARD}},
}
NEEDS_TWO_COLUMNS = {*TRAINED, "pearl", "dp-merf", "moments"}


def refusal(method: str, form: str) -> str:
    """Return what a method says of a form that it does not take."""
    if (form == "images") != (method == "nacre-images") and method not in TRAINED:
        return "be nacre-images" if form == "images" else "column of type image"
    return "besides the target" if form == "only the target" and method in NEEDS_TWO_COLUMNS else ""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", OF_TABLES)
def test_it_takes_a_schema_or_says_in_a_sentence_what_it_takes(tmp_path, method, form):
    schema = Schema.model_validate({"name": "form", **FORMS[form]})
    if sentence := refusal(method, form):
        with pytest.raises(InvalidArgument, match=sentence) as refused:
            quick_plan(method, schema)
        assert is_one_sentence(refused.value)
        return
    values = np.zeros((6, len(schema.modelled)))
    pixels = np.zeros((6, 120), dtype=np.uint8) if schema.image else None
    records = Records(values.astype(np.int32), values, pixels)
    release, _ = measured(method, tmp_path / "run", quick_plan(method, schema), records)
    makes_rows(method, release, tmp_path)


def makes_rows(method: str, release: Released[Release], folder: Path) -> None:
    """See that a release states its noise and its counts, and that what is fitted to it makes rows of the schema."""
    plan, system = release.value.line, quick(method)
    assert all(0 < stddev < math.inf for stddev in system.noise(plan).values())
    counted = system.marginals(release.value)
    table = labels_of(plan.contract) if isinstance(plan.contract, Documents) else plan.table
    assert counted is None or (counted.columns.keys() <= table.modelled.keys() and counted.records >= 1)
    model = fit(method, release, folder)
    assert model.default_rows() >= 1
    (made,) = model.sample(20, seed=0)
    codec = codec_of(plan.contract)
    table = codec.decode(made)
    assert table.num_rows == 20 and codec.output_schema.equals(table.schema)
    assert codec.decode(codec.encode(table)).equals(table)  # each value is one that is allowed


@pytest.mark.parametrize("rows", [0, 1, 40])
@every_method
def test_hardly_any_rows_and_columns_of_one_value_go_through(tmp_path, method, rows):
    records = QUICK[method].data.make_records(1).take([0] * rows)
    release, _ = measured(method, tmp_path / "run", quick_plan(method), records)
    makes_rows(method, release, tmp_path)


def lives(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


@every_method
def test_one_release_is_one_charge_and_asked_for_again_it_is_the_same_file(tmp_path, tap, method):
    records, plan = QUICK[method].data.make_records(40), quick_plan(method)
    release, ledger = measured(method, tmp_path / "run", plan, records)
    assert lives(ledger) == ["open", "reserve", "draw", "seal", "commit"]
    assert ledger.balance("a").spent_epsilon == spent_epsilon([plan.event], Decimal("1e-5"))
    drawn, before = tap.restart(), file(tmp_path / "run")
    again, _ = measured(method, tmp_path / "run", plan, records.take(slice(0, 5)))
    assert drawn and tap.restart() == [] and file(tmp_path / "run") == before
    assert lives(ledger) == ["open", "reserve", "draw", "seal", "commit"]
    assert again.value.line == plan and again.value.entry == release.value.entry
    assert [path.name for path in (tmp_path / "run" / "private").iterdir()] == [".lock-r.parquet"]


@every_method
def test_a_draw_that_is_killed_again_and_again_is_the_draw_that_it_would_have_been(tmp_path, tap, method):
    """The n-th attempt dies before its n-th noise; told what they drew, a draw in one go writes the same bytes."""
    records, plan = QUICK[method].data.make_records(40), quick_plan(method)
    for attempt in range(100):
        tap.left = attempt
        try:
            measured(method, tmp_path / "run", plan, records)
            break
        except Killed:
            assert not (tmp_path / "run" / "public" / "r.parquet").exists()
    assert attempt >= 2 or len(charged(plan, tap)) == 1
    entries = lives(Ledger(tmp_path / "run" / "ledger.sqlite"))
    assert [kind for kind in entries if kind != "draw"] == ["open", "reserve", "seal", "commit"]
    if method not in TRAINED:
        assert len(tap.steps) == len(charged(plan, tap))  # nothing was drawn twice
    tap.given = list(dict.fromkeys(key for key, _ in tap.streams))
    drawn, tap.left = tap.restart(), -1
    tap.copy(drawn, "gaussian", "exponential")
    measured(method, tmp_path / "at once", plan, records)
    assert not any(tap.copies.values()) and not tap.given
    assert file(tmp_path / "at once") == file(tmp_path / "run")


@every_method
def test_fitting_again_gives_the_same_file_and_what_is_saved_samples_the_same(tmp_path, method):
    release, _ = measured(method, tmp_path / "run", quick_plan(method), QUICK[method].data.make_records(40))
    for name in ("one", "two"):
        model = fit(method, release, tmp_path, seed=3)
        model.save(tmp_path / name)
    again = load_generator(tmp_path / "one")
    again.save(tmp_path / "three")
    assert len({(tmp_path / name).read_bytes() for name in ("one", "two", "three")}) == 1
    codec = codec_of(release.value.line.contract)
    here, there = (pa.concat_tables(map(codec.decode, each.sample(1000, seed=5))) for each in (model, again))
    assert here.equals(there)
    assert model.default_rows() == again.default_rows()


@every_method
def test_a_plan_that_was_changed_is_refused_before_any_charge_and_any_noise(tmp_path, tap, method):
    plan, records = quick_plan(method), QUICK[method].data.make_records(10)
    parts = [event.model_copy(update={"noise_multiplier": event.noise_multiplier * 0.9}) for event in plain(plan.event)]
    name, number = next((name, n) for name, n in plan.measurement.items() if isinstance(n, int | float) and n)
    changes = [
        {"event": ComposedEvent(events=tuple(parts))},
        {"budget": quick_plan(method, epsilon=0.1).budget},
        {"fingerprint": "0" * 64},
        {"part": "night"},
        {"name": "other"},
        {"measurement": {**plan.measurement, name: 2 * number}},
    ]
    for number, change in enumerate(changes):
        with pytest.raises(ArtifactError, match="Nothing was drawn"):
            measured(method, tmp_path / str(number), plan.model_copy(update=change), records)
        assert lives(Ledger(tmp_path / str(number) / "ledger.sqlite")) == ["open"]
    assert tap.steps == [] and tap.streams == []
