"""What the contract's tests share: quick settings of every method, small data, and a tap where the noise is drawn.

A new method is one line in ``QUICK``.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.mechanisms import exponential, gaussian
from dpmodels.mechanisms.dp_sgd import randomness, training
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.system import Craft, Generator
from dpmodels.schema.embedded import codec_of
from dpmodels.synthesizers.registry import Synthesizer, create
from tests import mails, pictures, support

MIXTURE = {"components": 16, "directions": 2, "steps": 5}
NETWORK = {"steps": 3, "batch_size": 16, "frequencies_per_step": 8, "network": {"hidden_dim": 8}}
SGD = {"sgd": {"steps": 20, "sampling_probability": 0.2}, "vae": {"hidden": 8, "imitation_steps": 10, "draws": 2}}
SMALL_GAN = {
    "latent": 4,
    "hidden": 16,
    "critic_hidden": 16,
    "penalty": 10,
    "loss": "wgan-gp",
    "critic_steps": 2,
    "generator_batch": 8,
    "pretraining_steps": 5,
}
GROUPED = {"groups": "layers-biases", "bounds": "quantile", "schedule": "dpkg"}
GAN = {"sgd": {"steps": 20, "sampling_probability": 0.2, "clip_norm": 0.1}, "gan": SMALL_GAN}


@dataclass(frozen=True)
class Quick:
    """Settings with which a method takes well under a second; ``data`` makes the tables that it is tried on."""

    measurement: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)
    data: ModuleType = support

    @property
    def trained(self) -> bool:
        """Tell whether DP-SGD is among the steps."""
        return "sgd" in self.measurement


QUICK = {
    "nacre": Quick({"fine_cells": 16}, MIXTURE),
    "nacre-images": Quick({"coefficients": 12, "directions": 5}, {"rounds": 1, "images": 100}, pictures),
    "document-moments": Quick({}, {}, mails),
    "dp-gan": Quick(GAN),
    "dp-gm": Quick({"latent": 4, "clusters": 2, "iterations": 2, **SGD}),
    "dp-merf": Quick({"frequencies": {"count": 16}}, NETWORK),
    "dp-vae": Quick({"latent": 4, **SGD}),
    "dpkg": Quick({"clusters": 2, "iterations": 2, **GAN, "sgd": {**GAN["sgd"], **GROUPED}}),
    "moments": Quick({"cells": 8}, MIXTURE),
    "p3gm": Quick({"directions": 4, "components": 2, "iterations": 2, **SGD}),
    "p3gm-ae": Quick({"directions": 4, "components": 2, "iterations": 2, **SGD}),
    "pearl": Quick({"frequencies": {"count": 16}}, NETWORK),
    "privbayes": Quick({"fine_cells": 16}),
}

OF_TABLES = [method for method, settings in QUICK.items() if settings.data is not mails]
"""The methods for tables, images among them; the others are for documents."""

EXTREMES: dict[ModuleType, dict[str, list[Any]]] = {
    support: {
        "patient": [996, 997, 998, 999],
        "age": [99, 0, 0, 99],
        "ward": ["west", "north", "south", "north"],
        "dose": [10.0, 0.0, None, None],
        "smoker": [True, False, True, False],
        "sick": ["yes", "no", "yes", "no"],
    },
    mails: {
        "kind": ["other", "offer", "news", "news"],
        "embedding": [[-0.6, 0, 0, -0.8, 0, 0], [0] * 5 + [1], [0] * 6, [1] + [0] * 5],
    },
    pictures: {"picture": [[level] * 120 for level in (255, 0, 255, 0)], "kind": ["disc", "disc", "bar", "bar"]},
}


def quick(method: str) -> Synthesizer[Any]:
    """Make a method with its quick settings."""
    return create(method, QUICK[method].measurement, QUICK[method].training)


def quick_plan(method: str, schema: Any = None, epsilon: float = 1.0) -> Line:
    """Plan a method on the schema of its own data, or on another."""
    schema = schema or QUICK[method].data.make_schema()
    return quick(method).plan(schema, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=schema.unit))


def crowd(data: ModuleType) -> Any:
    """Return records most of which are alike, so that others lie far outside of what is usual."""
    records = data.make_records(30)
    return records.take([0] * 300 + list(range(30)))


def extremes(data: ModuleType) -> Any:
    """Return records at the ends of what the schema allows, or beyond where others lie."""
    codec = codec_of(data.make_schema())
    schema = codec.output_schema if data is mails else data.make_table(1).schema
    return codec.encode(pa.table(EXTREMES[data], schema=schema))


def inserted(records: Any, more: Any, place: int) -> Any:
    """Put records among others, at a place."""
    return type(records).concat([records.take(slice(0, place)), more, records.take(slice(place, None))])


def fit(method: str, release: Released[Release], folder: Path, seed: int = 0) -> Generator:
    """Fit a generator from the start."""
    place = folder / "checkpoint.safetensors"
    place.unlink(missing_ok=True)
    return quick(method).fit(release, Craft(seed=seed, checkpoint=place))


@dataclass
class Step:
    """One draw of noise: by which mechanism, what it was added to, its scale, and what was released."""

    kind: str
    values: np.ndarray
    scale: float
    released: Any


class Killed(Exception):
    """Stands for whatever ends a process."""


class Noise(np.ndarray):
    """Noise of DP-SGD that, added to a sum, shows the sum to the tap and becomes what the tap releases."""

    meet: Callable[[np.ndarray], np.ndarray]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: np.ndarray, **options: object) -> np.ndarray:
        assert ufunc is np.add
        (values,) = (each for each in inputs if each is not self)
        return self.meet(values)


class Tap:
    """Sits where noise is drawn: notes every step, and draws as ever, draws nothing, or copies what was released.

    Attributes:
        steps: all that was drawn; keys: of AES, handed out; streams: key and step of DP-SGD, as taken.
        silent: whether noise is left out; given: keys to hand out; copies: what to release instead, by mechanism.
        left: draws until the process is "killed", right before the next one.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.keys: list[bytes] = []
        self.streams: list[tuple[bytes, int]] = []
        self.probabilities: set[float] = set()
        self.silent, self.given, self.left = False, list[bytes](), -1
        self.copies: dict[str, list[Any]] = {}

    def copy(self, steps: list[Step], *kinds: str) -> None:
        """Release from now on what these steps released, in order."""
        self.copies = {kind: [step.released for step in steps if step.kind == kind] for kind in kinds}

    def restart(self) -> list[Step]:
        """Forget what was noted, and return the steps."""
        steps, self.steps, self.streams, self.keys = self.steps, [], [], []
        return steps

    def take(self, kind: str, values: np.ndarray, scale: float, draw: Callable[[], Any]) -> Any:
        """Note a step."""
        if self.left == 0:
            raise Killed
        self.left -= 1
        released = self.copies[kind].pop(0) if kind in self.copies else draw()
        assert np.shape(released) in ((), values.shape)  # what was released before decides the shape of what comes next
        self.steps.append(Step(kind, values.copy(), scale, released))
        return released

    def gaussian(self, values: np.ndarray, scale: float) -> np.ndarray:
        draw = values.copy if self.silent else lambda: gaussian.discrete_gaussian(values, scale)
        return self.take("gaussian", values, scale, draw)

    def exponential(self, scores: np.ndarray, scale: float) -> int:
        draw = scores.argmax if self.silent else lambda: exponential.gumbel_maximum(scores, scale)
        return int(self.take("exponential", scores, scale, draw))

    def gradient(self, stream: randomness.KeyStream, count: int, stddev: float, draw: Callable[..., Any]) -> Noise:
        drawn = np.zeros(count, dtype=np.int64) if self.silent else draw(stream, count, stddev)
        noise = drawn.view(Noise)
        noise.meet = lambda values: self.take("sgd", values, stddev, lambda: values + drawn)
        return noise

    def key(self, size: int) -> bytes:
        self.keys.append(self.given.pop(0) if self.given else secrets.token_bytes(size))
        return self.keys[-1]


@pytest.fixture
def tap(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tap]:
    """Put a tap where every mechanism draws."""
    tap, stream, drawn = Tap(), randomness.KeyStream, training.rounded_gaussian
    start, batch = stream.__init__, stream.poisson_batch

    def started(self: randomness.KeyStream, key: bytes, step: int) -> None:
        tap.streams.append((key, step))
        start(self, key, step)

    def batched(self: randomness.KeyStream, rows: int, probability: float) -> np.ndarray:
        tap.probabilities.add(probability)
        return batch(self, rows, probability)

    monkeypatch.setattr(gaussian, "_sampler", tap.gaussian)
    monkeypatch.setattr(exponential, "_selector", tap.exponential)
    monkeypatch.setattr(training, "rounded_gaussian", lambda *asked: tap.gradient(*asked, draw=drawn))
    monkeypatch.setattr(randomness, "secrets", SimpleNamespace(token_bytes=tap.key))
    monkeypatch.setattr(stream, "__init__", started)
    monkeypatch.setattr(stream, "poisson_batch", batched)
    yield tap
