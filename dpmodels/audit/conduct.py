"""How a measurement behaves: killed again and again, given its rows otherwise, drawn twice, and beyond its cap."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import numpy as np

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.arrays import Floats
from dpmodels.audit.desks import ACCOUNT, desk_in, measured
from dpmodels.audit.findings import Finding
from dpmodels.audit.left import LEDGER
from dpmodels.audit.lower_bound import ALARM, correlation
from dpmodels.audit.replay import KEYS, released_bytes
from dpmodels.audit.subjects import Subject
from dpmodels.audit.tap import ALL_KINDS, Draw, Killed, Tap, tapped
from dpmodels.errors import BudgetExhausted, NacreError
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import Sensitive

MOST_KILLS = 100
LEAST_CHOICES = 4
"""Parts for each of which something is chosen; fewer choices may be alike by chance."""
LARGE = 2.0**16
"""A scale of noise at which a whole number is hardly ever without noise."""
NOISY = ("gaussian", "sgd", "k-norm")
"""Mechanisms whose noise is what they release, less what it was added to."""
LIFE = ["open", "reserve", "seal", "commit"]


def resumed(tap: Tap, subject: Subject, folder: Path) -> Iterator[Finding]:
    """Kill the n-th attempt before its n-th draw; in the end there is one charge, and one draw of every step.

    Told what the attempts drew, a measurement in one go must write the same bytes.
    """
    batches, ended = subject.whole.batches, False
    for attempt in range(MOST_KILLS):
        tap.left = attempt
        try:
            measured(subject.system, folder / "run", subject.line, *batches)
            ended = True
            break
        except Killed:
            if (folder / "run" / "public" / "r.parquet").exists():
                break
    tap.left, tap.keys_left = -1, list(dict.fromkeys(key for key, _ in tap.streams))
    draws = tap.restart()
    trained = any(each.kind == "sgd" for each in draws)
    once = [entry.kind for entry in Ledger(folder / "run" / "ledger.sqlite").entries() if entry.kind != "draw"] == LIFE
    says = "a measurement that is killed again and again is one charge"
    yield Finding(check="resume", holds=ended and once, says=says)
    tap.copy(draws, *(kind for kind in ALL_KINDS if kind != "sgd"))
    measured(subject.system, folder / "at once", subject.line, *batches)
    again, left = tap.restart(), sum(map(len, tap.copies.values()))
    tap.copies = {}
    same = released_bytes(folder / "at once") == released_bytes(folder / "run")
    drawn_once = not left and (trained or len(again) == len(draws))
    says = "a measurement that is killed and goes on is the one that it would have been; no step is drawn twice"
    yield Finding(check="resume", holds=same and drawn_once, says=says)
    measured(subject.system, folder / "run", subject.line, *batches)
    says = "asked for again, a measurement draws nothing and charges nothing"
    kinds = [entry.kind for entry in Ledger(folder / "run" / "ledger.sqlite").entries() if entry.kind != "draw"]
    yield Finding(check="resume", holds=not tap.restart() and kinds == LIFE, says=says)


def ordered(tap: Tap, subject: Subject, folder: Path) -> Iterator[Finding]:
    """Cut the rows into other batches and, where no batch of DP-SGD is drawn from them, put them in another order."""
    (rows,) = subject.whole.batches
    tap.silent, row_numbers = True, np.arange(len(rows))
    moved = row_numbers if "sgd" in subject.line.measurement else np.random.default_rng(1).permutation(row_numbers)
    for name, parts in (("whole", [row_numbers]), ("cut", np.array_split(moved, [0, 1, 30, 30, len(rows) - 1]))):
        tap.keys_left = list(KEYS)
        measured(subject.system, folder / name, subject.line, *(rows.take(part) for part in parts))
    tap.silent = False
    tap.restart()
    same = released_bytes(folder / "whole") == released_bytes(folder / "cut")
    yield Finding(check="order", holds=same, says="the same rows, cut and ordered otherwise, give the same bits")


def drawn_twice(tap: Tap, subject: Subject, folder: Path) -> Iterator[Finding]:
    """Measure one plan twice; whatever is public is the same, its seeds too, so no two draws of noise may be."""
    twice, keys = list[list[Draw]](), list[bytes]()
    for name in ("one", "two"):
        measured(subject.system, folder / name, subject.line, *subject.whole.batches)
        keys += tap.keys
        twice.append(tap.restart())
    fresh, shared = len(set(keys)) == len(keys), share_noise([each for draws in twice for each in draws])
    says = "two measurements of one plan share no key, and no two of their draws any noise"
    yield Finding(check="seeds", holds=fresh and not shared and not choose_alike(*twice), says=says)
    still = any(lacks_noise(*pair) for pair in zip(*twice, strict=False))
    says = "some coordinates have no noise" if still else "no coordinate is left without noise"
    yield Finding(check="noise", holds=not still, says=f"{says} in two measurements")


def noise_of(draw: Draw) -> Floats:
    """Return the noise of a draw, in units of its scale; of a choice nothing."""
    noise: Floats = (np.asarray(draw.released) - draw.values).ravel() / draw.scale
    return noise if draw.kind in NOISY else noise[:0]


def share_noise(draws: list[Draw]) -> bool:
    """Tell whether two draws go together as no two do by chance, whatever their sizes and scales."""
    pairs = list(combinations(map(noise_of, (each for each in draws if each.kind in NOISY)), 2))
    return any(correlation(one[: len(other)], other[: len(one)]) * len(pairs) < ALARM for one, other in pairs)


def choose_alike(one: list[Draw], other: list[Draw]) -> bool:
    """Tell whether the same was chosen for each of several parts twice."""
    first = [each[0].released for each in (one, other) if each[0].kind == "choices"]
    return bool(first) and len(first[0]) >= LEAST_CHOICES and np.array_equal(*first)


def lacks_noise(one: Draw, other: Draw) -> bool:
    """Tell whether a coordinate has no noise in either of two draws, which chance does not do at a large scale."""
    if one.kind not in NOISY or one.scale < LARGE or one.values.shape != other.values.shape:
        return False
    return bool(((noise_of(one) == 0) & (noise_of(other) == 0)).any())


def capped(tap: Tap, subject: Subject, folder: Path) -> Iterator[Finding]:
    """Measure once: the ledger has spent what the plan costs, and refuses the same under another name."""
    line = subject.line
    measured(subject.system, folder, line, *subject.whole.batches)
    ledger = Ledger(folder / LEDGER)
    right = ledger.balance(ACCOUNT).spent_epsilon == spent_epsilon([line.event], line.budget.delta_exact)
    yield Finding(check="charge", holds=right, says="the ledger has spent what the plan's events cost")
    desk, before = desk_in(folder, line, "again", ledger), len(tap.draws)
    with suppress(BudgetExhausted):
        subject.system.measure(Sensitive(list(subject.whole.batches)), line, desk)
    refused = len(tap.draws) == before and desk.held() is None
    yield Finding(check="charge", holds=refused, says="the cap refuses a second measurement before anything is drawn")


CHECKED = {resumed: "resume", ordered: "order", drawn_twice: "seeds", capped: "charge"}


def conduct_findings(subject: Subject, folder: Path) -> list[Finding]:
    """Hold the measurement of a subject to all of this."""
    findings = list[Finding]()
    for name, check in (("killed", resumed), ("order", ordered), ("twice", drawn_twice), ("cap", capped)):
        if check is ordered and not hasattr(subject.whole.batches[0], "take"):
            continue  # letters and clients are not read in pieces
        (folder / name).mkdir(parents=True)
        try:
            with tapped() as tap:
                findings += check(tap, subject, folder / name)
        except NacreError as fault:
            findings.append(Finding(check=CHECKED[check], holds=False, says=f"a measurement ends in an error: {fault}"))
    return findings
