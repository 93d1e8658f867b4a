"""The manifest: what a hand-off says of itself, as one model, which we write and every recipient reads.

Its format is numbered, and each manifest is written in the oldest format that can hold its content:

    1   a release, paid for from a ledger that is at hand, and the charged scores of the report if there are any
    2   a generator that was fitted again to a release that was paid for before. Where the release came as a file
        without its ledger, the manifest leaves out who paid and says so in ``left_out``
    3   a charge that pays for each part of the data, such as each document, or that was signed for with others as a
        family; and cautions, which say what the budget does not protect
    4   a federation: a line for each client, with its own charge, run and release. What names one plan, one release and
        one charge in other manifests is here the digest of the clients' own, in their order. Where models travelled
        as they were trained, ``unprotected`` says so, and the manifest states no budget, cost or event of the whole:
        those in the clients' lines are of their certainty scores alone
    5   any of these with a model card and the page for a data-protection officer among its files
    6   any of these with a data sheet as well, and with what the operator declares of the hand-off, if anything
    7   any of these that says by which layout its pages were made, so that they can be made again and compared, and
        that holds the digest of itself, by which a manifest that rotted on its disk is noticed
    8   any of 7 that are of a table whose schema was discovered: a line for each discovery, and the total is of all
    9   any of 7 that are of a federation of which nothing was released under differential privacy. ``uncharged`` names
        the clients that took part; there is no plan, release, charge or epsilon, and ``unprotected`` says why
    10  any of 7 that are of a federation for a client of which an officer signed: the signature is in the client's line
    11  any of 7 or 8 that are of a table, with its contract of the Open Data Contract Standard among the files
    12  any of 7 to 11 where an officer signed what is declared too, or where controller, contact or why are declared
    13  any of 7 to 12 where subjects, a legal basis, or the recipient's retention are declared
    14  any of 7 to 13 where special categories, or the retention of the release are declared
    15  any of 7 to 14 where it is declared who signs
    16  any of 7 to 15 where compatibility, information, minors, or a processor are declared
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from dpmodels.contract.discovery.discovery_charge import MOST_DISCOVERIES
from dpmodels.errors import ArtifactError
from dpmodels.escapes import on_one_line
from dpmodels.files import open_plain
from dpmodels.frozen import Frozen
from dpmodels.hand_off.lines import (
    ClientLine,
    Cost,
    DiscoveryLine,
    Family,
    Line,
    ManifestError,
    OneLine,
    Payment,
    ReportLine,
    Sha256,
    Text,
)
from dpmodels.ledger.approval import Approval
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.store import digest
from dpmodels.limits import LARGEST_MANIFEST, MOST_NODES, nodes
from dpmodels.privacy import Adjacency, PrivacyUnit
from dpmodels.releases.discoveries import joint_delta

MANIFEST = "manifest.json"
CARD = "model-card.json"
CONTRACT = "contract.odcs.yaml"
SHEET = "data-sheet.html"
PAGES = ("model-card.html", "statement.html", SHEET)
"""The pages that lay out the facts of the card: for a user, for a data-protection officer, and for whoever gets it."""
NEWEST, DECLARED, OF_TABLE, APPROVED_CLIENTS, LAID_OUT = 16, 12, 11, 10, 7
"""Formats of what declares the most; where an officer signed it; of a table; of clients with officers; of the rest."""
LATER_WORDS = {
    **dict.fromkeys(("controller", "contact", "why"), 12),
    **dict.fromkeys(("subjects", "legal_basis", "recipient_retention"), 13),
    **dict.fromkeys(("special_categories", "release_retention"), 14),
    "signer": 15,
    **dict.fromkeys(("compatibility", "information", "minors", "processor"), 16),
}
"""What an operator can declare only since some format."""
MOST_FAULTS = 10
LEFT_OUT = (
    "The release came as a file, without the ledger that paid for it. Its footer names the charge. The account, the "
    "run that paid, and the entries of the charge are not known here; whoever keeps the ledger can look the charge up."
)

PAID_ELSEWHERE = (
    "The ledger that paid for this discovery is not the one that paid for the release, or is not at hand, so the "
    "entries of its charge are not known here; whoever keeps that ledger can look the charge up."
)


class _Head(Frozen):
    format: Annotated[int, Field(ge=1, le=NEWEST)]
    nacre_version: Text
    run: Text | None = None
    sampled_again_as: Text | None = None
    fitted_again_as: Text | None = None
    left_out: Text | None = None
    data_set: Text
    method: Text
    adjacency: Adjacency
    unit: OneLine
    schema_sha256: Sha256
    release_sha256: Sha256 | None = None


class Manifest(Line, _Head):
    """What was asked for, what was spent, what came of it, and which ledger entries paid.

    Attributes:
        run: the run that paid; it also made this hand-off, unless one of the next two fields names another run.
        sampled_again_as: the run that sampled the payer's generator again.
        fitted_again_as: the run that fitted a generator of its own to the payer's release.
        left_out: says that ``run``, ``ledger.account`` and ``ledger.entries`` are not known, and why.
        report: the line of the charged report.
        discoveries: what the schema was discovered with, in the order in which the schema names it.
        total_spent: what all lines cost together, where there are several, at the delta of the release and discoveries.
        approved: the signature of the account's officer, where the account has one; a client's is in the client's line.
        approved_as: account and run that were signed for, where the signature is of a family's charges by their keys.
        cautions: what a recipient must know of the guarantee's limits before relying on it.
        clients: of a federation, those that took part; dropped: by client, why it was left out; trust: who drew the
            noise, each client (local), or an aggregator that saw the exact sums of all (central).
        uncharged: the clients that took part in a federation of which nothing was released under differential privacy.
        unprotected: says of models that travelled as they were trained that no epsilon holds.
        declared: what the operator says of the hand-off, which is in the ledger's entry of a charge by this run, too.
        artifacts: the SHA-256 of every other file, by its path in the folder.
        layout: the number of the layout by which the pages were made of the card and the report.
        sha256: of everything else, in canonical JSON, which ``to_json`` reckons; it shows damage, and no intent.
    """

    report: ReportLine | None = None
    discoveries: (
        Annotated[tuple[DiscoveryLine, ...], Field(fail_fast=True, min_length=1, max_length=MOST_DISCOVERIES)] | None
    ) = None
    total_spent: Cost | None = None
    approved: Approval | None = None
    approved_as: Family | None = None
    cautions: Annotated[tuple[Text, ...], Field(fail_fast=True, min_length=1)] | None = None
    clients: Annotated[tuple[ClientLine, ...], Field(fail_fast=True, min_length=1)] | None = None
    uncharged: Annotated[tuple[Text, ...], Field(fail_fast=True, min_length=1)] | None = None
    dropped: dict[Text, Text] | None = None
    trust: Literal["local", "central"] | None = None
    unprotected: Text | None = None
    declared: Declaration | None = None
    artifacts: dict[str, Sha256]
    layout: Annotated[int, Field(ge=1, le=10**6)] | None = None
    sha256: Sha256 | None = None

    def __repr__(self) -> str:
        return f"<manifest of {self.data_set}: {self.method}, run {self.made_by}, {len(self.artifacts)} files>"

    @property
    def has_price(self) -> bool:
        """Tell whether an epsilon is stated; none holds for models that travelled as they were trained."""
        return self.unprotected is None

    @property
    def is_charged(self) -> bool:
        return self.uncharged is None

    @property
    def lines(self) -> tuple[Line, ...]:
        """Every line that was charged; of a federation, the line that stands for the clients' own, if one can."""
        return (*self.lines_of_run, *(self.discoveries or ()))

    @property
    def lines_of_run(self) -> tuple[Line, ...]:
        """The lines that the run was charged for, which are all but those of discoveries."""
        return (self, self.report) if self.report else (self,) if self.has_price else ()

    @property
    def total_delta(self) -> float:
        """The delta at which all lines are added up: that of the run, and each discovery's."""
        return joint_delta(line.price.asked.delta for line in (self, *(self.discoveries or ())))

    @property
    def made_by(self) -> str:
        """The run that made this hand-off."""
        return self.sampled_again_as or self.fitted_again_as or self.run or ""

    @property
    def whole_cost(self) -> Cost:
        """What all lines cost together.

        Raises:
            ManifestError: no epsilon is stated, because none holds.
        """
        return self.total_spent or self.price.spent

    @property
    def operator_says(self) -> dict[str, str]:
        """What the operator declared; nothing in manifests of earlier formats, whose cards alone have it."""
        return self.declared.said if self.declared else {}

    @property
    def oldest_format(self) -> int:
        """The oldest format that can hold the manifest's content."""
        approvals = (self.approved, *(line.approved for line in self.clients or ()))
        signed = DECLARED if any(one and one.declared for one in approvals) else 0
        if later := max([signed, *(LATER_WORDS.get(word, 0) for word in self.operator_says)]):
            return later
        if CONTRACT in self.artifacts:
            return 11
        if any(line.approved for line in self.clients or ()):
            return 10
        if self.uncharged is not None:
            return 9
        if self.discoveries is not None:
            return 8
        if self.layout is not None:
            return 7
        if self.declared is not None or SHEET in self.artifacts:
            return 6
        if CARD in self.artifacts:
            return 5
        of_parts = any((self.part, self.report and self.report.part, self.approved_as, self.cautions))
        return 4 if self.clients is not None else 3 if of_parts else 2 if self.fitted_again_as else 1

    @model_validator(mode="after")
    def _hangs_together(self) -> "Manifest":
        paying = self.clients or self.lines_of_run
        payer = (self.run, *(part for line in paying for part in (line.ledger.account, line.ledger.entries)))
        if (self.report is None and self.discoveries is None) != (self.total_spent is None):
            raise ValueError("has not both of the fields report and total_spent, or discoveries and total_spent")
        if self.discoveries and (self.clients is not None or self.part is not None or self.layout is None):
            raise ValueError("has the field discoveries, which only a table's manifest with the field layout has")
        if self.left_out is None and None in payer:
            raise ValueError("lacks one of the fields run, ledger.account and ledger.entries, and does not say why")
        if self.left_out is not None and any((*payer, self.report, self.approved, self.sampled_again_as)):
            raise ValueError("has the field left_out, and all the same what a release without its ledger cannot tell")
        if self.left_out is not None and self.fitted_again_as is None:
            raise ValueError("has the field left_out, which no manifest without the field fitted_again_as has")
        if self.approved is not None and self.clients is not None:
            raise ValueError("has the field approved of all, and the field clients, each of which has its own")
        if any(line.approved for line in self.clients or ()) and self.layout is None:
            raise ValueError("has a client with the field approved, which only a manifest with the field layout has")
        if self.approved_as is not None and self.approved is None:
            raise ValueError("has the field approved_as, and no field approved, whose family it names")
        if (self.release_sha256 is None) == self.is_charged:
            raise ValueError("lacks one of the fields release_sha256 and uncharged, or has both")
        of_charges = (self.clients, self.trust, self.part, self.report, self.discoveries, self.approved, self.left_out)
        if not self.is_charged and (
            self.has_price or self.layout is None or self.ledger != Payment() or any(of_charges)
        ):
            raise ValueError("has the field uncharged, and not just what is said of what nothing was charged for")
        if self.clients is None and (self.trust or (self.is_charged and (self.dropped or self.unprotected))):
            raise ValueError(
                "has a field dropped, trust or unprotected, and no field clients, whose federation it names"
            )
        if self.unit == str(PrivacyUnit(kind="sentence")) and self.cautions is None:
            raise ValueError("lacks the field cautions, without which nobody may rely on what hides one sentence")
        return self

    @model_validator(mode="after")
    def _lists_its_files(self) -> "Manifest":
        pages = {CARD, *PAGES}
        if self.artifacts.keys() & pages not in (set(), pages - {SHEET}, pages):
            raise ValueError(f"lists one of {', '.join((CARD, *PAGES))} without the others, and they belong together")
        if self.declared is not None and SHEET not in self.artifacts:
            raise ValueError(f"has the field declared, and lists no {SHEET}, which says it to whoever gets this")
        if (self.layout is None) != (self.sha256 is None):
            raise ValueError("has one of the fields layout and sha256, which belong together")
        if CONTRACT in self.artifacts and (self.layout is None or self.clients is not None or not self.is_charged):
            raise ValueError(f"lists {CONTRACT}, which only a table's manifest with the field layout does")
        if self.layout is not None and SHEET not in self.artifacts:
            raise ValueError(f"has the field layout, and lists no {SHEET}, which is made by it")
        if self.format != self.oldest_format:
            raise ValueError(f"says that it is of format {self.format}, and has fields of another one")
        return self

    def to_json(self) -> str:
        """Write the manifest without empty fields."""
        content = self.model_dump(mode="json", exclude_none=True)
        if self.declared is not None:
            content["declared"] = self.operator_says
        if not self.is_charged:
            del content["ledger"]
        if self.sha256 is not None:
            content["sha256"] = own_digest(content)
        return json.dumps(content, indent=1)


