"""Programmes over disjoint parts of the data: what they cost, what of the number of parts shows, and the way back."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from pydantic import create_model

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import ComposedEvent, Event, ParallelEvent, PureEvent
from dpmodels.audit.tap import Killed
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.mechanisms import exponential, gaussian
from dpmodels.mechanisms.exponential import exponential_scale, pure_scale
from dpmodels.privacy import Adjacency, Sensitive
from dpmodels.releases import draw
from dpmodels.releases.steps import Data
from dpmodels.releases.system import System
from tests.kit.parallel import BUDGET, PICK, SUM, Wards, by_smoker, cut
from tests.kit.support import desk_in, make_records, make_schema, measured

PART = ComposedEvent(events=(SUM, PICK))


def parallel(*events: Event) -> ParallelEvent:
    return ParallelEvent(by="smoker", events=events)


@pytest.mark.parametrize("event", [parallel(PART), parallel(PART, PART), PART])
def test_parts_cost_the_heaviest_of_them_and_are_read_as_they_were_drawn(tmp_path, event):
    system = Wards(2, event)
    if event is PART:  # composed: the parts would be charged one after the other, and there is no second one
        with pytest.raises(ArtifactError, match="which is charged as"):
            measured(system, tmp_path / "run", system.plan(make_schema(), BUDGET), make_records(60))
        return
    release, ledger = measured(system, tmp_path / "run", system.plan(make_schema(), BUDGET), make_records(60))
    expected = spent_epsilon([ComposedEvent(events=(SUM, PART))], Decimal("1e-5"))
    assert float(ledger.balance("a").spent_epsilon) == pytest.approx(float(expected), rel=1e-3)
    whole, parts = system.answers(release.value)
    drawn = np.concatenate([whole.vector, *(taken[0][1].vector for taken in parts)])
    assert np.array_equal(drawn, release.value.vector)
    assert release.value.chosen.tolist() == [int(taken[1][1][0]) for taken in parts]
    assert set(release.value.chosen) <= {10, 20, 30}


@pytest.mark.parametrize("number", [1, 2, 5])
def test_the_number_of_parts_that_the_data_has_does_not_show(tmp_path, number, monkeypatch):
    seen: list[float] = []
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: seen.append(scale) or np.zeros_like(values))
    monkeypatch.setattr(exponential, "_selector", lambda scores, scale: seen.append(scale) or 1)
    system, table = Wards(number, parallel(PART)), make_records(60)
    files, scales = [], []
    for name, records in (("two", table), ("one", table.take(table.states[:, 3] == 0)), ("none", table.take([]))):
        measured(system, tmp_path / name, system.plan(make_schema(), BUDGET), records)
        files.append((tmp_path / name / "public" / "r.parquet").read_bytes())
        scales.append(list(seen))
        seen.clear()
    assert len(set(files)) == 1 and scales[0] == scales[1] == scales[2]
    assert len(scales[0]) == 1 + 2 * number


def test_each_part_may_have_an_event_of_its_own_and_a_choice_has_two_prices(tmp_path, monkeypatch):
    seen: list[float] = []
    monkeypatch.setattr(exponential, "_selector", lambda scores, scale: seen.append(scale) or 0)
    pure = ComposedEvent(events=(SUM, PureEvent(epsilon=0.5)))
    for monotonic in (False, True):
        system = Wards(2, parallel(PART, pure), monotonic)
        measured(system, tmp_path / str(monotonic), system.plan(make_schema(), BUDGET), make_records(60))
        assert seen == [exponential_scale(1, 3.0, monotonic=monotonic), pure_scale(1, 0.5, monotonic=monotonic)]
        seen.clear()


@pytest.mark.parametrize("wrong", [parallel(PART, PART), parallel(SUM), parallel(ComposedEvent(events=(PICK,) * 3))])
def test_parts_that_are_charged_otherwise_are_refused(tmp_path, wrong):
    system = Wards(3, wrong)
    with pytest.raises(ArtifactError):
        measured(system, tmp_path / "run", system.plan(make_schema(), BUDGET), make_records(60))
    assert not (tmp_path / "run" / "public" / "r.parquet").exists()


def test_a_cut_by_what_rows_hold_is_refused_where_a_unit_may_lie_in_two_parts(tmp_path):
    """A user with a row in each of two parts meets the noise of both, and would be charged for one."""
    users = make_schema(unit={"user": "patient", "max_rows": 2})
    for number, (schema, changes) in enumerate(
        [(users, {"unit": users.unit}), (make_schema(), {"adjacency": Adjacency.REPLACE_ONE})]
    ):
        system = Wards(2, parallel(PART))
        line = system.plan(schema, BUDGET.model_copy(update=changes))
        with pytest.raises(Unsuitable, match="do not keep"):
            measured(system, tmp_path / str(number), line, make_records(60))
        assert not (tmp_path / str(number) / "public" / "r.parquet").exists()


class Planned(Wards):
    """Wards with the plan of every system."""

    plan, measurement = System.plan, create_model("Nothing")()


def test_such_a_cut_is_refused_when_it_is_planned_unless_it_keeps_units_whole():
    users = make_schema(unit={"user": "patient", "max_rows": 2})
    budget, system = BUDGET.model_copy(update={"unit": users.unit}), Planned(2, parallel(PART))
    assert system.plan(make_schema(), BUDGET).event.events[1].by == "smoker"
    with pytest.raises(Unsuitable, match=r"do not keep user .patient, at most 2 rows. whole"):
        system.plan(users, budget)
    system.whole_units = True
    assert system.plan(users, budget).budget.unit == users.unit


def everybody(smokes: np.ndarray) -> np.ndarray:
    return smokes >= 0


def unsaid(data: Data) -> list[Data]:
    return [replace(part, numbers=None) for part in by_smoker(data)]


@pytest.mark.parametrize("by", [lambda data: cut(data, everybody, lambda smokes: smokes == 1), unsaid])
def test_parts_that_share_a_record_or_do_not_say_which_they_have_are_refused_before_their_noise(
    tmp_path, monkeypatch, by
):
    """Whoever smokes would meet the noise of both parts, and be charged for one; only the count before is drawn."""
    drawn: list[int] = []
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: drawn.append(1) or np.zeros_like(values))
    system = Wards(2, parallel(PART), by=by)
    with pytest.raises(Unsuitable, match="not disjoint"):
        measured(system, tmp_path / "run", system.plan(make_schema(), BUDGET), make_records(60))
    assert drawn == [1] and not (tmp_path / "run" / "public" / "r.parquet").exists()


def test_a_draw_that_is_killed_in_a_part_goes_on_there(tmp_path, monkeypatch):
    system, left, drawn = Wards(2, parallel(PART)), [3], []
    line = system.plan(make_schema(), BUDGET)

    def noisy(values: np.ndarray, scale: float) -> np.ndarray:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        drawn.append(gaussian.discrete_gaussian(values, scale))
        return drawn[-1]

    monkeypatch.setattr(gaussian, "_sampler", noisy)
    desk, records = desk_in(tmp_path / "run", line), Sensitive([make_records(60)])
    with pytest.raises(Killed):
        draw.draw(system, records, line, desk)
    path = draw.draw(system, records, line, desk).value
    assert len(drawn) == 3 and desk.held() is not None and path.exists()
