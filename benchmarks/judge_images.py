"""The judge of images: a CNN trained on synthetic ones and tested on real ones, and what a LeNet says of gray ones.

The CNN: three blocks of 3x3 convolution (32, 64, 128), ReLU and max-pooling, dropout of a half, 128 hidden units; Adam
at 3e-4, batches of 128. The epoch is the one that is best on a held-out twentieth of the *synthetic* images. The
distance: PEARL's, between the 84 features of its LeNet-5 on synthetic and on real test images; not Inception's. The
score: the Inception Score's formula, exp E KL(p(y|x) || p(y)), with a LeNet-5 for p(y|x), which is public; at most 10
for ten classes. That of MNIST is PEARL's, others are trained here on a data set's public training split. The light
judge: ridge regression of the class on random filters, seconds instead of minutes, for whoever compares recipes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy.linalg import sqrtm
from torch import Tensor, nn
from torch.nn import functional

BATCH, LOOK = 128, 1000
COLOR = 32 * 32 * 3


@dataclass(frozen=True)
class Images:
    """Images and their labels. Shapes: x [n, 784], in color [n, 3072], float32 in [0, 1]; y [n] int64."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> "Images":
        """Select images by their positions."""
        return Images(self.x[index], self.y[index])


@dataclass(frozen=True)
class Verdict:
    """What the judge found; ``cnn_last`` is the last epoch's accuracy, without the choice."""

    cnn: float
    cnn_last: float
    lenet_fid: float


