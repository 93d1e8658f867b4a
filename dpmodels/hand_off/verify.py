"""Check a hand-off by itself: for whoever receives one, without access to our store or ledger.

What can be seen: that every file is the one the manifest names and none is missing or added, that the budget is what
the events cost, that the charge and its entries hang together, and who signed the manifest. What cannot: that the
manifest is true. A signature says whose word that is; the ledger's hashes in it let an auditor check it there.

A hand-off that was made of a release file alone cannot say which account and run paid. That is no fault, since it says
so itself; ``charge`` tells whoever checks it what remains to be asked of whoever keeps the ledger.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from dpmodels.accounting.events import check_adjacency
from dpmodels.accounting.tally import MAX_KINDS, Tally
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.files import sha256_plain
from dpmodels.hand_off.manifest import (
    MANIFEST,
    Line,
    Manifest,
    ManifestError,
    parse_manifest,
    printable,
    read_bytes,
)
from dpmodels.hand_off.signature import NOBODY, SIGNATURE, check_signature
from dpmodels.keys import key_text
from dpmodels.keys import public_key as read_public_key
from dpmodels.ledger.approval import Asked
from dpmodels.ledger.store import digest
from dpmodels.privacy import Adjacency

HANDED_OVER = re.compile(r"synthetic/part-[0-9]{5}\.parquet|schema\.yaml|report\.html|report\.json|checks\.html")
LIFE = ["reserve", "draw", "seal", "commit"]
CLOSE = Decimal("1e-9")


@dataclass
class Verified:
    """What was found: faults, the number of files that are as they should be, and sentences on charge and signature."""

    faults: list[str] = field(default_factory=list)
    files: int = 0
    signature: str = NOBODY
    charge: str = ""


def verify_hand_off(folder: Path, public_key: Path | None = None) -> Verified:
    """Check every file of a hand-off, its budget and its signature; with a key, it must be signed with that one.

    Raises:
        ArtifactError: there is no manifest that could be read, or a later version wrote it.
        InvalidArgument: the key cannot be read.
    """
    wanted = key_text(read_public_key(public_key)) if public_key else ""
    content, found = read_bytes(folder), Verified()
    try:
        manifest = parse_manifest(content)
    except ManifestError as error:
        found.faults += error.faults
    else:
        _check_files(folder, manifest.artifacts, found)
        for line in manifest.lines:
            _check_proved(line, manifest.adjacency, found)
            _check_budget(line, found)
            _check_charge(line, manifest.run, found)
        _check_total(manifest, found)
        _check_approved(manifest, found)
        found.charge = _paid(manifest)
    try:
        found.signature = check_signature(folder, content, wanted)
    except (ArtifactError, OSError) as error:
        found.faults.append(str(error))
    return found


def _check_files(folder: Path, artifacts: dict[str, str], found: Verified) -> None:
    """Compare every file with the manifest; what no nacre hands over is a fault, whatever the manifest says."""
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}
    for name in sorted(present - artifacts.keys() - {MANIFEST, SIGNATURE}):
        found.faults.append(f"{printable(name)} is not in the manifest")
    for name, sha256 in artifacts.items():
        if not HANDED_OVER.fullmatch(name):
            found.faults.append(f"{printable(name)} is no file that nacre hands over")
        elif name not in present:
            found.faults.append(f"{name} is missing")
        else:
            _check_file(folder, name, sha256, found)


def _check_file(folder: Path, name: str, sha256: str, found: Verified) -> None:
    try:
        if sha256_plain(folder, folder / name) == sha256:
            found.files += 1
        else:
            found.faults.append(f"{name} was changed")
    except (ArtifactError, OSError):
        found.faults.append(f"{name} is a link, or cannot be read as a plain file")


def _check_proved(line: Line, adjacency: Adjacency, found: Verified) -> None:
    """See that the price of every event is proved under the manifest's adjacency."""
    try:
        check_adjacency(line.events, adjacency)
    except InvalidArgument as error:
        found.faults.append(str(error))


def _check_budget(line: Line, found: Verified) -> None:
    """Reckon the epsilon of a line's events again."""
    reckoned = _reckoned([line], found)
    if reckoned is None:
        return
    if line.asked.delta != line.spent.delta or abs(reckoned - line.spent.epsilon) > CLOSE:
        found.faults.append(f"the events cost epsilon={reckoned}, the manifest says {line.spent.epsilon}")
    if reckoned > Decimal(repr(line.asked.epsilon)):
        found.faults.append(f"the events cost more than was asked for: epsilon={line.asked.epsilon}")


def _check_total(manifest: Manifest, found: Verified) -> None:
    """Reckon what both lines cost together."""
    said = manifest.total_spent
    reckoned = _reckoned(manifest.lines, found) if said else None
    if said is None or reckoned is None:
        return
    if said.delta != manifest.asked.delta or abs(reckoned - said.epsilon) > CLOSE:
        found.faults.append(f"release and report cost epsilon={reckoned} together, the manifest says {said.epsilon}")


def _reckoned(lines: Sequence[Line], found: Verified) -> Decimal | None:
    """Return what the events of some lines cost together, unless they are such as nobody charges for."""
    from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon

    asked, delta = sum(line.asked.epsilon for line in lines), Decimal(repr(lines[0].asked.delta))
    try:
        tally = Tally.of(event for line in lines for event in line.events)
        # a quick bound first: the exact cost of events that are far beyond what was asked can take an hour
        if len(tally.others) <= MAX_KINDS and renyi_epsilon(tally, delta) <= 4 * asked + 1:
            return spent_epsilon(tally, delta)
    except (ArithmeticError, Unsuitable):  # beyond what a float holds, or too many parts
        pass
    found.faults.append("the events cost far more than was asked for, or are more than any plan has")
    return None


def _check_charge(line: Line, run: str | None, found: Verified) -> None:
    """See that the charge's key is that of its plan and run, and that its life is complete and in order."""
    paid, entries = line.ledger, line.ledger.entries
    if entries is None:  # left out, which the manifest says; then nothing but the release's footer names the charge
        return
    if paid.charge != digest([paid.account, line.plan_sha256, run]):
        found.faults.append("the charge is not that of this plan and run")
    places, kinds = [entry.seq for entry in entries], list(dict.fromkeys(entry.kind for entry in entries))
    whole = LIFE if line.sealed else LIFE[: len(kinds)]
    if kinds != whole or places != sorted(set(places)):
        found.faults.append("the charge's entries are not a complete life: reserve, draw, seal, commit")


def _check_approved(manifest: Manifest, found: Verified) -> None:
    """See that the officer's signature is of this run's lines."""
    signed = manifest.approved
    if signed is None or manifest.run is None or manifest.ledger.account is None:
        return
    asked = Asked(signed.ledger, manifest.ledger.account, manifest.run, signed.plans)
    if not asked.is_signed(signed) or not {line.plan_sha256 for line in manifest.lines} <= set(signed.plans):
        found.faults.append("the officer's approval is not a signature of this run and its plan")


def _paid(manifest: Manifest) -> str:
    """Say who paid, and what remains to be asked where the hand-off cannot tell."""
    paid = manifest.ledger
    if paid.account is None:
        return (
            f"{paid.charge}, as the release's footer has it; this hand-off does not say which account paid. "
            "Ask whoever keeps the ledger: `nacre ledger entries` there has the charge"
        )
    return f"{paid.charge} of account {printable(paid.account)}, run {printable(manifest.run or '')}"
