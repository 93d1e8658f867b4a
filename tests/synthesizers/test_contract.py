"""What every method promises, whatever paper it is from: cost, noise, neighbours, one charge, and the way back.

The methods are those of the registry; a new one is one line in ``tests/every_method.py``.
"""

import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import Leaf, SampledGaussianEvent, leaves
from dpmodels.accounting.ledger import Ledger
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.load import load_generator
from dpmodels.mechanisms.exponential import exponential_scale
from dpmodels.mechanisms.gaussian import SMOOTHING
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.base import Plan, Release
from dpmodels.synthesizers.registry import METHODS, create
from tests import pictures, support
from tests.every_method import QUICK, Killed, Step, Tap, crowd, extremes, fit, inserted, quick, quick_plan, tap

__all__ = ["tap"]  # a fixture

TRAINED = [method for method in QUICK if QUICK[method].trained]
NEEDS_IMAGE = {"nacre-images"}
TAKES_IMAGES = {*NEEDS_IMAGE, *TRAINED}
every_method = pytest.mark.parametrize("method", METHODS)


def measured(method: str, folder: Path, plan: Plan, *batches: Records) -> tuple[Released[Release], Ledger]:
    return support.measured(quick(method), folder, plan, *batches)


def file(folder: Path) -> bytes:
    return (folder / "public" / "r.parquet").read_bytes()


def is_one_sentence(fault: BaseException) -> bool:
    return len(str(fault)) > 20 and ". " not in str(fault) and "\n" not in str(fault)


def with_users(method: str, rows: int) -> Schema:
    """Return a schema whose unit is a user with so many rows."""
    data = QUICK[method].data
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
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    plan = create(method, settings, {}).plan(QUICK[method].data.make_schema(), budget)
    assert 0.99 * epsilon <= spent_epsilon([plan.event], Decimal("1e-5")) <= Decimal(repr(epsilon))


def moved(one: Step, other: Step) -> float:
    """Return how far a neighbour moved what noise was added to: of scores the largest, of vectors the norm."""
    assert (one.kind, one.scale, one.values.shape) == (other.kind, other.scale, other.values.shape)
    step = (other.values - one.values).astype(np.float64)
    return float(np.abs(step).max() if one.kind == "exponential" else np.linalg.norm(step))


def sensitivity(kind: str, scale: float, noise_multiplier: float) -> float:
    """Return the sensitivity for which noise of this scale is what an event of this noise multiplier charges."""
    if kind == "exponential":
        return scale / exponential_scale(1, noise_multiplier)
    squared = scale**2 - (SMOOTHING if kind == "gaussian" else 0)
    return math.sqrt(max(squared, 0)) / noise_multiplier


def is_charged_for(kind: str, scale: float, noise_multiplier: float, reach: float) -> bool:
    """Tell whether noise of a scale hides what moves by ``reach`` at most, and is not half as much again."""
    covered = sensitivity(kind, scale, noise_multiplier) * (1 + 1e-9)
    return 2 / 3 * covered < reach <= covered


def charged(plan: Plan, tap: Tap) -> list[Leaf]:
    """Return the event that each step is charged for; all steps of DP-SGD are those of the last event."""
    events = list(leaves([plan.event]))
    if isinstance(last := events[-1], SampledGaussianEvent):
        assert tap.probabilities == {last.sampling_probability}
        trainings = {key: [step for own, step in tap.streams if own == key] for key, _ in tap.streams}
        assert all(taken == list(range(last.steps)) for taken in trainings.values())  # each on records of its own
        events += [last] * (len(trainings) * last.steps - 1)
    return events


KEYS = [bytes([number] * 32) for number in range(9)]


def reaches(method: str, tap: Tap, folder: Path, plan: Plan, unit: int) -> list[tuple[Step, Leaf, float]]:
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
