"""What the driver holds a line, its charge and its steps against, whoever wrote the system."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent, PureEvent
from dpmodels.embeddings.moments import Moments
from dpmodels.errors import ArtifactError
from dpmodels.methods.quick import QUICK
from dpmodels.methods.registry import create
from dpmodels.privacy import Sensitive
from dpmodels.releases import draw
from dpmodels.releases.steps import Choose, Data, Programme, Sum
from tests.kit.parallel import BUDGET, PICK, SUM, WARDS, Wards, wards
from tests.kit.support import desk_in, make_records, make_schema, measured


class Steps(Wards):
    """Any steps, charged as any events."""

    def __init__(self, programme: Callable[[Moments], Programme], *events: Event) -> None:
        super().__init__(1, ComposedEvent(events=events))
        self.given = programme

    def event(self, design: Moments, budget: object) -> Event:
        return self.charged

    def programme(self, design: Moments) -> Programme:
        return self.given(design)


def total_of(length: int) -> Callable[[Data], Sensitive[np.ndarray]]:
    return lambda data: Sensitive(np.zeros(length, dtype=np.int64))


def choices(design: Moments) -> Programme:
    yield Choose(wards, lambda index: WARDS[index], 1, 1)
    yield Choose(wards, lambda index: WARDS[index], 1, 1)


def test_a_programme_of_choices_alone_is_written_and_read(tmp_path):
    """Candidates chosen for each document are such a programme: there is no sum in it."""
    system = Steps(choices, PICK, PureEvent(epsilon=0.5))
    release, _ = measured(system, tmp_path / "run", system.plan(make_schema(), BUDGET), make_records(60))
    assert len(release.value.vector) == 0
    assert [int(answer[0]) for answer in system.answers(release.value)] == release.value.chosen.tolist()


def shifted(design: Moments) -> Programme:
    yield Sum(total_of(3), 2, 1)
    yield Sum(total_of(1), 2, 1)


def wide(design: Moments) -> Programme:
    yield Sum(total_of(2), 2, 1)
    yield Choose(wards, lambda index: np.array([1, 2]), 1, 1)


@pytest.mark.parametrize(("programme", "events"), [(shifted, (SUM, SUM)), (wide, (SUM, PICK))])
def test_a_step_that_releases_another_size_than_it_says_is_not_sealed(tmp_path, programme, events):
    """It would be read back shifted without a word, or not at all."""
    system = Steps(programme, *events)
    line = system.plan(make_schema(), BUDGET)
    desk = desk_in(tmp_path / "run", line)
    with pytest.raises(ArtifactError, match="another size than it says"):
        draw.draw(system, Sensitive([make_records(60)]), line, desk)
    assert not desk.released.exists()


@pytest.mark.parametrize("field", ["event", "budget", "plan_hash", "schema_hash", "mechanism", "dataset"])
def test_a_line_is_not_drawn_under_a_charge_for_something_else(tmp_path, field):
    """A desk whose charge costs less than the line would have the line's noise for the charge's price."""
    system = Steps(choices, PICK, PICK)
    line = system.plan(make_schema(), BUDGET)
    desk = desk_in(tmp_path / "run", line)
    other = {
        "event": GaussianEvent(noise_multiplier=1000.0),
        "budget": BUDGET.model_copy(update={"epsilon": 7.0}),
        "dataset": "other",
    }
    changed = desk.charge.model_copy(update={field: other.get(field, "other")})
    if field == "dataset":
        desk.ledger.open_account("b", dataset="other", budget_cap=BUDGET)
        changed = changed.model_copy(update={"account": "b"})
    cheap = draw.Desk(desk.ledger, changed, desk.staged, desk.released)
    with pytest.raises(ArtifactError, match="is charged for another line"):
        draw.draw(system, Sensitive([make_records(60)]), line, cheap)
    assert not desk.released.exists() and cheap.held() is None


@pytest.mark.nightly  # what is told of one training is tested beside it
def test_the_steps_of_trainings_in_parallel_are_told_as_one_row_of_steps(tmp_path):
    """Whoever watches sees one bar to its end, and not one for each part."""
    method = QUICK["dp-gm"]
    system = create("dp-gm", method.measurement, method.training)
    line = system.plan(make_schema(), BUDGET)
    seen: list[tuple[int, int]] = []
    desk = replace(desk_in(tmp_path / "run", line), progress=lambda step, steps: seen.append((step, steps)))
    system.measure(Sensitive([make_records(60)]), line, desk)
    assert seen == [(number, len(seen)) for number in range(1, len(seen) + 1)]
