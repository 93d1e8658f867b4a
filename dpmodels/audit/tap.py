"""A tap where noise is drawn: it notes every draw, and lets it be as ever, leaves the noise out, or copies an outcome.

Whatever a measurement draws goes through one of six doors: the samplers of the discrete Gaussian, of the exponential
mechanism, of choices for many parts and of the K-norm mechanism, the noise of a step of DP-SGD, and the key from which
batches and latent draws of DP-SGD follow. With all of them held, two measurements differ through their data alone.

The doors are attributes of modules, which are replaced for the whole process. So a tap belongs into a process that
reads made data only; ``nacre audit`` and the tests are such processes.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArtifactError
from dpmodels.mechanisms import choices, exponential, gaussian
from dpmodels.mechanisms.dp_sgd import randomness
from dpmodels.privacy import Released, Sensitive
from dpmodels.releases import draw as driver

Values = NDArray[Any]
ALL_KINDS = ("gaussian", "exponential", "choices", "k-norm", "sgd")
"""The kinds of draws; a tap that copies all of them lets nothing through."""


class Unequal(ArtifactError):
    """Two measurements differ where neighbors must not, or a step's noise is met in another way than it should be."""


class Killed(Exception):
    """Stands for whatever ends a process."""


@dataclass
class Draw:
    """One draw of noise: by which mechanism, what it was added to, its scale, and what was released."""

    kind: str
    values: Values
    scale: float
    released: Any


class Noise(np.ndarray[Any, Any]):
    """Noise of DP-SGD that, added to a sum, shows the sum to the tap and becomes what the tap releases."""

    meet: Callable[[Values], Values]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Take the place of the sum and its noise, which are added once."""
        others = [each for each in inputs if each is not self]
        if ufunc is not np.add or len(others) != 1:
            raise Unequal("the noise of a step of DP-SGD is used otherwise than added once to its sum")
        return self.meet(others[0])


class Tap:
    """Notes every draw, and draws as ever, draws nothing, or copies what was released.

    Attributes:
        draws: all that was drawn; keys: of AES, handed out; streams: key and step of DP-SGD, as taken.
        batches: who was in each batch of DP-SGD, as taken; probabilities: with which batches were sampled.
        silent: whether noise is left out; given: keys to hand out; copies: what to release instead, by mechanism.
        left: draws until the process is "killed", right before the next one.
    """

    def __init__(self) -> None:
        self.draws, self.keys, self.streams = list[Draw](), list[bytes](), list[tuple[bytes, int]]()
        self.probabilities, self.batches = set[float](), list[tuple[int, Values]]()
        self.silent, self.keys_left, self.left = False, list[bytes](), -1
        self.copies: dict[str, list[Any]] = {}

    def copy(self, draws: list[Draw], *kinds: str) -> None:
        """Release from now on what these draws released, in order."""
        self.copies = {kind: [each.released for each in draws if each.kind == kind] for kind in kinds}

    def restart(self) -> list[Draw]:
        """Forget what was noted, and return the draws."""
        draws, self.draws, self.streams, self.keys, self.batches = self.draws, [], [], [], []
        return draws

    def take(self, kind: str, values: Values, scale: float, draw: Callable[[], Any]) -> Any:
        """Note a draw."""
        if self.left == 0:
            raise Killed
        self.left -= 1
        if kind in self.copies and not self.copies[kind]:
            raise Unequal("a neighbor asks for noise more often; what it asks for follows from what was released alone")
        released = self.copies[kind].pop(0) if kind in self.copies else draw()
        if np.shape(released) not in ((), values.shape, values.shape[:-1]):
            raise Unequal("a neighbor asks for noise of another size; that follows from what was released alone")
        self.draws.append(Draw(kind, values.copy(), scale, released))
        return released

    @property
    def doors(self) -> list[tuple[Any, str, Any]]:
        """The attributes that are replaced, with what they become."""
        return [*self._noise(), *self._training()]

    def _noise(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield the doors of noise that is added once, and of choices."""
        sampler, selector, chooser = gaussian._sampler, exponential._selector, choices._chooser
        k_norm = vars(driver)["measure_k_norm"]

        def added(values: Values, scale: float) -> Any:
            draw = values.copy if self.silent else lambda: sampler(values, scale)
            return self.take("gaussian", values, scale, draw)

        def selected(scores: Values, scale: float) -> int:
            draw = scores.argmax if self.silent else lambda: selector(scores, scale)
            return int(self.take("exponential", scores, scale, draw))

        def chosen(scores: Values, scale: float) -> Any:
            draw = (lambda: scores.argmax(axis=1)) if self.silent else lambda: chooser(scores, scale)
            return self.take("choices", scores, scale, draw)

        def near(vectors: Sensitive[Values], *, scale: float) -> Released[Values]:
            values = vectors.reveal()
            draw = values.copy if self.silent else lambda: k_norm(vectors, scale=scale).value
            return Released(self.take("k-norm", values, scale, draw))

        yield gaussian, "_sampler", added
        yield exponential, "_selector", selected
        yield choices, "_chooser", chosen
        yield driver, "measure_k_norm", near

    def _training(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield the doors of DP-SGD: its noise, its keys, and the streams and batches that follow from them."""
        from dpmodels.mechanisms.dp_sgd import training  # it needs torch, as do the methods that use it

        rounded, stream = vars(training)["rounded_gaussian"], randomness.KeyStream
        start, batch = stream.__init__, stream.poisson_batch

        def gradient(sgd_noise: Any, count: int, stddev: float) -> Noise:
            integers = np.zeros(count, dtype=np.int64) if self.silent else rounded(sgd_noise, count, stddev)
            noise = integers.view(Noise)
            noise.meet = lambda values: self.take("sgd", values, stddev, lambda: values + integers)
            return noise

        def key(size: int) -> bytes:
            self.keys.append(self.keys_left.pop(0) if self.keys_left else secrets.token_bytes(size))
            return self.keys[-1]

        def started(sgd: Any, key: bytes, step: int) -> None:
            self.streams.append((key, step))
            start(sgd, key, step)

        def batched(sgd: Any, rows: int, probability: float) -> Values:
            self.probabilities.add(probability)
            self.batches.append((rows, batch(sgd, rows, probability)))
            return self.batches[-1][1]

        yield training, "rounded_gaussian", gradient
        yield randomness, "secrets", SimpleNamespace(token_bytes=key)
        yield stream, "__init__", started
        yield stream, "poisson_batch", batched


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of a module or a class, and set it back in the end."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def tapped() -> Iterator[Tap]:
    """Put a tap where every mechanism draws."""
    tap = Tap()
    with ExitStack() as doors:
        for door in tap.doors:
            doors.enter_context(replaced(*door))
        yield tap
