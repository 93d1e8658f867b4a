"""Moments head: counts, means and second moments of frozen features by class, added up and read as Gaussians.

    measure   s = sum_x [ a e_y ; b z (x) e_y ; z z' (or z z' (x) e_y) ]  + noise            statistics/class_moments.py
    fit       Gaussians of the classes without the noise's share; discriminants, linear or quadratic

Sums do not know how records are spread over clients, so skew costs nothing. Under local trust each client adds noise to
its own sum, and the noise adds up. Under central trust a trusted aggregator is handed the exact sums of all clients,
adds them up and draws one noise for all.

Privacy, of both: the unit is one record of one client, added or removed, or replaced within its client where sizes are
public. Under central trust the total is a sum over clients, and a record is in the sum of one client alone; so the
record moves the total by what it moves that client's sum, which is bounded by the sensitivity of ``ClassMoments``
whatever the number of clients, and one Gaussian of that sensitivity covers every record of every client. Each client
is charged that one Gaussian, in its own account: the draw depends on its records, and on no record twice. What differs
is who sees what: under central trust the aggregator's process reads every client's exact sums.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.special import softmax

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.federation import CENTRAL, Federation
from dpmodels.errors import InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.privacy import Adjacency, PrivacyBudget, Released, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, NoisySum, Programme, Sum
from dpmodels.releases.system import System, fingerprint_of
from dpmodels.statistics.class_moments import ClassMoments, transform_all_moments
from dpmodels.statistics.component_moments import LEAST_VARIANCE, Z_BITS
from dpmodels.statistics.partial_sums import transform_added
from dpmodels.statistics.symmetric import DIAGONAL, edge_of, shrink, shrink_classes

FLOOR, FLOOR_OF_CLASSES = 1.0, 0.5
"""Floors of new plans, as measured in docs/benchmarks-archive.md: of one covariance, and of one for each class."""


def floor_of(spec: Mapping[str, Any]) -> float:
    """Return the floor of a new plan."""
    return FLOOR if spec.get("pooled", True) else FLOOR_OF_CLASSES


class ClientMoments(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        pooled: whether all classes share one second moment, which gives linear discriminants.
        count_weight, mean_weight: weights of a count and of a first moment, where a second moment has 1.
        floor: the least variance that a release is read with, as a multiple of the edge of the noise of the covariance
            of all classes; None, as releases were read before there was a choice, is a twentieth of the edge of each
            covariance itself. What does not stand out of the noise is no more than this bound says, and variances that
            are taken for much less than the noise is outweigh, inverted, all that stands out of it.
        trust: local, where each client draws its own noise; or central, where an aggregator that sees the exact sums of
            all clients draws one noise for all.
    """

    pooled: bool = True
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.15
    mean_weight: Annotated[float, Field(gt=0, le=10)] = 1.0
    floor: Annotated[float, Field(gt=0, le=10)] | None = Field(default_factory=floor_of)
    trust: Literal["local", "central"] = "local"


@dataclass(frozen=True)
class Discriminant:
    """A Gaussian for each class, of vectors whose clip norm is 1.

    Shapes: ``log_shares`` [c]; ``means`` [c, d]; ``inverses`` [1 or c, d, d]; ``log_volumes`` [1 or c].
    """

    kind: ClassVar[str] = "gaussians"
    log_shares: Floats
    means: Floats
    inverses: Floats
    log_volumes: Floats

    def logits(self, z: Whole) -> Floats:
        """Return log(share * density) of each class but for a constant. Shapes: [n, d] -> [n, classes]."""
        points, logits = np.ldexp(z.astype(np.float64), -Z_BITS), []
        for c, mean in enumerate(self.means):
            inverse, volume = self.inverses[c % len(self.inverses)], self.log_volumes[c % len(self.inverses)]
            off = points - mean
            logits.append(self.log_shares[c] - 0.5 * (volume + ((off @ inverse) * off).sum(axis=1)))
        return np.stack(logits, axis=1)

    def probabilities(self, z: Whole) -> Floats:
        """Return each class's probability. Shapes: [n, d] -> [n, classes]."""
        probabilities: Floats = softmax(self.logits(z), axis=1)
        return probabilities


