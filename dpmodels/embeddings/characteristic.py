"""Characteristic-function features: phi(x) = (exp(i t_j . x))_j / sqrt(k), ||phi(x)|| = 1 (PEARL, Eq. 4).

The features are computed in integers, so that they are a function of the record alone. Frequencies are whole numbers of
2**-PHASE_BITS turns, the design vector is integer, their product is exact in float64, and cosine and sine are read off
one integer table, already truncated toward zero. No batch size, row order, thread count or device can move a bit.
"""

import hashlib
import math
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import VALUE_BITS, Layout
from dpmodels.embeddings.kernels import add_turns
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.late import Tensor, compiled, torch
from dpmodels.mechanisms.lattice import GRAIN_BITS, integer_radius, truncate

PHASE_BITS = 16
TURN = 2**PHASE_BITS


class Frequencies(Frozen):
    """The public description of frequencies of any law; nothing in it may come from data.

    Attributes:
        count: number of frequencies k.
        seed: public seed of the draw.
    """

    kind: str
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    seed: Annotated[int, Field(ge=0)] = 2022


class FrequencySpec(Frequencies):
    """The public description of the frequencies of a table.

    Attributes:
        scale_low, scale_high: each frequency's scale is drawn log-uniformly between them (the multi-bandwidth mix).
        value_scale: factor by which the frequencies of continuous values exceed those of categories.
        columns_per_frequency: a frequency looks at 1 to this many columns, 0 for all of them.
    """

    kind: Literal["characteristic_function"] = "characteristic_function"
    scale_low: Annotated[float, Field(gt=0)] = 0.5
    scale_high: Annotated[float, Field(gt=0)] = 4.0
    value_scale: Annotated[float, Field(gt=0)] = 12.0
    columns_per_frequency: Annotated[int, Field(ge=0)] = 3


class CharacteristicFunction:
    """k frequencies over a layout's design coordinates.

    Attributes:
        phases: integer frequencies in 2**-PHASE_BITS turns. Shapes: [dim of the layout, k] int64.
        relative: the same frequencies divided by their scale, standard normal where not zero; the critic's coordinates.
        squared_norm: exact bound on a record's squared norm, in lattice steps.
        sparse: whether ``lattice_sums`` is there: a record has few ones and values among its coordinates.
    """

    sparse: ClassVar[bool] = True

    def __init__(self, spec: Frequencies, layout: Layout) -> None:
        self.spec, self.layout = spec, layout
        self.relative, self.phases = self.drawn()
        largest = int(np.abs(self.phases).sum(axis=0).max(initial=0)) << VALUE_BITS
        if largest >= 2**53:
            scale = getattr(spec, "scale_high", None)
            raise InvalidArgument("scale_high", scale, "be lower: at this scale a phase could pass 2**53 steps")
        angles = 2 * math.pi * np.arange(TURN) / TURN
        self._cos = truncate(np.cos(angles) / math.sqrt(spec.count)).astype(np.int32)
        self._sin = truncate(np.sin(angles) / math.sqrt(spec.count)).astype(np.int32)
        # the bound is proved entry by entry on the table that is used, not on the cosine it came from
        pairs = self._cos.astype(np.int64) ** 2 + self._sin.astype(np.int64) ** 2
        self.squared_norm = int(pairs.max()) * spec.count
        if integer_radius(self.squared_norm) > 2**GRAIN_BITS:
            raise InvalidArgument(
                "count", spec.count, "be another count: rounded features of so many frequencies have a norm above 1"
            )

    def drawn(self) -> tuple[Floats, Whole]:
        """Draw the frequencies from the public seed: relative ones, and their phases. Shapes: [d, k] each."""
        relative, radians = _draw(cast(FrequencySpec, self.spec), self.layout)
        return relative, np.rint(radians / (2 * math.pi) * TURN).astype(np.int64)

    @property
    def features(self) -> int:
        """Real features a record has: a cosine and a sine for each frequency."""
        return 2 * self.spec.count

    def fingerprint(self) -> str:
        """Return the SHA-256 of the integer frequencies; part of the plan, so that a changed draw cannot pass."""
        return hashlib.sha256(np.ascontiguousarray(self.phases, dtype="<i8").tobytes()).hexdigest()

    def check(self, fingerprint: str) -> None:
        """Refuse a release that was measured at other frequencies."""
        if fingerprint != self.fingerprint():
            raise ArtifactError("the release was measured at other frequencies than this version draws")

    def lattice_features(self, design: Tensor) -> Tensor:
        """Return truncated features of integer design vectors.

        Shapes: design [B, d] float64 integers -> [B, 2k] int32, cosines first.
        Privacy: each row's squared L2 norm is at most ``squared_norm``: k table pairs, each bounded by the largest.
        """
        turns = design @ self._phases(design.device)
        half = 1 << (VALUE_BITS - 1)
        index = ((turns.to(torch.int64) + half) >> VALUE_BITS) & (TURN - 1)
        cos, sin = (torch.from_numpy(table).to(design.device) for table in (self._cos, self._sin))
        return torch.cat([cos[index], sin[index]], dim=1)

    def lattice_sums(self, records: Records) -> NDArray[np.int64]:
        """Sum the truncated features of records by class: what ``lattice_features`` would give, in a compiled loop.

        Instead of a matrix product over all coordinates, a record adds the turns of its few ones and values.

        Shapes: [classes, 2k], cosines first.
        """
        layout, wrap = self.layout, 1 << 32
        hot = [block for block in layout.blocks if block.one_hot]
        valued = [block for block in layout.blocks if block.continuous]
        columns = [block.column for block in hot]
        ones = records.states[:, columns].astype(np.int64) + np.array([block.start for block in hot], dtype=np.int64)
        values = np.array([block.value for block in valued], dtype=np.int64)
        steps = np.rint(np.ldexp(records.values[:, [block.column for block in valued]], VALUE_BITS)).astype(np.uint32)
        units = np.full(layout.dim, 1 << VALUE_BITS, dtype=np.int64)  # a one is 2**VALUE_BITS steps
        units[values] = 1
        turns = ((self.phases * units[:, None]) % wrap).astype(np.uint32)
        table = np.stack([self._cos, self._sin], axis=1)
        half, shift = np.uint32(1 << (VALUE_BITS - 1)), np.uint32(VALUE_BITS)
        out = np.zeros((layout.classes, self.spec.count, 2), dtype=np.int64)
        label = records.labels(layout.class_column)
        compiled(add_turns)(ones, values, steps, label, turns, half, shift, table, out)
        return np.concatenate([out[:, :, 0], out[:, :, 1]], axis=1)

    def expectation(self, rows: Any, index: Tensor) -> Tensor:
        """Return E[exp(i t_j . x)] over categories drawn from the proposed rows, exactly and differentiably.

        The columns of a proposed row are independent, so the expectation is the product over columns of
        sum_s p_s exp(i t_s): what sampling the softmax gives on average, with none of its variance or bias.

        Shapes: ``rows`` are ProductRows; ``index`` picks J frequencies; returns [B, J] complex64 (of modulus <= 1, not
        divided by sqrt(k)).
        """
        phases = torch.as_tensor(self.phases, device=index.device)[:, index]
        angles = (phases & (TURN - 1)).to(torch.float32) * (2 * math.pi / TURN)
        slopes = phases.to(torch.float32) * (2 * math.pi / TURN)
        cos, sin = torch.cos(angles), torch.sin(angles)
        real, imag = torch.ones((), device=index.device), torch.zeros((), device=index.device)
        for block, p, v in zip(self.layout.blocks, rows.probabilities, rows.values, strict=True):
            c, s = _column(
                block.one_hot, cos[block.start :], sin[block.start :], slopes[block.value : block.stop], p, v
            )
            real, imag = real * c - imag * s, real * s + imag * c
        return torch.complex(real, imag)

    def _phases(self, device: "torch.device") -> Tensor:
        return torch.as_tensor(self.phases, dtype=torch.float64, device=device)


