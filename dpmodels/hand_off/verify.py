"""Check a hand-off by itself: for a recipient, without access to our store or ledger.

The check shows that every file is the one that the manifest names and none is missing or added, that the budget is what
the events cost, that the charge and its entries are consistent, that the pages say what the card and the report say,
and who signed the manifest. It cannot show that the manifest is true: whoever writes a hand-off can write one that
hangs together, and make a key to sign it with. So its verdict is ``VERIFIED`` where the manifest is signed by a key
that the recipient named, and ``CONSISTENT`` where it hangs together and nobody whom the recipient knows vouches for it;
either gives way to ``UNAPPROVED`` where the recipient asked for an officer who did not let the files leave. The
ledger's hashes in it let an auditor check it there.

A hand-off that was made from a release file alone cannot say which account and run paid. This is not a fault, since the
manifest says so; ``charge`` then tells the recipient what to ask of whoever keeps the ledger.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dpmodels import amounts
from dpmodels.errors import ArtifactError
from dpmodels.hand_off.card import balances_above, differs, standings
from dpmodels.hand_off.check_accounts import check_above, check_standings
from dpmodels.hand_off.check_charges import check_all_named, check_approved, check_charges, check_discoveries
from dpmodels.hand_off.check_files import CHANGED, check_classifier, check_files, check_schema
from dpmodels.hand_off.check_maker import check_maker, check_method
from dpmodels.hand_off.check_report import check_report
from dpmodels.hand_off.lines import ManifestError
from dpmodels.hand_off.manifest import CARD, MANIFEST, Manifest, is_as_written, parse_manifest, printable, read_bytes
from dpmodels.hand_off.pages import compare_pages, places_of_changes
from dpmodels.hand_off.signature import (
    BY_OTHER_KEY,
    NOBODY,
    SIGNATURE,
    UNSOUND,
    OtherKey,
    by_one_key,
    by_two_keys,
    check_agreed,
    check_signature,
)
from dpmodels.hand_off.undeclared import say_declared
from dpmodels.hand_off.verification import Verification
from dpmodels.keys import key_text
from dpmodels.keys import public_key as read_public_key
from dpmodels.ledger.records import Standing
from dpmodels.releases.contract import Contract

if TYPE_CHECKING:
    from dpmodels.hand_off.recount.check_rows import Bar

MOST_ACCOUNTS = 3


def verify_hand_off(
    folder: Path,
    public_key: Path | None = None,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
    officer_key: Path | None = None,
    bar: "Bar | None" = None,
) -> Verification:
    """Check every file of a hand-off, its budget, its pages and its signature.

    Args:
        folder: of the hand-off.
        public_key: the key (PEM) that must have signed the manifest; without it nobody vouches for the hand-off.
        elsewhere: files that lie elsewhere, by their names, with their digests.
        officer_key: the key (PEM) of the officer who must have approved the run; see ``may_not_leave``.
        bar: shows how far the count of many rows is.

    Raises:
        ArtifactError: there is no readable manifest, or a later version wrote it.
        InvalidArgument: the key cannot be read.
    """
    check, manifest = check_signers(folder, public_key, officer_key)
    if manifest is None:
        return check
    check_files(folder, manifest.artifacts, elsewhere, check)
    check_charges(manifest, check)
    check_maker(manifest, check)
    check_classifier(folder, manifest, check)
    contract = check_schema(folder, manifest, check)
    if contract is not None:
        check_all_named(manifest, contract, check)
        check_discoveries(manifest, contract, check)
        check_report(folder, manifest, contract, check)
    if CARD in manifest.artifacts:
        _check_card(folder, manifest, contract, check)
    elif any(name.endswith(".html") for name in manifest.artifacts):
        check.notes.append(
            f"the pages of format {manifest.format} were not compared with the figures; they have their hashes"
        )
    _check_last(folder, manifest, contract, check, bar)
    _say(folder, manifest, contract, check)
    return check


def _say(folder: Path, manifest: Manifest, contract: Contract | None, check: Verification) -> None:
    """Say what was promised, who paid, and what was declared."""
    check.charge, check.days = _paid(manifest), _days(manifest)
    check.budget = _spent(manifest)
    check.unit = f"{printable(manifest.unit)}, {manifest.adjacency}"
    if not manifest.is_charged:
        check.unit, check.account = "none: nothing is hidden", "none: no account was charged"
    say_declared(folder, manifest, contract, check)
    check.cautions = [printable(one, 1000) for one in manifest.cautions or ()]


def _check_last(
    folder: Path, manifest: Manifest, contract: Contract | None, check: Verification, bar: "Bar | None"
) -> None:
    """Check what takes memory, of a hand-off without a fault: its product, and its method; name changes."""
    if contract is not None and not check.faults:
        from dpmodels.hand_off.recount.check_product import check_product
        from dpmodels.hand_off.recount.check_rows import check_rows

        check_product(folder, manifest, contract, check)
        check_rows(folder, manifest, contract, check, bar)
    check_method(manifest, check)
    _name_places(folder, manifest, contract, check)


def _name_places(folder: Path, manifest: Manifest, contract: Contract | None, check: Verification) -> None:
    """Add to the faults of pages that are not of their hashes, under which heading they first differ."""
    changed = {name for name in manifest.artifacts if f"{name} {CHANGED}" in check.faults}
    for name, place in places_of_changes(folder, manifest, changed, contract).items():
        check.faults[check.faults.index(f"{name} {CHANGED}")] += f", {place}"


def _check_card(folder: Path, manifest: Manifest, contract: Contract | None, check: Verification) -> None:
    """Check that card and pages say what they are made of, while there is no fault, and say where accounts stood."""
    if not check.faults and (fault := differs(folder, manifest)):
        check.faults.append(fault)
    if not check.faults and contract is not None:
        faults, note = compare_pages(folder, manifest, contract)
        check.faults += faults
        check.notes += [note] if note else []
    if not check.faults:
        stood = standings(folder)
        check_above(manifest, stood, balances_above(folder), check)
        if stood:
            check_standings(manifest, stood, check)
            check.account = _stood(stood)


def check_signers(
    folder: Path, public_key: Path | None = None, officer_key: Path | None = None
) -> tuple[Verification, Manifest | None]:
    """Check who signed, from a manifest and its signature alone; no other file of the hand-off is opened.

    The manifest is None where it cannot be read, or where a key was named and the signature is not by it: then nothing
    of what a stranger wrote is worth a look.
    """
    signer = key_text(read_public_key(public_key)) if public_key else ""
    officer = key_text(read_public_key(officer_key, "officer_key")) if officer_key else ""
    content, check = read_bytes(folder), Verification(officer_named=bool(officer))
    try:
        check.vouched, check.signature = check_signature(folder, content, signer)
    except OtherKey as error:
        check.by_other_key(error)
        check.signature = BY_OTHER_KEY
    except (ArtifactError, OSError) as error:
        check.faults.append(str(error))
        check.signature = UNSOUND if os.path.lexists(folder / SIGNATURE) else NOBODY
    if signer and check.faults:
        return check, None
    try:
        manifest = parse_manifest(content)
    except ManifestError as error:
        check.faults += error.faults
        return check, None
    if not is_as_written(content):
        check.faults.append(f"{MANIFEST} was changed after it was written: it is not of the digest that it names")
    approver = manifest.approved.public_key if manifest.approved else ""
    try:
        check.agreed = check_agreed(folder, content, officer, approver)
    except OtherKey as error:
        check.by_other_key(error)
    except (ArtifactError, OSError) as error:
        check.faults.append(str(error))
    if not check.faults:
        check.one_key, check.two_keys = by_one_key(folder, approver), by_two_keys(folder, approver)
    check.approved, check.charge_approved = check_approved(manifest, officer, check), manifest.approved is not None
    return check, None if officer and check.faults else manifest


def _spent(manifest: Manifest) -> str:
    """Say what was spent, on whom, and whether the guarantee is pure; or that there is none."""
    if not manifest.has_price:
        if not manifest.clients:
            return f"NONE: {manifest.unprotected}"
        scores = max((line.price.spent for line in manifest.clients), key=lambda spent: spent.epsilon)
        return f"NONE: {manifest.unprotected} The scores cost epsilon={scores.epsilon} at delta={scores.delta}."
    spent = manifest.whole_cost
    delta = f"delta={spent.delta}" if spent.delta else "delta=0 (pure)"
    each = f" for each {printable(manifest.part)}" if manifest.part else ""
    both = ", what its schema was discovered with included" if manifest.discoveries else ""
    return f"epsilon={spent.epsilon} at {delta}{each}, as its events add up{both}"


def _stood(accounts: Sequence[Standing]) -> str:
    """Say where the accounts stood that paid, the heaviest first where there are several."""
    heaviest = sorted(accounts, key=lambda one: -one.after)[:MOST_ACCOUNTS]
    sentences = [
        f"{printable(one.account)} had spent epsilon={amounts.spent(one.before)} before and {amounts.spent(one.after)} "
        f"after, of a cap of {amounts.written(one.cap)} at delta={amounts.written(one.delta)}"
        for one in heaviest
    ]
    more = len(accounts) - len(heaviest)
    return "; ".join([*sentences, *([f"{more} more in {CARD}"] if more else [])])


def _days(manifest: Manifest) -> str:
    """Return the days of the charges; empty where the entries are not known."""
    lines = manifest.clients or manifest.lines
    days = sorted({printable(entry.day[:10]) for line in lines for entry in line.ledger.entries or ()})
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else ""


def _paid(manifest: Manifest) -> str:
    """Say who paid or, where the hand-off does not know it, what to ask of whoever keeps the ledger."""
    paid = manifest.ledger
    if not manifest.is_charged:
        return f"none of run {printable(manifest.run or '')}: nothing was released under differential privacy"
    if paid.account is None:
        return (
            f"{paid.charge}, as the release's footer has it; this hand-off does not say which account paid. "
            "Ask whoever keeps the ledger: `nacre ledger entries` there has the charge"
        )
    one = ", for one noise drawn by a trusted aggregator" if manifest.trust == "central" else ""
    clients = f" ({len(manifest.clients)} clients, each with a charge of its own{one})" if manifest.clients else ""
    return f"{paid.charge}{clients} of account {printable(paid.account)}, run {printable(manifest.run or '')}"
