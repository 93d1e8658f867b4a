"""What is made of a federation's round: classifiers, what they say of public records, the report and the hand-off.

All of it is post-processing of what the clients released, and of public records.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.embeddings.frozen import Examples
from dpmodels.methods.federations.classifier import (
    KNOWN_AS,
    SHARPNESS,
    Ensemble,
    FederatedClassifier,
    Head,
    heads_of,
    signals_of,
)
from dpmodels.methods.federations.public_part import PublicPart
from dpmodels.methods.federations.soft_labels import write_soft_labels
from dpmodels.pages.report import render
from dpmodels.privacy import Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.report.federated import Party, Rated, summarise_federation
from dpmodels.report.fidelity import DROWNED, lost_in_noise
from tasks.kinds.federation import about, create, is_central, public_part, records_of
from tasks.run.accounts import charges_of
from tasks.run.store import Handle, Run, write_report
from tasks.stages.federate import parties_of, release_of, round_of
from tasks.stages.publish import assemble, charged_once
from tasks.stages.stage import stage

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


@stage("validate", sensitive=False)
def report(run: Run, gathered: Handle) -> Handle:
    """Write the publishable report: who took part, what it cost, and what the classifier says of public records."""
    if done := run.finished("validate"):
        return done
    made, ended = classify(run), round_of(run)
    parties = [
        Party(client, own.settings.account, own.plan, ended.dropped.get(client, ""), made.certainties.get(client))
        for client, own in parties_of(run).items()
    ]
    facts = summarise_federation(parties, charged_once(run, ended.taken), made.said, made.rated, made.lost)
    write_report(run, {"report.json": json.dumps(facts, indent=1), "report.html": render(facts)})
    return run.finish("validate")


@stage("publish", sensitive=False)
def hand_over(run: Run, gathered: Handle, report: Handle) -> Handle:
    """Write the classifier and what it says of public records, with report and manifest."""

    def write(folder: Path) -> None:
        made = classify(run)
        made.classifier.save(folder / CLASSIFIER)
        write_soft_labels(folder / SOFT_LABELS, 0, made.classifier.contract.classes, made.said, made.certainties)

    return assemble(run, gathered, report, write)


def classify(run: Run) -> Classified:
    """Make the classifier of what a run's clients released."""
    parties, line = parties_of(run), run.plan.release
    taken = {client: parties[client] for client in round_of(run).taken}
    releases = [release_of(party) for party in (list(taken.values())[:1] if is_central(line) else taken.values())]
    entries = {client: charges_of(party)[0].key for client, party in taken.items()}
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
    made = [
        FederatedClassifier(contract, public.architecture, public.model, public.features, head, paid) for head in heads
    ]
    rated = [Rated(KNOWN_AS[one.head.kind], _right(one, judge)) for one in made]
    order = sorted(range(len(made)), key=lambda place: -rated[place].accuracy)
    best = made[order[0]]
    certainties = _certainties(public, heads, list(entries))
    signal, least = signals_of(system, releases)[order[0]]
    lost = None if _tells(rated[order[0]].right, judge) else lost_in_noise(signal, least or DROWNED)
    said = best.head.probabilities(public.negatives)
    return Classified(best, [rated[place] for place in order], said, certainties, lost=lost)


def _tells(right: NDArray[np.bool_] | None, judge: Examples | None) -> bool:
    """Tell whether a classifier is right about more public records than whoever always says the most frequent class."""
    if right is None or judge is None:
        return False
    chance = np.bincount(judge.labels.numpy()).max() / len(right)
    return bool(right.mean() > chance + 3 * np.sqrt(chance * (1 - chance) / len(right)))


def _right(made: FederatedClassifier, judge: Examples | None) -> NDArray[np.bool_] | None:
    if judge is None:
        return None
    return np.asarray(made.probabilities(judge.inputs).argmax(axis=1) == judge.labels.numpy())


def _certainties(public: PublicPart, heads: list[Head], clients: list[str]) -> dict[str, Floats]:
    """Return how certain each client is of the public records, where its heads say so."""
    found = [head.certainties(public.negatives) for head in heads if isinstance(head, Ensemble)]
    return dict(zip(clients, found[0], strict=True)) if found else {}
