"""DP-GM, the second baseline of P3GM: DP k-means, then one DP-VAE for each cluster (Acs, Melis, Castelluccia, 2018).

    measure   clusters and their counts                                                        clusters.py
              one VAE a cluster by DP-SGD on the cluster's records
    sample    cluster and class by their released share, z ~ N(0, I), decode

The paper clusters kernel features and lets DP-SGD's rate depend on a cluster's private size; here both are public.
"""

from typing import Annotated

from pydantic import Field

from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_designs
from dpmodels.generators.heads import VALUE_STDDEV
from dpmodels.generators.operators.network import OperatorNetwork
from dpmodels.generators.sizes import VaeSpec
from dpmodels.late import torch
from dpmodels.mechanisms.dp_sgd.spec import Rows, SgdSpec
from dpmodels.methods.trained.clusters import ClusterMeasurement, Clusters, Counts
from dpmodels.methods.trained.dp_vae import decoder_part, plain_vae
from dpmodels.methods.trained.private_training import Networks, PrivateTraining, Untrained
from dpmodels.privacy import Sensitive


class DpGmMeasurement(ClusterMeasurement):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        latent: number of coordinates of z; decoder: an operator's network instead of ours.
    """

    latent: Annotated[int, Field(ge=1, le=400)] = 15
    sgd: SgdSpec = SgdSpec()
    vae: VaeSpec = VaeSpec()
    decoder: OperatorNetwork | None = Field(default=None, exclude_if=lambda network: network is None)


class DpGm(Clusters):
    """Clusters, then one VAE for each."""

    def __init__(self, spec: DpGmMeasurement, schema: Schema) -> None:
        self.spec, self.sgd = spec, spec.sgd
        self.lay_out(spec, Vectors(schema, spec.vae.most_cells, spec.image_radius, spec.vae.numbers), spec.vae.seed)
        self.operator = decoder_part(spec.decoder, self.vectors, spec.latent, spec.vae.seed)

    def networks(self, counts: Counts, start: bool) -> Networks:
        """Return one objective for each cluster."""
        vae, stddev = self.spec.vae, torch.full((self.vectors.dim,), VALUE_STDDEV)
        objectives = [plain_vae(self.vectors, self.spec.latent, vae, vae.seed, self.operator) for _ in counts.counts]
        return Networks(objectives, torch.from_numpy(counts.counts), stddev)

    def training_rows(self, rows: Sensitive[VectorRows]) -> Sensitive[Rows]:
        """Return the vectors of a cluster's rows."""
        return transform_designs(rows)


def dp_gm(measurement: DpGmMeasurement, training: Untrained) -> PrivateTraining:
    """Return DP-GM."""
    return PrivateTraining("dp-gm", measurement, DpGm)
