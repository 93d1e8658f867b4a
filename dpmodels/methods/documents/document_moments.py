"""Moments of documents: a noisy center, the moments of each class about it, one charge, and Gaussians on the sphere.

    whiten    x of norm 1, by what the encoder makes of words in general (public: embeddings/whitening.py)
    measure   m = sum_x x / number  + noise                                    -> center, and how far x is from it
              s = sum_x [ a ; b z ] (x) e_class ; z z',  z = clip(x - m)  + noise
    fit       the covariance within classes, drawn toward a multiple of the identity where it is noise; each class's
              mean, drawn toward the mean of all as far as it is noise; both back to the encoder's own space
    sample    N(mean_y, covariance), brought to norm 1

What a linear classifier needs are the means of the classes and one covariance: with as little noise as all documents
together allow. A covariance for each class would be lost in noise where classes have hundreds of documents.

Privacy: both looks get discrete Gaussian noise, of multipliers z / sqrt(share) and z / sqrt(1 - share) over their
sensitivities (proof: embeddings/document_moments.py). The second look may depend on the released first; two Gaussian
mechanisms of mu_1^2 + mu_2^2 = 1 / z^2 together cost no more than one of multiplier z (Dong, Roth and Su
2019, corollary 3.3).
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from dpmodels.accounting.events import ComposedEvent
from dpmodels.accounting.split import split
from dpmodels.arrays import Floats, Whole
from dpmodels.codec.embedded import BITS, labels_of
from dpmodels.contract.documents import Documents
from dpmodels.embeddings.document_moments import DocumentMean, DocumentMoments
from dpmodels.embeddings.whitening import Whitening
from dpmodels.errors import Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.points import PointModel
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.methods.trained.private_training import Untrained
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Keep, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of
from dpmodels.statistics.symmetric import DIAGONAL, shrink

MOST_DIM = 4096
"""Second moments of more dimensions are more than 8 million numbers, nearly all of them noise."""
WHITENING = 0.7
"""Exponent that suits an encoder which comes with a table of words."""


class DocumentMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        centre_share: share of the squared sensitivity (so of the budget, mu squared) that the first look takes.
        radius: norm that documents are clipped to about the center, as a multiple of the root mean square norm that the
            first look predicts.
        first_count_weight: weight of a count at the first look, where a sum has 1.
        count_weight, mean_weight: weights of a count and of a first moment at the second look, where a second moment
            has 1. The more classes there are, the more their means suffer from noise: a ``mean_weight`` of 0 becomes
            1.5 times the fourth root of their number.
        whitening: exponent of the map that whitens embeddings, from 0, which is none, to 1; None suits the encoder. A
            plan without it is of a version that did not whiten.
    """

    centre_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.03
    radius: Annotated[float, Field(gt=0, le=10)] = 1.0
    first_count_weight: Annotated[float, Field(gt=0, le=10)] = 0.3
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.45
    mean_weight: Annotated[float, Field(ge=0, le=10)] = 0.0
    whitening: Annotated[float, Field(ge=0, le=1)] | None = None

    def settled(self, contract: Documents) -> "DocumentMeasurement":
        """Set what was not given to what suits the contract."""
        mean_weight = self.mean_weight or round(1.5 * max(1, len(contract.classes)) ** 0.25, 2)
        suited = WHITENING if contract.encoder.name == "wordllama" else 0.0
        whitening = suited if self.whitening is None else self.whitening
        return self.model_copy(update={"mean_weight": mean_weight, "whitening": whitening})


