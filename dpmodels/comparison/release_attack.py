"""The strongest attack we can mount on the released vector itself: everything but the candidates is known to it.

The adversary knows the embedding, the noise, the true sum of all other real rows, and a set of candidates of which half
are in the table. What is left is  r = sum_i b_i phi(x_i) + noise  with unknown b: a linear model with Gaussian noise,
which the best linear estimate of b under b ~ fair coins answers,

    b = 1/2 + 1/4 (1/4 G + I)^(-1) Phi (r - 1/2 sum_i phi(x_i)),    G = Phi Phi',  all in units of the noise.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.codec.encode import Codec, Records
from dpmodels.comparison.case import Skip
from dpmodels.comparison.frame import ParquetBatches
from dpmodels.comparison.membership import attack_facts
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.summation import transform_sum
from dpmodels.methods.registry import create
from dpmodels.privacy import Sensitive
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum
from dpmodels.statistics.reservoir import draw

MOST_CANDIDATES, LEAST = 1_000, 10
COORDINATES = 8
"""Coordinates of the release for each candidate: with fewer the candidates hide behind each other."""
MOST_NUMBERS = 60_000_000
"""Features of all candidates together: bounds memory at 240 MB."""
BLOCK = 4_096
"""Coordinates whose products are added at once."""


def evaluate_release(
    real: Sensitive[Iterable[Records]], held_out: Sensitive[ParquetBatches] | None, release: Release, seed: int
) -> Sensitive[dict[str, Any]]:
    """Attack a release that is a noisy sum of the real table, which is read several times.

    Privacy: exact success against real rows, so the result stays Sensitive.
    """
    line = release.line
    system = create(line.method, line.measurement, {})
    sums = system.sums(release)
    if not sums:
        raise Skip(f"the release of {line.method} is not a noisy sum")
    if held_out is None:
        raise Skip("it needs real rows that were held out (--test)")
    size = len(release.vector)
    most = max(LEAST, min(MOST_CANDIDATES, MOST_NUMBERS // size, size // COORDINATES) // 2)
    codec = Codec(line.table)
    members = Records.concat(draw(real.reveal(), most, seed))
    others = Records.concat([codec.encode(batch) for batch in draw(held_out.reveal(), most, seed)])
    each = min(len(members), len(others))
    if each < LEAST:
        raise Skip("there are too few held-out rows")
    candidates = Records.concat([members.take(slice(0, each)), others.take(slice(0, each))])
    scores = _estimate(real, candidates, each, sums)
    member = np.repeat([True, False], each)
    mu = math.hypot(*(one.embedding.l2_sensitivity / one.noise_stddev for one in sums))
    allowed = 0.5 * math.erfc(-mu / 2)
    facts = attack_facts(scores, member, line.budget.delta, seed)
    facts |= {"candidates_of_each": each, "spent_epsilon": line.budget.epsilon, "delta": line.budget.delta}
    return Sensitive({**facts, "auroc_of_the_best_attack_on_one_record": allowed})


def _estimate(
    real: Sensitive[Iterable[Records]],
    candidates: Records,
    members: int,
    sums: Sequence[NoisySum],
) -> Floats:
    """Return the estimates of membership, less a half. The first ``members`` candidates are in the real table."""
    size = len(candidates)
    gram, moments = np.zeros((size, size)), np.zeros(size)
    for one in sums:
        noise, features = one.noise_stddev, _features(one.embedding, candidates)
        others = transform_sum(one.embedding, real).reveal() - features[:members].sum(axis=0, dtype=np.int64)
        rest = (one.vector - others).astype(np.float64) / noise
        for at in range(0, one.embedding.dim, BLOCK):
            phi = features[:, at : at + BLOCK].astype(np.float64) / noise
            gram += phi @ phi.T
            moments += phi @ (rest[at : at + BLOCK] - phi.sum(axis=0) / 2)
    solved: Floats = np.linalg.solve(gram / 4 + np.eye(size), moments) / 4
    return solved


def _features(embedding: Embedding, candidates: Records) -> NDArray[np.int64]:
    """Return each candidate's own features, in lattice steps. Shapes: [candidates, dim]."""
    rows = [embedding.lattice_sum(candidates.take(slice(i, i + 1))).numpy() for i in range(len(candidates))]
    top = max(int(np.abs(row).max(initial=0)) for row in rows)
    kind = np.int32 if top < 2**31 else np.int64
    return np.stack([row.astype(kind) for row in rows])
