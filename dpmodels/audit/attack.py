"""Attacks in one run, by the released sums and by the synthetic rows alone: alarms, and never a measure of privacy.

Of many candidates each is in the data with probability one half; whoever sees the release guesses which. The number of
right guesses bounds epsilon from below (``lower_bound.one_run``). Candidates hide each other, and with synthetic rows
the adversary sees little of the release, so the bound stays far below the charge: often it is 0. Where it is above the
charge something is badly broken; how badly says the ceiling, which is what as many guesses that are all right would
show, and is below most charges. At the delta of a plan it would be 0, for each candidate costs the bound that delta.
"""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.arrays import Floats
from dpmodels.audit.data import data_of
from dpmodels.audit.desks import measured
from dpmodels.audit.findings import Finding
from dpmodels.audit.lower_bound import ALARM, one_run
from dpmodels.audit.subjects import Subject
from dpmodels.errors import NacreError
from dpmodels.methods.quick import quick
from dpmodels.releases.system import Craft

CANDIDATES = 200
DELTA = Decimal("1e-9")
"""At which epsilon is bounded, and what was charged is reckoned again."""
GUESSED = 0.2
"""Share of the candidates of the highest, and of the lowest scores, that are guessed."""


def attack_findings(subject: Subject, folder: Path, full: bool) -> Iterator[Finding]:
    """Attack a method of the registry by its sums, and in a full audit by synthetic rows."""
    candidates = data_of(subject.name).make_records(CANDIDATES, seed=11)
    member = np.random.default_rng(5).random(CANDIDATES) < 0.5
    release, _ = measured(subject.system, folder, subject.line, candidates.take(np.flatnonzero(member)))
    attacks = {}
    if sums := [one for one in quick(subject.name).sums(release.value) if hasattr(one.embedding, "lattice_sum")]:
        attacks["its released sums"] = _by_sums(sums, candidates)
    if full:
        try:
            model = quick(subject.name).fit(release, Craft(checkpoint=folder / "checkpoint"))
        except NacreError:  # with few records some methods have nothing to fit
            return
        attacks["its synthetic rows"] = _by_rows(next(iter(model.sample(1000, seed=0))), candidates)
    for name, scores in attacks.items():
        bound, most = epsilon_of(scores, member, float(DELTA))
        limit = float(spent_epsilon([subject.line.event], DELTA))
        says = f"one run with {CANDIDATES} candidates, by {name}: epsilon at delta={DELTA} is at least {bound:.3g} of "
        says += f"{limit:.3g} charged; had all guesses been right, it would be at least {most:.3g}"
        yield Finding(check="attack", holds=bound <= limit, says=says)


def epsilon_of(scores: Floats, member: NDArray[np.bool_], delta: float) -> tuple[float, float]:
    """Bound epsilon by guesses about the candidates of the highest and of the lowest scores.

    The second is the ceiling: what the same bound says of as many guesses that are all right.
    """
    order, count = np.argsort(scores), int(GUESSED * len(scores))
    right = int((~member[order[:count]]).sum() + member[order[-count:]].sum())
    lower_bound, most = (one_run(len(scores), 2 * count, hits, delta, ALARM) for hits in (right, 2 * count))
    return lower_bound, most


def _by_sums(sums: list[Any], candidates: Any) -> Floats:
    """Score candidates by how far they lie along the released sums, less what is common to all of them."""
    total = np.zeros(len(candidates))
    for one in sums:
        rows = [one.embedding.lattice_sum(candidates.take([row])).numpy() for row in range(len(candidates))]
        features = np.stack(rows).astype(np.float64) / one.noise_stddev
        centred = features - features.mean(axis=0)
        rest = one.vector / one.noise_stddev - len(candidates) / 2 * features.mean(axis=0)
        total += centred @ rest
    return total


def _by_rows(synthetic: Any, candidates: Any) -> Floats:
    """Score candidates by how near the nearest synthetic row is."""
    rows, candidate_rows = (_numbers(each) for each in (synthetic, candidates))
    return -np.array([float(((rows - one) ** 2).sum(axis=1).min()) for one in candidate_rows])


def _numbers(records: Any) -> Floats:
    """Lay records out as numbers of about one size."""
    if not hasattr(records, "states"):
        return np.concatenate([records.vectors / 2.0**15, records.labels[:, None]], axis=1)
    parts = [records.states.astype(np.float64), records.values]
    if records.pixels is not None:
        parts.append(records.pixels / 255.0)
    return np.concatenate(parts, axis=1)
