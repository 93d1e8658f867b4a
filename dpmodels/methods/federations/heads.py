"""What a client releases of its records, once: a certainty head and a classifying head on frozen public features.

    measure   w = argmin of the logistic loss of own records against public negatives      + noise     (FedAUX, Eq. 4)
              W = argmin of the multinomial logistic loss of own records                   + noise     (FedAUXfdp)

Privacy: each is an optimum of proved sensitivity (statistics/logistic.py) with discrete Gaussian noise. The two charge
the client's own account, as Gaussians of mu_1^2 + mu_2^2 = mu^2. Clients are disjoint, so that a federation of them
costs what its heaviest client does. The published code takes C of scikit-learn for 1 / lambda, which is n times too
weak; it leaves the intercept unbounded and scales by the largest private norm. Here C is 1 / (n lambda), the intercept
is the weight of a constant feature inside the clipped vector, and the clip norm is public.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.accounting.split import gaussians
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import digest_of
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.privacy import Adjacency, PrivacyBudget, Released, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, NoisySum, Programme, Sum
from dpmodels.releases.system import System, fingerprint_of
from dpmodels.statistics.logistic import Logistic, transform_optimum

XI = 1e-8
"""What is added to a certainty, so that no sum of them is zero."""
CERTAINTY = "weights of the certainty head"
SHARPNESS = 8.0
"""The power of the clients' certainties; where clients hold few classes each it wins more than privacy costs."""
SCORE_NOISE, HEAD_NOISE = 0.075, 0.3
"""Standard deviations of the noise of a weight at which the two heads are regularized unless lambda is given. A weaker
regularization fits the records better and needs more noise, so that a larger epsilon affords a weaker one."""
LARGEST, LEAST_STRENGTH = 10.0, 2e-4
"""Bounds of a lambda that is chosen: the largest, and a strength for each record that a client may hold, because
weaker ones cannot be certified."""


class ScoresMeasurement(Frozen):
    """What a certainty head is measured by: public parameters that decide the release and so are part of the plan.

    Attributes:
        records: the public number that regularization is divided by: the client's size where sizes are public, which
            is the default, otherwise a guess of what is usual.
        score_lambda: regularization of the certainty head, for each record; by default what ``SCORE_NOISE`` asks for.
        bias: the constant coordinate of a feature vector of norm 1.
        tolerance: of the gradient's norm at the optimum; see ``Logistic``.
    """

    records: Annotated[int, Field(ge=1)] | None = None
    score_lambda: Annotated[float, Field(ge=1e-6, le=LARGEST)] | None = None
    bias: Annotated[float, Field(ge=0, lt=1)] = 0.3
    tolerance: Annotated[float, Field(ge=1e-6, le=0.1)] = 2e-3


class HeadsMeasurement(ScoresMeasurement):
    """What both heads are measured by.

    Attributes:
        head_lambda: regularization of the classifying head, for each record; by default what ``HEAD_NOISE`` asks for.
        score_share: share of the squared mu that the certainty head takes.
    """

    head_lambda: Annotated[float, Field(ge=1e-6, le=LARGEST)] | None = None
    score_share: Annotated[float, Field(ge=0.01, le=0.99)] = 0.2


@dataclass(frozen=True)
class HeadProblems:
    """The two problems of a plan, and the number of the client's records where it is public (else 0)."""

    score: Logistic
    head: Logistic
    records: int
    auxiliary: str


@dataclass(frozen=True)
class Heads:
    """The released heads of one client. Shapes: ``score`` [1, d + 1]; ``head`` [classes, d + 1]."""

    client: str
    score: Floats
    head: Floats
    problems: HeadProblems

    @classmethod
    def of(cls, line: Line, problems: HeadProblems, answers: Sequence[NoisySum]) -> "Heads":
        """Read the heads that the first two answers of a programme are (post-processing)."""
        client, (score, head) = line.contract.name.partition(".")[2], answers[:2]
        return cls(client, problems.score.weights(score.vector), problems.head.weights(head.vector), problems)

    def certainty(self, z: Whole) -> Floats:
        """Return how certain it is that vectors are like the client's records. Shapes: [n, d] -> [n]."""
        return certainty(self.score[0], self.problems.score.features(z))

    def logits(self, z: Whole) -> Floats:
        """Return the logits of classes. Shapes: [n, d] -> [n, classes]."""
        logits: Floats = self.problems.head.features(z) @ self.head.T
        return logits


