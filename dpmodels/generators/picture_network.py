"""The generator network of PEARL for images: FC-BN-ReLU-FC-BN, up-sampling and convolution twice, and a sigmoid."""

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, one_hot

from dpmodels.contract.image import Image
from dpmodels.generators.networks import linear, unset
from dpmodels.generators.sizes import NetworkSpec

KERNEL = 3


class PictureGenerator(nn.Module):
    """Map a latent and a class to an image: ``G_theta(z, y)``; the weights are left unset.

    Maps begin at a fourth of the image's height and width. Up-sampling is bilinear, so that neighboring pixels are
    alike before anything is learned. What reaches beyond the image is cut off.

    Shapes: z [B, latent_dim], y [B] int64 -> [B, numbers] in [0, 1].
    """

    def __init__(self, spec: NetworkSpec, column: Image, classes: int) -> None:
        super().__init__()
        self.spec, self.column, self.classes = spec, column, classes
        self.small = -(-column.height // 4), -(-column.width // 4)
        size, narrow = spec.channels * self.small[0] * self.small[1], max(1, spec.channels // 2)
        self.start = nn.Sequential(
            linear(spec.latent_dim + classes, spec.hidden_dim),
            nn.BatchNorm1d(spec.hidden_dim),
            nn.ReLU(),
            linear(spec.hidden_dim, size),
            nn.BatchNorm1d(size),
            nn.Unflatten(1, (spec.channels, *self.small)),
        )
        self.middle = unset(nn.Conv2d, spec.channels, narrow, KERNEL, padding=KERNEL // 2)
        self.last = unset(nn.Conv2d, narrow, column.channels, KERNEL, padding=KERNEL // 2)

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Draw images."""
        code = torch.cat([z, one_hot(y, self.classes).to(z.dtype)], dim=1)
        maps = torch.relu(self.middle(_doubled(self.start(code))))
        ink = torch.sigmoid(self.last(_doubled(maps)))[:, :, : self.column.height, : self.column.width]
        return ink.movedim(1, -1).flatten(1)


def _doubled(maps: Tensor) -> Tensor:
    return interpolate(maps, scale_factor=2, mode="bilinear")
