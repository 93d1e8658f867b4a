"""Bring every image to one place, size and upright stance, and back: what is left varies far less.

The pose of an image is five whole numbers, read off its own ink: center (x, y), slant, width and height, the last two
as standard deviations of the ink. ``normalise`` resamples an image so that its pose is the reference; ``restore`` puts
a normalized image into a pose. Both look at one image alone.

Exactness: the sums over pixels are of integers and exact; what follows is elementwise and uses + - * / and square
roots only, which IEEE rounds correctly one by one. So the result is the same bits in any batch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole

STEPS = 256
"""A pose is stored in whole steps of 1/256 (of a pixel of a 28 x 28 image; of slant, in pixels across a pixel down)."""
REFERENCE = np.array([0.0, 0.0, 0.0, 4.5, 5.0])
"""Center x, center y, slant, width, height; a public choice, the same for all images."""
SPREAD = np.array([2.0, 2.0, 0.4, 1.5, 1.5])
"""The public scale of each part of a pose; what is more than ``LIMIT`` times it from the reference is clipped."""
LIMIT = 3.0
LEAST = 0.5
"""Least width and height."""
BLOCK = 2048


@dataclass(frozen=True, slots=True)
class Frame:
    """The pixel grid of one image size, in units in which the image is 28 wide and 28 high and centered at 0."""

    height: int
    width: int

    @property
    def x(self) -> Floats:
        """Return each pixel's place across. Shapes: [H * W]."""
        return np.tile((np.arange(self.width) * 2.0 + 1 - self.width) * (14 / self.width), self.height)

    @property
    def y(self) -> Floats:
        """Return each pixel's place down. Shapes: [H * W]."""
        return np.repeat((np.arange(self.height) * 2.0 + 1 - self.height) * (14 / self.height), self.width)

    def poses(self, pixels: NDArray[np.uint8]) -> Whole:
        """Read the pose of each image, clipped to the public range. Shapes: [B, H * W] -> [B, 5]."""
        u, v = np.arange(self.width) * 2 + 1 - self.width, np.arange(self.height) * 2 + 1 - self.height
        across, down = np.tile(u, self.height), np.repeat(v, self.width)
        ones = np.ones_like(across)
        weights = np.stack([ones, across, down, across * across, down * down, across * down], axis=1)
        sums = pixels.astype(np.float64) @ weights.astype(np.float64)  # whole numbers far below 2**53: exact
        ink = np.maximum(sums[:, 0], 1.0)
        a, b = 14 / self.width, 14 / self.height
        x, y, xx, yy, xy = (sums[:, 1:] / ink[:, None] * np.array([a, b, a * a, b * b, a * b])).T
        xx, yy, xy = xx - x * x, np.maximum(yy - y * y, LEAST * LEAST), xy - x * y
        slant = xy / yy
        width, height = np.sqrt(np.maximum(xx - slant * xy, LEAST * LEAST)), np.sqrt(yy)
        return _clip(np.stack([x, y, slant, width, height], axis=1))

    def normalise(self, pixels: NDArray[np.uint8], poses: Whole) -> Whole:
        """Resample each image from its pose to the reference. Shapes: [B, H * W], [B, 5] -> [B, H * W] in 0..255."""
        cx, cy, slant, width, height = (poses / STEPS).T[:, :, None]
        down = self.y * (height / REFERENCE[4])
        across = self.x * (width / REFERENCE[3])
        resampled: Whole = np.rint(self._look_up(pixels, cx + across + slant * down, cy + down)).astype(np.int64)
        return resampled

    def restore(self, images: Floats, poses: Whole) -> Floats:
        """Resample each normalized image to a pose (post-processing). Shapes: as ``normalise``, real values."""
        cx, cy, slant, width, height = (poses / STEPS).T[:, :, None]
        down = self.y - cy
        across = self.x - cx - slant * down
        return self._look_up(images, across * (REFERENCE[3] / width), down * (REFERENCE[4] / height))

    def _look_up(self, images: NDArray[np.generic], x: Floats, y: Floats) -> Floats:
        """Interpolate images bilinearly at places, background outside. Shapes: [B, H * W], [B, H * W] twice."""
        parts = [slice(start, start + BLOCK) for start in range(0, len(images), BLOCK)]
        return np.concatenate([self._interpolate(images[p], x[p], y[p]) for p in parts] or [np.zeros(x.shape)])

    def _interpolate(self, images: NDArray[np.generic], x: Floats, y: Floats) -> Floats:
        padded = np.zeros((len(images), self.height + 3, self.width + 3))
        padded[:, 1:-2, 1:-2] = images.reshape(-1, self.height, self.width)
        column = np.clip(x * (self.width / 28) + (self.width + 1) / 2, 0, self.width + 1)
        row = np.clip(y * (self.height / 28) + (self.height + 1) / 2, 0, self.height + 1)
        left, top = column.astype(np.int64), row.astype(np.int64)
        right, bottom = column - left, row - top
        start = (np.arange(len(images))[:, None] * padded.shape[1] + top) * padded.shape[2] + left
        flat, line = padded.ravel(), padded.shape[2]
        upper = flat[start] * (1 - right) + flat[start + 1] * right
        lower = flat[start + line] * (1 - right) + flat[start + line + 1] * right
        mixed: Floats = upper * (1 - bottom) + lower * bottom
        return mixed


def to_spreads(poses: Whole) -> Floats:
    """Return poses as multiples of the public spread around the reference. Shapes: [B, 5], within +-LIMIT."""
    spreads: Floats = (poses / STEPS - REFERENCE) / SPREAD
    return spreads


def from_spreads(spreads: Floats) -> Whole:
    """Return the poses of such multiples, brought into the public range (post-processing)."""
    return _clip(REFERENCE + spreads * SPREAD)


def _clip(values: Floats) -> Whole:
    low = REFERENCE - LIMIT * SPREAD
    low[3:] = LEAST
    return np.rint(np.clip(values, low, REFERENCE + LIMIT * SPREAD) * STEPS).astype(np.int64)
