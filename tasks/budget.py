"""What a home knows about its ledger: where the releases of its charges lie, whether the ledger still has them all.

A ledger that was lost, or restored from a backup, would let everything be spent again. So a home keeps the newest entry
it has seen, which the ledger must still have, and each of its releases must be committed there. A copy of a home would
spend the cap once more: it is noticed by the ledger file's number on its disk, which no copy shares. What cannot be
noticed from inside: a copy of the whole disk, and a PostgreSQL server that was copied with all its entries.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.accounting.ledger import Ledger
from dpmodels.accounting.records import Reservation
from dpmodels.errors import ArtifactError, LedgerError
from dpmodels.evaluation.charged import METHOD
from dpmodels.files import open_plain
from dpmodels.releases.release import ENTRY_KEY
from tasks.store import write_text

ARTIFACTS = {METHOD: "scores.parquet"}  # every other mechanism's is a release


ADVICE = {
    "reserved": "nacre resume {run}, or nacre ledger void {key} if it is not wanted",
    "drawing": "nacre resume {run}: the draw was not complete and nobody saw it",
    "committed": "nothing: the release is in its place",
}


def recover_all(ledger: Ledger, home: Path) -> list[dict[str, str]]:
    """Finish every charge that needs no draw, and say of each open one where it stands and what it needs."""
    found = []
    for before in _open_charges(ledger):
        run = before.charge.run
        staged, released = (_place(home / zone, before) for zone in ("sensitive", "released"))
        try:
            after = ledger.recover(before.key, staged=staged, released=released)
            advice = ADVICE[after.state].format(run=run, key=before.key[:12])
        except ArtifactError as error:
            after, advice = before, str(error)
        found.append({"charge": before.key, "run": run, "was": before.state, "is": after.state, "next": advice})
    return found


def sealed_releases(ledger: Ledger, home: Path) -> dict[str, Path]:
    """Return where each committed charge's release should lie, for the releases this home still keeps."""
    keys = {entry.charge for entry in ledger.entries() if entry.kind == "commit"}
    held = {key: ledger.find(key) for key in keys}
    paths = {key: _place(home / "released", one) for key, one in held.items() if one}
    return {key: path for key, path in paths.items() if path.parent.exists()}


def check_home(home: Path, ledger: Ledger) -> None:
    """Refuse a ledger that lacks what this home has seen of it, then remember its newest entry.

    Raises:
        LedgerError: it was lost, restored or replaced, or the home was copied.
    """
    if fault := next(home_faults(home, ledger), None):
        raise LedgerError(f"{fault}; nothing was charged")
    remember(home, ledger)


def home_faults(home: Path, ledger: Ledger) -> Iterator[str]:
    """Name what this home has seen and its ledger lacks."""
    seen = json.loads(_mark(home).read_text(encoding="utf-8")) if _mark(home).exists() else {}
    entry = ledger.entry(seen["seq"]) if seen.get("seq") else None
    if seen.get("seq") and (entry is None or entry.hash != seen["hash"]):
        yield (
            f"the ledger lacks entry {seen['seq']}, which this home has seen: it was lost, replaced, or restored from "
            "a backup. Put the newest copy back; what it lacks was spent all the same"
        )
    elif seen and seen["file"] != _number(home):
        yield (
            "the ledger is another file than the one this home knows: it was copied or restored, and two copies would "
            "each spend the whole cap. If no other copy is used any more, say so: `nacre ledger moved --reason TEXT`"
        )
    for path in sorted(home.glob("released/*/*.parquet")):
        if path.name in ("release.parquet", *ARTIFACTS.values()):
            yield from _release_faults(home, path, ledger)


def remember(home: Path, ledger: Ledger, reason: str = "") -> None:
    """Keep the ledger's newest entry, and which file it is in; a reason says why the file is another one now."""
    head, mark = ledger.head(), _mark(home)
    before = json.loads(mark.read_text(encoding="utf-8")) if mark.exists() else {}
    moved = [*before.get("moved", []), *([reason] if reason else [])]
    mark.parent.mkdir(parents=True, exist_ok=True)
    newest = {"seq": head.seq if head else 0, "hash": head.hash if head else ""}
    write_text(mark, json.dumps({**newest, "file": _number(home), "moved": moved}, indent=1))


def _mark(home: Path) -> Path:
    return home / "control" / "ledger.json"


def _number(home: Path) -> int:
    """Return the number of the home's ledger file on its disk; 0 where the ledger is a server's."""
    file = home / "ledger.sqlite"
    return file.stat().st_ino if file.exists() else 0


def _release_faults(home: Path, path: Path, ledger: Ledger) -> Iterator[str]:
    """Name a release that the ledger never committed."""
    place = path.relative_to(home)
    try:
        with open_plain(home / "released", path) as file:
            key = ((pq.read_schema(file).metadata or {})[ENTRY_KEY]).decode()
    except (pa.ArrowException, KeyError, ArtifactError):
        yield f"{place} is no release, though it lies where one should; move it out of the home"
        return
    held = ledger.find(key)
    if held is None or held.state not in ("sealed", "committed"):
        yield (
            f"{place} was released, and the ledger has no commit of it: it was lost, replaced, or restored from a "
            "backup. Put the newest copy back; what it lacks was spent all the same"
        )


def _place(zone: Path, held: Reservation) -> Path:
    """Return where the artifact of a charge lies in a zone."""
    return zone / held.charge.run / ARTIFACTS.get(held.charge.mechanism, "release.parquet")


def _open_charges(ledger: Ledger) -> list[Reservation]:
    """Return the charges that are neither committed nor voided, oldest first."""
    kinds = {entry.charge: entry.kind for entry in ledger.entries() if entry.kind not in ("open", "cap")}
    held = [ledger.find(key) for key, kind in kinds.items() if kind not in ("commit", "void")]
    return [one for one in held if one is not None]
