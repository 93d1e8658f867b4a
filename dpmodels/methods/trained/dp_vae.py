"""DP-VAE, the first baseline of P3GM: a plain variational auto-encoder trained by DP-SGD.

measure   the count of each class + noise; q(z|x) = N(mu(x), sigma(x)), p(x|z,y), prior N(0, I), by DP-SGD (Eq. 7)
sample    y by its released share, z ~ N(0, I), decode
"""

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from dpmodels.arrays import Floats
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import Vectors, transform_designs
from dpmodels.frozen import Frozen
from dpmodels.generators.heads import VALUE_STDDEV, head_of
from dpmodels.generators.operators.network import NetworkShape, OperatorNetwork, OperatorPart
from dpmodels.generators.sizes import VaeSpec
from dpmodels.late import torch
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec
from dpmodels.methods.trained.clusters import Counts, count_classes
from dpmodels.methods.trained.private_training import Look, Networks, PrivateTraining, Reader, Training, Untrained
from dpmodels.releases.steps import Step

if TYPE_CHECKING:
    from dpmodels.generators.vae import Objective


class DpVaeMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        latent: number of coordinates of z.
        count_share: share of the budget's squared mu that the counts of the classes take; DP-SGD has the rest.
        decoder: an operator's network instead of ours.
    """

    latent: Annotated[int, Field(ge=1, le=400)] = 15
    count_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.02
    sgd: SgdSpec = SgdSpec()
    vae: VaeSpec = VaeSpec()
    decoder: OperatorNetwork | None = Field(default=None, exclude_if=lambda network: network is None)


def plain_vae(
    vectors: Vectors, latent: int, spec: VaeSpec, seed: int, operator: OperatorPart | None = None
) -> "Objective":
    """Return an untrained VAE with a standard normal prior."""
    from dpmodels.generators.vae import FreeEncoder, Objective, Prior, decoder_of

    head = head_of(vectors)
    decoder = decoder_of(latent, vectors.classes, head.outputs, spec.hidden, operator)
    decoder.start(seed)
    encoder = FreeEncoder(vectors.dim, latent, spec.hidden, seed)
    return Objective(encoder, decoder, Prior.standard(vectors.classes, latent), head, spec)


def decoder_part(network: OperatorNetwork | None, vectors: Vectors, latent: int, seed: int) -> OperatorPart | None:
    """Return an operator's decoder of a latent with what it is made for, if there is one."""
    shape = NetworkShape(latent, head_of(vectors).outputs, vectors.classes, vectors.image)
    return OperatorPart(network, shape, seed) if network else None


class DpVae(Training[Counts]):
    """One look at the counts, then one training."""

    def __init__(self, spec: DpVaeMeasurement, schema: Schema) -> None:
        self.spec, self.sgd, self.vae = spec, spec.sgd, spec.vae
        self.vectors = Vectors(schema, spec.vae.most_cells, 1.0, spec.vae.numbers)
        self.operator = decoder_part(spec.decoder, self.vectors, spec.latent, spec.vae.seed)
        self.looks = (Look("records in a class", self.vectors.classes, 1, spec.count_share),)

    def programme(self, rows: Reader) -> Generator[Step, Any, Counts]:
        """Count the classes, then train the network on all records."""
        counts = Counts.of((yield self.look("records in a class", partial(count_classes, self.vectors, rows))))
        yield self.train(counts, lambda data: transform_designs(rows(data)))
        return counts

    def networks(self, counts: Counts, start: bool) -> Networks:
        """Return the one objective."""
        objective = plain_vae(self.vectors, self.spec.latent, self.vae, self.vae.seed, self.operator)
        return Networks([objective], torch.from_numpy(counts.counts), torch.full((self.vectors.dim,), VALUE_STDDEV))

    def class_counts(self, counts: Counts) -> tuple[Floats, float]:
        """Return the counts of the classes, which the only look released."""
        return counts.of_classes()


def dp_vae(measurement: DpVaeMeasurement, training: Untrained) -> PrivateTraining:
    """Return DP-VAE."""
    return PrivateTraining("dp-vae", measurement, DpVae)
