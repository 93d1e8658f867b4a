"""What an audit found: facts that are written as JSON and drawn on a page."""

from dpmodels.frozen import Frozen

CHECKS = {
    "budget": "The events of the plan spend the budget, and no more.",
    "neighbors": "Whatever a measurement leaves is the same for other data, but for what was charged: names and bytes "
    "of files, charges, and every word that was logged or printed.",
    "records": "What a record adds to a sum is the same whoever else is there.",
    "sensitivity": "No neighbor moves a step farther than its noise hides at the price that is charged, and one comes "
    "to nine tenths of that; so it is where a user has several rows.",
    "parts": "A unit moves what is trained on one part of the data alone; all letters of a user that it moves cost no "
    "more together than is charged.",
    "noise": "The noise of Gaussian steps has the law, the scale and the independence that are charged, in every "
    "coordinate; no lower bound of mu is above the claim.",
    "training": "Noise, batches and randomness of DP-SGD are what is charged; a record adds at most one clip norm and "
    "moves nobody else's gradient, wherever in a batch it is; batches that are empty, large, overflow or are cut "
    "otherwise keep that.",
    "choices": "Exact probabilities of choices keep the charge, and draws follow them; so does the K-norm mechanism.",
    "names": "Names are released where their noisy count reaches the threshold, which that of a name which one unit "
    "alone brings does with no more than the probability that is charged.",
    "optimum": "Output perturbation releases the optimum that its bound is proved for.",
    "resume": "A measurement that is killed again and again is one charge and the measurement that it would have been.",
    "order": "The same rows, cut and ordered otherwise, give the same bits.",
    "seeds": "No two draws of noise go together, of one measurement or of two, and no two keys are the same.",
    "charge": "The ledger has spent what the plan costs, and its cap refuses more before anything is drawn.",
    "attack": "An adversary that guesses who was in the data, in one run, does no better than the charge allows.",
    "flow": "A whole run, to the hand-off, leaves the same for other data; no hash of what is sensitive, no canary and "
    "no time of day is outside of its zone; what is handed over can be verified.",
}
"""What each check holds a method to."""


class Recovery(Frozen):
    """How much of its claim a draw was seen to lose.

    Attributes:
        step: which draw; mechanism: that it is of.
        claimed: mu of the Gaussian that is charged; for DP-SGD and pure releases of the one of the same epsilon.
        parametric: a lower bound of mu, and an upper one by the same assumptions; None where there is none.
        assumption_free: a lower bound of mu by Clopper and Pearson; None where nothing was drawn for it.
        ceiling: the most that this bound could have been with so many draws, against no noise at all.
        draws: from which the bounds are made.
        reach: share of the sensitivity, as it is charged, that the farthest neighbor showed.
        falls_short: why less than nine tenths can be recovered, where that is so for a known reason.
    """

    step: str
    mechanism: str
    claimed: float
    parametric: tuple[float, float | None] | None
    assumption_free: float | None
    ceiling: float | None = None
    draws: int
    reach: float
    falls_short: str = ""

    @property
    def share(self) -> float:
        """The best lower bound over the claim."""
        bounds = [self.assumption_free or 0.0, self.parametric[0] if self.parametric else 0.0]
        return max(bounds) / self.claimed


class Finding(Frozen):
    """One check: what it holds to what, whether that held, and what was seen. No number in it is of private data."""

    check: str
    holds: bool
    says: str


class Audit(Frozen):
    """The audit of one method.

    Attributes:
        method: that was audited; epsilon, delta: of the plan that was tried.
        full: whether as many draws were taken as bounds without assumptions need.
        confidence: with which each bound holds by itself.
        uncovered: what the audit does not look at; checks: what each check holds the method to.
    """

    method: str
    epsilon: float
    delta: float
    full: bool
    confidence: float
    machine: str
    date: str
    findings: tuple[Finding, ...]
    recovered: tuple[Recovery, ...]
    uncovered: tuple[str, ...]
    checks: dict[str, str] = CHECKS

    @property
    def holds(self) -> bool:
        """Tell whether all checks held."""
        return all(one.holds for one in self.findings)