@dataclass(frozen=True)
class FederatedHeads(System[HeadProblems]):
    """FedAUX's release of one client; ``negatives`` are the vectors of public records, needed to measure only."""

    method = "federated-heads"
    about = "a federation"
    measurement: HeadsMeasurement = field(default_factory=HeadsMeasurement)
    negatives: Whole | None = None

    def settled(self, contract: Federation) -> HeadsMeasurement:
        """Take the client's public size, unless another number is given."""
        return self.measurement.model_copy(update={"records": records_of(self.measurement, contract)})

    def priced(self, spec: HeadsMeasurement, contract: Federation, budget: PrivacyBudget) -> HeadsMeasurement:
        """Regularize as the noise of the budget asks, where nothing else is given."""
        return self.regularized(spec, contract, gaussian_noise_multiplier(budget))

    def regularized(self, spec: HeadsMeasurement, contract: Federation, noise_multiplier: float) -> HeadsMeasurement:
        """Regularize as noise of this multiplier asks, where nothing else is given."""
        score, head = (event.noise_multiplier for event in self.events(noise_multiplier))
        lambdas = {
            "score_lambda": lambda_for(spec, contract, 1, contract.negatives, score),
            "head_lambda": lambda_for(spec, contract, len(contract.classes), 0, head),
        }
        return spec.model_copy(update={name: getattr(spec, name) or strength for name, strength in lambdas.items()})

    def design(self, spec: HeadsMeasurement, contract: Federation) -> HeadProblems:
        head = problem_of(spec, contract, len(contract.classes), spec.head_lambda, 0)
        return HeadProblems(score_problem(spec, contract), head, contract.size or 0, contract.auxiliary)

    def event(self, design: HeadProblems, budget: PrivacyBudget) -> ComposedEvent:
        """Charge two Gaussians: the first takes ``score_share`` of the budget's squared mu, the second the rest."""
        return ComposedEvent(events=self.events(gaussian_noise_multiplier(budget)))

    def events(self, noise_multiplier: float) -> tuple[GaussianEvent, ...]:
        """Split one Gaussian of this noise multiplier into those of the two heads, which together cost as much."""
        share = self.measurement.score_share
        return gaussians(noise_multiplier, {"certainty head": share, "classifying head": 1 - share})

    def programme(self, design: HeadProblems) -> Programme:
        """Solve the two problems, each once."""

        def head(data: Data) -> Sensitive[Whole]:
            return transform_optimum(design.head, data.records, design.records)

        yield score_sum(design.score, design.records, design.auxiliary, self.negatives)
        yield Sum(head, design.head.dim, design.head.l2_sensitivity)

    def heads(self, release: Released[Release]) -> Heads:
        """Read the heads of a release (post-processing)."""
        return Heads.of(release.value.line, self.of(release.value.line), self.answers(release.value))

    def noise(self, line: Line) -> dict[str, float]:
        return self.noise_of(line, self.of(line))

    @staticmethod
    def noise_of(line: Line, problems: HeadProblems) -> dict[str, float]:
        """Name the first two steps of a line and the standard deviation of their noise."""
        by_name = {CERTAINTY: problems.score, "weights of the classifying head": problems.head}
        return {
            name: line.noise_stddev(step, problem.l2_sensitivity) * problem.step
            for step, (name, problem) in enumerate(by_name.items())
        }

    def least_units(self, line: Line) -> float:
        """Say about how many records a client needs for its classifying head to stand out of its noise.

        Without records the optimum is 0, and each moves it by at most the sensitivity.
        """
        return self.least_of(line, self.of(line))

    @staticmethod
    def least_of(line: Line, problems: HeadProblems) -> float:
        """Say the same of the heads in the first two steps of a line."""
        head = problems.head
        return line.noise_stddev(1, head.l2_sensitivity) * math.sqrt(head.dim) / head.l2_sensitivity

    def fingerprint(self, design: HeadProblems) -> str:
        both = design.score, design.head
        return fingerprint_of(design.auxiliary, *[(part.size, part.outputs, part.bias, part.step) for part in both])


