"""DP-VAE, the first baseline of P3GM: a plain variational auto-encoder trained by DP-SGD.

measure   the count of each class + noise; q(z|x) = N(mu(x), sigma(x)), p(x|z,y), prior N(0, I), by DP-SGD (Eq. 7)
sample    y by its released share, z ~ N(0, I), decode
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_bounded, transform_designs
from dpmodels.frozen import Frozen
from dpmodels.generators.heads import VALUE_STDDEV, head_of
from dpmodels.generators.sizes import VaeSpec
from dpmodels.late import torch
from dpmodels.mechanisms.dp_sgd.spec import Rows, SgdSpec
from dpmodels.methods.trained.private_training import Built, Looks, Phase, Phases, PrivateTraining, Untrained
from dpmodels.privacy import Sensitive
from dpmodels.statistics.cluster_sums import transform_class_counts

if TYPE_CHECKING:
    from dpmodels.generators.vae import Objective


class DpVaeMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        latent: number of coordinates of z.
        count_share: share of the budget's squared mu that the counts of the classes take; DP-SGD has the rest.
    """

    latent: Annotated[int, Field(ge=1, le=400)] = 15
    count_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.02
    sgd: SgdSpec = SgdSpec()
    vae: VaeSpec = VaeSpec()


def plain_vae(vectors: Vectors, latent: int, spec: VaeSpec, seed: int) -> "Objective":
    """Return an untrained VAE with a standard normal prior."""
    from dpmodels.generators.vae import Decoder, FreeEncoder, Objective, Prior

    head = head_of(vectors)
    decoder = Decoder(latent, vectors.classes, head.outputs, spec.hidden)
    decoder.start(seed)
    encoder = FreeEncoder(vectors.dim, latent, spec.hidden, seed)
    return Objective(encoder, decoder, Prior.standard(vectors.classes, latent), head, spec)


class DpVaeSystem(Phases):
    """One look at the counts, then one training."""

    def __init__(self, spec: DpVaeMeasurement, schema: Schema) -> None:
        self.spec, self.sgd, self.vae = spec, spec.sgd, spec.vae
        self.vectors = Vectors(schema, spec.vae.most_cells, 1.0, spec.vae.numbers)
        self.looks = (Phase("records in a class", self.vectors.classes, 1, spec.count_share),)

    def statistic(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Whole]:
        """Return the counts of the classes."""
        return transform_class_counts(
            transform_bounded(rows, self.vectors, np.ones(self.vectors.dim)), self.vectors.classes
        )

    def build(self, released: Looks, start: bool) -> Built:
        """Return the one objective."""
        counts = torch.from_numpy(released[0].vector.astype(np.float64))[None]
        objective = plain_vae(self.vectors, self.spec.latent, self.vae, self.vae.seed)
        return Built([objective], counts, torch.full((self.vectors.dim,), VALUE_STDDEV))

    def class_counts(self, released: Looks) -> tuple[Floats, float]:
        """Return the counts of the classes, which the only look released."""
        return released[0].vector.astype(np.float64), released[0].noise_stddev

    def training_rows(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Rows]:
        """Return the vectors of the records."""
        return transform_designs(rows)


def dp_vae(measurement: DpVaeMeasurement, training: Untrained) -> PrivateTraining:
    """Return DP-VAE."""
    return PrivateTraining("dp-vae", measurement, DpVaeSystem)
