"""A generator of images: for each class a Gaussian code, drawn as a smooth image, put into its pose, given texture.

z ~ N(mean_y, factor_y factor_y')     code = centre_y + V+ z     smooth = restore(clip(contrast(basis . code)), pose)
image = clip(smooth (1 + texture n)), n ~ N(0, 1) for each pixel

The texture is public and so costs nothing. A model that is trained on smooth images alone learns edges that no real
image has; where ink is uneven it has to go by shapes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.image_moments import BASIS_BITS, UNIT, ImageCode
from dpmodels.embeddings.pose import REFERENCE, from_spreads
from dpmodels.errors import ArtifactError
from dpmodels.generators.model_file import write_model
from dpmodels.generators.sampling import Sampler, spread_classes
from dpmodels.late import Tensor, torch


@dataclass(frozen=True)
class Painter:
    """Turns latent vectors into images, with public and released parameters only.

    Shapes: ``decoder`` [d, dim] and ``centres`` [classes, dim], in steps of a code.
    """

    code: ImageCode
    decoder: Floats
    centres: Floats
    contrast: float

    def paint(self, z: Floats, labels: Whole) -> NDArray[np.uint8]:
        """Draw one image of its class for each latent vector. Shapes: [B, d], [B] -> [B, H * W]."""
        code, poses = (self.centres[labels] + z @ self.decoder) / UNIT, len(REFERENCE)
        smooth = np.ldexp(code[:, :-poses] @ self.code.basis.T, -BASIS_BITS)
        ink = np.clip(0.5 + self.contrast * (smooth - 0.5), 0, 1)
        spreads = code[:, -poses:] * (UNIT / self.code.pose_steps)
        images = self.code.frame.restore(ink, from_spreads(spreads))
        return np.rint(255 * images).astype(np.uint8)


def textured(pixels: NDArray[np.uint8], texture: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Multiply the ink of every pixel with noise of mean 1 and standard deviation ``texture``; 0 draws no numbers."""
    if not texture:
        return pixels
    noise = 1 + texture * rng.standard_normal(pixels.shape)
    return np.rint(np.clip(pixels * noise, 0, 255)).astype(np.uint8)


@dataclass
class ImageModel(Sampler):
    """Draws the class by its released share, a latent vector, and the image.

    Shapes: ``means`` [classes, d]; ``factors`` [classes, d, d]; ``class_counts`` [classes], noisy as released.
    """

    batch_rows: ClassVar[int] = 4096
    schema: Schema
    settings: dict[str, Any]
    painter: Painter
    means: Floats
    factors: Floats
    texture: float
    class_counts: Floats
    release_entry: str

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        labels = spread_classes(self.class_counts, rows, rng)
        z = rng.standard_normal((rows, self.means.shape[1]))
        for label in np.unique(labels):
            members = labels == label
            z[members] = self.means[label] + z[members] @ self.factors[label].T
        states = labels.astype(np.int32)[:, None]
        pixels = textured(self.painter.paint(z, labels), self.texture, rng)
        return Records(states, np.zeros(states.shape), pixels)

    def save(self, path: Path) -> None:
        arrays = {
            "decoder": self.painter.decoder,
            "centres": self.painter.centres,
            "means": self.means,
            "factors": self.factors,
            "class_counts": self.class_counts,
        }
        tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
        painting = {"contrast": self.painter.contrast, "texture": self.texture}
        facts = {"settings": self.settings, **painting, "release_entry": self.release_entry}
        write_model(path, "images", self.schema, tensors, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "ImageModel":
        """Rebuild what ``save`` wrote.

        Raises:
            ArtifactError: an earlier version wrote it, whose images depend on the processor.
        """
        schema, settings = facts["schema"], facts["settings"]
        arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
        if "flipped" not in settings:
            raise ArtifactError(
                "an earlier version fitted this generator, and on another processor it would draw other images; fit "
                "its release again, for free: nacre resume RUN --refit, or nacre fit RELEASE"
            )
        down, across = settings["flipped"]
        code = ImageCode(schema, **settings | {"flipped": (tuple(down), tuple(across))})
        painter = Painter(code, arrays["decoder"], arrays["centres"], facts["contrast"])
        means, factors, counts = arrays["means"], arrays["factors"], arrays["class_counts"]
        texture = facts.get("texture", 0.0)  # a version that wrote none drew none
        return cls(schema, settings, painter, means, factors, texture, counts, facts["release_entry"])
