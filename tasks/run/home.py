"""Check that a home's ledger is the one that the home knows, and still has all of its entries.

A ledger that was lost, or restored from a backup, would let everything be spent again. So a home keeps the newest entry
it has seen, which the ledger must still have, and each release of its runs must be sealed there. Which releases these
are is in the runs' control folders: whoever writes the released zone can neither hide one nor invent one. A copy of a
home would spend the cap once more; it is noticed by the ledger file's number on its disk, which no copy shares. What
cannot be noticed from inside, an anchor elsewhere shows (run/anchors.py): a home that was restored in place with all
that it knew, and a PostgreSQL server that was. A copy of a whole disk that goes on beside the first is noticed by
whichever is anchored second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from dpmodels.artifact import make_folder, write_text
from dpmodels.errors import ArtifactError, LedgerError
from dpmodels.frozen import Frozen
from dpmodels.ledger.database import url_of
from dpmodels.ledger.ledger import Ledger
from tasks.run.anchors import check_anchored
from tasks.run.charges import sealed_releases
from tasks.run.store import MADE, Run

PAID_FOR, MOST_NAMED = ("sanitize", "score"), 20
RESTORE = "Put the newest copy back; what it lacks was spent all the same"


@dataclass(frozen=True)
class HomeFault:
    """What a home has seen and its ledger lacks; ``movable`` if `nacre ledger moved` may declare it to be in order."""

    message: str
    movable: bool = False

    def __str__(self) -> str:
        return self.message


class Seen(Frozen):
    """What a home knows of its ledger.

    Attributes:
        ledger: its URL, empty for the home's own file.
        seq, hash: of the newest entry that the home has seen.
        file: the number of the ledger's file on its disk; 0 where the ledger is a server's.
        moved: why the operator said that it is another file now.
    """

    ledger: str = ""
    seq: Annotated[int, Field(ge=0, lt=2**63)] = 0
    hash: str = ""
    file: int = 0
    moved: tuple[str, ...] = ()


def open_ledger(home: Path, place: str | Path) -> Ledger:
    """Open the ledger of a home; a ledger file that the home has seen and that is gone is not made again.

    Raises:
        LedgerError: the file is gone, or the home charges another ledger.
    """
    url, name = url_of(str(place)), "" if isinstance(place, Path) else place
    is_absent = url.get_backend_name() == "sqlite" and not Path(url.database or "").exists()
    if is_absent and (seen := _seen(home)):  # before a file is made there
        if seen.ledger != name:
            raise LedgerError(f"{_other_ledger(home, seen, name)}; nothing was charged")
        if seen.seq:
            raise LedgerError(
                f"the ledger {place} was lost: this home has seen its entries. {RESTORE}; nothing was charged"
            )
    return Ledger(place)


def ledger_of(run: Run) -> Ledger:
    """Open the ledger that a run is charged to."""
    return open_ledger(run.home, run.ledger)


def check_home(home: Path, url: str, ledger: Ledger) -> None:
    """Refuse a ledger that lacks entries which this home has seen, then remember its newest entry.

    Raises:
        LedgerError: the ledger was lost, restored or replaced, or the home was copied.
    """
    if fault := next(home_faults(home, url, ledger), None):
        raise LedgerError(f"{fault}; nothing was charged")
    check_anchored(ledger)
    remember(home, url, ledger)


def home_faults(home: Path, url: str, ledger: Ledger) -> Iterator[HomeFault]:
    """Name what this home has seen and its ledger lacks; ``url`` is the ledger's, empty for the home's own file."""
    try:
        seen = _seen(home)
    except LedgerError as error:
        seen = None
        yield HomeFault(str(error), movable=True)
    if seen and seen.ledger != url:
        yield HomeFault(_other_ledger(home, seen, url), movable=True)
    if seen and _lacks(ledger, seen):
        yield HomeFault(
            f"the ledger lacks entry {seen.seq}, which this home has seen: it was lost, replaced, or restored from "
            f"a backup. {RESTORE}"
        )
    elif seen and seen.file != _number(home) and not ledger.is_frozen:  # what cannot be written spends nothing
        yield HomeFault(
            "the ledger is another file than the one this home knows: it was copied or restored, and two copies would "
            "each spend the whole cap. If no other copy is used any more, say so: `nacre ledger moved --reason TEXT`",
            movable=True,
        )
    yield from _release_faults(home, ledger)


def _other_ledger(home: Path, seen: Seen, url: str) -> str:
    known = seen.ledger or f"{home / 'ledger.sqlite'}"
    return f"this home charges {known}, and was given {url or 'none'} (--ledger, NACRE_LEDGER)"


def strange_releases(home: Path) -> list[str]:
    """Name what lies where releases do and is of no run of this home; anybody may have put it there."""
    strange = [
        path
        for stage in PAID_FOR
        for path in home.glob(f"released/*/{MADE[stage]}")
        if not (home / "control" / path.parent.name / "settings.json").is_file()
    ]
    named = [
        f"{str(path.relative_to(home))!r} is of no run of this home: move it out, or see `nacre adopt --help`"
        for path in strange[:MOST_NAMED]
    ]
    more = len(strange) - MOST_NAMED
    return [*sorted(named), *([f"{more} more files are of no run of this home"] if more > 0 else [])]


def ledger_faults(home: Path, url: str, ledger: Ledger) -> list[str]:
    """Name everything that is wrong with a home's ledger; what a damaged file says of releases is not looked at."""
    if ledger.damage:
        return ledger.verify()
    return [*ledger.verify(sealed_releases(ledger, home)), *map(str, home_faults(home, url, ledger))]