class DocumentLooks:
    """The two embeddings of a plan; the second exists once the first is released."""

    def __init__(self, spec: DocumentMeasurement, contract: Documents) -> None:
        self.spec, self.dim, self.classes = spec, contract.encoder.dim, max(1, len(contract.classes))
        self.max_rows = contract.unit.max_rows
        self.encoder = contract.encoder
        self.first = self.first_look(None)
        self.l2_sensitivity = self.second(np.zeros(self.dim + 1, dtype=np.int64)).l2_sensitivity

    def map(self) -> Keep:
        """Keep the public map that whitens, so that a release is read without the encoder."""

        def integers() -> Whole:
            return Whitening.of(self.encoder, self.spec.whitening or 0.0).packed()

        return Keep(integers, Whitening.width(self.dim))

    def first_look(self, whitening: Whitening | None) -> DocumentMean:
        """Return the first embedding."""
        return DocumentMean(self.dim, self.spec.first_count_weight, self.max_rows, whitening)

    def choose(self, first: Whole, noise_stddev: float) -> Whole:
        """Return the center and the clip radius of the second look as whole numbers (post-processing).

        All documents have norm 1, so their mean square distance from their mean m is 1 - |m|^2.

        Units: ``noise_stddev`` of the first look, in lattice steps; center and radius in steps.
        """
        count, total = self.first.unpack(first)
        number = max(count, 1.0, noise_stddev / self.first.count_step)
        centre = total / number
        noise = self.dim * (math.ldexp(noise_stddev, -BITS) / number) ** 2
        power = float(centre @ centre)
        centre *= max(0.0, 1 - noise / power) if power else 0.0  # drawn toward 0 as far as it is noise
        centre /= max(1.0, float(np.linalg.norm(centre)))
        radius = self.spec.radius * math.sqrt(max(1 - float(centre @ centre), 0.01))
        return np.rint(np.ldexp([*centre, radius], BITS)).astype(np.int64)

    def second(self, parameters: Whole, whitening: Whitening | None = None) -> DocumentMoments:
        """Return the second embedding, made of what ``choose`` returned; its sensitivity is the same for all of it."""
        weights = self.spec.count_weight, self.spec.mean_weight
        return DocumentMoments(
            self.classes, parameters[:-1], max(1, int(parameters[-1])), weights, self.max_rows, whitening
        )


@dataclass(frozen=True)
class Estimate:
    """What a release says of the embeddings. Shapes: [classes], [classes, dim], [dim, dim]."""

    counts: Floats
    means: Floats
    covariance: Floats

    @classmethod
    def of(cls, embedding: DocumentMoments, released: Whole, noise_stddev: float) -> "Estimate":
        """Take the known noise out of a release of the second look (post-processing)."""
        counts, sums, (moment,) = embedding.unpack(released)
        dim, unit = embedding.size, math.ldexp(embedding.radius, -BITS)
        divisor = counts.clip(min=max(1.0, noise_stddev / embedding.count_step))
        shares = divisor / divisor.sum()
        offsets = sums / divisor[:, None]
        noise = (noise_stddev / (embedding.mean_step * 2.0**BITS) / divisor) ** 2  # variance of a coordinate
        within = moment / divisor.sum() - np.einsum("c,ci,cj->ij", shares, offsets, offsets)
        within += np.eye(dim) * float(shares @ noise)
        average = max(float(np.trace(within)) / dim, 1e-3 / dim)
        entry = noise_stddev / (DIAGONAL * 4.0**BITS) / divisor.sum()
        covariance = shrink(within, entry, average * np.eye(dim))
        covariance *= dim * average / float(np.trace(covariance))  # the trace is known better than any eigenvalue
        means = unit * shrink_means(offsets, shares, noise, covariance)
        estimate = cls(counts, np.ldexp(embedding.centre.astype(np.float64), -BITS) + means, unit**2 * covariance)
        return estimate.mapped(embedding.whitening.inverse()) if embedding.whitening else estimate

    def mapped(self, matrix: Floats) -> "Estimate":
        """Map what is estimated linearly, and to a scale in which the mean square norm of a document is 1."""
        means, covariance = self.means @ matrix, matrix.T @ self.covariance @ matrix
        shares = self.counts.clip(min=1) / self.counts.clip(min=1).sum()
        square = float(shares @ (means**2).sum(axis=1) + np.trace(covariance))
        return Estimate(self.counts, means / math.sqrt(square), covariance / square)


def shrink_means(offsets: Floats, shares: Floats, noise: Floats, covariance: Floats) -> Floats:
    """Draw the means of classes toward the mean of all, in each direction as far as they are noise.

    Along an eigenvector of the covariance, means are taken to vary as its squared eigenvalue: where documents are
    alike, so are the classes. How far they vary altogether is what is left of their power without the noise.

    Shapes: offsets [classes, dim]; shares, noise [classes], the variance of a coordinate; covariance [dim, dim].
    """
    values, vectors = np.linalg.eigh(covariance)
    middle = shares @ offsets
    power = np.maximum(((offsets - middle) ** 2).mean(axis=1) - noise, 0)
    spread = float(shares @ power) * values**2 / float((values**2).mean())
    shrinkage = spread / (spread + noise[:, None])
    means: Floats = middle + (((offsets - middle) @ vectors) * shrinkage) @ vectors.T
    return means


