"""Check a hand-off by itself: for a recipient, without access to our store or ledger.

The check shows that every file is the one that the manifest names and none is missing or added, that the budget is what
the events cost, that the charge and its entries are consistent, that the pages say what the card and the report say,
and who signed the manifest. It cannot show that the manifest is true: whoever writes a hand-off can write one that
hangs together, and make a key to sign it with. So its verdict is ``VERIFIED`` where the manifest is signed by a key
that the recipient named, and ``CONSISTENT`` where it hangs together and nobody whom the recipient knows vouches for it.
The ledger's hashes in it let an auditor check it there.

A hand-off that was made from a release file alone cannot say which account and run paid. This is not a fault, since the
manifest says so; ``charge`` then tells the recipient what to ask of whoever keeps the ledger.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.events import check_adjacency
from dpmodels.accounting.tally import MAX_KINDS, Parallel, Tally
from dpmodels.authoring.lint import parse
from dpmodels.contract.federation import CENTRAL, ROUNDS, SCORES
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.files import open_plain, sha256_plain, size_plain
from dpmodels.hand_off.card import differs, standings
from dpmodels.hand_off.manifest import (
    CARD,
    MANIFEST,
    MOST_FAULTS,
    DiscoveryLine,
    Line,
    Manifest,
    ManifestError,
    digest_of_all,
    discovery_of,
    is_as_written,
    parse_manifest,
    printable,
    read_bytes,
)
from dpmodels.hand_off.pages import compare_pages
from dpmodels.hand_off.signature import NOBODY, SIGNATURE, check_signature
from dpmodels.keys import fingerprint, key_text
from dpmodels.keys import public_key as read_public_key
from dpmodels.ledger.approval import Asked
from dpmodels.ledger.records import Standing
from dpmodels.ledger.store import digest
from dpmodels.limits import LARGEST_CARD, LARGEST_PAGE, LARGEST_REPORT, LARGEST_YAML, read_json
from dpmodels.privacy import Adjacency
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import discoveries_of, unpriced

HANDED_OVER = re.compile(
    r"(synthetic(/(parents|children))?|embeddings)/part-[0-9]{5}\.parquet|synthetic\.(csv|arrow|jsonl)|"
    r"classifier\.safetensors|soft-labels\.parquet|schema\.yaml|report\.html|report\.json|checks\.html|model-card\.json|model-card\.html|statement\.html|data-sheet\.html"
)
DEEPEST = 2
LARGEST = {"schema.yaml": LARGEST_YAML, "report.json": LARGEST_REPORT, CARD: LARGEST_CARD}
"""What is read whole; pages have a limit as well. Tables and models are as large as whoever sent them made them."""
MOST_STRANGE = 10_000
"""Files that somebody added are counted so far."""
LIFE = ["reserve", "draw", "seal", "commit"]
CLOSE = Decimal("1e-9")
MOST_ACCOUNTS = 3
MOST_WORK, WORK_OF_A_PART = 2 * MAX_KINDS, 24
NOT_APPROVED = "by nobody that this file names"
VERIFIED, CONSISTENT, FAULTY = "VERIFIED", "CONSISTENT ONLY", "FAULTY"


@dataclass
class Verified:
    """What the check found: faults, the number of unchanged files, and sentences on what was promised and who paid.

    What an account had spent before, and its cap, rest on the word of whoever signed; ``declared`` is the operator's.

    Attributes:
        vouched: whether the manifest is signed by the key that the recipient named.
        notes: what was not checked, and why.
    """

    faults: list[str] = field(default_factory=list)
    files: int = 0
    signature: str = NOBODY
    charge: str = ""
    budget: str = ""
    unit: str = ""
    account: str = ""
    approved: str = ""
    declared: dict[str, str] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    vouched: bool = False
    work: int = field(default=0, compare=False, repr=False)
    priced: set[Any] = field(default_factory=set, compare=False, repr=False)

    @property
    def verdict(self) -> str:
        """``VERIFIED``, ``CONSISTENT`` where nobody whom the recipient named vouches for it, or ``FAULTY``."""
        return FAULTY if self.faults else VERIFIED if self.vouched else CONSISTENT


def verify_hand_off(
    folder: Path,
    public_key: Path | None = None,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
    officer_key: Path | None = None,
) -> Verified:
    """Check every file of a hand-off, its budget, its pages and its signature.

    Args:
        folder: of the hand-off.
        public_key: the key (PEM) that must have signed the manifest; without it nobody vouches for the hand-off.
        elsewhere: files that lie elsewhere, by their names, with their digests.
        officer_key: the key (PEM) of the officer who must have approved the run.

    Raises:
        ArtifactError: there is no readable manifest, or a later version wrote it.
        InvalidArgument: the key cannot be read.
    """
    found, manifest = check_signers(folder, public_key, officer_key)
    if manifest is None:
        return found
    _check_files(folder, manifest.artifacts, elsewhere, found)
    for line in manifest.lines:
        _check_proved(line, manifest.adjacency, found)
        _check_budget(line, found)
        _check_charge(line, line.run if isinstance(line, DiscoveryLine) else manifest.run, found)
    _check_part(manifest, found)
    _check_clients(manifest, found)
    _check_classifier(folder, manifest, found)
    _check_total(manifest, found)
    _check_report(folder, manifest, found)
    contract = _check_schema(folder, manifest, found)
    if contract is not None:
        _check_discoveries(manifest, contract, found)
    if CARD in manifest.artifacts and not found.faults and (fault := differs(folder, manifest)):
        found.faults.append(fault)
    if CARD in manifest.artifacts and not found.faults and contract is not None:
        _check_pages(folder, manifest, contract, found)
    if CARD in manifest.artifacts and not found.faults:
        found.account = _stood(standings(folder))
    found.charge = _paid(manifest)
    found.budget = _spent(manifest)
    found.unit = f"{printable(manifest.unit)}, {manifest.adjacency}"
    if not manifest.is_charged:
        found.unit, found.account = "none: nothing is hidden", "none: no account was charged"
    found.declared = {name: printable(said, 300) for name, said in manifest.operator_says.items()}
    found.cautions = [printable(one, 1000) for one in manifest.cautions or ()]
    return found


def _check_part(manifest: Manifest, found: Verified) -> None:
    """Hold the kind of part that is said to be charged on its own to what was handed over."""
    embedded = any(name.startswith("embeddings/") for name in manifest.artifacts)
    if manifest.clients is None if manifest.part == "client" else manifest.part and not embedded:
        found.faults.append(f"the price is for each {manifest.part}, and nothing here is charged for each by itself")


def check_signers(
    folder: Path, public_key: Path | None = None, officer_key: Path | None = None
) -> tuple[Verified, Manifest | None]:
    """Check who signed, from a manifest and its signature alone; no other file of the hand-off is opened.

    The manifest is None where it cannot be read, or where a key was named and the signature is not by it: then nothing
    of what a stranger wrote is worth a look.
    """
    wanted = key_text(read_public_key(public_key)) if public_key else ""
    officer = key_text(read_public_key(officer_key, "officer_key")) if officer_key else ""
    content, found = read_bytes(folder), Verified()
    try:
        found.vouched, found.signature = check_signature(folder, content, wanted)
    except (ArtifactError, OSError) as error:
        found.faults.append(str(error))
    if wanted and found.faults:
        return found, None
    try:
        manifest = parse_manifest(content)
    except ManifestError as error:
        found.faults += error.faults
        return found, None
    if not is_as_written(content):
        found.faults.append(f"{MANIFEST} was changed after it was written: it is not of the digest that it names")
    found.approved = _check_approved(manifest, officer, found)
    return found, None if officer and found.faults else manifest


def _check_files(folder: Path, artifacts: dict[str, str], elsewhere: Mapping[str, str], found: Verified) -> None:
    """Compare every file with the manifest; a file that nacre never hands over is a fault even if it is listed."""
    known = artifacts.keys() | {MANIFEST, SIGNATURE}
    strange = (name for name in chain(_listed(folder), elsewhere) if name not in known)
    unknown = sorted(islice(strange, MOST_STRANGE))
    found.faults += [f"{printable(name)} is not in the manifest" for name in unknown[:MOST_FAULTS]]
    if len(unknown) > MOST_FAULTS:
        least = "at least " if len(unknown) == MOST_STRANGE else ""
        found.faults.append(f"{least}{len(unknown) - MOST_FAULTS} more files are not in the manifest")
    for name, sha256 in artifacts.items():
        if not HANDED_OVER.fullmatch(name):
            found.faults.append(f"{printable(name)} is no file that nacre hands over")
        elif name not in elsewhere and not os.path.lexists(folder / name):
            found.faults.append(f"{name} is missing")
        else:
            _check_file(folder, name, sha256, elsewhere.get(name), found)


def _listed(folder: Path, inside: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the files and links of a hand-off; a folder deeper than any of ours is named, and not looked into."""
    with os.scandir(folder / inside) as entries:
        for entry in entries:
            name = os.path.join(inside, entry.name)
            if depth < DEEPEST and entry.is_dir(follow_symlinks=False):
                yield from _listed(folder, name, depth + 1)
            else:
                yield name