def own_digest(content: dict[str, Any]) -> str:
    """Return the digest of what a manifest holds beside it."""
    return digest({name: value for name, value in content.items() if name != "sha256"})


def is_as_written(content: bytes) -> bool:
    """Tell whether a manifest that can be read has the digest of itself; those of earlier formats have none.

    Raises:
        ManifestError: it is no JSON object, or has a field twice.
    """
    whole = _plain(content)
    return "sha256" not in whole or whole["sha256"] == own_digest(whole)


def digest_of_all(hashes: Iterable[str | None]) -> str:
    """Return the digest that stands for the hashes of all clients, in their order."""
    return digest(list(hashes))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a hand-off, whoever wrote it.

    Raises:
        ManifestError: the manifest is not as nacre writes it; every fault is named.
        ArtifactError: there is no readable manifest, a later version wrote it, or it states no price.
    """
    manifest = parse_manifest(read_bytes(folder))
    if not manifest.has_price:
        raise ArtifactError(
            f"an earlier version handed {folder} over without a price: no epsilon holds for it, and nothing but "
            "`nacre verify` reads it"
        )
    return manifest


def read_bytes(folder: Path) -> bytes:
    """Read the bytes of a hand-off's manifest, which are the bytes that are signed.

    Raises:
        ArtifactError: there is no manifest, or it is far too large.
    """
    try:
        with open_plain(folder, folder / MANIFEST) as file:
            content = file.read(LARGEST_MANIFEST + 1)
    except (ArtifactError, OSError):
        raise ArtifactError(f"{folder} has no {MANIFEST} that can be read; is it a hand-off?") from None
    if len(content) > LARGEST_MANIFEST:
        most = LARGEST_MANIFEST // 2**20
        raise ArtifactError(f"the manifest of {folder} is larger than {most} MiB, and no manifest is")
    return content


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest from its bytes.

    Raises:
        ManifestError: it is not as nacre writes it; every fault is named.
        ArtifactError: a later version wrote it.
    """
    number = _plain(content).get("format")
    if type(number) is int and number > NEWEST:
        raise ArtifactError(f"{MANIFEST} is of format {str(number)[:9]}, later than {NEWEST}: use a newer nacre")
    try:
        return Manifest.model_validate_json(content, strict=True)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
    sentences = [_sentence(fault["type"], fault["loc"], fault["msg"]) for fault in faults[:MOST_FAULTS]]
    more = len(faults) - len(sentences)
    raise ManifestError([*sentences, *([f"{MANIFEST} has {more} more faults of this kind"] if more else [])])


