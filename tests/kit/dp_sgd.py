"""Small models that DP-SGD trains."""

import torch
from torch import Tensor, nn

KEY = bytes(range(32))


class Regression(nn.Module):
    """A loss a row with two latent draws of its own, as the objectives of the library have."""

    normals = (2, 3)

    def __init__(self) -> None:
        super().__init__()
        randomness = torch.Generator().manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(generator=randomness)

    def forward(self, x: Tensor, y: Tensor, xi: Tensor) -> Tensor:
        return ((self.net(x[:, None] + 0.1 * xi)[..., 0] - y[:, None]) ** 2).mean(dim=1)


def make_rows(count: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    randomness = torch.Generator().manual_seed(1)
    return scale * torch.randn(count, 3, generator=randomness), torch.randn(count, generator=randomness)


class NoDraws(Regression):
    normals = (0,)

    def forward(self, x: Tensor, y: Tensor, xi: Tensor) -> Tensor:
        return (self.net(x)[..., 0] - y) ** 2


def set_weights(module: nn.Module, seed: int = 0) -> None:
    randomness = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.randn(weight.shape, generator=randomness) / max(1, weight[:1].numel()) ** 0.5)


class Critic(nn.Module):
    """A convolutional critic of 8 by 8 images beside those of a fixed public generator, with WGAN-GP's penalty.

    A record's normals are the generator's latent and say where between the two images the gradient is asked for.
    """

    normals = (17,)
    basis: Tensor

    def __init__(self, penalty: float = 10.0) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2), nn.SiLU(), nn.Conv2d(4, 4, 3), nn.SiLU(), nn.Flatten(), nn.Linear(4, 1)
        )
        self.penalty = penalty
        set_weights(self)
        self.register_buffer("basis", torch.randn(16, 64, generator=torch.Generator().manual_seed(5)) / 4)

    def made(self, xi: Tensor) -> Tensor:
        return torch.sigmoid(xi[:, :16] @ self.basis).view(-1, 1, 8, 8)

    def slope(self, between: Tensor) -> Tensor:
        """Return the critic's gradient at each image."""
        return torch.func.grad(lambda images: self.net(images).sum())(between)

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        made, share = self.made(xi), torch.sigmoid(2 * xi[:, 16])[:, None, None, None]
        slope = self.slope(share * x + (1 - share) * made)
        penalty = (slope.square().sum(dim=(1, 2, 3)) + 1e-12).sqrt() - 1
        return (self.net(made) - self.net(x))[:, 0] + self.penalty * penalty**2


def crosses(count: int, seed: int = 0) -> Tensor:
    """Return images of a bright cross on noise."""
    images = 0.1 * torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    images[:, :, 3:5], images[:, :, :, 3:5] = images[:, :, 3:5] + 0.8, images[:, :, :, 3:5] + 0.8
    return images


def normals(count: int, size: int, seed: int = 1) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed))
