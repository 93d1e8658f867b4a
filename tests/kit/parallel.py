"""A system whose parts are disjoint."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent
from dpmodels.codec.encode import Records
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.steps import Choose, Data, Parallel, Programme, Sum
from dpmodels.releases.system import System
from tests.kit.support import make_schema

BUDGET = PrivacyBudget(epsilon=8, delta=1e-5)


SUM, PICK = GaussianEvent(noise_multiplier=2.0), GaussianEvent(noise_multiplier=3.0)


WARDS = np.array([[10], [20], [30]])


class Wards(System[Moments]):
    """Counts cells and picks a ward in each part of the records, after one count of all of them."""

    method = "wards"

    def __init__(self, number: int, event: Event, monotonic: bool = False, by: Any = None) -> None:
        self.number, self.charged, self.monotonic, self.by = number, event, monotonic, by or by_smoker

    def design(self, spec: object, contract: object) -> Moments:
        return Moments(Partition.fine(make_schema(), 4), 1 << 16, 0, 1)

    def event(self, design: Moments, budget: PrivacyBudget) -> Event:
        return ComposedEvent(events=(SUM, self.charged))

    def fingerprint(self, design: Moments) -> str:
        return "wards"

    def noise(self, line: Line) -> dict[str, float]:
        return {}

    def plan(self, contract: object, budget: PrivacyBudget) -> Line:
        event, design = self.event(self.design(None, contract), budget), self.fingerprint(self.design(None, contract))
        settings = {"method": self.method, "contract": contract, "budget": budget, "event": event, "measurement": {}}
        return Line(**settings, fingerprint=design)

    def of(self, line: Line) -> Moments:
        return self.design(None, line.contract)

    def programme(self, design: Moments) -> Programme:
        yield Sum.of(design)

        def part() -> Programme:
            yield Sum.of(design)
            yield Choose(wards, lambda index: WARDS[index], 1, 1, self.monotonic)

        answers = yield Parallel([part() for _ in range(self.number)], self.by)
        assert [len(taken) for taken in answers] == [2] * self.number


def wards(data: Data) -> Sensitive[np.ndarray]:
    states = [records.states[:, 1] for records in data.records.reveal()]
    return Sensitive(np.bincount(np.concatenate([*states, np.zeros(0, dtype=np.int64)]).astype(int), minlength=3))


def by_smoker(data: Data) -> list[Data]:
    """Give smokers and others to parts of their own; where nobody smokes there is one part."""
    return cut(data, *(lambda smokes, state=state: smokes == state for state in (0, 1)))


def cut(data: Data, *rules: Callable[[np.ndarray], np.ndarray]) -> list[Data]:
    """Cut by rules of who smokes; a part that would have nobody is none."""
    table = Records.concat(list(data.records.reveal()))
    found = [np.flatnonzero(rule(table.states[:, 3])) for rule in rules]
    return [Data(Sensitive([table.take(own)]), data.device, Sensitive(own)) for own in found if len(own)]