def printable(text: str, most: int = 120) -> str:
    """Make text from an unknown source safe to show: short, on one line, its control characters written out."""
    return on_one_line(text, most)


def _plain(content: bytes) -> dict[str, Any]:
    """Parse JSON in which no field is written twice, since readers differ in which of the two they take."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise ManifestError([f"{MANIFEST} has the field {printable(twice)} twice"])
        return fields

    if nodes(content) > MOST_NODES:
        raise ManifestError([f"{MANIFEST} is nested too deep, or holds more values than any manifest"])
    try:
        record = json.loads(content.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise ManifestError([f"{MANIFEST} is no JSON text, was cut off, or is nested too deep"]) from None
    if not isinstance(record, dict):
        raise ManifestError([f"{MANIFEST} is not one JSON object, which every manifest is"])
    return record


def _sentence(kind: str, loc: tuple[int | str, ...], message: str) -> str:
    """Say what is wrong with a field, in pydantic's words where they quote nothing of the input."""
    field = printable(".".join(map(str, loc)))
    if kind == "missing":
        return f"{MANIFEST} lacks the field {field}"
    if kind == "extra_forbidden":
        return f"{MANIFEST} has the field {field}, which nacre does not write"
    if kind == "value_error":
        return f"{MANIFEST} {message.removeprefix('Value error, ')}"
    if kind.startswith("union_tag"):
        return f"the field {field} in {MANIFEST} is of a kind that this version does not know"
    if kind == "json_invalid":
        return f"{MANIFEST} is no JSON text, was cut off, or is nested too deep"
    rule = message.replace("Input should", "it should", 1).replace("String should", "it should", 1)
    return f"the field {field} in {MANIFEST} is not as nacre writes it: {rule}"
