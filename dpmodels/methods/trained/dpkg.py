"""DPKG: clustered data, one DP-GAN a cluster, gradients clipped in groups (Yang, Hao, Ma, Yu, Chen; 2024).

    measure   k-means with noise on sums and counts; counts of cluster and class + noise                     clusters.py
              one GAN a cluster, side by side, by DP-SGD on the cluster's records: the critic's gradients are
              clipped group by group, at bounds that adapt                                          mechanisms/dp_sgd
    sample    cluster and class by their released share, z ~ N(0, I), G_cluster(z, y)

What differs from the paper, and why, is in docs/privacy.md: its bounds, groups and rate of sampling were read off
private gradients and private sizes, and its groups were charged as one.
"""

from typing import Annotated, Any, ClassVar, cast

from pydantic import Field

from dpmodels.contract.schema import Schema
from dpmodels.generators.sizes import GanSpec
from dpmodels.methods.trained.clusters import ClusterMeasurement, Clusters
from dpmodels.methods.trained.dp_gan import IMAGE_GAN, IMAGE_SGD, TABLE_SGD
from dpmodels.methods.trained.gan_training import Adversaries, GanMeasurement
from dpmodels.methods.trained.private_training import PrivateTraining, Untrained

GROUPED = {"groups": "layers-biases", "bounds": "quantile"}
"""What the paper adds to a DP-GAN beside its clusters; the quantile is counted with noise, and charged. On tables
bounds stay fixed by default: counted ones came out lower there, and otherwise from seed to seed (docs/benchmarks.md).

The paper's decaying rate is ``schedule: dpkg``. By default the rate is that of ``dp-gan``: the paper's falls so early
that the critic hardly learns, and loses more than the other ideas gain (docs/benchmarks.md).
"""


class DpkgMeasurement(ClusterMeasurement, GanMeasurement):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        clusters: two on images, the fewest there can be, and one on tables unless another number is given. Each critic
            learns from its own cluster alone, under as much noise as if it learned from all records.
    """

    clusters: Annotated[int, Field(ge=1, le=64)] = 2

    suited: ClassVar[dict[str, dict[str, Any]]] = {
        "table": {
            "sgd": TABLE_SGD.model_copy(update={**GROUPED, "bounds": "fixed"}),
            "gan": GanSpec(critic_layers=2),
        },
        "ink": {"sgd": IMAGE_SGD.model_copy(update=GROUPED), "gan": IMAGE_GAN},
    }

    def settled(self, schema: Schema) -> "DpkgMeasurement":
        """Set every parameter that was not given to what suits the schema."""
        suited = {} if "clusters" in self.model_fields_set or schema.image else {"clusters": 1}
        return cast(DpkgMeasurement, super().settled(schema).model_copy(update=suited))


class Dpkg(Adversaries, Clusters):
    """Clusters, then one adversarial network for each; a single cluster needs no k-means."""

    least_clusters = 2

    def __init__(self, spec: DpkgMeasurement, schema: Schema) -> None:
        self.begin(spec, schema, spec.image_radius)
        self.lay_out(spec, self.vectors, self.gan.seed, 1 - spec.warm_share)


def dpkg(measurement: DpkgMeasurement, training: Untrained) -> PrivateTraining:
    """Return DPKG."""
    return PrivateTraining("dpkg", measurement, Dpkg, DpkgMeasurement.settled)
