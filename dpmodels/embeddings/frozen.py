"""What a frozen public network makes of a record: a bounded vector of whole numbers, a function of that record alone.

    z = clip((h(x) - mean) turn),     ||z|| <= 2**Z_BITS

The network h and its affine map are public: they are made of auxiliary data, which no client's records are in.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.artifact import write_whole
from dpmodels.embeddings.vectors import clip
from dpmodels.errors import Unsuitable
from dpmodels.late import Tensor, nn, torch
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import Points

BLOCK = 64
"""Records that go through the network together, always as many, if their places in the block do not show."""
LEAST_RADIUS = 1e-100
"""A vector is divided by its norm or the clip norm, whichever is more; by less than this, zero would not stay zero."""


@dataclass(frozen=True)
class Examples:
    """Records of a party. Shapes: ``inputs`` [n, ...] float32; ``labels`` [n] int64."""

    inputs: Tensor
    labels: Tensor

    def take(self, rows: Tensor) -> "Examples":
        """Return some of the records."""
        return Examples(self.inputs[rows], self.labels[rows])


class FrozenFeatures:
    """A public network, then an affine map, then a clip to a public norm.

    Shapes: ``mean`` [p]; ``turn`` [p, d].

    Raises:
        InvalidArgument: the clip norm is no norm, by which a record whose vector is zero would be told from others.
    """

    def __init__(self, network: "nn.Module", mean: Floats, turn: Floats, radius: float) -> None:
        if not LEAST_RADIUS <= radius < np.inf:
            raise Unsuitable("the extractor gives all public records one vector; give others, or another extractor")
        self.network, self.mean, self.turn, self.radius = network.eval(), mean, turn, radius
        self._blocks: dict[tuple[int, ...], int] = {}

    @classmethod
    def of_public(cls, network: "nn.Module", auxiliary: Tensor, size: int) -> "FrozenFeatures":
        """Bring the principal directions of public features to one variance; the median of the norms is the clip norm.

        Shapes: auxiliary [n, ...].
        """
        whole = cls(network, np.zeros(1), np.eye(1), 1.0)
        features = np.concatenate([whole._network(rows) for rows in _blocks(auxiliary, BLOCK)])
        mean = features.mean(axis=0)
        _, stretch, directions = np.linalg.svd(features - mean, full_matrices=False)
        deviations = stretch[:size] / np.sqrt(len(features))
        turn: Floats = directions[:size].T / np.maximum(deviations, 1e-3 * deviations[0])
        radius = float(np.median(np.linalg.norm((features - mean) @ turn, axis=1)))
        return cls(network, mean, turn, radius)

    @property
    def sha256(self) -> str:
        """Hash all that decides what the map makes of a record."""
        tensors = [tensor.cpu().numpy() for tensor in self.network.state_dict().values()]
        arrays = [*tensors, self.mean, self.turn, np.array([self.radius])]
        return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()

    def whole(self, inputs: Tensor) -> Whole:
        """Map records to bounded vectors; what is not finite counts as zero. Shapes: [n, ...] -> [n, d]."""
        shape = tuple(inputs.shape[1:])
        if shape not in self._blocks:
            self._blocks[shape] = BLOCK if self._alike(inputs, shape) else 1
        block = self._blocks[shape]
        parts = [np.zeros((0, self.turn.shape[1]), dtype=np.int64)]
        for rows in _blocks(inputs, block):
            padded = torch.cat([rows, rows.new_zeros(block - len(rows), *shape)])
            parts.append(self._bounded(padded)[: len(rows)])
        return np.concatenate(parts)

    @np.errstate(all="ignore")  # numpy's warnings would tell that a record is not finite
    def _bounded(self, rows: Tensor) -> Whole:
        turned = np.nan_to_num((self._network(rows) - self.mean) @ self.turn, nan=0.0, posinf=0.0, neginf=0.0)
        return clip(turned.clip(-1e30, 1e30), self.radius)

    def _network(self, rows: Tensor) -> Floats:
        with torch.no_grad():
            return np.asarray(self.network(rows).double().cpu().numpy())

    def _alike(self, like: Tensor, shape: tuple[int, ...]) -> bool:
        """Return whether neither its place in a block nor the records beside it change a record's bits (a trial)."""
        normal = np.random.default_rng(0).standard_normal((BLOCK + 1, *shape))
        rows = torch.from_numpy(normal).to(like.device, torch.float32)
        before, after = self._network(rows[1:]), self._network(rows[:-1])
        same = (before - self.mean) @ self.turn, (after - self.mean) @ self.turn
        return bool(np.array_equal(same[0][:-1], same[1][1:]))


def _blocks(rows: Tensor, size: int) -> Iterator[Tensor]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def transform_frozen(features: FrozenFeatures, examples: Sensitive[Examples]) -> Sensitive[Iterable[Points]]:
    """Map a party's records. Privacy: Sensitive -> Sensitive, record by record."""
    revealed = examples.reveal()
    return Sensitive([Points(features.whole(revealed.inputs), revealed.labels.cpu().numpy().astype(np.int64))])


def transform_kept(examples: Sensitive[Examples], make: Callable[[Examples], bytes], path: Path) -> None:
    """Write what is made of a party's records, whole or not at all, into the sensitive zone.

    Privacy: Sensitive -> Sensitive; a model that was trained on records is as sensitive as they are.
    """
    content = make(examples.reveal())
    write_whole(path, lambda part: part.write_bytes(content))


def digest_of(z: Whole) -> str:
    """Return the SHA-256 of public vectors, by which a contract names them."""
    return hashlib.sha256(str(z.shape).encode() + np.ascontiguousarray(z, dtype="<i8").tobytes()).hexdigest()
