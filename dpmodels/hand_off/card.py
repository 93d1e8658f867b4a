"""The model card: what a data-protection officer, a user and a recipient must know of a hand-off, as facts for pages.

What follows from the manifest is held against it by every check of the hand-off. What only the ledger knows, such as
what an account had spent before, rests on whoever signed the manifest.

Privacy: made of the manifest, the contract, the ledger's entries and the publishable report, all of which are public.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from dpmodels.accounting.meaning import Meaning
from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain
from dpmodels.frozen import Frozen
from dpmodels.hand_off.card_content import content_of
from dpmodels.hand_off.lines import Line
from dpmodels.hand_off.manifest import CARD, MANIFEST, SHEET, Manifest, printable
from dpmodels.ledger.approval import Approval
from dpmodels.ledger.declared import Said
from dpmodels.ledger.records import MOST_EARLIER, Balance, Standing
from dpmodels.ledger.store import digest
from dpmodels.limits import LARGEST_CARD, read_json
from dpmodels.pages.asked.declared_rules import declared_rules
from dpmodels.pages.asked.not_for import not_for
from dpmodels.pages.by_column import marked
from dpmodels.pages.excluded import pale_groups, stronger_pairs, strongest_pair, weaker_pairs
from dpmodels.pages.figures.group_verdicts import group_means
from dpmodels.pages.figures.means import far_figures
from dpmodels.pages.figures.moments import uncounted_moments
from dpmodels.pages.figures.open_means import with_doubts
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.uses import all_uses, known_of
from dpmodels.releases.contract import Contract

CLOSE = 1e-3
"""How far another version of this product may round what a budget means, relatively."""
NUMBER_FACTS = ("mean", "p99", "clipped", "unseen", "discovered_bounds", "clock")
"""What a card says of a number column, where its report does."""
LARGEST_AMOUNT = 10**6
"""An epsilon of a ledger is far below; decimals of a million digits end arithmetic with an error."""


def describe(
    manifest: Manifest,
    contract: Contract,
    report: Mapping[str, Any],
    accounts: Sequence[Standing],
    above: Sequence[Balance],
    weakest: Mapping[str, float],
) -> dict[str, Any]:
    """Collect the facts of a hand-off.

    Args:
        manifest: of the hand-off; the hashes of its files are not looked at.
        contract: what is public of the whole data set.
        report: the facts of the publishable report.
        accounts: where the paying account stood, or that of each client.
        above: the accounts above the paying one, as they are now.
        weakest: the columns that are farthest off by the report, worst first, and how far.
    """
    return {
        "format": 1,
        "hand_off": terms(manifest),
        "meaning": _meant(manifest),
        "given": manifest.operator_says,
        "content": content_of(contract, report),
        "accounts": [
            {**standing.model_dump(mode="json", exclude=_of_one(manifest)), "approved": signer}
            for standing, signer in zip(accounts, _signers(manifest), strict=bool(accounts))
        ],
        "books": [] if manifest.clients else [_book(standing).model_dump(mode="json") for standing in accounts],
        "above": [
            {**one.model_dump(mode="json", include={"account", "delta", "cap"}), "spent": str(one.spent_epsilon)}
            for one in above
        ],
        "quality": {**_quality(report), "weakest": dict(weakest)},
        "limits": list(report["not_promised"]),
    }


def terms(manifest: Manifest) -> dict[str, Any]:
    """Return the facts that follow from a manifest alone; where no epsilon holds, delta and charges are the scores'."""
    first = (manifest.clients or (manifest,))[0]
    return {
        "data_set": manifest.data_set,
        "method": manifest.method,
        "nacre_version": manifest.nacre_version,
        "made_by": manifest.made_by,
        "day": _day(manifest),
        "unit": manifest.unit,
        "adjacency": manifest.adjacency.value,
        "part": manifest.part,
        "delta": (first.price.asked if manifest.clients else manifest.whole_cost).delta if first.is_charged else None,
        "epsilon": str(manifest.whole_cost.epsilon) if manifest.has_price else None,
        **({} if manifest.has_price else {"unprotected": manifest.unprotected}),
        "charges": [
            *(_charge(name, line) for name, line in zip(("release", "report"), manifest.lines_of_run, strict=False)),
            *(_charge("discovery", line) for line in manifest.discoveries or ()),
        ],
        "account": manifest.ledger.account,
        "approved": _signer(manifest, manifest.approved),
        "cautions": list(manifest.cautions or ()),
        "clients": [
            {"name": line.client, "account": line.ledger.account, "epsilon": str(line.price.spent.epsilon)}
            for line in manifest.clients or ()
        ]
        + [{"name": name} for name in manifest.uncharged or ()],
        "dropped": dict(manifest.dropped or {}),
        **({"trust": manifest.trust} if manifest.trust == "central" else {}),
        "schema_sha256": manifest.schema_sha256,
        "release_sha256": manifest.release_sha256,
    }