def _check_file(folder: Path, name: str, sha256: str, elsewhere: str | None, found: Verified) -> None:
    most = LARGEST.get(name, LARGEST_PAGE if name.endswith(".html") else None)
    try:
        if elsewhere is None and most is not None and size_plain(folder, folder / name) > most:
            found.faults.append(f"{name} is larger than any of its kind")
        elif (sha256_plain(folder, folder / name) if elsewhere is None else elsewhere) == sha256:
            found.files += 1
        else:
            found.faults.append(f"{name} was changed")
    except (ArtifactError, OSError):
        found.faults.append(f"{name} is a link, or cannot be read as a plain file")


def _check_proved(line: Line, adjacency: Adjacency, found: Verified) -> None:
    """Check that the price of every event is proved under the manifest's adjacency."""
    try:
        check_adjacency(line.price.events, adjacency)
    except InvalidArgument as error:
        found.faults.append(str(error))


def _check_budget(line: Line, found: Verified) -> None:
    """Compute the epsilon of a line's events again, and compare it with the manifest."""
    reckoned = _reckoned([line], line.price.asked.delta, found)
    if reckoned is None:
        return
    asked, spent, _ = line.price
    if asked.delta != spent.delta or abs(reckoned - spent.epsilon) > CLOSE:
        found.faults.append(f"the events cost epsilon={reckoned}, the manifest says {spent.epsilon}")
    if reckoned > Decimal(repr(asked.epsilon)):
        found.faults.append(f"the events cost more than was asked for: epsilon={asked.epsilon}")


