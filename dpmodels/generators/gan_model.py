"""Trained generators of adversarial networks: one, or one for each cluster, with released counts.

Where they refine, records are drawn from nacre's fitted release, and each goes through the generator of its cluster.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import Vectors
from dpmodels.generators.checkpoint import filled, under
from dpmodels.generators.heads import Head, head_of
from dpmodels.generators.model_file import read_model, write_model
from dpmodels.generators.sampling import Sampler, draw_cells
from dpmodels.generators.sizes import GanSpec
from dpmodels.late import Tensor, torch
from dpmodels.statistics.cluster_sums import nearest

if TYPE_CHECKING:
    from dpmodels.generators.gan_networks import Generator


@dataclass
class Base:
    """What refiners start from: nacre's generator, and the centroids of the clusters. Shapes: [K, size]."""

    model: Sampler
    centroids: Tensor

    def clusters(self, vectors: Vectors, design: "np.ndarray[Any, Any]") -> Tensor:
        """Return the cluster of each record. Shapes: [B, dim] -> [B]."""
        points = vectors.bounded(design, np.ones(vectors.dim))
        return torch.from_numpy(nearest(points, self.centroids.numpy()))


@dataclass
class GanModel(Sampler):
    """Draws a cluster and a class by their released counts, or a record to refine, then a snapshot, z and the record.

    Shapes: ``class_counts`` [clusters, classes] float64, noisy and possibly negative. ``generators`` are one cluster's
    snapshots after another's.
    """

    batch_rows: ClassVar[int] = 4096
    vectors: Vectors
    spec: GanSpec
    generators: "list[Generator]"
    class_counts: Tensor
    image_radius: float
    base: Base | None
    release_entry: str

    def __post_init__(self) -> None:
        self.schema: Schema = self.vectors.schema

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        """Draw one batch; the random numbers are those of the CPU on every device."""
        head, start = head_of(self.vectors, torch.zeros(self.vectors.dim)), None
        if self.base:
            base_rows = self.vectors.rows([self.base.model.draw(rows, rng)])
            start, y = head.shown(base_rows.target), torch.from_numpy(base_rows.label)
            which = self.base.clusters(self.vectors, base_rows.design)
        randomness = torch.Generator().manual_seed(int(rng.integers(2**32)))  # torch takes no more
        if not self.base:
            which, y = draw_cells(self.class_counts, rows, randomness)
        which = which * self.spec.snapshots + torch.randint(self.spec.snapshots, (rows,), generator=randomness)
        z = torch.randn(rows, self.spec.latent, generator=randomness)
        return head.draw(self._outputs(head, which, y, z, start, device), y, randomness)

    def _outputs(self, head: Head, which: Tensor, y: Tensor, z: Tensor, start: Tensor | None, device: str) -> Tensor:
        out = torch.zeros(len(y), head.outputs)
        for index, generator in enumerate(self.generators):
            rows_of_cluster = (which == index).nonzero()[:, 0]
            for part in torch.split(rows_of_cluster, 512):  # activations of images are large
                base = None if start is None else start[part].to(device)
                with torch.no_grad():
                    out[part] = generator.to(device)(z[part].to(device), y[part].to(device), base).cpu()
        return out

    def save(self, path: Path) -> None:
        tensors, facts = {"counts": self.class_counts}, dict[str, Any]()
        for index, generator in enumerate(self.generators):
            tensors |= {f"{index}/{key}": value for key, value in generator.state_dict().items()}
        if self.base:
            with tempfile.TemporaryDirectory() as folder:
                self.base.model.save(Path(folder) / "base")
                facts, base_tensors = read_model(Path(folder) / "base")
            del facts["schema"]
            tensors |= {"centroids": self.base.centroids} | {
                f"base/{key}": value for key, value in base_tensors.items()
            }
        facts = {"base": facts, "spec": self.spec.model_dump(mode="json"), "image_radius": self.image_radius}
        write_model(path, "gan", self.schema, tensors, **facts, release_entry=self.release_entry)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "GanModel":
        """Rebuild what ``save`` wrote."""
        from dpmodels.generators.gan_networks import Generator
        from dpmodels.generators.load import KINDS, rebuilt

        spec, counts, base = GanSpec.model_validate(facts["spec"]), tensors["counts"], None
        vectors = Vectors(facts["schema"], spec.most_cells, facts["image_radius"], spec.numbers)
        if base_facts := facts["base"]:
            model = rebuilt({**base_facts, "schema": facts["schema"]}, under("base/", tensors), KINDS.keys() - {"gan"})
            base = Base(model, tensors["centroids"])

        def build() -> Generator:
            return Generator(vectors, head_of(vectors), spec, base is not None).requires_grad_(False)

        generators = [filled(build, under(f"{n}/", tensors)) for n in range(len(counts) * spec.snapshots)]
        return cls(vectors, spec, generators, counts, facts["image_radius"], base, facts["release_entry"])
