"""What systems of generative adversarial networks share: their settings, objectives, and a warm start from nacre.

    cold   records are what the generator makes of z and the class
    warm   records are sampled from nacre's release, and the generator refines them

A warm start's generator changes nothing at first, so that it begins at the quality of nacre.
"""

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_targets
from dpmodels.errors import Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.gan_model import Base, GanModel
from dpmodels.generators.heads import head_of
from dpmodels.generators.operators.network import NetworkShape, OperatorNetwork, OperatorPart
from dpmodels.generators.sizes import GanSpec
from dpmodels.late import torch
from dpmodels.mechanisms.dp_sgd.spec import Rows, SgdSpec
from dpmodels.methods.images.image_moments import ImageMeasurement
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.trained.clusters import Counts
from dpmodels.methods.trained.private_training import Networks, Training
from dpmodels.methods.trained.warm_start import WarmStart
from dpmodels.privacy import Sensitive

REFINING_RATE = 2e-4
"""Learning rate of a generator that refines; with it, images stayed level with what they started from."""


class GanMeasurement(Frozen):
    """What systems of adversarial networks share of what is measured.

    Attributes:
        warm_share: share of the budget's squared mu that goes to a release of nacre, which the generators refine; 0 for
            no such release. The other looks give up this part of their own share.
        warm: what that release measures; by default what nacre or nacre-images does.
        sgd, gan: parameters of the steps and of the networks; by default what suits tables or images (``suited``).
        critic: an operator's network instead of ours.
    """

    suited: ClassVar[dict[str, dict[str, Any]]]
    warm_share: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    warm: NacreMeasurement | ImageMeasurement | None = None
    sgd: SgdSpec | None = None
    gan: GanSpec | None = None
    critic: OperatorNetwork | None = Field(default=None, exclude_if=lambda network: network is None)

    def settled(self, schema: Schema) -> "GanMeasurement":
        """Set every parameter that was not given to what suits the schema."""
        start = ImageMeasurement() if schema.image else NacreMeasurement()
        suited = self.suited["ink" if schema.image else "table"]
        if self.warm_share:
            suited = suited | {"warm": start, "gan": suited["gan"].model_copy(update={"generator_rate": REFINING_RATE})}
        return self.model_copy(update={key: value for key, value in suited.items() if getattr(self, key) is None})


class Adversaries(Training[Counts]):
    """One adversarial network, or one for each cluster."""

    gan: GanSpec

    def begin(self, spec: GanMeasurement, schema: Schema, image_radius: float = 1.0) -> None:
        """Take the settings; the looks that follow give up ``warm_share`` of their own share."""
        self.gan, self.sgd, self.image_radius = spec.gan or GanSpec(), spec.sgd or SgdSpec(), image_radius
        if self.gan.told and self.gan.loss == "wgan-gp":
            raise Unsuitable("scores of a Wasserstein critic tell no fakes; set told to 0, or take another loss")
        if spec.critic and self.gan.penalty:
            raise Unsuitable("the slope of an operator's critic is not differentiated by record; set gan.penalty to 0")
        self.vectors = Vectors(schema, self.gan.most_cells, image_radius, self.gan.numbers)
        if spec.critic:
            shape = NetworkShape(head_of(self.vectors).outputs, 1, self.vectors.classes, self.vectors.image)
            self.operator = OperatorPart(spec.critic, shape, self.gan.seed)
        self.warm = WarmStart(schema, spec.warm, spec.warm_share) if spec.warm else None

    def networks(self, counts: Counts, start: bool) -> Networks:
        """Return an untrained objective for each network."""
        from dpmodels.generators.gan import Adversary

        stddev, records = torch.zeros(self.vectors.dim), torch.from_numpy(counts.counts)
        head = head_of(self.vectors, stddev)
        adversaries = [Adversary(self.vectors, head, each, self.gan, bool(self.warm), self.sgd) for each in records]
        return Networks(adversaries, records, stddev)

    def objective(self, counts: Counts, index: int, start: bool) -> Any:
        """Return an objective to train, and give a refiner the records that it starts from (post-processing)."""
        from dpmodels.generators.gan import Pool, pretrain_critic

        adversary = self.networks(counts, start).objectives[index]
        if self.operator:
            from dpmodels.generators.operators.modules import OperatorCritic

            adversary.critic = OperatorCritic(*self.operator)
        if base := self.base(counts):
            rows = self.vectors.rows(base.model.sample(self.gan.pool, self.gan.seed))
            nearest = base.clusters(self.vectors, rows.design) == index
            adversary.start_from(Pool.of(rows.target, torch.from_numpy(rows.label), nearest, self.vectors.classes))
            if start:
                pretrain_critic(adversary)
        return adversary

    def base(self, counts: Counts) -> Base | None:
        """Fit what refiners start from (post-processing)."""
        if not self.warm:
            return None
        centroids = np.zeros((1, self.vectors.size)) if counts.centroids is None else counts.centroids
        return Base(self.warm.fit(counts.warm, self.gan.seed), torch.from_numpy(centroids))

    def model(self, counts: Counts, networks: Networks, entry: str) -> GanModel:
        """Return the generators, with what they refine."""
        generators = [snapshot for adversary in networks.objectives for snapshot in adversary.released]
        base = self.base(counts)
        return GanModel(self.vectors, self.gan, generators, networks.counts, self.image_radius, base, entry)

    def training_rows(self, rows: Sensitive[VectorRows]) -> Sensitive[Rows]:
        """Return the labels and targets of the records."""
        return transform_targets(rows)
