"""What an audit found: facts that are written as JSON and drawn on a page."""

from pydantic import BaseModel, ConfigDict


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Recovered(_Model):
    """How much of its claim a draw was seen to lose.

    Attributes:
        step: which draw; mechanism: that it is of.
        claimed: mu of the Gaussian that is charged; for DP-SGD and pure releases of the one of the same epsilon.
        parametric: a lower bound of mu, and an upper one by the same assumptions; None where there is none.
        assumption_free: a lower bound of mu by Clopper and Pearson; None where nothing was drawn for it.
        draws: from which the bounds are made.
        reach: share of the sensitivity, as it is charged, that the farthest neighbor showed.
        falls_short: why less than nine tenths can be recovered, where that is so for a known reason.
    """

    step: str
    mechanism: str
    claimed: float
    parametric: tuple[float, float | None] | None
    assumption_free: float | None
    draws: int
    reach: float
    falls_short: str = ""

    @property
    def share(self) -> float:
        """The best lower bound over the claim."""
        found = [self.assumption_free or 0.0, self.parametric[0] if self.parametric else 0.0]
        return max(found) / self.claimed


class Finding(_Model):
    """One check: what it holds to what, whether that held, and what was seen. No number in it is of private data."""

    check: str
    holds: bool
    says: str


class Audit(_Model):
    """The audit of one method.

    Attributes:
        method: that was audited; epsilon, delta: of the plan that was tried.
        full: whether as many draws were taken as bounds without assumptions need.
        confidence: with which each bound holds by itself.
        uncovered: what the audit does not look at.
    """

    method: str
    epsilon: float
    delta: float
    full: bool
    confidence: float
    machine: str
    date: str
    findings: tuple[Finding, ...]
    recovered: tuple[Recovered, ...]
    uncovered: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Tell whether all checks held."""
        return all(one.holds for one in self.findings)
