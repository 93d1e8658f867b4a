"""How far a release may be from the real table, and the synthetic table from the release: post-processing.

Privacy: reads released vectors, public noise scales and synthetic rows; no real row.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.interval import Floats
from dpmodels.synthesizers.base import Plan, Release
from dpmodels.synthesizers.marginals import Marginals, fine_codec
from dpmodels.synthesizers.one_shot import Look, OneShot, split_looks
from dpmodels.synthesizers.registry import create

FIT_ROWS = 50_000
"""Synthetic rows that are held against a release, from the start of the table."""
HALF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal."""

LookVector = tuple[Look, NDArray[np.int64]]


@dataclass(frozen=True)
class Measured:
    """A release, and what its system says of it: sums, marginals, noise."""

    release: Release
    looks: Sequence[LookVector]
    marginals: Marginals | None
    noise: dict[str, float]

    @classmethod
    def of(cls, release: Release) -> "Measured":
        """Ask the system that a release was measured by."""
        plan = release.plan
        system = create(plan.method, plan.measurement, {})
        looks = split_looks(release, system.looks(plan)) if isinstance(system, OneShot) else []
        return cls(release, looks, system.marginals(release), system.noise(plan))

    @property
    def codec(self) -> Codec:
        """Return the encoder whose cells the report shows: those that were released, where any were."""
        return self.marginals.codec if self.marginals else fine_codec(self.release.plan.table)


def expected_distance(stddev: Floats, records: float) -> float:
    """Return the total variation that noise alone puts between released and real shares, on average.

    Half the sum over cells of E|noise|, which for a normal is its standard deviation times the square root of 2/pi.
    """
    return float(min(1.0, HALF_NORMAL * stddev.sum() / (2 * records)))


def compare_with_release(
    plan: Plan, looks: Sequence[LookVector], batches: Iterable[Records]
) -> list[dict[str, float | int]]:
    """Hold the sums of the synthetic rows against the released ones, look by look, in units of the noise.

    The synthetic sum is scaled to the release by one factor, since the number of rows is free. ``left`` is the root
    mean square of what then remains over the noise: 1 is what noise alone leaves, more is what the generator missed.
    ``explained`` is what noise and the drawing of a finite number of rows explain together; ``signal`` the same of
    the release before anything is taken off.
    """
    totals = [torch.zeros(look.embedding.dim, dtype=torch.int64) for look, _ in looks]
    rows = 0
    for records in batches:
        kept = records.take(slice(0, FIT_ROWS - rows))
        for total, (look, _) in zip(totals, looks, strict=True):
            total += look.embedding.lattice_sum(kept)
        rows += len(kept)
        if rows >= FIT_ROWS:
            break
    result: list[dict[str, float | int]] = []
    for total, (look, vector) in zip(totals, looks, strict=True):
        made, steps = total.numpy().astype(np.float64), _steps(plan, look)
        power = float(made @ made)
        factor = float(made @ vector) / power if power else 0.0
        norm = look.embedding.l2_sensitivity / plan.table.unit.max_rows
        drawing = factor**2 * max(rows * norm**2 - power / max(rows, 1), 0.0) / len(vector)
        rest = vector - factor * made
        result.append(
            {
                "coordinates": len(vector),
                "signal": float(np.sqrt((vector.astype(np.float64) ** 2).mean()) / steps),
                "left": float(np.sqrt((rest**2).mean()) / steps),
                "explained": math.sqrt(1 + drawing / steps**2),
            }
        )
    return result


def _steps(plan: Plan, look: Look) -> float:
    return lattice_noise_stddev(plan.l2_sensitivity, look.noise_multiplier)