def records_of(spec: ScoresMeasurement, contract: Federation) -> int:
    """Return the public number that regularization is divided by.

    Raises:
        InvalidArgument, Unsuitable: sizes are private and no number is given, or the contract is not a client's.
    """
    if not contract.client:
        raise Unsuitable("heads are released by each client for itself; plan them for the contract of one client")
    records = spec.records or contract.size
    if records is None:
        raise InvalidArgument("records", None, "be a public guess of a client's size, where sizes are private")
    return records


def lambda_for(
    spec: ScoresMeasurement, contract: Federation, outputs: int, public: int, noise_multiplier: float
) -> float:
    """Return the lambda at which the noise of a weight is what it should be, to three digits, from public numbers."""
    problem, noise = problem_of(spec, contract, outputs, LARGEST, public), SCORE_NOISE if outputs == 1 else HEAD_NOISE
    strength = max(problem.change * noise_multiplier / noise, LEAST_STRENGTH * problem.most)
    return min(LARGEST, float(f"{LARGEST * strength / problem.strength:.3g}"))


def problem_of(
    spec: ScoresMeasurement, contract: Federation, outputs: int, per_record: float | None, public: int
) -> Logistic:
    """State one problem; ``public`` records are summed with the client's.

    Raises:
        Unsuitable: lambda was neither given nor chosen, as it is in every plan.
    """
    if per_record is None:
        raise Unsuitable("lambda is chosen by the budget; plan the heads, or give score_lambda and head_lambda")
    strength, most = per_record * ((spec.records or 1) + public), contract.most + public
    replaced = contract.adjacency == Adjacency.REPLACE_ONE
    return Logistic(contract.features, outputs, strength, spec.bias, replaced, most, spec.tolerance)


def score_problem(spec: ScoresMeasurement, contract: Federation) -> Logistic:
    """State the problem of the certainty head."""
    return problem_of(spec, contract, 1, spec.score_lambda, contract.negatives)


def score_sum(problem: Logistic, records: int, auxiliary: str, negatives: Whole | None) -> Sum:
    """Return the step that releases a certainty head."""

    def score(data: Data) -> Sensitive[Whole]:
        if negatives is None or digest_of(negatives) != auxiliary:
            raise ArtifactError("the auxiliary features are not those that the contract names; fetch them again")
        return transform_optimum(problem, data.records, records, negatives)

    return Sum(score, problem.dim, problem.l2_sensitivity)


def certainty(w: Floats, phi: Floats) -> Floats:
    """Return sigmoid(<w, phi>) + XI (FedAUX, Eq. 6). Shapes: [d], [n, d] -> [n]."""
    sigmoid: Floats = 1 / (1 + np.exp(-np.clip(phi @ w, -700, 700))) + XI
    return sigmoid


def weighted_ensemble(
    logits: Sequence[Floats], weights: Sequence[Floats] | None = None, sharpness: float = 1.0
) -> Floats:
    """Return softmax(sum_i s_i f_i / sum_i s_i) (FedAUX, Eq. 3); without weights the plain mean of logits (Eq. 2).

    ``sharpness`` raises the weights to a power. Certainties that were regularized as privacy asks lie close together,
    and a power above 1 parts them again; with 1 they are the paper's.

    Shapes: clients times [n, classes], clients times [n] -> [n, classes].
    """
    stacked = np.stack(logits)
    shares = np.ones(stacked.shape[:2]) if weights is None else np.stack(weights)
    shares = (shares / shares.max(axis=0)) ** sharpness
    mean = np.einsum("in,inc->nc", shares / shares.sum(axis=0), stacked)
    odds = np.exp(mean - mean.max(axis=1, keepdims=True))
    result: Floats = odds / odds.sum(axis=1, keepdims=True)
    return result
