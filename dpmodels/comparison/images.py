"""Images: distances between feature distributions, a CNN trained on synthetic images, and the nearest real ones.

The CNN: three blocks of 3x3 convolution (32, 64, 128), ReLU and max-pooling, dropout of a half, 128 hidden units; Adam
at 3e-4, batches of 128. The features: the 84 of a LeNet-5 whose weights are given (PEARL's measure), else the 128
hidden units of the CNN trained on the real images; figures of two feature spaces must never be compared.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from dpmodels.arrays import Floats
from dpmodels.comparison.case import Case, Skip
from dpmodels.comparison.frame import Frame
from dpmodels.comparison.neighbours import neighbours
from dpmodels.contract.image import Image
from dpmodels.pages.drawing import sheet

Pixels = NDArray[np.uint8]
ROWS, STEPS = 10_000, 400
BATCH, LOOK = 128, 1000
SUBSETS, SUBSET_ROWS = 10, 1000
SHOWN = 12
LENET_SIDE = 28


def feature_facts(case: Case, lenet: Path | None) -> dict[str, Any]:
    """Return Frechet and kernel distance of synthetic to real images, beside those of other real images."""
    train, test = case.real.split(2 * ROWS)
    space, name = _space(case, lenet)
    real, fresh = (space(_pixels(frame.take(slice(0, ROWS)))) for frame in (test, train))
    synthetic = space(_pixels(case.draw(case.synthetic, ROWS)))
    facts: dict[str, Any] = {"features": name, "real_images": len(real), "synthetic_images": len(synthetic)}
    for key, features in (("", synthetic), ("_of_real_images", fresh)):
        kernel = kernel_distances(real, features, case.real.seed)
        facts |= {f"fid{key}": frechet(real, features), f"kid{key}": float(kernel.mean())}
        facts[f"kid{key}_stddev"] = float(kernel.std())
    return facts


def cnn_facts(case: Case) -> dict[str, Any]:
    """Return the accuracy on real images of a CNN trained on synthetic ones, and of one trained on real ones."""
    target = case.schema.target_index
    if target is None:
        raise Skip("the schema names no label")
    train, test = case.real.split(ROWS)
    y = _labels(test, target)
    synthetic_score = _train(case, case.draw(case.synthetic, len(train)))
    scores = {"tstr_accuracy": synthetic_score, "trtr_accuracy": _real_network(case)}
    column = _image(case)
    accuracies = {
        name: float((_batched(network, _pixels(test), column).argmax(axis=1) == y).mean())
        for name, network in scores.items()
    }
    return {**accuracies, "images_to_train": len(train), "images_to_test": len(test), "steps": STEPS}


def nearest_facts(case: Case) -> dict[str, Any]:
    """Show the synthetic images that lie closest to a real one, above that real one."""
    synthetic, real = (_pixels(case.draw(frame, ROWS)) for frame in (case.synthetic, case.real.train))
    points = [(pixels / (255 * pixels.shape[1] ** 0.5)).astype(np.float32) for pixels in (real, synthetic)]
    neighbour_distances, neighbour_rows = neighbours(*points)
    distances = neighbour_distances[:, 0]
    closest = np.argsort(distances)[:SHOWN]
    column = _image(case)
    return {
        "sheet": sheet([synthetic[closest], real[neighbour_rows[closest, 0]]], len(closest), column.shape),
        "root_mean_square_distances": [float(distance) for distance in distances[closest]],
        "median_distance": float(np.median(distances)),
    }


def frechet(first: Floats, second: Floats) -> float:
    """Return |m - m'|^2 + tr(C + C' - 2 (C C')^(1/2)) of the features' means and covariances.

    C C' has the eigenvalues of the symmetric C^(1/2) C' C^(1/2), whose roots are safe to take when C is singular.
    """
    (mean, c), (other, d) = ((x.mean(axis=0), np.cov(x.T)) for x in (first, second))
    values, vectors = np.linalg.eigh(c)
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    cross = np.sqrt(np.linalg.eigvalsh(root @ d @ root).clip(min=0)).sum()
    return float(((mean - other) ** 2).sum() + np.trace(c) + np.trace(d) - 2 * cross)


def kernel_distances(first: Floats, second: Floats, seed: int) -> Floats:
    """Return the unbiased squared MMD of the kernel (x.y / d + 1)^3 on random subsets. Shapes: [SUBSETS]."""
    rng, n = np.random.default_rng(seed), min(SUBSET_ROWS, len(first), len(second))
    distances = []
    for _ in range(SUBSETS):
        x, y = (each[rng.choice(len(each), n, replace=False)] for each in (first, second))
        xx, yy, xy = ((a @ b.T / x.shape[1] + 1) ** 3 for a, b in ((x, x), (y, y), (x, y)))
        within = (xx.sum() - np.trace(xx) + yy.sum() - np.trace(yy)) / (n * (n - 1))
        distances.append(within - 2 * xy.mean())
    return np.array(distances)


def lenet_features(weights: dict[str, Tensor], pixels: Pixels) -> Floats:
    """Return the 84 features of a tanh LeNet-5. Shapes: [n, 784] -> [n, 84]."""
    w = weights

    def features(x: Tensor) -> Tensor:
        h = functional.pad(x, (2, 2, 2, 2))
        for layer in ("c1", "c3"):
            h = torch.tanh(functional.conv2d(h, w[f"{layer}.weight"], w[f"{layer}.bias"]))
            h = functional.max_pool2d(h, 2)
        h = torch.tanh(functional.conv2d(h, w["c5.weight"], w["c5.bias"])).flatten(1)
        return torch.tanh(functional.linear(h, w["f6.weight"], w["f6.bias"]))

    return _batched(features, pixels, Image(type="image", height=LENET_SIDE, width=LENET_SIDE))


def _space(case: Case, lenet: Path | None) -> tuple[Callable[[Pixels], Floats], str]:
    column = _image(case)
    if lenet is not None:
        from safetensors.torch import load_file

        if column.shape != (LENET_SIDE, LENET_SIDE):
            raise Skip("the LeNet's images are gray and 28 x 28")
        weights = load_file(lenet)
        return (lambda pixels: lenet_features(weights, pixels)), f"84 of the LeNet-5 in {lenet.name}"
    hidden = _real_network(case)[:-1]
    return (lambda pixels: _batched(hidden, pixels, column)), "128 of a CNN trained on the real images"


def _real_network(case: Case) -> nn.Sequential:
    return case.real.once.get("real cnn", lambda: _train(case, case.real.split(ROWS)[0]))


def _train(case: Case, rows: Frame) -> nn.Sequential:
    """Train the CNN for a fixed number of steps."""
    column = _image(case)
    x, y = _pixels(rows), torch.from_numpy(_labels(rows, case.schema.target_index or 0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.real.seed)
        network = _cnn(column, case.schema.classes + 2)
        optimiser = torch.optim.Adam(network.parameters(), 3e-4)
        rng = np.random.default_rng([case.real.seed, 12])
        network.train()
        for _ in range(STEPS):
            batch = rng.choice(len(x), min(BATCH, len(x)), replace=False)
            loss = functional.cross_entropy(network(_shaped(x[batch], column)), y[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return network.eval()


def _cnn(column: Image, classes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    small = min(column.height, column.width) < 8
    for channels, wider in ((column.channels, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(channels, wider, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=small)]
    body = nn.Sequential(*layers, nn.Flatten())
    width = int(body(torch.zeros(1, column.channels, column.height, column.width)).shape[1])
    head = [nn.Dropout(0.5), nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, classes)]
    return nn.Sequential(*body, *head)


@torch.no_grad()
def _batched(network: Callable[[Tensor], Tensor], pixels: Pixels, column: Image) -> Floats:
    parts = [network(_shaped(pixels[at : at + LOOK], column)) for at in range(0, len(pixels), LOOK)]
    features: Floats = torch.cat(parts).double().numpy()
    return features


def _shaped(pixels: Pixels, column: Image) -> Tensor:
    last = torch.from_numpy(pixels.astype(np.float32) / 255).view(-1, column.height, column.width, column.channels)
    return last.permute(0, 3, 1, 2)


def _image(case: Case) -> Image:
    if case.schema.image is None:
        raise Skip("the schema has no image")
    return case.schema.image[1]


def _pixels(frame: Frame) -> Pixels:
    if frame.pixels is None:
        raise Skip("there are no images")
    return frame.pixels


def _labels(frame: Frame, target: int) -> NDArray[np.int64]:
    labels = frame.values[:, target]
    return np.where(np.isnan(labels), np.nanmax(labels, initial=0) + 1, labels).astype(np.int64)
