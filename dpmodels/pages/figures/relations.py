"""Which columns depend on each other by more than noise shows, and which of these relations the synthetic rows keep.

Privacy: post-processing of a publishable report.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaincc, gammaincinv

from dpmodels.pages.figures.ruled import ruled_pairs
from dpmodels.pages.figures.standing_out import Standout, standouts

OF_JOINT = re.compile(r"joint table that the workload asks for \((.+)\) departs")
"""How a report calls the noise of a joint table."""
GROUPS = 4
"""Groups that the cells of a column are joined to, at most: finer, noise would be most of every distance of a pair."""
MOST_SINGLE = 12
"""Categories of a column that stand by themselves in the table of a pair that a workload asks for."""
LISTED = 10
"""What a report lists of two columns: their places, four distances, and four figures of how they depend."""
FALSE = 0.1
"""Part of the relations that are called likely which noise and chance may have made."""
KEPT, STRONGER = 0.8, 1.25
"""Parts of the released dependence, with its noise, from which on two columns depend on each other as they did, and
beyond which they do more than they did."""
ONE_SIDED_95 = 1.645
"""Standard deviations above its mean that a normal exceeds in one of twenty."""


@dataclass(frozen=True)
class Relation:
    """How two columns depend on each other: the share of rows that would have to move for them not to.

    Attributes:
        columns: their places in the report.
        released: as released, with its noise.
        synthetic: in the synthetic rows.
        likely: what noise and chance make of independent columns, exceeded in one release of twenty.
        most: what they make of any pair of the report in one report of twenty.
        chance: how probable it is that they make as much of this pair alone.
        by_rule: whether a rule of the schema relates them, so that a relation is no finding.
        noise: by what noise moves the released dependence, exceeded upwards in one release of twenty.
        standout: of a pair with the target, the group whose rate of it stands out for certain; None where none does.
    """

    columns: tuple[int, int]
    released: float
    synthetic: float
    likely: float
    most: float
    chance: float = 1.0
    by_rule: bool = False
    noise: float = 0.0
    standout: Standout | None = None

    @property
    def is_certain(self) -> bool:
        """Tell whether the columns depend on each other by more than noise and chance show of any pair."""
        return self.released > self.most or self.standout is not None

    @property
    def is_seen(self) -> bool:
        """Tell whether a relation is certain, or made by a rule."""
        return self.is_certain or self.by_rule

    @property
    def is_by_rate_alone(self) -> bool:
        """Tell whether a relation is certain by the rate of one group, while noise hides it in the table of both."""
        return self.standout is not None and self.released <= self.most

    @property
    def is_weakened(self) -> bool:
        """Tell whether a certain relation is weaker in the synthetic rows than as released.

        Noise adds to what is released, so the real relation is rather weaker than that, and this asks for more.
        """
        released, synthetic, _ = self._strength
        return self.is_certain and synthetic < KEPT * released

    @property
    def is_stronger(self) -> bool:
        """Tell whether a certain relation is stronger in the synthetic rows, by more than noise took from it."""
        released, synthetic, noise = self._strength
        return self.is_certain and synthetic > max(STRONGER * released, released + noise)

    @property
    def is_kept(self) -> bool:
        """Tell whether a certain relation is about as strong in the synthetic rows."""
        return self.is_certain and not self.is_weakened and not self.is_stronger

    @property
    def _strength(self) -> tuple[float, float, float]:
        """How strong a relation is as released, in the synthetic rows, and by how much noise moves the first."""
        if self.standout is not None and self.is_by_rate_alone:
            return self.standout.released, self.standout.synthetic, ONE_SIDED_95 * self.standout.noise_stddev
        return self.released, self.synthetic, self.noise


def but_joint(report: Mapping[str, Any]) -> str:
    """Except the joint tables that a workload asked for from what is said of three or more columns; empty if none."""
    named = [match[1] for one in report.get("noise_stddev", ()) if (match := OF_JOINT.search(one))]
    return f" (but for the joint table of {'; '.join(named)})" if named else ""


def relations(report: Mapping[str, Any]) -> dict[tuple[int, int], Relation]:
    """Return how every two columns that were counted together depend on each other, by their places.

    Reports up to layout 12 do not say.
    """
    distances = (report.get("pairs") or {}).get("distances", ())
    listed = [one for one in distances if len(one) == LISTED]
    ruled = ruled_pairs(report)
    joined = [not one.get("ordered", True) and len(one.get("labels", ())) > GROUPS for one in report.get("columns", ())]
    every = (_relation(one, len(listed), 1 + joined[one[0]] + joined[one[1]]) for one in listed)
    by_rate = standouts(report)
    return {
        one.columns: replace(one, by_rule=pair in ruled, standout=by_rate.get(pair))
        for one in every
        for pair in [_in_order(one.columns)]
    }


def _in_order(columns: tuple[int, int]) -> tuple[int, int]:
    return min(columns), max(columns)


def _relation(listed: list[Any], number: int, groupings: int) -> Relation:
    """Return the relation of a pair, which is the clearest of so many groupings of its categories (Bonferroni)."""
    first, second, *_, released, synthetic, noise, likely = listed
    most, chance = most_by_noise(noise, likely, number * groupings), chance_of(released, noise, likely)
    moved = max(likely - noise, 0.0)
    return Relation((first, second), released, synthetic, likely, most, min(1.0, groupings * chance), noise=moved)


def asked_pairs(report: Mapping[str, Any]) -> frozenset[tuple[int, int]]:
    """Return the places of the columns that a workload names together, of those that a report draws."""
    pairs = report.get("pairs") or {}
    return frozenset((*one["columns"],) for one in pairs.get("tables", ())[: pairs.get("asked_for", 0)])


def likely_relations(report: Mapping[str, Any]) -> dict[tuple[int, int], Relation]:
    """Return the relations that are not certain, and of which ``FALSE`` at most are noise on average over reports.

    Those that a rule of the schema makes are none of them.

    How often a class of the target occurs in the groups of a column is looked at besides, where a report states it: it
    is fewer figures than a whole table, so that less noise hides it. The rule is Benjamini and Hochberg's (1995), of
    the pairs that are not certain alone, so that no certain one makes room for noise; those with the target, which a
    reader asks for first, are held to it by themselves, and so are the others.
    """
    every, rates = relations(report), report.get("rates") or {"columns": ()}
    chances = {columns: one.chance for columns, one in every.items() if not (one.is_certain or one.by_rule)}
    for one in rates["columns"]:
        pair = (min(one["column"], rates["target"]), max(one["column"], rates["target"]))
        if pair in chances:
            chances[pair] = min(1.0, 2 * min(chances[pair], chance_of_rates(one, report["released_records"])))
    target = (report.get("pairs") or {}).get("target")
    families = [{pair: one for pair, one in chances.items() if (target in pair) is so} for so in (True, False)]
    return {pair: every[pair] for family in families for pair in _discoveries(family)}


def _discoveries(chances: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Return the pairs of which ``FALSE`` at most are noise on average, by how probable it is that each is."""
    order = sorted(chances, key=chances.__getitem__)
    last = max((rank for rank, pair in enumerate(order, 1) if chances[pair] <= FALSE * rank / len(order)), default=0)
    return order[:last]


