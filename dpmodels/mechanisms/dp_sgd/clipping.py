"""The sum of clipped gradients as whole numbers: no rounding of the sum, and a norm bound that is checked, not argued.

A record's gradient is a sum of outer products g a' over layers and draws. Each is scaled, its factors are rounded to

    alpha = round(a / |a| 2**b)      beta = round(s g |a| 2**b)      s = min(1 / C, target / norm, reach / sum |g||a|)

and the product beta alpha' counts units of C 4**-b. The norm of what came out is found from these integers; a record
that is above the bound after all, or whose loss or gradient is not finite, adds nothing.

Exactness: rows come rounded from products.py, so the dot products that decide s are exact sums, with the last column,
    where the ones of a bias are, added on its own. The norms of a record's outer products add up to at most REACH 4**b,
    which is checked too, so 1024 records stay within 2**53 in every entry and their matrix product is exact in float64,
    in whatever order it is taken. As |alpha| is about 2**b, |beta| is below 2**26: dot products of two alphas or betas
    are exact for the same reason. (A squared length is right to 2**-40 even where it is not exact, so the check may
    rest on it.) Blocks are added in int64.
Error of the norm: N products of dots, each at most REACH^2 16**b together, are added in float64: off by at most
    N REACH^2 2**-52, which is below the slack of 2**-20 for N up to 2**20.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from dpmodels.errors import InvalidArgument, Unsuitable

Term = tuple[Tensor, Tensor]
"""One layer: a [B, L, in + 1] with 1 for the bias, and g [B, L, out]; record i's gradient is sum_l g_il a_il'."""

FACTOR_BITS = 19
REACH = 32.0
"""Clip norms that the terms of one record may add up to; where they cancel by more than that, it is clipped further."""
MOST_ROWS = 1024
TARGET = 1 - 2.0**-10  # rounding the factors moves a norm by far less
SLACK = 2.0**-20
_UNIT = 2.0**FACTOR_BITS


def lattice_factors(terms: Sequence[Term], usable: Tensor, clip_norm: float, bound: float) -> list[Term]:
    """Clip and round each record's gradient; the terms become whole numbers in place. Shapes: ``usable`` [B].

    Privacy: a record's integers are a function of its own terms. Their gradient, in units of C 4**-b, has norm at most
        ``bound`` 4**b, for whoever is above it is set to zero.

    Raises:
        InvalidArgument: a record has so many draws that its norm could be off by more than the slack.
    """
    norm, reach, lengths = record_norms(terms)
    scale = torch.minimum(bound * TARGET / norm, REACH * TARGET / reach).clamp(max=1 / clip_norm)
    finite = norm.isfinite() & reach.isfinite()
    scale = scale.where(usable & finite, 0.0)
    factors = [
        (_rounded(a, _UNIT / length.clamp(min=1e-300), finite), _rounded(g, _UNIT * scale[:, None] * length, finite))
        for (a, g), length in zip(terms, lengths, strict=True)
    ]
    norm, reach, _ = record_norms(factors)
    keep = (norm**2 <= (bound * _UNIT**2) ** 2 * (1 - SLACK)) & (reach <= REACH * _UNIT**2 * (1 - SLACK))
    return [(alpha, _silenced(beta, keep)) for alpha, beta in factors]


def lattice_sum(factors: Sequence[Term]) -> list[Tensor]:
    """Add up the gradients of a block, exactly. Shapes: one int64 matrix [out, in + 1] a layer.

    Raises:
        Unsuitable: the block has more records than float64 can add up.
    """
    if len(factors[0][0]) > MOST_ROWS:
        raise Unsuitable(f"a block has more records than float64 can add up exactly; give it at most {MOST_ROWS}")
    return [(alpha.flatten(0, 1).mT @ beta.flatten(0, 1)).mT.to(torch.int64) for alpha, beta in factors]


def record_norms(terms: Sequence[Term]) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return each record's gradient norm, the sum of its terms' norms, and every |a|; no gradient is ever formed.

        || sum_l g_l a_l' ||^2 = sum_{k,l} (g_k . g_l) (a_k . a_l)

    Shapes: [B], [B], and [B, L] a layer.
    """
    if (count := sum(a.shape[1] ** 2 for a, _ in terms)) > 2**20:
        raise InvalidArgument("draws", math.isqrt(count), "be at most a thousand a record, over all layers")
    grams = [(a[..., :-1] @ a[..., :-1].mT + a[..., -1:] * a[..., -1:].mT, g @ g.mT) for a, g in terms]
    diagonals = [[gram.diagonal(dim1=1, dim2=2).sqrt() for gram in pair] for pair in grams]
    squared = cast(Tensor, sum((a * g).flatten(1).sum(dim=1) for a, g in grams))
    reach = cast(Tensor, sum((a * g).sum(dim=1) for a, g in diagonals))
    return squared.clamp(min=0).sqrt(), reach, [a for a, _ in diagonals]


def _rounded(rows: Tensor, scale: Tensor, finite: Tensor) -> Tensor:
    """Scale rows and round them to whole numbers, in place. Shapes: [B, L, n], [B, L], [B]."""
    return _silenced(rows.mul_(scale[..., None]).round_(), finite)


def _silenced(rows: Tensor, keep: Tensor) -> Tensor:
    """Set everybody's rows but those to keep to zero, whatever they hold."""
    return rows if keep.all() else rows.where(keep[:, None, None], 0.0)
