"""DP-SGD with the gradient in view: the noise and the batches of a method's own training, and a canary in every step.

**Of the method.** It is measured once with its own randomness. The noise of a step is released - sum, of all weights.
From it follow an upper bound of the noise multiplier, as for any Gaussian step (``lower_bound``), with the reach that
neighbors showed. Who was in the batches follows from the same measurement: sizes must vary as independent draws do
(n q (1 - q); a shuffled epoch has batches of one size), and so must the number of batches that a record is in. Further
batches of the same sampler bound q from below by Clopper and Pearson. What is recovered is the epsilon that the
accountant finds for the bounds of z and q, which the privacy loss of T such steps reaches in the limit; it assumes that
steps are independent of each other, which is tested, and is therefore the parametric bound.

**Without assumptions** (full audits): many trainings with and without a canary (``canary``), told apart by the sum of
log-likelihood ratios over all steps. Clopper and Pearson bound epsilon at the delta that is charged.
"""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import SampledGaussianEvent
from dpmodels.arrays import Floats, Whole
from dpmodels.audit.desks import measured
from dpmodels.audit.findings import Finding, Recovery
from dpmodels.audit.lower_bound import (
    ALARM,
    ALPHA,
    ceilings,
    clopper_pearson,
    deviation_is,
    epsilon_assumption_free,
    is_fine,
    noise_tests,
    parametric,
)
from dpmodels.audit.replay import Step
from dpmodels.audit.subjects import Subject
from dpmodels.audit.tap import Tap, replaced, tapped
from dpmodels.mechanisms.dp_sgd import randomness
from dpmodels.mechanisms.dp_sgd.adaptive import STEP_BITS
from dpmodels.privacy import PrivacyBudget

MORE_BATCHES, MORE_ROWS = 100, 4000
"""Batches, and rows of each, that bound the probability of sampling."""
WATCHED = 12
"""Records that are left out of a batch, one at a time."""
LEAST_MU = 1e-6
"""What a step is taken to give away where no neighbor moved it, so that the accountant has something to reckon with."""
FULL_RUNS = 50
"""Trainings with the canary, and as many without it."""


def training_findings(subject: Subject, steps: list[Step], folder: Path, full: bool) -> tuple[list[Finding], Recovery]:
    """Hold a method's training to what is charged for it."""
    from dpmodels.mechanisms.dp_sgd.training import DpSgd

    event = steps[0].event
    if not isinstance(event, SampledGaussianEvent):
        raise TypeError("a training is charged as steps of a sampled Gaussian")
    apart = list[bool]()
    with tapped() as tap, replaced(DpSgd, "_clipped_sum", _watched(DpSgd._clipped_sum, apart)):
        measured(subject.system, folder, subject.line, *subject.whole.batches)
    noise, values = _noise_of(tap)
    half = len(noise) // 2
    tests = noise_tests(noise[:half], noise[half:], values[:half])
    right = tests.hold and deviation_is(noise, steps[0].draw.scale) and is_fine(noise)
    reach = steps[0].farthest_alike
    findings = [
        Finding(
            check="training",
            holds=right,
            says=f"DP-SGD: {noise.size} noise values of {len(noise)} steps are Gaussian of the scale that is charged, "
            "independent of each other and of the sums"
            if right
            else "DP-SGD: the noise of its steps is not Gaussian of the scale that is charged, or is not independent",
        ),
        Finding(
            check="training",
            holds=all(apart) and bool(apart),
            says="DP-SGD: who is first, amid or last in a batch adds one clip norm at most, and moves nobody",
        ),
        batches_finding(tap, event),
        stream_finding(tap),
        *odd_findings(),
    ]
    recovered, fault = _recovered(event, noise, reach, subject, full)
    return [*findings, fault], recovered.model_copy(update={"reach": steps[0].share})


def batches_finding(tap: Tap, event: SampledGaussianEvent) -> Finding:
    """Hold the batches of a training to Poisson samples of the probability that is charged."""
    q, rows = event.sampling_probability, max(rows for rows, _ in tap.batches)
    batches = [batch for number, batch in tap.batches if number == rows]
    sizes = np.array([len(batch) for batch in batches], dtype=np.float64)
    often = np.bincount(np.concatenate(batches), minlength=rows).astype(np.float64)
    spread = [_dispersion(sizes, rows, q), _dispersion(often, len(batches), q)]
    total = stats.binomtest(int(sizes.sum()), rows * len(batches), q).pvalue
    holds = min(*spread, float(total)) > ALARM
    says = "are" if holds else "are not"
    return Finding(
        check="training",
        holds=holds,
        says=f"DP-SGD: its {len(batches)} batches {says} Poisson samples in which a record is with probability {q:g}",
    )


def stream_finding(tap: Tap) -> Finding:
    """Hold the randomness of a training to one stream for each step, none of which is used twice."""
    once = len(set(tap.streams)) == len(tap.streams) and len(set(tap.keys)) == len(tap.keys) > 0
    return Finding(check="training", holds=once, says="DP-SGD: each step has randomness of its own, from a fresh key")


def odd_findings() -> list[Finding]:
    """Hold batches that are empty, overflow or are cut otherwise to their rules."""
    from dpmodels.audit.canary import odd_batches

    return [Finding(check="training", holds=holds, says=f"DP-SGD: {says}") for says, holds in odd_batches().items()]