def _signer(manifest: Manifest, approval: Approval | None) -> dict[str, Any] | None:
    """Say who signed, and whether for its figures and for what the operator declares of it too."""
    if approval is None:
        return None
    figures = {"figures": True} if approval.figures else {}
    declared = {"declared": True} if approval.declared == digest(manifest.operator_says) else {}
    return {"officer": approval.officer, "public_key": approval.public_key, **figures, **declared}


def _signers(manifest: Manifest) -> list[dict[str, Any] | None]:
    """Say who signed for each client, or for the one run."""
    return [_signer(manifest, line.approved) for line in manifest.clients or (manifest,)]


def meaning(manifest: Manifest) -> Meaning:
    """Reckon what the budget of a hand-off means to one unit; clients and documents are protected side by side."""
    lines = manifest.clients or manifest.lines
    heaviest = [max(lines, key=lambda line: line.price.spent.epsilon)] if manifest.clients else lines
    events = [event for line in heaviest for event in line.price.events]
    whole = manifest.whole_cost
    return Meaning.of(events, float(whole.epsilon), whole.delta)


class Book(Frozen):
    """What the ledger says of an account beside its standing, which versions before format 14 would not read there.

    Attributes:
        owner: who answers for it.
        expires: the last day on which it is charged.
        spent: epsilon that it had spent right after each of the earlier charges that its standing names.
    """

    owner: Said = Field(default="", exclude_if=lambda words: not words)
    expires: date | None = Field(default=None, exclude_if=lambda day: day is None)
    spent: tuple[Annotated[Decimal, Field(ge=0, le=LARGEST_AMOUNT)] | None, ...] = Field(
        default=(), max_length=MOST_EARLIER, exclude_if=lambda amounts: not any(amounts)
    )


BOOKS = TypeAdapter(tuple[Book, ...])


def _book(standing: Standing) -> Book:
    spent = tuple(charge.spent for charge in standing.earlier)
    return Book(owner=printable(standing.owner, 300), expires=standing.expires, spent=spent)


def _of_one(manifest: Manifest) -> dict[str, Any]:
    """Return what is left out of the standing of an account, or of each of many."""
    beside: dict[str, Any] = {"owner": True, "expires": True}
    return beside | ({"charges": True, "earlier": True} if manifest.clients else {"earlier": {"__all__": {"spent"}}})


def _meant(manifest: Manifest) -> dict[str, float | None]:
    return meaning(manifest).facts() if manifest.has_price else {}


def differs(folder: Path, manifest: Manifest) -> str:
    """Say how the card of a hand-off differs from its manifest, whose events were found to be sane; empty if not."""
    try:
        with open_plain(folder, folder / CARD) as file:
            card = read_json(file.read(LARGEST_CARD))
        card_terms, meant, declaration = card["hand_off"], card["meaning"], card["given"]
        reckoned = _meant(manifest)
        close = set(reckoned) == set(meant) and all(_close(meant[name], value) for name, value in reckoned.items())
        fault = _accounts_fault(card, manifest)
    except (ArtifactError, OSError):
        return ""  # the check of all files reports that it is missing
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{CARD} is not as nacre writes it"
    if card_terms != terms(manifest):
        return f"{CARD} is about another hand-off, unit, price or approval than the manifest"
    if SHEET in manifest.artifacts and declaration != manifest.operator_says:
        return f"{CARD} says that something else was declared than the manifest does"
    if not close:
        return f"{CARD} says that the budget means something else than its events do"
    return fault


def _accounts_fault(card: Mapping[str, Any], manifest: Manifest) -> str:
    """Say what is wrong with the accounts that a card names, which are those that paid, and with who signed for each.

    A server that only hears from its clients knows no accounts.
    """
    payers = [line.ledger.account for line in manifest.clients or (manifest,)]
    stood = _standings(card)
    _check_books(BOOKS.validate_python(card.get("books", ())), stood, manifest)
    accounts = [one.account for one in stood]
    if accounts != payers and (accounts or (manifest.clients is None and payers != [None])):
        return f"{CARD} tells of an account that did not pay, or not of one that did"
    alone = _signer(manifest, manifest.approved)
    for one, signer in zip(card["accounts"], _signers(manifest), strict=False):
        if one["approved"] not in ((signer,) if manifest.clients else (None, alone)):  # earlier versions wrote None
            name = printable(one["account"])
            return f"{CARD} names an officer whose signature for account {name} is not in {MANIFEST}"
    return ""


def _check_books(books: Sequence[Book], stood: Sequence[Standing], manifest: Manifest) -> None:
    """Check what is said of the accounts beside their standings, of one that paid alone.

    Raises:
        ValueError: it is not what a ledger says.
    """
    if books and (manifest.clients or len(books) != len(stood)):
        raise ValueError("it tells of other accounts")
    last = _day(manifest)
    for book, one in zip(books, stood, strict=False):
        sums = [amount for amount in book.spent if amount is not None]
        if book.spent and len(book.spent) != len(one.earlier):
            raise ValueError("it has sums after other charges than the earlier ones")
        if sums != sorted(sums) or any(amount > one.before for amount in sums):
            raise ValueError("it has sums that do not add up to what had been spent")
        if book.expires and last and book.expires.isoformat() < last:
            raise ValueError("its last day is before the charge")
    if any(one.owner or one.expires or any(charge.spent is not None for charge in one.earlier) for one in stood):
        raise ValueError("it says in a standing what stands beside it")


