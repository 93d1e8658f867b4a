"""A generator of photographs: for each class a Gaussian of the coded cosines, and public texture beyond them.

    coded cosines  ~ N(mean_y, factor_y factor_y')      others ~ N(0, texture^2 prior)      image = their sum, clipped

The texture is a function of frequency alone, and costs nothing. Without it the images would be blurred, and a model
that is trained on them would learn edges that no photograph has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.photo_moments import PhotoCode
from dpmodels.generators.model_file import write_model
from dpmodels.generators.sampling import Sampler, spread_classes
from dpmodels.late import Tensor, torch


@dataclass
class PhotoModel(Sampler):
    """Draws the class by its released share, the coded cosines, and the texture.

    Shapes: ``means`` [classes, d] and ``factors`` [classes, d, d], in units of intensity, of the cosines themselves;
        ``class_counts`` [classes], noisy as released.
    """

    batch_rows: ClassVar[int] = 1024
    schema: Schema
    settings: dict[str, Any]
    means: Floats
    factors: Floats
    texture: float
    class_counts: Floats
    release_entry: str

    @cached_property
    def code(self) -> PhotoCode:
        """The public code; its weights are taken off the means and factors already."""
        return PhotoCode(self.schema, **self.settings)

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        labels = spread_classes(self.class_counts, rows, rng)
        z = rng.standard_normal((rows, self.code.dim))
        every = rng.standard_normal((rows, len(self.code.prior)), dtype=np.float32)
        every *= (self.texture * np.sqrt(self.code.prior)).astype(np.float32)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            every[members[:, None], self.code.flat_indices] = self.means[label] + z[members] @ self.factors[label].T
        states = labels.astype(np.int32)[:, None]
        return Records(states, np.zeros(states.shape), self.code.draw(every))

    def save(self, path: Path) -> None:
        arrays = {"means": self.means, "factors": self.factors, "class_counts": self.class_counts}
        tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
        facts = {"settings": self.settings, "texture": self.texture, "release_entry": self.release_entry}
        write_model(path, "photos", self.schema, tensors, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "PhotoModel":
        """Rebuild what ``save`` wrote."""
        means, factors, counts = (tensors[key].numpy() for key in ("means", "factors", "class_counts"))
        return cls(facts["schema"], facts["settings"], means, factors, facts["texture"], counts, facts["release_entry"])