def remember(home: Path, url: str, ledger: Ledger, reason: str = "") -> None:
    """Keep the ledger's newest entry and its file's number; ``reason`` says why the file is another one now.

    Raises:
        LedgerError: the ledger lacks the entry that was remembered before, which must not be forgotten.
    """
    head = ledger.head()
    try:
        before = _seen(home) or Seen()
    except LedgerError:
        if not reason:
            raise
        before = Seen()  # the operator answers for what can no longer be read
    if _lacks(ledger, before):
        raise LedgerError(f"the ledger lacks entry {before.seq}, which this home has seen. {RESTORE}")
    moved = (*before.moved, *([reason] if reason else []))
    make_folder(_mark(home).parent)
    seq, hash_ = (head.seq, head.hash) if head else (0, "")
    seen = Seen(ledger=url, seq=seq, hash=hash_, file=_number(home), moved=moved)
    # for its owner alone: the pool without data mounts this zone, and has no use for it
    write_text(_mark(home), seen.model_dump_json(indent=1), 0o600)


def _lacks(ledger: Ledger, seen: Seen) -> bool:
    entry = ledger.entry(seen.seq) if seen.seq else None
    return bool(seen.seq) and (entry is None or entry.hash != seen.hash)


def _mark(home: Path) -> Path:
    return home / "control" / "ledger.json"


def _seen(home: Path) -> Seen | None:
    """Return what a home knows of its ledger, or None for a home that has none yet.

    Raises:
        LedgerError: the file that says so is empty or damaged.
    """
    try:
        return Seen.model_validate_json(_mark(home).read_bytes()) if _mark(home).exists() else None
    except (OSError, ValidationError):
        raise LedgerError(
            f"{_mark(home)} is empty or damaged, so this home no longer knows the newest entry of its ledger. See that "
            "it is the newest ledger (`nacre ledger verify`), and say so: `nacre ledger moved --reason TEXT`"
        ) from None


def _number(home: Path) -> int:
    """Return the number of the home's ledger file on its disk; 0 where the ledger is a server's."""
    file = home / "ledger.sqlite"
    return file.stat().st_ino if file.exists() else 0


def _release_faults(home: Path, ledger: Ledger) -> Iterator[HomeFault]:
    """Name the releases of a home's runs that the ledger never sealed, but those that came as files."""
    records = [(path, stage) for stage in PAID_FOR for path in sorted(home.glob(f"control/*/stages/{stage}.json"))]
    sealed = ledger.sealed() if records else set[str]()
    for path, stage in records:
        run = Run(home=home, name=path.parents[1].name)
        try:
            if run.recorded(stage) in sealed or run.settings.is_paid_elsewhere:
                continue
        except ArtifactError as error:
            yield HomeFault(str(error))
        else:
            yield HomeFault(
                f"{MADE[stage]} of run {run.name} was released, and the ledger has no commit of it: it was lost, "
                f"replaced, or restored from a backup. {RESTORE}"
            )