@dataclass(frozen=True)
class DocumentMomentsSystem(Synthesizer[DocumentLooks]):
    """Moments of documents; its design is the two looks."""

    method = "document-moments"
    about: ClassVar[str] = "documents"
    least_is_certain: ClassVar[bool] = False
    measurement: DocumentMeasurement = field(default_factory=DocumentMeasurement)
    training: Untrained = field(default_factory=Untrained)

    def settled(self, contract: Documents) -> DocumentMeasurement:
        return self.measurement.settled(contract)

    def design(self, spec: DocumentMeasurement, contract: Documents) -> DocumentLooks:
        """Make the looks; a sentence cannot be the unit, since a document has one embedding.

        Raises:
            Unsuitable: the contract protects sentences, or the embeddings have too many dimensions.
        """
        if contract.protects == "sentence":
            raise Unsuitable(
                f"the contract {contract.name} protects sentences and this method protects documents or users: change "
                "`protects`, or use `nacre embed-documents`"
            )
        if contract.encoder.dim > MOST_DIM:
            raise Unsuitable(f"the embeddings have more than {MOST_DIM} dimensions; use an encoder that has fewer")
        return DocumentLooks(spec, contract)

    def event(self, design: DocumentLooks, budget: PrivacyBudget) -> ComposedEvent:
        """Charge two Gaussians: the first takes ``centre_share`` of the budget's squared mu, the second the rest."""
        share = design.spec.centre_share
        return split(budget, {"mean": share, "moments by class": 1 - share})

    def programme(self, design: DocumentLooks) -> Programme:
        """Sum all embeddings, then the moments of each class about their mean."""
        whitening = Whitening.unpacked((yield design.map()), design.dim) if design.spec.whitening else None
        first = yield Sum.of(design.first_look(whitening))
        parameters = yield Keep.of(design.choose(first.vector, first.noise_stddev))
        yield Sum.of(design.second(parameters, whitening))

    def estimate(self, release: Release) -> Estimate:
        """Return the moments without their noise (post-processing)."""
        second = self.answers(release)[-1]
        return Estimate.of(second.embedding, second.vector, second.noise_stddev)

    def fit(self, release: Released[Release], craft: Craft) -> PointModel:
        """Take the noise out of the moments; in seconds, without checkpoints (post-processing)."""
        estimate, line = self.estimate(release.value), release.value.line
        factor = np.linalg.cholesky(estimate.covariance)
        return PointModel(line.contract, estimate.means, factor, estimate.counts, release.value.entry)  # type: ignore[arg-type]

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes that the second look released (post-processing)."""
        second, contract = self.answers(release)[-1], release.line.contract
        counts = second.embedding.unpack(second.vector)[0]
        table = labels_of(contract)  # type: ignore[arg-type]
        return of_classes(table, counts, second.noise_stddev / second.embedding.count_step)

    def noise(self, line: Line) -> dict[str, float]:
        looks = self.of(line)
        first = line.noise_stddev(0, looks.first.l2_sensitivity)
        second = line.noise_stddev(1, looks.l2_sensitivity)
        moments = looks.second(np.zeros(looks.dim + 1, dtype=np.int64))
        return {
            "documents, first look": first / looks.first.count_step,
            "sum of a coordinate over all documents, whose norm is 1": math.ldexp(first, -BITS),
            "documents in a class, second look": second / moments.count_step,
            "sum of a coordinate over a class, where the clip norm is 1": second / moments.mean_step / 2.0**BITS,
            "sum of squares of a coordinate over all documents, where the clip norm is 1": second
            / (DIAGONAL * 4.0**BITS),
        }

    def least_units(self, line: Line) -> float:
        """Say about how many the second look needs, in which documents about their mean point everywhere.

        Its sum is then as long as its noise, which is where the report begins to warn (report/fidelity.py). Documents
        that are much alike need fewer, so the report asks the released sum itself.
        """
        looks = self.of(line)
        moments = looks.second(np.zeros(looks.dim + 1, dtype=np.int64))
        one = moments.spread_norm * looks.max_rows
        return line.noise_stddev(1, looks.l2_sensitivity) * math.sqrt(moments.dim) / one

    def fingerprint(self, design: DocumentLooks) -> str:
        return fingerprint_of(design.dim, design.classes, BITS, design.first.l2_sensitivity, design.l2_sensitivity)
