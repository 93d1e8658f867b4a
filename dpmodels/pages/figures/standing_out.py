"""Which group's rate of the target stands out by more than noise and chance.

A group that is one twentieth of the rows moves the dependence of two columns little, and its rate much.

    z = (R_g - R_rest) / sqrt(s_g^2 + s_rest^2 + W (1 - W) (1 / n_g + 1 / n_rest))
        R the rates as released, s the standard deviation of their noise, n the rows, W the rate of all rows

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpmodels.pages.figures.rate_groups import counting

ALPHA = 0.05
"""Part of the reports in which some group stands out by noise and chance alone, at most (Bonferroni)."""
LEAST_ROWS = 5.0
"""Rows with the class, and without it, that a group is to be expected to have for the normal distribution to serve."""


@dataclass(frozen=True)
class Standout:
    """By how much the rate of a group differs from that of all other rows: as released, and in the synthetic rows.

    Attributes:
        labels: the values of the group, as a report writes them.
        released: the difference as released, without its sign.
        synthetic: that of the synthetic rows, negative where it is to the other side.
        noise_stddev: the standard deviation of the noise of the first.
    """

    labels: tuple[str, ...]
    released: float
    synthetic: float
    noise_stddev: float


def standouts(report: Mapping[str, Any]) -> dict[tuple[int, int], Standout]:
    """Return the group that stands out most, by the places of its column and the target, where one does for certain.

    The groups of all columns count together, as all pairs of a report do: it is the clearest that a reader looks at.
    """
    rates = report.get("rates") or {"columns": ()}
    number = sum(len(counting(one)) for one in rates["columns"] if len(one["share"]) > 1)
    every = {}
    for one in rates["columns"]:
        farthest = max(_groups(one, float(report.get("released_records", 0))), key=lambda group: group[0], default=None)
        if farthest and farthest[0] > float(ndtri(1 - ALPHA / (2 * number))):
            every[min(one["column"], rates["target"]), max(one["column"], rates["target"])] = farthest[1]
    return every


def _groups(rates: Mapping[str, Any], records: float) -> Iterator[tuple[float, Standout]]:
    """Yield of each group that counts by how many standard deviations its rate differs, and by how much."""
    if len(rates["share"]) < 2 or not {"stddev", "synthetic"} <= rates.keys():
        return
    stated = (np.array(rates[name], dtype=np.float64) for name in ("released", "synthetic", "stddev", "share"))
    released, synthetic, stddev, share = (np.clip(np.nan_to_num(one), 0, 1) for one in stated)  # may be anybody's
    share = share / max(float(share.sum()), 1e-9)
    whole = float(released @ share)
    for group in counting(rates):
        of_group, others = float(share[group]), np.delete(share, group)
        rest = max(float(others.sum()), 1e-9)
        rows = max(records, 0.0) * np.array([of_group, rest])
        if not min(rows) * min(whole, 1 - whole) >= LEAST_ROWS:
            continue
        apart, made = (float(one[group] - np.delete(one, group) @ others / rest) for one in (released, synthetic))
        noise = math.hypot(stddev[group], float(np.linalg.norm(np.delete(stddev, group) * others)) / rest)
        error = math.sqrt(noise**2 + whole * (1 - whole) * float((1 / rows).sum()))
        side = math.copysign(1.0, apart)
        yield abs(apart) / error, Standout((*rates["labels"][group],), abs(apart), side * made, noise)
