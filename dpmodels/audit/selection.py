"""The exponential mechanism, and the K-norm mechanism: exact probabilities on neighbors, and draws held to them.

Of a choice among m options every probability is known: p = softmax(scores / scale). So its loss is computed and not
estimated. Where it is charged as pure, the largest log p / p' of all neighbors is at most epsilon. Where it is charged
as a Gaussian of mu, (p, p') must be no easier to tell apart than N(0, 1) and N(mu, 1): for each set S of options that
are the likeliest under D', p'(S) <= Phi(Phi^-1(p(S)) + mu). By Neyman and Pearson these sets suffice.

How much is recovered is what scores cost that the neighbor moves by its reach r in the worst way: of two options one
rises by r and the other falls by r, about even odds: 2 r / scale, or as a Gaussian 2 Phi^-1(1 / (1 + e^(-r / scale))).

The sampler is held to the probabilities by a chi-square test, with options of few expected draws put together. The
K-norm mechanism has the density q^max|y - s|. The law of R = max|y - s| is computed, and all points of a cube's surface
are alike: R is held to its law, and signs and the place of the largest coordinate to a uniform one.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, log_softmax, ndtri

from dpmodels.accounting.events import PureEvent
from dpmodels.arrays import Floats
from dpmodels.audit.findings import Finding, Recovery
from dpmodels.audit.lower_bound import ALARM
from dpmodels.audit.replay import Step, claimed_mu
from dpmodels.mechanisms import choices, exponential
from dpmodels.privacy import Sensitive
from dpmodels.releases import draw as driver

LEAST_EXPECTED = 8.0
"""Draws that are expected of each cell of a chi-square test."""
AHEAD = 5.0
"""Scales by which one option of the made scores is better than all others."""
SLACK = 1e-9


def exact_loss(step: Step) -> tuple[float, float]:
    """Return the largest log-likelihood ratio of an option, and the least mu whose Gaussian pair is as far apart.

    Privacy: both of the made neighbor that moves the scores most.
    """
    scores = np.atleast_2d(step.draw.values).astype(np.float64) / step.draw.scale
    moved = np.atleast_2d(step.difference).astype(np.float64) / step.draw.scale
    one, other = log_softmax(scores, axis=1), log_softmax(scores + moved, axis=1)
    row = int(np.abs(moved).max(axis=1).argmax())  # the part of the data that the neighbor differs in
    ratios = other[row] - one[row]
    return float(np.abs(ratios).max()), max(_least_mu(one[row], ratios), _least_mu(other[row], -ratios))


def _least_mu(log_p: Floats, ratios: Floats) -> float:
    order = np.argsort(-ratios)
    p, q = np.cumsum(np.exp(log_p[order]))[:-1], np.cumsum(np.exp((log_p + ratios)[order]))[:-1]
    inside = (p > 0) & (q < 1)
    return float((ndtri(q[inside]) - ndtri(p[inside])).max(initial=0.0))


def loss_finding(name: str, step: Step) -> tuple[Finding, Recovery]:
    """Hold the exact loss of a choice to its charge."""
    epsilon, mu = exact_loss(step)
    pure = isinstance(step.event, PureEvent)
    limit = step.event.epsilon if isinstance(step.event, PureEvent) else claimed_mu(step.event)
    loss = epsilon if pure else mu
    says = f"{name}: by exact probabilities the farthest neighbor costs {loss:.4g} of {limit:.4g} that are charged"
    worst = 2 * step.reach / step.draw.scale
    worst = worst if pure else 2 * float(ndtri(expit(worst / 2)))
    recovery = Recovery(
        step=name,
        mechanism="exponential",
        claimed=limit,
        parametric=(worst, worst),
        assumption_free=None,
        draws=0,
        reach=step.share,
    )
    return Finding(check="choices", holds=max(loss, worst) <= limit * (1 + SLACK), says=says), recovery


def sampler_finding(name: str, step: Step, draws: int) -> Finding:
    """Hold the sampler of a choice to the exact probabilities, for its own scores and where one is far ahead."""
    scale, scores_of_step = step.draw.scale, np.atleast_2d(step.draw.values)[0].astype(np.int64)
    far = np.append(np.zeros(len(scores_of_step) - 1, dtype=np.int64), round(AHEAD * scale))
    fits = all(_follows(step.kind, scores, scale, draws) for scores in (scores_of_step, far))
    says = f"{name}: {draws} draws {'follow' if fits else 'do not follow'} the probabilities of the mechanism"
    return Finding(check="choices", holds=fits, says=says)


def _follows(kind: str, scores: NDArray[np.int64], scale: float, draws: int) -> bool:
    """Tell whether draws of options have their probabilities."""
    expected = draws * np.exp(log_softmax(scores / scale))
    if kind == "exponential":
        choices_made = [exponential._selector(scores, scale) for _ in range(draws)]
    else:
        choices_made = choices._chooser(np.repeat(scores[None], draws, axis=0), scale).tolist()
    return _chi_square(np.bincount(choices_made, minlength=len(expected)), expected) > ALARM


def k_norm_findings(name: str, step: Step, draws: int) -> tuple[list[Finding], Recovery]:
    """Hold draws of the K-norm mechanism to the law of its radius, and its cube to be even."""
    dim, scale = step.draw.values.shape[1], step.draw.scale
    zeros = np.zeros((draws, dim), dtype=np.int64)
    points = vars(driver)["measure_k_norm"](Sensitive(zeros), scale=scale).value
    radii = np.abs(points).max(axis=1)
    law = radius_law(dim, scale)
    ends = np.unique(np.searchsorted(np.cumsum(law), np.linspace(0, 1, 21)[1:-1]))
    cells = np.searchsorted(ends, radii, side="left")
    expected = draws * np.add.reduceat(law, [0, *(ends + 1)])
    fits = _chi_square(np.bincount(cells, minlength=len(expected)), expected) > ALARM
    largest = np.abs(points).argmax(axis=1)
    even = stats.chisquare(np.bincount(largest, minlength=dim)).pvalue > ALARM
    signs = stats.binomtest(int((points > 0).sum()), int((points != 0).sum())).pvalue > ALARM
    says = f"{name}: {draws} draws have the radii of the mechanism, and all sides of the cube alike"
    epsilon = step.event.epsilon if isinstance(step.event, PureEvent) else 0.0
    recovery = Recovery(
        step=name,
        mechanism="K-norm",
        claimed=epsilon,
        parametric=(step.reach / scale, step.reach / scale),
        assumption_free=None,
        draws=draws,
        reach=step.share,
    )
    within = Finding(
        check="choices",
        holds=step.reach / scale <= epsilon * (1 + SLACK),
        says=f"{name}: by its exact density the farthest neighbor costs {step.reach / scale:.4g} of {epsilon:.4g}",
    )
    return [within, Finding(check="choices", holds=bool(fits and even and signs), says=says)], recovery


def radius_law(dim: int, scale: float) -> Floats:
    """Return the probability of each radius R, in proportion to ((2 R + 1)^d - (2 R - 1)^d) exp(-R / scale)."""
    radii = np.arange(math.ceil(scale * (dim + 40 * math.sqrt(dim + 1))) + 40, dtype=np.float64)
    surface = dim * np.log(2 * radii + 1) + np.log1p(-(((2 * radii - 1).clip(0) / (2 * radii + 1)) ** dim))
    law: Floats = np.exp(log_softmax(surface - radii / scale))
    return law


def _chi_square(observed: NDArray[np.int64], expected: Floats) -> float:
    """Return the p-value of counts, with cells of few expected draws put together."""
    order = np.argsort(expected)
    groups = np.cumsum(expected[order])
    few = max(int(np.searchsorted(groups, LEAST_EXPECTED)) + 1, int((expected < LEAST_EXPECTED).sum()))
    if few >= len(expected):
        return 1.0
    counts = np.append(observed[order][few:], observed[order][:few].sum())
    expected_counts = np.append(expected[order][few:], expected[order][:few].sum())
    return float(stats.chisquare(counts, expected_counts * counts.sum() / expected_counts.sum()).pvalue)