def _check_total(manifest: Manifest, found: Verified) -> None:
    """Compute the cost of all lines together again, and compare it with the manifest."""
    said = manifest.total_spent
    reckoned = _reckoned(manifest.lines, manifest.total_delta, found) if said else None
    if manifest.report is not None and manifest.report.ledger.charge == manifest.ledger.charge:
        found.faults.append("release and report name one charge, and each is paid by its own")
    if said is None or reckoned is None:
        return
    if said.delta != manifest.total_delta or abs(reckoned - said.epsilon) > CLOSE:
        what = "release, report and discoveries" if manifest.discoveries else "release and report"
        at = f" at delta={manifest.total_delta}" if manifest.discoveries else ""
        told = f"{said.epsilon}" + (f" at delta={said.delta}" if at else "")
        found.faults.append(f"{what} cost epsilon={reckoned} together{at}, the manifest says {told}")


def _check_discoveries(manifest: Manifest, contract: Contract, found: Verified) -> None:
    """Check that the manifest has a line for each discovery that the schema names, at its price, and no other."""
    named = {one.charge: one for one in discoveries_of(contract)}
    lines = {line.charge: line for line in manifest.discoveries or ()}
    if len(lines) < len(manifest.discoveries or ()):
        found.faults.append("two lines of the manifest name one discovery, and each is paid by its own")
    for charge in named.keys() - lines.keys():
        found.faults.append(
            f"schema.yaml was discovered under charge {charge}, and no line of the manifest has its price"
        )
    for charge in lines.keys() - named.keys():
        found.faults.append(f"the manifest has a line for the discovery {charge}, which schema.yaml does not name")
    for charge in named.keys() & lines.keys():
        if discovery_of(lines[charge], manifest.unit) != named[charge]:
            found.faults.append(
                f"the manifest says another price, plan or payer of discovery {charge} than schema.yaml"
            )
    for name in map(printable, unpriced(contract)):
        found.notes.append(f"schema.yaml has keys from the charged release {name}, whose price is in no line: add it")


