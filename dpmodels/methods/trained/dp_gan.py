"""DP-GAN: one generative adversarial network whose critic is trained by DP-SGD (Xie, Lin, Wang, Wang, Zhou, 2018).

    measure   the count of each class + noise
              for each step of the critic: gradients of L(x, y) by record, clipped as one group, + noise      gan.py
              after every critic_steps of them: a step of the generator, which sees the critic alone
    sample    y by its released share, z ~ N(0, I), G(z, y)

The generator is conditional on the class, which the paper's is not. What differs from the paper, and why, is in
docs/privacy.md.
"""

from collections.abc import Generator
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dpmodels.arrays import Floats
from dpmodels.contract.schema import Schema
from dpmodels.generators.sizes import GanSpec
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec
from dpmodels.methods.trained.clusters import Counts, count_classes
from dpmodels.methods.trained.gan_training import Adversaries, GanMeasurement
from dpmodels.methods.trained.private_training import Look, PrivateTraining, Reader, Untrained
from dpmodels.releases.steps import Step

TABLE_SGD = SgdSpec(steps=2000, learning_rate=1e-3, momentum=0.5, steadiness=0.9)
IMAGE_SGD = SgdSpec(steps=4000, learning_rate=1.5e-3, momentum=0.0, steadiness=0.9, schedule="late")
IMAGE_GAN = GanSpec(generator_rate=2e-3, momentum=0.0, critic_pixels=2, critic_steps=3, snapshots=8)
"""Without momenta 700 steps reached a sixth of the LeNet-FID that they reached with both. With fewer critic steps, or
with the last generator alone, records of a class are alike."""


class DpGanMeasurement(GanMeasurement):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        count_share: share of the budget's squared mu that the counts of the classes take; DP-SGD has the rest.
    """

    suited: ClassVar[dict[str, dict[str, Any]]] = {
        "table": {"sgd": TABLE_SGD, "gan": GanSpec(critic_layers=2)},
        "ink": {"sgd": IMAGE_SGD, "gan": IMAGE_GAN},
    }
    count_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.02


class DpGan(Adversaries):
    """One look at the counts, then one training."""

    def __init__(self, spec: DpGanMeasurement, schema: Schema) -> None:
        self.begin(spec, schema)
        share = spec.count_share * (1 - spec.warm_share)
        counts = Look("records in a class", self.vectors.classes, 1, share)
        self.looks = (*(self.warm.looks if self.warm else ()), counts)

    def programme(self, rows: Reader) -> Generator[Step, Any, Counts]:
        """Count the classes, then train critic and generator on all records."""
        warm = (yield from self.warm.programme()) if self.warm else []
        look = yield self.look("records in a class", partial(count_classes, self.vectors, rows))
        counts = Counts.of(look, warm=warm)
        yield self.train(counts, lambda data: self.training_rows(rows(data)))
        return counts

    def class_counts(self, counts: Counts) -> tuple[Floats, float]:
        """Return the counts and their noise_stddev."""
        return counts.of_classes()


def dp_gan(measurement: DpGanMeasurement, training: Untrained) -> PrivateTraining:
    """Return DP-GAN."""
    return PrivateTraining("dp-gan", measurement, DpGan, DpGanMeasurement.settled)
