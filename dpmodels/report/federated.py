"""The publishable report on a federation: who took part, what epsilon means for one record, what the classifier says.

Privacy: post-processing of what the clients released and of public records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.arrays import Floats
from dpmodels.contract.federation import STAYS_INSIDE, Federation
from dpmodels.errors import ArtifactError
from dpmodels.releases.plan import Plan
from dpmodels.report.sections import costs, event_of
from dpmodels.report.terms import terms_of_federation


@dataclass(frozen=True)
class Party:
    """A client: its account, its plan, why it was dropped if it was, and how certain it is of public records.

    Shapes: ``certainty`` [n], or None where the method has no certainties or the client was dropped.
    """

    name: str
    account: str
    plan: Plan
    dropped: str = ""
    certainty: Floats | None = None

    @property
    def epsilon(self) -> Decimal:
        """What its line costs at the line's delta."""
        line = self.plan.release
        return spent_epsilon([line.event], line.budget.delta_exact)


@dataclass(frozen=True)
class Rated:
    """A classifier that was made, and about which public labeled records it is right; None where there are none.

    Shapes: ``right`` [records] of booleans.
    """

    name: str
    right: NDArray[np.bool_] | None = None

    @property
    def accuracy(self) -> float:
        """The share of records that it is right about."""
        return 0.0 if self.right is None else float(self.right.mean())


def compare(rated: Sequence[Rated]) -> dict[str, Any]:
    """Say how good the classifiers are that were made, the one that is handed over first, and which is better."""
    first, *others = rated
    if first.right is None:
        which = f", or whether {others[0].name} would be right more often" if others else ""
        reason = f"No public labeled records were given (round.judge), so nothing tells how often it is right{which}."
        return {"records": 0, "classifiers": [], "words": f"What is handed over is {first.name}. {reason}"}
    records = len(first.right)
    words = [f"Of {records} public labeled records {first.name} is right about {first.accuracy:.1%}."]
    for other in others:
        apart = first.right.astype(float) - np.asarray(other.right, dtype=float)
        close = abs(apart.mean()) <= 2 * apart.std() / np.sqrt(records)
        words.append(f"{other.name[0].upper()}{other.name[1:]} is right about {other.accuracy:.1%}.")
        if close:
            words.append("The difference is within what so many records can tell.")
    if others:
        words.append(f"What is handed over is {first.name}, which no other that was made surpasses.")
    listed = [{"name": one.name, "accuracy": round(one.accuracy, 4)} for one in rated]
    return {"records": records, "classifiers": listed, "words": " ".join(words)}


CLASSIFIERS = ("the ensemble of heads (FedAUX)", "the Gaussians of moments (moments-head)")
"""What is compared. The methods call it so, but whoever checks a report has no need of what trains them."""
NOT_COMPARED = {
    "federated-heads": "It was not compared with moments of the classes, which lose nothing to skew and may be better; "
    "method federated-both releases both under one budget.",
    "federated-moments": "It was not compared with heads of clients; method federated-both releases both under one "
    "budget.",
}


def summarise_federation(
    parties: Sequence[Party],
    hashes: Mapping[str, str],
    probabilities: Floats,
    rated: Sequence[Rated],
    lost: str | None = None,
) -> dict[str, Any]:
    """Collect the publishable facts of a federation.

    Args:
        parties: all clients; one at least took part.
        hashes: those that stand for all clients that took part.
        probabilities: the classifier's probabilities of public records.
        rated: the classifiers that were made, the one that is handed over first.
        lost: says that what was released does not stand out of its noise, where it does not.

    Shapes: probabilities [n, classes].
    """
    participants, plan, contract = _participants(parties)
    heaviest = _heaviest(participants)
    return {
        **terms_of_federation(heaviest.plan.release, heaviest.epsilon, hashes),
        **({"drowned": lost} if lost else {}),
        "compared": compare_all(plan.method, rated),
        "clients": [_client(party, participants) for party in parties],
        "public_records": len(probabilities),
        "classes": _classes(contract, probabilities),
        "measurement": plan.release.measurement,
    }


def summarise_rounds(parties: Sequence[Party], rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Collect what the operator is told of models that stay inside: why they do, who took part, how accurate they are.

    Args:
        parties: all clients; one at least took part.
        rounds: what became of each round.

    Privacy: as sensitive as the models, whose accuracy it holds.
    """
    participants, plan, contract = _participants(parties)
    return {
        "format": 1,
        "about": "rounds",
        "data_set": contract.whole.name,
        "method": plan.method,
        "why": STAYS_INSIDE[plan.method],
        "scores": _priced(participants) if plan.lines else None,
        "rounds": list(rounds),
        "clients": [_client(party, participants) for party in parties],
        "classes": list(contract.classes),
    }


def _participants(parties: Sequence[Party]) -> tuple[list[Party], Plan, Federation]:
    """Return the clients that took part, the plan of the first of them, and the contract that it is about."""
    participants = [party for party in parties if not party.dropped]
    plan = participants[0].plan
    if (contract := plan.contract).kind != "federation":
        raise ArtifactError(f"what {plan.method} was planned for is not a federation")
    return participants, plan, contract


def compare_all(method: str, rated: Sequence[Rated]) -> dict[str, Any]:
    """Compare the classifiers, or say what was not compared."""
    compared = compare(rated)
    if len(rated) == 1 and method in NOT_COMPARED:
        compared["words"] += f" {NOT_COMPARED[method]}"
    return compared


def _classes(contract: Federation, probabilities: Floats) -> list[dict[str, Any]]:
    """Say which share of the public records the classifier puts into each class."""
    shares = np.bincount(probabilities.argmax(axis=1), minlength=probabilities.shape[1]) / max(len(probabilities), 1)
    return [
        {"name": name, "share": round(float(share), 4)} for name, share in zip(contract.classes, shares, strict=True)
    ]


def _priced(participants: Sequence[Party]) -> dict[str, Any]:
    """State the price of what was released."""
    heaviest = _heaviest(participants)
    return {**costs(heaviest.plan.release, heaviest.epsilon), **event_of(heaviest.plan.release)}


def _heaviest(participants: Sequence[Party]) -> Party:
    """Return the client that spent most, which is what all of them together cost."""
    return max(participants, key=lambda party: party.epsilon)


def _client(party: Party, participants: Sequence[Party]) -> dict[str, Any]:
    """Say of one client whether it took part, what it cost, and where it is more certain than all others."""
    facts: dict[str, Any] = {"name": party.name, "account": party.account, "dropped": party.dropped}
    if party.dropped or not party.plan.lines:
        return facts
    facts["epsilon"] = float(party.epsilon)
    if party.certainty is not None:
        all_of_them = np.stack([one.certainty for one in participants if one.certainty is not None])
        facts["certainty"] = round(float(party.certainty.mean()), 4)
        facts["leads"] = round(float((party.certainty >= all_of_them.max(axis=0)).mean()), 4)
    return facts