def facts_of(folder: Path) -> Any:
    """Return the facts of a card that was found to be in order."""
    with open_plain(folder, folder / CARD) as file:
        return read_json(file.read(LARGEST_CARD))


def standings(folder: Path) -> list[Standing]:
    """Return where the accounts stood that paid for a hand-off whose card was found to be in order."""
    return _standings(facts_of(folder))


def balances_above(folder: Path) -> Any:
    """Return what a card, which was found to be in order, says of the accounts above the one that paid."""
    return facts_of(folder)["above"]


def _standings(card: Mapping[str, Any]) -> list[Standing]:
    accounts = [
        Standing.model_validate({key: words for key, words in one.items() if key != "approved"})
        for one in card["accounts"]
    ]
    amounts = [amount for one in accounts for amount in (one.delta, one.cap, one.before, one.after, one.remaining)]
    if any(not 0 <= amount <= LARGEST_AMOUNT for amount in amounts):
        raise ValueError("an amount that no ledger has")
    return accounts


def _close(stated: float | None, reckoned: float | None) -> bool:
    if stated is None or reckoned is None:
        return stated is reckoned
    return abs(stated - reckoned) <= CLOSE * reckoned + 1e-12


def _day(manifest: Manifest) -> str | None:
    """Return the day of the last charge; None where the entries are not known."""
    entries = [line.ledger.entries or () for line in manifest.clients or manifest.lines_of_run]
    return max((entry.day[:10] for some in entries for entry in some), default=None)


def _charge(name: str, line: Line) -> dict[str, Any]:
    return {
        "name": name,
        "epsilon": str(line.price.spent.epsilon),
        "asked_epsilon": line.price.asked.epsilon,
        "charge": line.ledger.charge,
        "plan_sha256": line.plan_sha256,
        "events": [event.model_dump(mode="json") for event in line.price.events],
    }


def _quality(report: Mapping[str, Any]) -> dict[str, Any]:
    """Take from the publishable report the figures that say how good the hand-off is.

    The farthest column is one that is handed over.
    """
    dropped = not_handed_over(report)
    columns = [one for one in report.get("columns", ()) if "distance_to_release" in one]
    received = [one for one in columns if one["name"] not in dropped]
    charged = report.get("charged") or {}
    figures: dict[str, Any] = {"checks": len(report.get("gate", ()))}
    if "headline" in report:
        figures["headline"] = report["headline"]
    if received:
        figures["farthest_column"] = max(one["distance_to_release"] for one in received)
        figures["noise_alone"] = max(one["expected_distance"] for one in received)
    if report.get("fit"):
        figures["fit"] = [{name: one[name] for name in ("look", "left", "explained")} for one in report["fit"]]
    if charged.get("status") == "measured":
        figures["classifiers"] = charged["classifiers"]
    warned = [*columns, *with_doubts(report)]
    figures["warnings"] = [f"{one['name']}: {one['warning']}" for one in warned if "warning" in one]
    if avoid := {one["name"]: one["avoid"] for one in columns if "avoid" in one}:
        figures["avoid"] = avoid
    numbers = {one["name"]: {key: one[key] for key in NUMBER_FACTS if key in one} for one in columns if "mean" in one}
    if numbers:
        figures["numbers"] = numbers
    if "drowned" in report:
        figures["drowned"] = report["drowned"]
    if sorted_uses := all_uses(report):
        figures["uses"] = asdict(sorted_uses)
        figures["not_for"] = not_for(report)
    if judged := marked(report):
        figures["marked"] = judged
        figures["group_means"] = group_means(report)
    if moments := uncounted_moments(report):
        figures["moments"] = moments
    if pale := pale_groups(report):
        figures["pale"] = pale
    if weaker := weaker_pairs(report):
        figures["weaker"] = weaker
    if stronger := stronger_pairs(report):
        figures["stronger"] = stronger
    if strongest := strongest_pair(report):
        figures["strongest"] = strongest
    return figures | _judged(report)


def _judged(report: Mapping[str, Any]) -> dict[str, Any]:
    """Take what the report warns of as a whole, which figures are too far off, and the rules that each row keeps."""
    parts = {
        "cautions": list(report.get("cautions", ())),
        "far": far_figures(report) if known_of(report) else {},
    }
    derived = {one["name"] for one in report.get("derived", ())}
    rules = [f"`{one}`" for one in declared_rules((one["rule"] for one in report.get("gate", ())), derived)]
    return {name: part for name, part in parts.items() if part} | ({"rules": rules} if "gate" in report else {})
