"""A small federation: images of 8 x 8 with a bright patch, whose place is the class; and public images like them."""

from typing import Any

import numpy as np
import torch

from benchmarks.dirichlet import dirichlet_split
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import Examples, FrozenFeatures, digest_of
from dpmodels.methods.federations.models import ModelSpec, build

CLASSES, CLIENTS, FEATURES = 4, 4, 12
SPEC = ModelSpec(inputs=(1, 8, 8), classes=CLASSES, width=4)


def make_examples(number: int, seed: int = 0) -> Examples:
    """Return images whose class is the corner in which a patch of random brightness lies."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, number)
    images = 0.3 * rng.standard_normal((number, 1, 8, 8))
    for image, label, bright in zip(images, labels, rng.uniform(0.8, 1.6, number), strict=True):
        row, column = divmod(int(label), 2)
        image[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += bright
    return Examples(torch.from_numpy(images.astype(np.float32)), torch.from_numpy(labels))


def split(examples: Examples, alpha: float, seed: int = 0) -> dict[str, Examples]:
    """Return each client's records."""
    parts = dirichlet_split(examples.labels.numpy(), CLIENTS, alpha, seed)
    return {chr(97 + place): examples.take(torch.from_numpy(rows)) for place, rows in enumerate(parts)}


def make_features(seed: int = 0) -> FrozenFeatures:
    """Return a frozen random network and its map, fitted to public images."""
    network = build("resnet8", SPEC, seed).extractor
    return FrozenFeatures.of_public(network, make_examples(200, seed=99).inputs, FEATURES)


def make_contract(features: FrozenFeatures, negatives: np.ndarray, sizes: dict[str, int | None], **given: Any) -> Any:
    """Return the contract of a federation whose clients hold as many records."""
    content = {
        "name": "corners",
        "clients": [{"name": name, "size": size} for name, size in sizes.items()],
        "features": negatives.shape[1],
        "classes": [f"corner {place}" for place in range(CLASSES)],
        "extractor": features.sha256,
        "negatives": len(negatives),
        "auxiliary": digest_of(negatives),
    }
    return Federation.model_validate({**content, **given})
