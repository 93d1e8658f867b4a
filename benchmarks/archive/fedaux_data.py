"""The data sets of the federated benchmarks: images of clients, public auxiliary images, and features that are cached.

    fashion    Fashion-MNIST, 60,000 images over the clients;  MNIST without labels is public
    cifar      CIFAR-10, a sample of 15,000 images;            CIFAR-100 without labels, a sample of 7,000, is public
    texts      AG News, a sample of 11,300;                    20 Newsgroups without labels is public

A ResNet-8 is pre-trained on the public images alone, so what it makes of any image may be kept: features cost minutes,
and everything that is fitted to them costs seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch
from torch import nn

from benchmarks.common import data_dir
from dpmodels.embeddings.frozen import FrozenFeatures
from dpmodels.methods.federations.models import Architecture, ModelSpec, State, build, loaded, state_of
from dpmodels.methods.federations.pretraining import PretrainingSpec, pretrain
from dpmodels.text.encoders import describe_encoder, load_encoder

CLASSES, FEATURES = 10, 64
TEXTS, LETTERS = ("agnews_train11300", "agnews_test7600", "newsgroups20_train"), 250
"""Files of clients' texts, of test texts, and of public ones, of which the first letters are embedded."""
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Task:
    """One data set of the benchmark: its files, the shape of its images, the network, and how it is pre-trained."""

    own: str
    test: str
    auxiliary: str
    shape: tuple[int, int, int]
    width: int
    mirror: bool
    crop: float

    @property
    def model(self) -> ModelSpec:
        """The size of the network."""
        return ModelSpec(inputs=self.shape, classes=CLASSES, width=self.width)


TASKS = {
    "fashion": Task("fashion_mnist_train", "fashion_mnist_test", "mnist_train", (1, 28, 28), 8, True, 0.5),
    "cifar": Task("cifar10_train15k", "cifar10_test5k", "cifar100_unlabeled7k", (3, 32, 32), 16, True, 0.4),
}


def images(name: str, shape: tuple[int, int, int], most: int = 60_000) -> tuple[torch.Tensor, np.ndarray]:
    """Read images as brightness between 0 and 1, channels first, and their labels, where there are any."""
    table = pq.read_table(data_dir() / f"{name}.parquet").slice(0, most)
    channels, height, width = shape
    pixels = table["image"].combine_chunks().flatten().to_numpy().reshape(-1, height, width, channels)
    labels = table["label"].to_numpy().astype(np.int64) if "label" in table.column_names else np.zeros(0, np.int64)
    return torch.from_numpy(pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255), labels


AUXILIARY = {"mnist": ("mnist_train", (1, 28, 28)), "cifar100": ("cifar100_unlabeled7k", (3, 32, 32))}
"""Public images that are at hand, with their shape."""


def public_images(name: str, auxiliary: str, most: int = 60_000) -> torch.Tensor:
    """Return public images in the shape of a data set's own: gray ones are the mean of colors, and sizes are scaled."""
    file, shape = AUXILIARY[auxiliary]
    pictures, (channels, height, width) = images(file, shape, most)[0], TASKS[name].shape
    if shape[1:] != (height, width):
        pictures = torch.nn.functional.interpolate(pictures, (height, width), mode="bilinear", antialias=True)
    return pictures.mean(dim=1, keepdim=True) if channels == 1 else pictures.expand(-1, channels, -1, -1).contiguous()


def weights(name: str, auxiliary: str, architecture: Architecture, steps: int, most: int = 60_000) -> State:
    """Pre-train a network on public images; without steps it keeps its random weights."""
    if not steps:
        return state_of(build(architecture, TASKS[name].model, 0))
    task = TASKS[name]
    settings = PretrainingSpec(steps=steps, batch_size=256, crop=task.crop, mirror=task.mirror)
    return pretrain(architecture, task.model, public_images(name, auxiliary, most), settings, 0)


def labeled_features(name: str, auxiliary: str, steps: int, most: int = 60_000) -> tuple[np.ndarray, ...]:
    """Return features and labels of all clients' images, and of the test images; a network needs some public ones."""
    task = TASKS[name]
    public = auxiliary or next(each for each, (file, _) in AUXILIARY.items() if file == task.auxiliary)
    network = loaded("resnet8", task.model, weights(name, public, "resnet8", steps, most)).extractor
    frozen = FrozenFeatures.of_public(network, public_images(name, public, most)[:10_000], FEATURES)
    labeled = [images(file, task.shape, most) for file in (task.own, task.test)]
    return tuple(part for inputs, labels in labeled for part in (frozen.whole(inputs), labels))


def embedded_texts(most: int | None) -> Arrays:
    """Return embeddings of AG News for ten clients, and of texts of 20 Newsgroups without labels, which are public."""
    encoder = load_encoder(describe_encoder("wordllama"))
    files = [pd.read_parquet(data_dir() / f"{file}.parquet")[:most] for file in TEXTS]
    vectors = [torch.from_numpy(np.asarray(encoder(list(rows["text"].str[:LETTERS])), np.float32)) for rows in files]
    frozen = FrozenFeatures.of_public(nn.Identity(), vectors[2], FEATURES)
    own, test, public = (frozen.whole(each) for each in vectors)
    labels = {"y": files[0]["label"].to_numpy(np.int64), "y_test": files[1]["label"].to_numpy(np.int64)}
    sizes = {"clients": np.array(10), "classes": np.array(4), "extractor": np.array(frozen.sha256)}
    return {"z": own, "z_test": test, "auxiliary": public, **labels, **sizes}


def prepared(name: str, steps: int, cache: Path | None, most: int = 60_000) -> tuple[Arrays, State]:
    """Return the features of all images and the pre-trained weights, from the cache where they are in it."""
    place = cache / f"{name}-{steps}.npz" if cache else None
    if place is None or not place.exists():
        arrays, state = _features(TASKS[name], steps, most)
        weights = {f"weights/{key}": tensor.numpy() for key, tensor in state.items()}
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            np.savez(place, **arrays, **weights)
        return arrays, state
    with np.load(place) as file:
        kept = dict(file)
    state = {key[8:]: torch.from_numpy(kept.pop(key)) for key in list(kept) if key.startswith("weights/")}
    return kept, state


def _features(task: Task, steps: int, most: int) -> tuple[dict[str, np.ndarray], State]:
    auxiliary = images(task.auxiliary, task.shape, most)[0]
    own, test = images(task.own, task.shape, most), images(task.test, task.shape, most)
    settings = PretrainingSpec(steps=steps, batch_size=256, crop=task.crop, mirror=task.mirror)
    state = pretrain("resnet8", task.model, auxiliary, settings, 0)
    network = loaded("resnet8", task.model, state).extractor
    frozen = FrozenFeatures.of_public(network, auxiliary[:10_000], FEATURES)
    mapped = {"auxiliary": frozen.whole(auxiliary), "z": frozen.whole(own[0]), "z_test": frozen.whole(test[0])}
    return {**mapped, "y": own[1], "y_test": test[1], "extractor": np.array(frozen.sha256)}, state
