"""How a measurement behaves: killed again and again, asked for twice, given its rows otherwise, and drawn twice."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpmodels.errors import NacreError
from dpmodels.evaluation.audit.desks import measured
from dpmodels.evaluation.audit.findings import Finding
from dpmodels.evaluation.audit.replay import KEYS, released_bytes
from dpmodels.evaluation.audit.subjects import Subject
from dpmodels.evaluation.audit.tap import ALL_KINDS, Killed, Tap, tapped
from dpmodels.ledger.ledger import Ledger

MOST_KILLS = 100
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
    tap.left, tap.given = -1, list(dict.fromkeys(key for key, _ in tap.streams))
    drawn = tap.restart()
    trained = any(each.kind == "sgd" for each in drawn)
    once = [entry.kind for entry in Ledger(folder / "run" / "ledger.sqlite").entries() if entry.kind != "draw"] == LIFE
    says = "a measurement that is killed again and again is one charge"
    yield Finding(check="resume", holds=ended and once, says=says)
    tap.copy(drawn, *(kind for kind in ALL_KINDS if kind != "sgd"))
    measured(subject.system, folder / "at once", subject.line, *batches)
    again, left = tap.restart(), sum(map(len, tap.copies.values()))
    tap.copies = {}
    same = released_bytes(folder / "at once") == released_bytes(folder / "run")
    drawn_once = not left and (trained or len(again) == len(drawn))
    says = "a measurement that is killed and goes on is the one that it would have been; no step is drawn twice"
    yield Finding(check="resume", holds=same and drawn_once, says=says)
    measured(subject.system, folder / "run", subject.line, *batches)
    says = "asked for again, a measurement draws nothing and charges nothing"
    kinds = [entry.kind for entry in Ledger(folder / "run" / "ledger.sqlite").entries() if entry.kind != "draw"]
    yield Finding(check="resume", holds=not tap.restart() and kinds == LIFE, says=says)


def ordered(tap: Tap, subject: Subject, folder: Path) -> Iterator[Finding]:
    """Cut the rows into other batches and, where no batch of DP-SGD is drawn from them, put them in another order."""
    (rows,) = subject.whole.batches
    tap.silent, places = True, np.arange(len(rows))
    moved = places if "sgd" in subject.line.measurement else np.random.default_rng(1).permutation(places)
    for name, parts in (("whole", [places]), ("cut", np.array_split(moved, [0, 1, 30, 30, len(rows) - 1]))):
        tap.given = list(KEYS)
        measured(subject.system, folder / name, subject.line, *(rows.take(part) for part in parts))
    tap.silent = False
    tap.restart()
    same = released_bytes(folder / "whole") == released_bytes(folder / "cut")
    yield Finding(check="order", holds=same, says="the same rows, cut and ordered otherwise, give the same bits")


def drawn_twice(tap: Tap, subject: Subject, folder: Path) -> Iterator[Finding]:
    """Measure one plan twice; whatever is public is the same, its seeds too, so no noise may be."""
    twice = []
    for name in ("one", "two"):
        tap.restart()
        measured(subject.system, folder / name, subject.line, *subject.whole.batches)
        first = tap.draws[0]
        twice.append((first.kind, np.atleast_1d(first.released).ravel(), list(tap.keys)))
    (kind, one, keys), (_, other, other_keys) = twice
    if kind == "exponential" or (kind == "choices" and len(one) < 4):
        return  # two choices may be alike
    apart = one.shape != other.shape or bool((one != other).any())
    fresh = not set(keys) & set(other_keys)
    yield Finding(check="seeds", holds=apart and fresh, says="two measurements of one plan share no noise and no key")


CHECKED = {resumed: "resume", ordered: "order", drawn_twice: "seeds"}


def conduct_findings(subject: Subject, folder: Path) -> list[Finding]:
    """Hold the measurement of a subject to all of this."""
    found = list[Finding]()
    for name, check in (("killed", resumed), ("order", ordered), ("twice", drawn_twice)):
        if check is ordered and not hasattr(subject.whole.batches[0], "take"):
            continue  # letters and clients are not read in pieces
        (folder / name).mkdir(parents=True)
        try:
            with tapped() as tap:
                found += check(tap, subject, folder / name)
        except NacreError as fault:
            found.append(Finding(check=CHECKED[check], holds=False, says=f"a measurement ends in an error: {fault}"))
    return found
