"""The one writer of hand-offs: manifest, card, pages, digests, signature, and the folder, whole or not at all.

A run's stages and Flower's server make a manifest with ``manifest_of`` of what ``payments`` says, and hand it to
``hand_over`` with what writes their product. They differ in where they learn who paid, and in what they make.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpmodels.artifact import aside, make_folder, replace_folder, sha256_of
from dpmodels.hand_off.card import describe
from dpmodels.hand_off.manifest import (
    APPROVED_CLIENTS,
    CARD,
    CONTRACT,
    DECLARED,
    LAID_OUT,
    LATER_WORDS,
    MANIFEST,
    OF_TABLE,
    PAGES,
    Manifest,
)
from dpmodels.hand_off.odcs import has_contract, render_contract
from dpmodels.hand_off.pages import REPORT, render_pages
from dpmodels.hand_off.signature import sign_manifest
from dpmodels.ledger.approval import Approval
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.records import Balance, Standing
from dpmodels.pages.glance import weakest
from dpmodels.pages.page import LAYOUT
from dpmodels.releases.contract import Contract
from dpmodels.releases.plan import Line

DAY = 86_400
TO_COME = {"layout": LAYOUT, "sha256": 64 * "0"}
"""The layout of the pages, and what stands for the manifest's digest of itself until it is written."""
Digests = Mapping[str, str]
"""The SHA-256 of files by their paths in the hand-off."""


@dataclass(frozen=True)
class HandOff:
    """What is said of a hand-off, before its files are known.

    Attributes:
        contract: what is public of the whole data set.
        accounts: where those stood that paid, each client's in their order; none where no ledger is at hand.
        above: the accounts above the paying one, as they are now.
    """

    manifest: Manifest
    contract: Contract
    accounts: Sequence[Standing] = ()
    above: Sequence[Balance] = ()


def manifest_of(line: Line, contract: Contract, statement: Declaration, **fields: Any) -> Manifest:
    """Say what was asked for, what was spent, what came of it, and which ledger entries paid; the files come later.

    Args:
        line: of the plan, or that of any client; it tells the method, and whom its noise hides.
        contract: what is public of the whole data set.
        statement: what the operator says of the hand-off.
        fields: the other fields, as ``payments`` states them.
    """
    by_client = [client.approved for client in fields.get("clients", ()) if client.approved]
    approvals = [*by_client, *([Approval.model_validate(fields["approved"])] if fields.get("approved") else [])]
    of_kind = OF_TABLE if has_contract(contract) else APPROVED_CLIENTS if by_client else LAID_OUT
    declared = DECLARED if any(one.declared for one in approvals) else 0
    oldest = max(of_kind, declared, *(LATER_WORDS.get(word, 0) for word in statement.said))
    content = {
        "format": oldest,
        "nacre_version": version("nacre"),
        "data_set": contract.name,
        "schema_sha256": contract.hash,
        "method": line.method,
        "adjacency": line.budget.adjacency,
        "unit": str(line.budget.unit),
        **({"declared": statement.said} if statement.said else {}),
    }
    artifacts = dict.fromkeys((CARD, *PAGES, *((CONTRACT,) if has_contract(contract) else ())), 64 * "0")
    return Manifest.model_validate({**content, **fields, **TO_COME, "artifacts": artifacts})


def hand_over(
    out: Path,
    hand_off: HandOff,
    write: Callable[[Path], Digests | None],
    *,
    owner: str = "",
    key: Path | None = None,
    passphrase: str = "",
    deliver: Callable[[Path, Digests], None] = lambda folder, artifacts: None,
) -> None:
    """Write a hand-off into a new folder, which appears whole or not at all.

    Args:
        out: the folder.
        hand_off: what is said of it.
        write: writes product and report into a folder, and returns the digests of files that lie elsewhere already.
        owner: the run that writes, by which what it leaves is known if it is cut off.
        key: the private key that signs the manifest, with its passphrase.
        passphrase: see ``key``.
        deliver: is given the complete folder and the digests of all files, before the folder is in its place.
    """
    make_folder(out.parent)
    with aside(out, owner) as part:
        part.mkdir()
        elsewhere = write(part) or {}
        (part / "schema.yaml").write_text(hand_off.contract.to_yaml(), encoding="utf-8")
        if has_contract(hand_off.contract):
            (part / CONTRACT).write_text(render_contract(hand_off.manifest, hand_off.contract), encoding="utf-8")
        _lay_out(part, hand_off)
        artifacts = {**_digests(part), **elsewhere}
        whole = hand_off.manifest.model_copy(update={"artifacts": artifacts})
        (part / MANIFEST).write_text(whole.to_json(), encoding="utf-8")
        if key is not None:
            sign_manifest(part, key, passphrase)
        deliver(part, artifacts)
        blur_times(part)
        replace_folder(part, out)


def blur_times(folder: Path) -> None:
    """Set the times of all files to the beginning of the day, because how long a run took grows with the data."""
    day = time.time() // DAY * DAY
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (day, day))


def _lay_out(folder: Path, hand_off: HandOff) -> None:
    """Write the facts of a hand-off that has its report, and the pages.

    The report's page is made again as well: an earlier version may have begun the run, in another layout.
    """
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    card = describe(hand_off.manifest, hand_off.contract, report, hand_off.accounts, hand_off.above, weakest(report))
    facts = json.loads(json.dumps(card))  # the pages show what the file says
    (folder / CARD).write_text(json.dumps(facts, indent=1), encoding="utf-8")
    for name, page in render_pages(facts, report).items():
        (folder / name).write_text(page, encoding="utf-8")


def _digests(folder: Path) -> dict[str, str]:
    """Hash every file of a hand-off."""
    return {str(file.relative_to(folder)): sha256_of(file) for file in sorted(folder.rglob("*")) if file.is_file()}
