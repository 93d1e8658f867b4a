"""How far a release may be from the real table, and the synthetic table from the release: post-processing.

Privacy: reads released vectors, public noise scales and synthetic rows; no real row.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaincinv, ndtri

from dpmodels.arrays import Floats
from dpmodels.codec.embedded import labels_of
from dpmodels.codec.encode import Codec
from dpmodels.codec.flat import units_in
from dpmodels.late import torch
from dpmodels.methods.parts.marginals import Marginal, Marginals, fine_codec
from dpmodels.methods.registry import create
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum
from dpmodels.statistics.normal import HALF_NORMAL

FIT_ROWS = 50_000
"""Synthetic rows that are held against a release, from the start of the table."""
DROWNED = math.sqrt(2)
"""Size of a release, in units of its noise, below which less than half of its squared length is data."""
LOST = (
    "what was released hardly stands out of its noise ({}): what was made may say next to nothing about the real data"
)
"""What is said first wherever that is so, with the reason."""
LIKELY = 0.95
"""Share of releases whose noise is no larger than what a report says an error is within."""
NORMAL_95 = float(ndtri((1 + LIKELY) / 2))
"""What the absolute value of a standard normal exceeds in one of twenty."""


@dataclass(frozen=True)
class Measured:
    """A release, and what its system says of it: sums, marginals, noise."""

    release: Release
    sums: Sequence[NoisySum]
    marginals: Marginals | None
    noise: dict[str, float]
    least_units: float | None = None
    released_noise: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release) -> "Measured":
        """Ask the system that a release was measured by."""
        line = release.line
        system = create(line.method, line.measurement, {})
        least = system.least_units(line) if system.least_is_certain else None
        sums, marginals, noise = system.sums(release), system.marginals(release), system.noise(line)
        return cls(release, sums, marginals, noise, least, system.released_noise(release))

    @property
    def codec(self) -> Codec:
        """Return the encoder whose cells the report shows: those that were released, where any were."""
        contract = self.release.line.contract
        table = labels_of(contract) if contract.about == "documents" else self.release.line.table
        return self.marginals.codec if self.marginals else fine_codec(table)


def drowned(looks: Sequence[Mapping[str, Any]], records: float | None = None, least: float | None = None) -> str | None:
    """Say that what a generator was fitted to hardly stands out of its noise; None where it does.

    Args:
        looks: what ``compare_with_release`` returns; the generator follows the last one.
        records: the released number of units, where one was released.
        least: how many units must be there, whatever they hold; None where the last look alone can tell.
    """
    if records is not None and least is not None and records < least:
        return LOST.format(f"about {max(records, 0):,.0f} were counted, and about {least:,.0f} are needed")
    return lost_in_noise(looks[-1]["signal"]) if looks else None


def lost_in_noise(signal: float, least: float = DROWNED) -> str | None:
    """Say that a release of a size, in units of its noise, does not stand out of it; None where it does.

    Args:
        signal: the size.
        least: the size at which it does.
    """
    if signal >= least:
        return None
    return LOST.format(f"it is {signal:.2f} times the noise")


def expected_distance(stddev: Floats, records: float) -> float:
    """Return the total variation that noise alone puts between released and real shares, on average.

    Half the sum over cells of E|noise|, which for a normal is its standard deviation times the square root of 2/pi.
    """
    return float(min(1.0, HALF_NORMAL * stddev.sum() / (2 * records)))


def noise_distance_95(stddev: Floats, records: float) -> float:
    """Return the total variation that noise alone exceeds between released and real shares in one release of twenty.

    Half the sum over cells of |noise|, which adds up to nothing, for the sum of all cells is known. With p_i the part
    of a cell in the variance of that sum, what is left is of stddev_i sqrt(1 - p_i), and two cells have a correlation
    whose square is p_i p_j / ((1 - p_i) (1 - p_j)). Of |noise| they covary by (1 - 2/pi) times that at most, in units
    of both standard deviations; two cells alone do so exactly.

    Args:
        stddev: of the noise of each cell, before their sum is known.
        records: how many there are.
    """
    part = stddev**2 / max(float((stddev**2).sum()), 1e-300)
    left = stddev * np.sqrt(1 - part)
    shared = np.divide(left * part, 1 - part, out=np.zeros_like(left), where=part < 1)
    squares = (left**2).sum() + shared.sum() ** 2 - (shared**2).sum()
    return float(min(1.0, absolute_95(left.sum(), squares) / (2 * records)))


def number_moves(noisy: Marginal, whole: Marginal, records: float) -> float:
    """Return by how much the shares of a column's cells move for each record that the number of records is off by.

    Of what it is off by, a cell takes the part that is its own of the variance, and should take its share: half the sum
    of the differences is a total variation, of one record in all.
    """
    part = noisy.pooled_stddev**2 / max(float((noisy.pooled_stddev**2).sum()), 1e-300)
    return float(min(1.0, np.abs(part - whole.pooled / records).sum() / 2))


def absolute_95(total: Any, squares: Any) -> Any:
    """Return the 95 % quantile of sums of |noise|, by the sums of its standard deviations and of their squares.

    That of a gamma distribution of the same mean and variance: 1.967 for one normal of variance 1 (exactly 1.960).
    """
    mean, variance = HALF_NORMAL * total, (1 - HALF_NORMAL**2) * squares
    shape = np.divide(mean**2, variance, out=np.ones_like(mean * variance), where=variance > 0)
    return mean * gammaincinv(shape, LIKELY) / shape


@dataclass(frozen=True)
class Summed:
    """The sums that were released, of synthetic rows. Shapes: ``totals`` one vector a sum; in lattice steps."""

    totals: Sequence[Floats]
    units: int

    @classmethod
    def of(cls, line: Line, sums: Sequence[NoisySum], batches: Iterable[Any]) -> "Summed":
        """Sum the first rows of a synthetic table."""
        totals = [torch.zeros(each.embedding.dim, dtype=torch.int64) for each in sums]
        rows, units = 0, 0
        for records in batches if sums else ():
            fitted_records = records.take(slice(0, FIT_ROWS - rows))
            for total, each in zip(totals, sums, strict=True):
                total += each.embedding.lattice_sum(fitted_records)
            rows, units = rows + len(fitted_records), units + units_in(line.contract, fitted_records)
            if rows >= FIT_ROWS:
                break
        return cls([total.numpy().astype(np.float64) for total in totals], units)


def compare_with_release(line: Line, sums: Sequence[NoisySum], summed: Summed) -> list[dict[str, float | int]]:
    """Hold the sums of the synthetic rows against the released ones, one by one, in units of the noise.

    The synthetic sum is scaled to the release by one factor, since the number of rows is free. ``left`` is the root
    mean square of what then remains over the noise: 1 is what noise alone leaves, more is what the generator missed.
    ``explained`` is what noise and the drawing of a finite number of rows explain together; ``signal`` the same of
    the release before anything is taken off.
    """
    rows_of_a_unit, units = line.contract.flat.unit.max_rows, summed.units
    result: list[dict[str, float | int]] = []
    for synthetic, each in zip(summed.totals, sums, strict=True):
        steps, vector = each.noise_stddev, each.vector
        power = float(synthetic @ synthetic)
        factor = float(synthetic @ vector) / power if power else 0.0
        norm = each.embedding.l2_sensitivity / rows_of_a_unit
        drawing = factor**2 * max(units * norm**2 - power / max(units, 1), 0.0) / len(vector)
        rest = vector - factor * synthetic
        result.append(
            {
                "coordinates": len(vector),
                "signal": float(np.sqrt((vector.astype(np.float64) ** 2).mean()) / steps),
                "left": float(np.sqrt((rest**2).mean()) / steps),
                "explained": math.sqrt(1 + drawing / steps**2),
            }
        )
    return result
