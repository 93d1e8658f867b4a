"""A generator of embedded documents: the class by its released share, then a Gaussian vector, brought to norm 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.generators.model_file import write_model
from dpmodels.generators.sampling import Sampler, spread_classes
from dpmodels.late import Tensor, torch
from dpmodels.schema.documents import Documents
from dpmodels.schema.embedded import Embedded, on_sphere

Floats = NDArray[np.float64]


@dataclass
class PointModel(Sampler):
    """Draws x ~ N(mean_y, factor factor') and brings it to norm 1.

    Within a batch the noise of a class has mean 0, so that the means of the drawn classes are the released ones.

    Shapes: ``means`` [classes, dim]; ``factor`` [dim, dim]; ``class_counts`` [classes], noisy as released.
    """

    batch_rows: ClassVar[int] = 4096
    schema: Documents
    means: Floats
    factor: Floats
    class_counts: Floats
    release_entry: str

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Embedded:
        """Draw one batch; on any device, by the CPU."""
        labels = spread_classes(self.class_counts, rows, rng)
        noise = rng.standard_normal((rows, len(self.factor)))
        for label in np.unique(labels):
            own = labels == label
            if (number := int(own.sum())) > 1:  # one fewer is free than there are: what is left keeps its variance
                noise[own] = (noise[own] - noise[own].mean(axis=0)) * (number / (number - 1)) ** 0.5
        return Embedded(on_sphere(self.means[labels] + noise @ self.factor.T), labels.astype(np.int32))

    def save(self, path: Path) -> None:
        """Write the model to one file."""
        arrays = {"means": self.means, "factor": self.factor, "class_counts": self.class_counts}
        tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
        write_model(path, "points", self.schema, tensors, release_entry=self.release_entry)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "PointModel":
        """Rebuild what ``save`` wrote."""
        arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
        return cls(facts["schema"], **arrays, release_entry=facts["release_entry"])
