"""What a home knows about its ledger's charges: where their releases lie, and how to finish unfinished charges."""

from pathlib import Path

from dpmodels.errors import ArtifactError
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Reservation
from dpmodels.releases.plan import REPORT

ARTIFACTS = {REPORT: "scores.parquet"}  # the artifact of any other line is a release


ADVICE = {
    "reserved": "nacre resume {run}, or nacre ledger void {key} if it is not wanted",
    "drawing": "nacre resume {run}: the draw was not complete and nobody saw it",
    "committed": "nothing: the release is in its place",
}


def recover_all(ledger: Ledger, home: Path) -> list[dict[str, str]]:
    """Finish every charge that needs no draw, and say of each open charge what its state is and what it needs.

    The indices of a damaged file are made anew first.
    """
    ledger.mend()
    rows = []
    for before in _open_charges(ledger):
        run = before.charge.run
        staged, released = (_place(home / zone, before) for zone in ("sensitive", "released"))
        try:
            after = ledger.recover(before.key, staged=staged, released=released)
            advice = ADVICE[after.state].format(run=run, key=before.key[:12])
        except ArtifactError as error:
            after, advice = before, str(error)
        rows.append({"charge": before.key, "run": run, "was": before.state, "is": after.state, "next": advice})
    return rows


def sealed_releases(ledger: Ledger, home: Path) -> dict[str, Path]:
    """Return where each committed charge's release should lie, for the releases this home still keeps."""
    keys = {entry.charge for entry in ledger.entries() if entry.kind == "commit"}
    reservations = {key: ledger.find(key) for key in keys}
    paths = {key: _place(home / "released", one) for key, one in reservations.items() if one}
    return {key: path for key, path in paths.items() if path.parent.exists()}


def _place(zone: Path, reservation: Reservation) -> Path:
    """Return where the artifact of a charge lies in a zone."""
    return zone / reservation.charge.run / ARTIFACTS.get(reservation.charge.mechanism, "release.parquet")


def _open_charges(ledger: Ledger) -> list[Reservation]:
    """Return the charges that are neither committed nor voided, oldest first."""
    kinds = {entry.charge: entry.kind for entry in ledger.entries() if entry.kind not in ("open", "cap")}
    reservations = [ledger.find(key) for key, kind in kinds.items() if kind not in ("commit", "void")]
    return [one for one in reservations if one is not None]