class ImageJudge:
    """Judges synthetic images against one real test set."""

    def __init__(self, test: Images, lenet: Path | None) -> None:
        self.test, self.weights = test, load_file(lenet) if lenet else {}
        self.seen = self.features(test.x) if lenet else None
        self.real = None if self.seen is None else _gauss(self.seen)

    def judge(self, made: Images, rows: int, epochs: int, seed: int = 0) -> Verdict:
        """Judge at most ``rows`` synthetic images, drawn by the seed."""
        torch.manual_seed(seed)
        made = made.take(np.random.default_rng(seed).permutation(len(made.x))[:rows])
        best, last = self._train(made, epochs)
        return Verdict(best, last, self.frechet(made.x) if self.real else math.nan)

    def frechet(self, x: NDArray[np.float32]) -> float:
        """Return |m - m'|^2 + tr(C + C' - 2 (C C')^(1/2)) of the features' means and covariances."""
        return self.frechet_of(self.features(x))

    def frechet_of(self, features: NDArray[np.float64]) -> float:
        """Return that distance for features. Shapes: [n, 84]."""
        if self.real is None:
            raise ValueError("this judge has no LeNet")
        (mean, covariance), (other, others) = self.real, _gauss(features)
        cross = sqrtm(covariance @ others).real
        return float(((mean - other) ** 2).sum() + np.trace(covariance + others - 2 * cross))

    def kernel(self, features: NDArray[np.float64], rng: np.random.Generator, elements: int = 100) -> float:
        """Return PEARL's KID: the unbiased squared distance of mean embeddings of so many made and real images.

        Source: Liew et al. (2022), appendix H; the kernel is (x . y / d + 1)^3.
        """
        if self.seen is None:
            raise ValueError("this judge has no LeNet")
        made, real = (rows[rng.choice(len(rows), elements, replace=False)] for rows in (features, self.seen))
        within = [_cubed(rows, rows) for rows in (made, real)]
        pairs = elements * (elements - 1)
        return float(sum((k.sum() - np.trace(k)) / pairs for k in within) - 2 * _cubed(made, real).mean())

    def _train(self, made: Images, epochs: int) -> tuple[float, float]:
        network, held = _cnn(made.x.shape[1]), len(made.x) // 20
        optimiser = torch.optim.Adam(network.parameters(), 3e-4)
        best, chosen, last = -1.0, 0.0, 0.0
        kept = made.take(np.arange(held))
        for _ in range(epochs):
            network.train()
            order = held + torch.randperm(len(made.x) - held).numpy()
            for start in range(0, len(order), BATCH):
                batch = made.take(order[start : start + BATCH])
                loss = functional.cross_entropy(network(_shape(batch.x)), torch.from_numpy(batch.y))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            score, last = _accuracy(network, kept), _accuracy(network, self.test)
            if score >= best:
                best, chosen = score, last
        return chosen, last

    @torch.no_grad()
    def features(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the features of images by the LeNet. Shapes: [n, 784] -> [n, 84]."""
        parts = [_lenet(self.weights, _shape(x[start : start + LOOK])) for start in range(0, len(x), LOOK)]
        return torch.cat(parts).double().numpy()


class LightJudge:
    """Ridge regression on what random filters of 5 x 5 pixels see in 4 x 4 places; it has no randomness of its own."""

    def __init__(self, test: Images, filters: int = 96, ridge: float = 0.03) -> None:
        channels = _shape(test.x[:1]).shape[1]
        drawn = torch.randn(filters, channels, 5, 5, generator=torch.Generator().manual_seed(7))
        drawn -= drawn.mean(dim=(2, 3), keepdim=True)
        self.filters, self.ridge, self.test = drawn / drawn.flatten(1).norm(dim=1).view(-1, 1, 1, 1), ridge, test
        self.seen = self._features(test.x)

    @torch.no_grad()
    def accuracy(self, made: Images) -> float:
        """Learn from synthetic images; return the accuracy on the real test images."""
        seen, wanted = self._features(made.x), functional.one_hot(torch.from_numpy(made.y)).float()
        mean, scale = seen.mean(dim=0), seen.std(dim=0) + 1e-3 * seen.std()
        seen, offset = (seen - mean) / scale, wanted.mean(dim=0)
        square = seen.T @ seen / len(seen) + self.ridge * torch.eye(seen.shape[1])
        weights = torch.linalg.solve(square, seen.T @ (wanted - offset) / len(seen))
        guessed = ((self.seen - mean) / scale @ weights + offset).argmax(dim=1)
        return float((guessed.numpy() == self.test.y).mean())

    @torch.no_grad()
    def _features(self, x: NDArray[np.float32]) -> Tensor:
        parts = []
        for start in range(0, len(x), LOOK):
            seen = functional.conv2d(_shape(x[start : start + LOOK]), self.filters, stride=2, padding=2)
            both = torch.cat([functional.relu(seen - 0.1), functional.relu(-seen - 0.1)], dim=1)
            parts.append(functional.adaptive_avg_pool2d(both, 4).flatten(1))
        return torch.cat(parts)


class LeNetScore:
    """The Inception Score's formula with a LeNet-5."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights

    @classmethod
    def taught(cls, images: Images, epochs: int, seed: int = 0) -> "LeNetScore":
        """Train a LeNet-5 of the same shape as PEARL's: Adam at 1e-3, batches of 128."""
        rng = torch.Generator().manual_seed(seed)
        shapes = {"c1": (6, 1, 5, 5), "c3": (16, 6, 5, 5), "c5": (120, 16, 5, 5), "f6": (84, 120), "f7": (10, 84)}
        weights = {f"{name}.bias": torch.zeros(shape[0]) for name, shape in shapes.items()}
        for name, shape in shapes.items():
            weights[f"{name}.weight"] = torch.randn(shape, generator=rng) / math.prod(shape[1:]) ** 0.5
        adam = torch.optim.Adam([weight.requires_grad_() for weight in weights.values()], 1e-3)
        for _ in range(epochs):
            for batch in torch.randperm(len(images.x), generator=rng).split(BATCH):
                logits = _logits(weights, _shape(images.x[batch.numpy()]))
                loss = functional.cross_entropy(logits, torch.from_numpy(images.y[batch.numpy()]))
                adam.zero_grad()
                loss.backward()
                adam.step()
        return cls({name: weight.detach() for name, weight in weights.items()})

    def score(self, x: NDArray[np.float32]) -> float:
        """Return exp of the mean divergence of an image's classes from those of all images."""
        p = self.shares(x)
        usual = p.mean(axis=0)
        return float(np.exp((p * (np.log(p + 1e-12) - np.log(usual + 1e-12))).sum(axis=1).mean()))

    @torch.no_grad()
    def shares(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the classes' probabilities. Shapes: [n, 784] -> [n, 10]."""
        parts = [_logits(self.weights, _shape(x[at : at + LOOK])) for at in range(0, len(x), LOOK)]
        shares: NDArray[np.float64] = torch.cat(parts).double().softmax(dim=1).numpy()
        return shares


def _lenet(w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Return the 84 features of LeNet-5. Shapes: [n, 1, 28, 28] -> [n, 84]."""
    h = functional.pad(x, (2, 2, 2, 2))
    for layer in ("c1", "c3"):
        h = torch.tanh(functional.conv2d(h, w[f"{layer}.weight"], w[f"{layer}.bias"]))
        h = functional.max_pool2d(h, 2)
    h = torch.tanh(functional.conv2d(h, w["c5.weight"], w["c5.bias"])).flatten(1)
    return torch.tanh(functional.linear(h, w["f6.weight"], w["f6.bias"]))


def _logits(w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    return functional.linear(_lenet(w, x), w["f7.weight"], w["f7.bias"])


def _cnn(numbers: int = 784) -> nn.Sequential:
    layers: list[nn.Module] = []
    first, places = (3, 16) if numbers == COLOR else (1, 9)
    for channels, wider in ((first, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(channels, wider, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    head = [nn.Flatten(), nn.Dropout(0.5), nn.Linear(128 * places, 128), nn.ReLU(), nn.Linear(128, 10)]
    return nn.Sequential(*layers, *head)


@torch.no_grad()
def _accuracy(network: nn.Module, images: Images) -> float:
    network.eval()
    parts = [network(_shape(images.x[start : start + LOOK])).argmax(1) for start in range(0, len(images.x), LOOK)]
    return float((torch.cat(parts).numpy() == images.y).mean())


def _shape(x: NDArray[np.float32]) -> Tensor:
    if x.shape[1] == COLOR:
        return torch.from_numpy(x).view(-1, 32, 32, 3).permute(0, 3, 1, 2).contiguous()
    return torch.from_numpy(x).view(-1, 1, 28, 28)


def _cubed(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    kernels: NDArray[np.float64] = (x @ y.T / x.shape[1] + 1) ** 3
    return kernels


def _gauss(features: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return features.mean(axis=0), np.cov(features.T)