def chance_of_rates(rates: Mapping[str, Any], records: float) -> float:
    """Return how probable it is that rates differ by group as these do, by noise and chance alone (chi-squared)."""
    if len(rates["share"]) < 2:
        return 1.0
    stated = (np.array(rates[name], dtype=np.float64) for name in ("released", "stddev", "share"))
    released, stddev, share = (np.clip(np.nan_to_num(one), 0, 1) for one in stated)  # the facts may be anybody's
    share = np.maximum(share, 1e-9)
    whole = float(np.clip(released @ share / share.sum(), 1e-9, 1 - 1e-9))
    variance = stddev**2 + whole * (1 - whole) / (share * max(records, 1.0))
    middle = float((released / variance).sum() / (1 / variance).sum())
    return float(gammaincc((len(released) - 1) / 2, ((released - middle) ** 2 / variance).sum() / 2))


def chance_of(released: float, mean: float, likely: float) -> float:
    """Return how probable it is that noise and chance make as much of a pair; arguments as of ``most_by_noise``."""
    if not likely > mean > 0:
        return 1.0 if released <= max(mean, likely) else 0.0
    shape = _shape(mean, likely)
    return float(gammaincc(shape, released * shape / mean))


def _shape(mean: float, likely: float) -> float:
    """Return the shape of a gamma distribution with this mean, and a standard deviation as a normal has it."""
    return (ONE_SIDED_95 * mean / (likely - mean)) ** 2


def most_by_noise(mean: float, likely: float, number: int) -> float:
    """Return what noise and chance make of the dependence of one pair in .05 releases by the number of pairs.

    The relations that a reader looks at are the strongest of all, so each may exceed it that seldom.

    Args:
        mean: what it makes on average.
        likely: what it exceeds in one release of twenty. Mean and quantile give a gamma distribution.
        number: how many pairs there are.
    """
    if not likely > mean > 0:
        return max(mean, likely)
    shape = _shape(mean, likely)
    return min(1.0, mean * float(gammaincinv(shape, 1 - 0.05 / number)) / shape)
