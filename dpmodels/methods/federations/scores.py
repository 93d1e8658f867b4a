"""The certainty head of a client alone: what FedAUX releases with noise where models travel without any.

Privacy: one regularized optimum of proved sensitivity (statistics/logistic.py) with discrete Gaussian noise. It hides a
record from whoever sees the scores, and from nobody who sees a model that was trained on the record; see rounds.py.
"""

from dataclasses import dataclass, field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.federation import SCORES, Federation
from dpmodels.methods.federations.heads import (
    CERTAINTY,
    ScoresMeasurement,
    certainty,
    lambda_for,
    records_of,
    score_problem,
    score_sum,
)
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme
from dpmodels.releases.system import System, fingerprint_of
from dpmodels.statistics.logistic import Logistic


@dataclass(frozen=True)
class ScoreProblem:
    """The problem of a plan, and the number of the client's records where it is public (else 0)."""

    score: Logistic
    records: int
    auxiliary: str


@dataclass(frozen=True)
class FederatedScores(System[ScoreProblem]):
    """The certainty head of one client; ``negatives`` are the vectors of public records, needed to measure only."""

    method = SCORES
    about = "a federation"
    measurement: ScoresMeasurement = field(default_factory=ScoresMeasurement)
    negatives: Whole | None = None

    def settled(self, contract: Federation) -> ScoresMeasurement:
        """Take the client's public size, unless another number is given."""
        return self.measurement.model_copy(update={"records": records_of(self.measurement, contract)})

    def priced(self, spec: ScoresMeasurement, contract: Federation, budget: PrivacyBudget) -> ScoresMeasurement:
        """Regularize as the noise of the budget asks, where nothing else is given."""
        strength = lambda_for(spec, contract, 1, contract.negatives, gaussian_noise_multiplier(budget))
        return spec.model_copy(update={"score_lambda": spec.score_lambda or strength})

    def design(self, spec: ScoresMeasurement, contract: Federation) -> ScoreProblem:
        return ScoreProblem(score_problem(spec, contract), contract.size or 0, contract.auxiliary)

    def event(self, design: ScoreProblem, budget: PrivacyBudget) -> GaussianEvent:
        """Charge one Gaussian, for the scores alone."""
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget), mechanism="certainty scores alone")

    def programme(self, design: ScoreProblem) -> Programme:
        """Solve the problem once."""
        yield score_sum(design.score, design.records, design.auxiliary, self.negatives)

    def certainty(self, release: Released[Release], z: Whole) -> Floats:
        """Return how certain a client is that vectors are like its records (post-processing). Shapes: [n, d] -> [n]."""
        score, (once,) = self.of(release.value.line).score, self.answers(release.value)
        return certainty(score.weights(once.vector)[0], score.features(z))

    def noise(self, line: Line) -> dict[str, float]:
        score = self.of(line).score
        return {CERTAINTY: line.noise_stddev(0, score.l2_sensitivity) * score.step}

    def fingerprint(self, design: ScoreProblem) -> str:
        score = design.score
        return fingerprint_of(design.auxiliary, score.size, score.outputs, score.bias, score.step)