def _column(
    one_hot: int, cos: Tensor, sin: Tensor, slope: Tensor, p: Tensor | None, v: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Expectation of one column's factor: real and imaginary part, [B, J] each."""
    if v is None:
        return (p @ cos[:one_hot], p @ sin[:one_hot]) if p is not None else (torch.ones(()), torch.zeros(()))
    turned = v[:, None] * slope
    value_cos, value_sin = torch.cos(turned), torch.sin(turned)
    if p is None:
        return value_cos, value_sin
    # state 0 carries the value: exp(i (t_0 + t_v v)); the other states are plain categories
    first_cos = value_cos * cos[0] - value_sin * sin[0]
    first_sin = value_cos * sin[0] + value_sin * cos[0]
    rest = p[:, 1:]
    return p[:, :1] * first_cos + rest @ cos[1:one_hot], p[:, :1] * first_sin + rest @ sin[1:one_hot]


def _draw(spec: FrequencySpec, layout: Layout) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw frequencies from the public seed: relative ones (standard normal or 0) and radians. Shapes: [d, k]."""
    rng = np.random.Generator(np.random.PCG64(spec.seed))
    relative = rng.standard_normal((layout.dim, spec.count))
    scale = np.exp(rng.uniform(math.log(spec.scale_low), math.log(spec.scale_high), spec.count))
    looked_at = np.full(spec.count, len(layout.blocks))
    if spec.columns_per_frequency:
        looked_at = rng.integers(1, min(spec.columns_per_frequency, len(layout.blocks)) + 1, spec.count)
        rank = rng.random((len(layout.blocks), spec.count)).argsort(axis=0).argsort(axis=0)
        for block, mask in zip(layout.blocks, rank < looked_at, strict=True):
            relative[block.start : block.stop] *= mask
    radians = relative * (scale / np.sqrt(looked_at))
    for block in layout.blocks:
        if block.continuous:
            radians[block.value] *= spec.value_scale
    return relative, radians
