"""A federation in the stages: each client is measured, and a classifier is made of what all of them released.

What is made is post-processing of what the clients released, and of public records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.embeddings.frozen import Examples
from dpmodels.hand_off.manifest import digest_of_all
from dpmodels.methods.federations.classifier import (
    KNOWN_AS,
    Ensemble,
    FederatedClassifier,
    Head,
    heads_of,
    signals_of,
)
from dpmodels.methods.federations.heads import SHARPNESS
from dpmodels.methods.federations.public_part import PublicPart
from dpmodels.methods.federations.soft_labels import write_soft_labels
from dpmodels.privacy import Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.report.federated import Party, Rated, summarise_federation
from dpmodels.report.fidelity import DROWNED, lost_in_noise
from tasks.kinds.federation import about, create, is_central, parties_of, public_part, records_of, release_of, round_of
from tasks.kinds.federation import records as records
from tasks.kinds.federation import system as system
from tasks.run.accounts import charges_of
from tasks.run.store import Handle, Run

SYNTHESIZED = COMPARED = False
CLASSIFIER, SOFT_LABELS = "classifier.safetensors", "soft-labels.parquet"


@dataclass(frozen=True)
class Classified:
    """The classifier that is handed over, all that were made, and what it says of public records.

    Shapes: ``said`` [n, classes]; each certainty [n], by client, of none where the method has no certainties.

    Attributes:
        lost: says that what the classifier is made of does not stand out of its noise, where it does not.
    """

    classifier: FederatedClassifier
    rated: list[Rated]
    said: Floats
    certainties: Mapping[str, Floats]
    lost: str | None = None


def facts(run: Run, release: Handle) -> dict[str, Any]:
    """Say who took part, what it cost, and what the classifier says of public records."""
    product, ended = classify(run), round_of(run)
    parties = [
        Party(
            client, party.settings.account, party.plan, ended.dropped.get(client, ""), product.certainties.get(client)
        )
        for client, party in parties_of(run).items()
    ]
    return summarise_federation(parties, charged_once(run, ended.taken), product.said, product.rated, product.lost)


def write(run: Run, folder: Path) -> None:
    """Write the classifier and what it says of public records."""
    product = classify(run)
    product.classifier.save(folder / CLASSIFIER)
    write_soft_labels(folder / SOFT_LABELS, 0, product.classifier.contract.classes, product.said, product.certainties)


def charged_once(run: Run, hashes: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes that stand for those of all clients that took part, and that of the federation's contract."""
    parties = parties_of(run)
    charges = [charges_of(parties[client])[0] for client in hashes]
    return {
        "plan_sha256": digest_of_all(charge.plan_hash for charge in charges),
        "schema_sha256": run.plan.whole.hash,
        "release_sha256": digest_of_all(hashes.values()),
        "ledger_charge": digest_of_all(charge.key for charge in charges),
    }


def classify(run: Run) -> Classified:
    """Make the classifier of what a run's clients released."""
    parties, line = parties_of(run), run.plan.release
    clients = {client: parties[client] for client in round_of(run).taken}
    releases = [release_of(party) for party in (list(clients.values())[:1] if is_central(line) else clients.values())]
    entries = {client: charges_of(party)[0].key for client, party in clients.items()}
    public, sharpness = public_part(run, about(line)), run.settings.training.get("sharpness")
    return made_of(line, releases, entries, public, records_of(run).judge, sharpness)


def made_of(
    line: Line,
    releases: Sequence[Released[Release]],
    entries: Mapping[str, str],
    public: PublicPart,
    judge: Examples | None,
    sharpness: float | None,
) -> Classified:
    """Make every classifier that can be made of releases, and choose the one to hand over (post-processing).

    That is the one that is right about most public labeled records; without such records the first. ``entries`` are,
    by client, those of the ledgers that paid; a sharpness of None is the usual power of certainties.
    """
    system = create(line.method, line.measurement)
    heads = heads_of(system, releases, SHARPNESS if sharpness is None else sharpness)
    paid, contract = tuple(entries.values()), about(line).whole
    models = [
        FederatedClassifier(contract, public.architecture, public.model, public.features, head, paid) for head in heads
    ]
    rated = [Rated(KNOWN_AS[one.head.kind], _right(one, judge)) for one in models]
    order = sorted(range(len(models)), key=lambda index: -rated[index].accuracy)
    best = models[order[0]]
    certainties = _certainties(public, heads, list(entries))
    signal, least = signals_of(system, releases)[order[0]]
    lost = None if _tells(rated[order[0]].right, judge) else lost_in_noise(signal, least or DROWNED)
    probabilities = best.head.probabilities(public.negatives)
    return Classified(best, [rated[index] for index in order], probabilities, certainties, lost=lost)


def _tells(right: NDArray[np.bool_] | None, judge: Examples | None) -> bool:
    """Tell whether a classifier is right about more public records than whoever always says the most frequent class."""
    if right is None or judge is None:
        return False
    chance = np.bincount(judge.labels.numpy()).max() / len(right)
    return bool(right.mean() > chance + 3 * np.sqrt(chance * (1 - chance) / len(right)))


def _right(model: FederatedClassifier, judge: Examples | None) -> NDArray[np.bool_] | None:
    if judge is None:
        return None
    return np.asarray(model.probabilities(judge.inputs).argmax(axis=1) == judge.labels.numpy())


def _certainties(public: PublicPart, heads: list[Head], clients: list[str]) -> dict[str, Floats]:
    """Return how certain each client is of the public records, where its heads say so."""
    certainties = [head.certainties(public.negatives) for head in heads if isinstance(head, Ensemble)]
    return dict(zip(clients, certainties[0], strict=True)) if certainties else {}
