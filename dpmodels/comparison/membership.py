"""Membership inference: who was in the real table? Attacks that see the synthetic rows only.

As many rows that the table was made from as rows that were held out; the attack orders them, and its success is what it
shows: a *lower bound* on what leaks. A weak attack proves nothing.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.comparison.bootstrap import interval, largest, share_interval, weighted_auroc, weights
from dpmodels.comparison.case import Case, Skip
from dpmodels.comparison.neighbours import nearest, real_space

CANDIDATES = 2_000
SYNTHETIC_ROWS = 50_000
NEIGHBOURS = 5
GUESSED = 0.2
"""Share of the candidates that the attack dares to guess; fixed beforehand, as the bound demands."""
CONFIDENCE = 0.95
MOST_EPSILON = 30.0


def membership_facts(case: Case) -> dict[str, Any]:
    """Attack by the distance to the nearest synthetic row, and by relative density (van Breugel et al. 2023).

    Relative density: a candidate whose surroundings hold more synthetic rows than the population would put there.
    """
    if case.real.held_out is None:
        raise Skip("it needs real rows that were held out (--test)")
    space = real_space(case)
    order = np.random.default_rng([case.real.seed, 8]).permutation(len(case.real.held_out))
    others, reference = np.array_split(order, 2)
    each = min(CANDIDATES, len(others), len(case.real.train))
    if len(reference) < NEIGHBOURS or each < 10:
        raise Skip("there are too few held-out rows")
    members = space.points(case.draw(case.real.train, each, 9))
    targets = np.concatenate([members, space.points(case.real.held_out.take(others[:each]))])
    synthetic_distances = nearest(space.points(case.draw(case.synthetic, SYNTHETIC_ROWS, 10)), targets, NEIGHBOURS)
    reference_distances = nearest(space.points(case.real.held_out.take(reference)), targets, NEIGHBOURS)
    density = np.log(reference_distances[:, -1] + 1e-3) - np.log(synthetic_distances[:, -1] + 1e-3)
    member = np.repeat([True, False], each)
    return {
        "candidates_of_each": each,
        "distance": attack_facts(-synthetic_distances[:, 0], member, 0.0, case.real.seed),
        "relative_density": attack_facts(density, member, 0.0, case.real.seed),
    }


def attack_facts(score: Floats, member: NDArray[np.bool_], delta: float, seed: int) -> dict[str, Any]:
    """Return an attack's AUROC, accuracy, hits at one false alarm in a hundred, and the epsilon that guesses show."""
    area = weighted_auroc(member, score, weights(len(member), seed))
    alarm = np.quantile(score[~member], 0.99, method="higher")
    right = right_guesses(score, member, seed)
    return {
        "auroc": float(area[0]),
        "auroc_interval": interval(area),
        "accuracy": float(right.mean()),
        "accuracy_interval": share_interval(right),
        "true_positives_at_1_percent_false": float((score[member] > alarm).mean()),
        "epsilon_lower_bound": epsilon_lower_bound(score, member, delta, seed),
        "confidence": CONFIDENCE,
    }


def right_guesses(score: Floats, member: NDArray[np.bool_], seed: int) -> Floats:
    """Return 1 where a guess at membership is right, 0 where it is wrong: every candidate is guessed once.

    A half of the candidates is guessed by the threshold that is best on the other half, so no guess has seen its
    answer; the threshold of a score that tells nothing gives a half. Shapes: [n], [n] -> [n].
    """
    halves = np.array_split(np.random.default_rng([seed, 12]).permutation(len(score)), 2)
    right = np.empty(len(score))
    for taught, tested in (halves, halves[::-1]):
        order = taught[np.argsort(score[taught], kind="stable")]
        gained = np.cumsum(np.where(member[order], -1, 1))  # right guesses, were all up to here no members
        best = int(gained.argmax()) if gained.max() > 0 else -1
        threshold = -np.inf if best < 0 else score[order[best]]
        right[tested] = (score[tested] > threshold) == member[tested]
    return right


def epsilon_lower_bound(score: Floats, member: NDArray[np.bool_], delta: float, seed: int) -> float:
    """Return the largest epsilon that one run refutes, 0 if none.

    The highest scores are guessed to be members and the lowest not to be. Under (epsilon, delta) privacy, with every
    candidate in or out by a fair coin, the right guesses are stochastically below a binomial of share
    e^eps / (1 + e^eps), up to a term in delta. Here exactly half of the candidates are members, which for many of them
    is close to fair coins.

    Source: Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run" (2023), theorem 5.2.
    """
    each = max(1, round(GUESSED * len(score) / 2))
    shuffled = np.random.default_rng([seed, 11]).permutation(len(score))  # ties are broken without looking
    order = shuffled[np.argsort(score[shuffled], kind="stable")]
    right = int(member[order[-each:]].sum() + (~member[order[:each]]).sum())

    def refuted(epsilon: float) -> bool:
        return chance_of(right, 2 * each, len(score), epsilon, delta) <= 1 - CONFIDENCE

    return largest(refuted, 0.0, MOST_EPSILON) if refuted(0.0) else 0.0


def chance_of(right: int, guesses: int, candidates: int, epsilon: float, delta: float) -> float:
    """Bound the probability of at least so many right guesses under (epsilon, delta) privacy."""
    from scipy.stats import binom

    share = 1 / (1 + np.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, share))
    if delta == 0:
        return tail
    steps = np.arange(1, guesses + 1)
    near = binom.cdf(right - 1, guesses, share) - binom.cdf(right - steps - 1, guesses, share)
    return tail + float((2 * near / steps).max()) * candidates * delta