def canary_epsilon(event: SampledGaussianEvent, delta: float, runs: int, alpha: float = ALPHA) -> tuple[float, bool]:
    """Bound epsilon by trainings with a canary and without; tell whether the scores have the law that is claimed."""
    from dpmodels.audit.canary import log_ratio, scores

    without = np.stack([scores(event, canary=False)[0] for _ in range(runs)])
    projections, sampled = (
        np.stack(part) for part in zip(*(scores(event, canary=True) for _ in range(runs)), strict=True)
    )
    z, q = event.noise_multiplier, event.sampling_probability
    noise = np.concatenate([without, projections - sampled * (1 - 2.0**-19)])
    law = stats.kstest(noise.ravel() / z, "norm").pvalue > ALARM and deviation_is(noise, z)
    law &= stats.binomtest(int(sampled.sum()), sampled.size, q).pvalue > ALARM
    less, more = (log_ratio(part, event).sum(axis=1) for part in (without, projections))
    return epsilon_assumption_free(less, more, delta, alpha), bool(law)


def _watched(real: Callable[..., Whole], apart: list[bool]) -> Callable[..., Whole]:
    """Form a step's sum as ever; in the first steps see what leaving one out of the batch does to it."""

    def summed(sgd: Any, data: Any, batch: Whole) -> Whole:
        total = real(sgd, data, batch)
        for who in {0, len(batch) // 2, len(batch) - 1} if len(apart) < WATCHED and len(batch) else ():
            moved = (total - real(sgd, data, np.delete(batch, who))).astype(object)
            summand = real(sgd, data, batch[who : who + 1]).astype(object)
            apart.append(int(moved @ moved) <= 4**STEP_BITS and max(abs(moved - summand)) <= 1)
        return total

    return summed


def _noise_of(tap: Tap) -> tuple[Floats, Floats]:
    """Return the noise of all steps of DP-SGD, and what it was added to. Shapes: [steps, weights] twice."""
    draws = [each for each in tap.draws if each.kind == "sgd"]
    width = min(each.values.size for each in draws)
    values = np.stack([each.values[:width] for each in draws]).astype(np.float64)
    return np.stack([each.released[:width] for each in draws]).astype(np.float64) - values, values


def _recovered(
    event: SampledGaussianEvent, noise: Floats, reach: float, subject: Subject, full: bool
) -> tuple[Recovery, Finding]:
    """Return the epsilon that the bounds of noise and sampling lead to, and whether they are within the claim."""
    delta = subject.line.budget.delta_exact
    hits = tries = 0
    for step in range(MORE_BATCHES):
        stream = randomness.KeyStream(randomness.new_key(), step)
        hits += len(stream.poisson_batch(MORE_ROWS, event.sampling_probability))
        tries += MORE_ROWS
    ends = []
    mu, sampled = parametric(noise, reach, ALPHA / 2), clopper_pearson(hits, tries, ALPHA / 2)
    for of_noise, of_sample in ((mu.low, sampled[0]), (mu.high, sampled[1])):
        bounds = {"noise_multiplier": 1 / max(of_noise, LEAST_MU), "sampling_probability": of_sample}
        ends.append(_mu_of(event.model_copy(update=bounds), delta))
    claimed, free, most, law = _mu_of(event, delta), None, None, True
    if full:
        epsilon_bound, law = canary_epsilon(event, float(delta), FULL_RUNS)
        free, most = (_mu_at(each, delta) for each in (epsilon_bound, ceilings(FULL_RUNS, FULL_RUNS, float(delta))[1]))
        law &= canary_within(event, epsilon_bound, delta)
    alarm = parametric(noise, reach, ALARM).low * event.noise_multiplier > 1
    alarm |= clopper_pearson(hits, tries, ALARM)[0] > event.sampling_probability
    fault = Finding(
        check="training",
        holds=bool(law and not alarm),
        says=f"DP-SGD: bounds of noise and sampling recover {100 * ends[0] / claimed:.3g} % of mu"
        + ("" if law and not alarm else ", more than is charged, or a canary is not met with the law that is claimed"),
    )
    recovery = Recovery(
        step=f"{event.steps} steps of DP-SGD",
        mechanism="sampled Gaussian",
        claimed=claimed,
        parametric=(ends[0], ends[1]),
        assumption_free=free,
        ceiling=most,
        draws=len(noise) + (2 * FULL_RUNS * event.steps if full else 0),
        reach=1.0,
    )
    return recovery, fault


def canary_within(event: SampledGaussianEvent, epsilon_bound: float, delta: Decimal) -> bool:
    """Tell whether an epsilon that a canary showed is at most what is charged."""
    return epsilon_bound <= float(spent_epsilon([event], delta))


def _mu_of(event: SampledGaussianEvent, delta: Decimal) -> float:
    """Return mu of the Gaussian that costs as much as an event, at delta."""
    return _mu_at(max(float(spent_epsilon([event], delta)), 1e-3), delta)


def _mu_at(epsilon: float, delta: Decimal) -> float:
    """Return mu of the Gaussian that costs epsilon at delta; of next to nothing 0."""
    if epsilon < 1e-3:
        return 0.0
    return 1 / gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=float(delta)))


def _dispersion(counts: Floats, tries: int, q: float) -> float:
    """Return the p-value, of both sides, of counts that vary as binomial ones do."""
    statistic = float(((counts - tries * q) ** 2).sum() / (tries * q * (1 - q)))
    law = stats.chi2(len(counts))
    return 2 * min(float(law.cdf(statistic)), float(law.sf(statistic)))
