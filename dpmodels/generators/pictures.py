"""A trained generator of images: a network, the released class counts, and how to sample images from both."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import Unsuitable
from dpmodels.generators.checkpoint import filled, under
from dpmodels.generators.model_file import write_model
from dpmodels.generators.sampling import Sampler, spread_classes
from dpmodels.generators.sizes import NetworkSpec
from dpmodels.late import Tensor, torch

if TYPE_CHECKING:
    from dpmodels.generators.picture_network import PictureGenerator

CHUNK_ROWS = 512
"""Images that go through the network together: their maps are large."""


@dataclass
class PictureModel(Sampler):
    """Draws ``y`` from the released class counts, ``z`` from a normal, and the image that the network makes of both.

    Shapes: ``class_counts`` [classes] float64, noisy and possibly negative as released.
    """

    batch_rows: ClassVar[int] = 4096
    schema: Schema
    network: "PictureGenerator"
    class_counts: Tensor
    release_entry: str

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        """Draw one batch; the random numbers are the same on every device."""
        labels = spread_classes(self.class_counts.numpy(), rows, rng)
        z = torch.from_numpy(rng.standard_normal((rows, self.network.spec.latent_dim), dtype=np.float32))
        network, y, parts = self.network.to(device).eval(), torch.from_numpy(labels), []
        for start in range(0, rows, CHUNK_ROWS):
            chunk = slice(start, start + CHUNK_ROWS)
            with torch.no_grad():
                ink = network(z[chunk].to(device), y[chunk].to(device))
            parts.append((255 * ink).round().to(torch.uint8).cpu())
        states = labels.astype(np.int32)[:, None]
        return Records(states, np.zeros(states.shape), torch.cat(parts).numpy())

    def save(self, path: Path) -> None:
        tensors = {f"network/{key}": value for key, value in self.network.state_dict().items()}
        facts = {"network": self.network.spec.model_dump(mode="json"), "release_entry": self.release_entry}
        write_model(path, "pictures", self.schema, {**tensors, "class_counts": self.class_counts}, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "PictureModel":
        """Rebuild what ``save`` wrote."""
        spec, schema = NetworkSpec.model_validate(facts["network"]), facts["schema"]
        network = filled(lambda: picture_network(spec, schema), under("network/", tensors))
        return cls(schema, network, tensors["class_counts"], facts["release_entry"])


def picture_network(spec: NetworkSpec, schema: Schema) -> "PictureGenerator":
    """Return a network for the images of a schema, its weights unset.

    Raises:
        Unsuitable: the schema has none.
    """
    from dpmodels.generators.picture_network import PictureGenerator

    if schema.image is None:
        raise Unsuitable(f"schema {schema.name} has no column of type image; use a table's method, such as nacre")
    return PictureGenerator(spec, schema.image[1], schema.classes)
