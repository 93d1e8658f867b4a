"""What of a publishable report follows from its plan: the price, whom it hides, and what it does not promise.

Each kind of data has one function. A report is made of it and of figures; a check of a hand-off makes it again, of the
manifest and the contract.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import PureEvent, leaves
from dpmodels.accounting.meaning import factor_in_words, guesses_of_budget
from dpmodels.contract.federation import STAYS_INSIDE
from dpmodels.privacy import Adjacency
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import unpriced
from dpmodels.releases.plan import Line
from dpmodels.report.sections import costs, event_of, hashes_of, heading, privacy_of

Facts = dict[str, Any]
DISCOVERED = (
    "The columns' names, and the bounds and categories that a person wrote into the schema, are public and not "
    "protected; those that schema.yaml names as discovered were released with noise, and the total has their price."
)
UNPRICED = (
    "Bounds and categories that schema.yaml names as from a charged release were paid for by a charge of their own, "
    "whose price is NOT in this total: add it."
)
OF_TABLES = (
    "The columns' names, bounds and categories come from the declared schema and are not protected.",
    "Synthetic rows are drawn from a noisy model: single rows describe nobody, and rare groups can be wrong. A row may "
    "equal a real one by chance, which is no sign that somebody is in the data.",
    "The guarantee covers this release. Further releases about the same people add up, in one ledger account.",
)
ROWS_ALONE = (
    "What is made are rows and not users: no synthetic row belongs to anybody, and how many rows a user has is not "
    "kept. In the schema, `users` keeps it."
)
OF_UNITS = (
    "Of tables below that of the units, all figures are of units: each unit weighs one, however many rows it has, so a "
    "mean that is stated is no average over the rows of a table."
)
PUBLIC = "Public tables are handed over as they are ({}): nothing that is in them is hidden."
UNCOMPARED = "Nothing here compares with the real rows: such figures are exact statistics of them and stay inside."
COMPARED = "Of the real rows there are only the scores that were charged for: exact figures of them stay inside."
OF_DOCUMENTS = (
    "That a document is in the data, its id, and everything else that its contract calls public are not hidden.",
    "Encoder, candidates and networks are public, and an embedding follows from them and from what was released alone.",
    "The guarantee covers this release. Further releases about the same documents add up, in one ledger account.",
    "Nothing here compares with the real documents: such figures are exact statistics of them and stay inside.",
)
SENTENCES = (1, 2, 5, 10, 25)
DISJOINT = "Clients are declared disjoint. A record that two clients hold is charged at each, and their costs add up."
SHARED = (
    "Clients are declared disjoint. A record that two clients hold is in the one total twice, which costs more than "
    "two releases with a noise each: as much as one with half the noise."
)
OF_FEDERATIONS = (
    "Which clients there are, that one takes part or was dropped, and everything else that the contract says are not "
    "hidden.",
    "The extractor and the public records are public, and no client's record may be among them.",
    "The guarantee covers this release. Further releases of a client add up, in its own account.",
    "It is for one record of one client. A person who has several records, at one client or more, is hidden less.",
    "Nothing here compares with the clients' records: such figures are exact statistics of them and stay inside.",
)


def terms_of_table(line: Line, release_sha256: str, entry: str, charged: Mapping[str, Any] | None) -> Facts:
    """Return the terms of synthetic rows.

    Args:
        line: what was planned and paid for.
        release_sha256: of the release's file.
        entry: the ledger's charge.
        charged: the scores on real rows that were charged for, if the run was asked for them.
    """
    sealed = {key: (charged or {})[key] for key in ("scores_sha256",) if key in (charged or {})}
    return {
        **heading(line.contract, line.method),
        "privacy": privacy_of(line, charged),
        "hashes": hashes_of(line, release_sha256, entry) | sealed,
        **(
            {"rows_are": "users"}
            if line.contract.users
            else {"rows_are": "units"}
            if line.contract.kind == "tree"
            else {}
        ),
        "not_promised": _not_promised(line.contract, charged),
    }


def _not_promised(contract: Contract, charged: Mapping[str, Any] | None) -> list[str]:
    """Say what is not promised, where the keys of the schema are from, and what is said of the real rows."""
    first, *others = OF_TABLES
    return [
        DISCOVERED if contract.discovered else first,
        *others,
        *([UNPRICED] if unpriced(contract) else []),
        *([ROWS_ALONE] if contract.makes_rows_alone else []),
        *([OF_UNITS] if contract.kind == "tree" else []),
        *([PUBLIC.format(", ".join(contract.public))] if contract.kind == "tree" and contract.public else []),
        COMPARED if charged and charged["status"] == "measured" else UNCOMPARED,
    ]


def terms_of_documents(line: Line, release_sha256: str, entry: str) -> Facts:
    """Return the terms of documents that are embedded one by one; arguments as of a table."""
    each = epsilon_of_a_document(line)
    return {
        **heading(line.contract, line.method, about="embeddings"),
        "cautions": cautions(line),
        "privacy": {
            "unit": str(line.budget.unit),
            "adjacency": line.budget.adjacency.value,
            "part": line.part,
            "epsilon_of_a_document": each,
            **costs(line, spent_epsilon([line.event], line.budget.delta_exact)),
            **event_of(line),
            "sentences": [_worst(each, number) for number in SENTENCES],
        },
        "hashes": hashes_of(line, release_sha256, entry),
        "not_promised": list(OF_DOCUMENTS),
    }


def _worst(epsilon: float, sentences: int) -> Facts:
    """Say what is left of the guarantee for so many sentences of one document: a pure epsilon for each adds up."""
    whole = sentences * epsilon
    return {
        "sentences": sentences,
        "epsilon": round(whole, 9),
        "factor": factor_in_words(whole),
        "right_guesses": guesses_of_budget(whole),
    }


def terms_of_federation(line: Line, spent: Decimal, hashes: Mapping[str, str]) -> Facts:
    """Return the terms of a federation.

    Args:
        line: of the client that spent most.
        spent: by that client.
        hashes: those that stand for all clients that took part.
    """
    contract = line.contract
    return {
        **heading(contract.whole, line.method, about="federation"),
        "cautions": cautions(line),
        "privacy": {
            "unit": str(contract.unit),
            "adjacency": contract.adjacency.value,
            "part": contract.part,
            **costs(line, spent),
            **event_of(line),
            "rows_of_a_unit": contract.unit.max_rows,
        },
        "unprotected": "",  # what has no price is not reported; the field is one of format 2
        "hashes": dict(hashes),
        "trust": "central" if is_central(line) else "local",
        "sizes_are_public": _is_replaced(contract),
        "not_promised": list(OF_FEDERATIONS),
    }


def cautions(line: Line) -> list[str]:
    """Say what the guarantee of a line that is charged by parts does not cover; of public parameters alone."""
    return _cautions_of_clients(line) if line.contract.kind == "federation" else _cautions_of_sentences(line)


def _cautions_of_sentences(line: Line) -> list[str]:
    """Say how weak the guarantee is for more than one sentence."""
    each, whole = epsilon_of_a_document(line), float(spent_epsilon([line.event], line.budget.delta_exact))
    sentences = [
        f"WEAK FOR A WHOLE DOCUMENT: epsilon={each:g} hides what ONE sentence of a document says. k sentences together "
        f"are hidden with k times as much at worst: 10 sentences with epsilon={10 * each:g}, next to nothing.",
        "To hide whole documents, or all that a user wrote, take the collection-level release, which needs less "
        "epsilon: `nacre synthesize --method moments` with a contract that protects documents or users.",
    ]
    if line.part == "user":
        most = round(whole / each)
        sentences.insert(
            1, f"A sentence that a user repeats in all of at most {most} documents costs epsilon={whole:g}."
        )
    return sentences


def epsilon_of_a_document(line: Line) -> float:
    """Return the epsilon for one sentence in one document; one user's documents are charged one after another."""
    return max(event.epsilon for event in leaves([line.event]) if isinstance(event, PureEvent))


def _cautions_of_clients(line: Line) -> list[str]:
    """Say what one record at one client is, and who has to be trusted."""
    hidden = (
        "what one record says, and not that it is there,"
        if _is_replaced(line.contract)
        else "whether one record is there"
    )
    trusted = (
        "CENTRAL TRUST: the process of the aggregator read the exact sums of every client's records, without any "
        "noise, and drew one noise for all. Whoever controls that process or its disk could have read them."
    )
    if line.method in STAYS_INSIDE:
        return [
            STAYS_INSIDE[line.method],
            f"Of the certainty scores, and of nothing else, epsilon hides {hidden} at one client.",
        ]
    return [
        *([trusted] if is_central(line) else []),
        f"Epsilon hides {hidden} at one client. It does not hide the client: that it takes part is public.",
        SHARED if is_central(line) else DISJOINT,
    ]


def is_central(line: Line) -> bool:
    """Tell whether a trusted aggregator draws one noise for all clients."""
    return line.measurement.get("trust") == "central"


def _is_replaced(contract: Contract) -> bool:
    return contract.adjacency == Adjacency.REPLACE_ONE