@dataclass(frozen=True)
class MomentsHead(System[ClassMoments]):
    """The moments of one client, or of a whole federation."""

    method = "federated-moments"
    about = "a federation"
    measurement: ClientMoments = field(default_factory=ClientMoments)

    def design(self, spec: ClientMoments, contract: Federation) -> ClassMoments:
        """State what is summed; where a record is replaced, the sensitivity is that of a replaced one.

        Raises:
            InvalidArgument: the sum of all clients could be larger than a whole number of 64 bits holds.
        """
        weights = spec.count_weight, spec.mean_weight
        moments = ClassMoments(len(contract.classes), contract.features, *weights, pooled=spec.pooled)
        if contract.whole.most * moments.l2_sensitivity >= 2**62:
            raise InvalidArgument("most_records", contract.most_records, "be less: the sum of all could overflow")
        if contract.adjacency == Adjacency.REPLACE_ONE:
            moments.l2_sensitivity = moments.replaced_sensitivity
        return moments

    def event(self, design: ClassMoments, budget: PrivacyBudget) -> GaussianEvent:
        """Charge one Gaussian event, which says whether an aggregator draws it for all clients."""
        together = CENTRAL if self.measurement.trust == "central" else ""
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget), mechanism=together)

    def programme(self, design: ClassMoments) -> Programme:
        """Sum once: over all records that are there, or, under central trust, over the exact sums of the clients."""

        def total(data: Data) -> Sensitive[Whole]:
            if self.measurement.trust == "central":
                return transform_added(data.records, design.dim)
            return transform_all_moments(design, data.records)

        yield Sum(total, design.dim, design.l2_sensitivity)

    def fit(self, releases: Sequence[Released[Release]]) -> Discriminant:
        """Add up the releases of clients, or take the one of a federation, and read Gaussians off it (post-processing).

        Raises:
            InvalidArgument: there is no release, or they are not of one measurement.
        """
        if len({(each.value.line.fingerprint, each.value.line.contract.hash) for each in releases}) < len(releases):
            raise InvalidArgument("releases", len(releases), "be of as many clients")
        specs = {ClientMoments.model_validate(each.value.line.measurement) for each in releases}
        if len({each.value.line.fingerprint for each in releases}) != 1 or len({spec.floor for spec in specs}) != 1:
            raise InvalidArgument("releases", len(releases), "be of one measurement, and at least one")
        sums = [once for each in releases for once in self.answers(each.value)]
        return added(self.of(releases[0].value.line), sums, specs.pop().floor)

    def noise(self, line: Line) -> dict[str, float]:
        return self.noise_at(line, self.of(line), 0)

    @staticmethod
    def noise_at(line: Line, moments: ClassMoments, step: int) -> dict[str, float]:
        """Name what the sum at one step of a line holds and the standard deviation of its noise."""
        stddev = line.noise_stddev(step, moments.l2_sensitivity)
        return {
            "records in a class": stddev / moments.count_step,
            "sum of squares of a feature, where the clip norm is 1": stddev / (DIAGONAL * 4.0**Z_BITS),
        }

    def least_units(self, line: Line) -> float:
        """Say about how many records all clients need together; each draws a noise, or one is drawn for all."""
        design, contract = self.of(line), line.contract
        clients = len(contract.clients) if contract.kind == "federation" and self.measurement.trust == "local" else 1
        return line.noise_stddev(0, design.l2_sensitivity) * math.sqrt(design.dim * clients) / design.l2_sensitivity

    def fingerprint(self, design: ClassMoments) -> str:
        return fingerprint_of(design.classes, design.size, design.count_step, design.mean_step, design.pooled)


def added(moments: ClassMoments, sums: Sequence[NoisySum], floor: float | None) -> Discriminant:
    """Add noisy sums up, with their noise, and return the Gaussians of the total (post-processing)."""
    total = np.sum([once.vector for once in sums], axis=0)
    return discriminant(moments, total, float(np.linalg.norm([once.noise_stddev for once in sums])), floor)


def discriminant(moments: ClassMoments, released: Whole, noise_stddev: float, floor: float | None) -> Discriminant:
    """Return the Gaussians of released moments (post-processing).

    Units: ``noise_stddev`` in lattice steps; ``floor`` as in ``ClientMoments``.
    """
    counts, sums, seconds = moments.unpack(released)
    sizes = counts.clip(min=max(1.0, noise_stddev / moments.count_step))
    means = sums / sizes[:, None]
    means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))
    noise, shares = noise_stddev / (DIAGONAL * 4.0**Z_BITS), sizes / sizes.sum()
    squares = np.einsum("ci,cj->cij", means, means)
    if moments.pooled:
        within = seconds[0] / sizes.sum() - np.einsum("c,cij->ij", shares, squares)
        spread = float(noise / sizes.sum())
        least = None if floor is None else floor * edge_of(spread, moments.size)
        covariances = shrink(within, spread, least=least)[None]
    else:
        covariances = shrink_classes(seconds / sizes[:, None, None] - squares, noise / sizes, sizes, floor)
    covariances = covariances + LEAST_VARIANCE * np.eye(moments.size)
    volumes: Floats = np.linalg.slogdet(covariances)[1]
    inverses = np.linalg.inv(covariances).astype(np.float64)
    return Discriminant(np.log(shares), means, inverses, volumes)