def _check_clients(manifest: Manifest, found: Verified) -> None:
    """Check every client's line by itself, and that the manifest stands for all of them and for the costliest."""
    clients = manifest.clients or ()
    if (manifest.method == ROUNDS) == manifest.is_charged:
        found.faults.append("the manifest names no charge and another method than federated-rounds, or the reverse")
    if set(manifest.uncharged or ()) & set(manifest.dropped or ()):
        found.faults.append("a client took part and was dropped as well")
    for line in clients:
        _check_proved(line, manifest.adjacency, found)
        _check_budget(line, found)
        _check_charge(line, line.run, found)
    if not clients:
        return
    for name, said, own in (
        ("plan_sha256", manifest.plan_sha256, [line.plan_sha256 for line in clients]),
        ("release_sha256", manifest.release_sha256, [line.release_sha256 for line in clients]),
        ("ledger.charge", manifest.ledger.charge, [line.ledger.charge for line in clients]),
    ):
        shared = name == "release_sha256" and manifest.trust == "central"
        if said != digest_of_all(own) or len(set(own)) != (1 if shared else len(own)):
            found.faults.append(f"the field {name} does not stand for what the clients' lines name")
    events = [event for line in clients for event in line.price.events if event.kind == "gaussian"]
    drawn = {event.mechanism == CENTRAL for event in events}
    if (manifest.trust == "central") != (True in drawn) or len(drawn) > 1:
        found.faults.append("the manifest does not say who drew the noise that its events pay for")
    if manifest.has_price and manifest.spent != max((line.price.spent for line in clients), key=lambda s: s.epsilon):
        found.faults.append("the manifest's cost is not that of the client that spent most")
    if (manifest.method == SCORES) == manifest.has_price:
        found.faults.append(
            "scores alone were released, and the manifest does not say that no epsilon holds, or it does"
        )
    if {line.client for line in clients} & set(manifest.dropped or ()):
        found.faults.append("a client took part and was dropped as well")


def _check_classifier(folder: Path, manifest: Manifest, found: Verified) -> None:
    """Check that no epsilon is stated of a classifier that says itself that none holds."""
    try:
        with open_plain(folder, folder / "classifier.safetensors") as file:
            head = read_json(file.read(min(int.from_bytes(file.read(8), "little"), LARGEST_CARD)))
        unprotected = "unprotected" in read_json(head["__metadata__"]["nacre"].encode())
    except (ArtifactError, OSError):
        return  # a table has none; whether the file is the one that was written is for the check of all files
    except (ValueError, KeyError, TypeError, AttributeError):
        found.faults.append("classifier.safetensors does not say of itself what nacre writes")
        return
    if unprotected and manifest.has_price:
        found.faults.append("the manifest states an epsilon of a classifier that was trained without any noise")


def _check_report(folder: Path, manifest: Manifest, found: Verified) -> None:
    """Check that the report's figures are about this release, this unit and this price."""
    try:
        with open_plain(folder, folder / "report.json") as file:
            told = read_json(file.read(LARGEST_REPORT))
        said = [told["privacy"][name] for name in ("unit", "adjacency", "delta", "spent_epsilon", "total_epsilon")]
        said.append(told["privacy"].get("total_delta", told["privacy"]["delta"]))
        names = ("plan_sha256", "schema_sha256", "release_sha256", "ledger_charge")
        said += [told["hashes"][name] if manifest.is_charged else told["hashes"].get(name) for name in names]
    except (ArtifactError, OSError):
        return  # the check of all files reports that it is missing
    except (ValueError, KeyError, TypeError, AttributeError):
        said = []
    priced: list[float | None] = [None] * 4
    if manifest.has_price:
        spent, whole = manifest.price.spent, manifest.whole_cost
        priced = [spent.delta, float(spent.epsilon), float(whole.epsilon), whole.delta]
    true = [manifest.unit, manifest.adjacency, *priced, manifest.plan_sha256]
    if said != [*true, manifest.schema_sha256, manifest.release_sha256, manifest.ledger.charge]:
        found.faults.append("report.json is about another release, unit or price than the manifest")


def _check_pages(folder: Path, manifest: Manifest, contract: Contract, found: Verified) -> None:
    """Check that the pages say what the card and the report say."""
    faults, note = compare_pages(folder, manifest, contract)
    found.faults += faults
    found.notes += [note] if note else []


def _check_schema(folder: Path, manifest: Manifest, found: Verified) -> Contract | None:
    """Check that the schema is the one that was planned for and that the price is for its unit; return the schema."""
    try:
        with open_plain(folder, folder / "schema.yaml") as file:
            schema, _ = parse(file.read(LARGEST_YAML + 1).decode())
    except (ArtifactError, OSError):
        return None  # the check of all files reports that it is missing
    except (ValueError, RecursionError):
        schema = None
    if schema is None or schema.hash != manifest.schema_sha256:
        found.faults.append("schema.yaml is not the schema that the manifest names")
    elif (manifest.data_set, manifest.unit, manifest.adjacency) != (schema.name, str(schema.unit), schema.adjacency):
        found.faults.append("the manifest says another data set, unit or adjacency than schema.yaml")
    return schema


