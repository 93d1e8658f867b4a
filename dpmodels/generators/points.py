"""A generator of embedded documents: the class by its released share, then a Gaussian vector, brought to norm 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.codec.embedded import Embedded, on_sphere
from dpmodels.contract.documents import Documents
from dpmodels.generators.model_file import write_model
from dpmodels.generators.sampling import Sampler, spread_classes
from dpmodels.late import Tensor, torch

ENOUGH = 1.25
"""Rows for each dimension from which on drawn noise can be given an exact covariance and still look like noise."""


def without_error(noise: Floats) -> Floats:
    """Give standard normal rows a mean of exactly 0 and, where they are enough, exactly the identity as covariance.

    Shapes: [rows, dim] -> [rows, dim].
    """
    rows, dim = noise.shape
    if rows < 2:
        return noise
    centered = noise - noise.mean(axis=0)
    if rows < ENOUGH * dim:  # one row fewer is free than there are: what is left keeps its variance
        scaled: Floats = centered * (rows / (rows - 1)) ** 0.5
        return scaled
    exact: Floats = np.linalg.solve(np.linalg.cholesky(centered.T @ centered / rows), centered.T).T
    return exact


@dataclass
class PointModel(Sampler):
    """Draws x ~ N(mean_y, factor factor') and brings it to norm 1.

    Within a batch the noise of a class has mean 0, so that the means of the drawn classes are the released ones, and
    so is their covariance wherever a class has enough rows (``without_error``). So documents are not drawn one
    independently of the other, and what is learned from a batch suffers from the release's noise alone.

    Shapes: ``means`` [classes, dim]; ``factor`` [dim, dim]; ``class_counts`` [classes], noisy as released.
    """

    batch_rows: ClassVar[int] = 16_384
    schema: Documents
    means: Floats
    factor: Floats
    class_counts: Floats
    release_entry: str

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Embedded:
        labels = spread_classes(self.class_counts, rows, rng)
        noise = rng.standard_normal((rows, len(self.factor)))
        for label in np.unique(labels):
            members = labels == label
            noise[members] = without_error(noise[members])
        return Embedded(on_sphere(self.means[labels] + noise @ self.factor.T), labels.astype(np.int32))

    def save(self, path: Path) -> None:
        arrays = {"means": self.means, "factor": self.factor, "class_counts": self.class_counts}
        tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
        write_model(path, "points", self.schema, tensors, release_entry=self.release_entry)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "PointModel":
        """Rebuild what ``save`` wrote."""
        arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
        return cls(facts["schema"], **arrays, release_entry=facts["release_entry"])