def _reckoned(lines: Sequence[Line], delta: float, found: Verified) -> Decimal | None:
    """Return what the events of some lines cost together at delta; None, with a fault, if that was not found out.

    A check does so much work and no more, whoever wrote the manifest: distributions of privacy losses are composed for
    ``MOST_WORK`` kinds of releases, each counted once however often it was made, and a part in parallel counts for
    ``WORK_OF_A_PART``. No system of ours comes near (a trained one has two or three kinds, and parallel parts of one
    price). Beyond it nothing is reckoned and the fault says so: a looser bound would accept an epsilon that nobody has
    checked.
    """
    from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon

    asked, at = sum(line.price.asked.epsilon for line in lines), Decimal(repr(delta))
    try:
        tally = Tally.of(event for line in lines for event in line.price.events)
        found.work += 0 if (tally.key, at) in found.priced else _work(tally)
        found.priced.add((tally.key, at))
        if found.work > MOST_WORK:
            found.faults.append("the events are more than a check has time to price: nobody has checked their epsilon")
            return None
        # a quick bound comes first: the exact cost of events far beyond the target can take an hour to compute
        if len(tally.others) <= MAX_KINDS and renyi_epsilon(tally, at) <= 4 * asked + 1:
            return spent_epsilon(tally, at)
    except (ArithmeticError, Unsuitable):  # beyond what a float holds, or too many parts
        pass
    found.faults.append("the events cost far more than was asked for, or are more than any plan has")
    return None


def _work(tally: Tally) -> int:
    """Count the distributions that pricing a tally composes, those of parts in parallel at their weight."""
    parts = [part for kind, _ in tally.kinds if isinstance(kind, Parallel) for part in kind.parts]
    return len(tally.others) + WORK_OF_A_PART * len(parts) + sum(map(_work, parts))


def _check_charge(line: Line, run: str | None, found: Verified) -> None:
    """Check that the charge's key is that of its plan and run, and that its entries are complete and in order."""
    paid, entries = line.ledger, line.ledger.entries
    if entries is None and not isinstance(line, DiscoveryLine):
        return  # the manifest says that they are left out; only the release's footer names the charge
    if paid.charge != digest([paid.account, line.plan_sha256, run, *([line.part] if line.part else [])]):
        found.faults.append("the charge is not that of this plan and run")
    if entries is None:  # of a discovery that another ledger paid for
        return
    places, kinds = [entry.seq for entry in entries], [entry.kind for entry in entries]
    kinds = [kind for kind, before in zip(kinds, ["", *kinds[:-1]], strict=True) if (before, kind) != ("draw", "draw")]
    whole = LIFE if line.sealed else LIFE[: len(kinds)]
    if kinds != whole or places != sorted(set(places)):
        found.faults.append("the charge's entries are not a complete life: reserve, draw, seal, commit")


def _check_approved(manifest: Manifest, officer: str, found: Verified) -> str:
    """Check that the officer signed this run's lines, with the key that was named if one was; say who approved.

    A family is signed for by the keys of its charges.
    """
    signed, family = manifest.approved, manifest.approved_as
    if officer and signed is None:
        found.faults.append("no officer's approval is in this hand-off, and you named an officer's key")
    if signed is None or manifest.run is None or manifest.ledger.account is None:
        return NOT_APPROVED
    account, run = (family.account, family.run) if family else (manifest.ledger.account, manifest.run)
    own = {line.ledger.charge if family else line.plan_sha256 for line in manifest.lines_of_run}
    asked = Asked(signed.ledger, account, run, signed.plans, family=family is not None)
    if not asked.is_signed(signed) or not own <= set(signed.plans):
        found.faults.append("the officer's approval is not a signature of this run and its plan")
        return NOT_APPROVED
    if officer and signed.public_key != officer:
        found.faults.append("the approval is signed with another key than the officer's that you named")
    name, key = printable(signed.officer), fingerprint(signed.public_key)
    if officer:
        return f"{name}, by the officer's key you named, whose SHA-256 is {key}"
    return f"{name} is the name beside a key whose SHA-256 is {key}; give the officer's with --officer-key"


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
    said = [
        f"{printable(one.account)} had spent epsilon={amounts.spent(one.before)} before and {amounts.spent(one.after)} "
        f"after, of a cap of {amounts.written(one.cap)} at delta={amounts.written(one.delta)}"
        for one in heaviest
    ]
    more = len(accounts) - len(heaviest)
    return "; ".join([*said, *([f"{more} more in {CARD}"] if more else [])])


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
    own = f" ({len(manifest.clients)} clients, each with a charge of its own{one})" if manifest.clients else ""
    return f"{paid.charge}{own} of account {printable(paid.account)}, run {printable(manifest.run or '')}"
