"""What a private federation hands over: one classifier, made of released heads or sums on a public frozen network.

    x -> z = clip((h(x) - mean) turn) -> an ensemble of the clients' heads, or Gaussians of the classes -> probabilities

All of it is public or was released, so making, copying and using it is post-processing.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import FrozenFeatures
from dpmodels.errors import ArtifactError, FileDamaged, Unsuitable
from dpmodels.late import Tensor, torch
from dpmodels.methods.federations.heads import SHARPNESS, FederatedHeads, Heads, certainty, weighted_ensemble
from dpmodels.methods.federations.heads_and_moments import HeadsAndMoments
from dpmodels.methods.federations.models import Architecture, ModelSpec
from dpmodels.methods.federations.moments_head import Discriminant, MomentsHead
from dpmodels.methods.federations.public_part import features_of, tensors_of
from dpmodels.privacy import Released
from dpmodels.releases.release import Release
from dpmodels.releases.system import System
from dpmodels.statistics.logistic import with_bias


@dataclass(frozen=True)
class Ensemble:
    """The heads of all clients, weighted by how certain each is of a record.

    Shapes: ``scores`` [clients, d + 1]; ``heads`` [clients, classes, d + 1]; ``bias`` and ``sharpness`` [].
    """

    kind: ClassVar[str] = "ensemble"
    scores: Floats
    heads: Floats
    bias: Floats
    sharpness: Floats

    @classmethod
    def of(cls, clients: Sequence[Heads], sharpness: float = SHARPNESS) -> "Ensemble":
        """Put released heads together, which must be of one measurement."""
        scores = np.stack([client.score[0] for client in clients])
        heads = np.stack([client.head for client in clients])
        return cls(scores, heads, np.array(clients[0].problems.head.bias), np.array(sharpness))

    def probabilities(self, z: Whole) -> Floats:
        """Return each class's probability. Shapes: [n, d] -> [n, classes]."""
        phi = with_bias(z, float(self.bias))
        return weighted_ensemble([phi @ head.T for head in self.heads], self.certainties(z), float(self.sharpness))

    def certainties(self, z: Whole) -> list[Floats]:
        """Return how certain each client is of each record. Shapes: [n, d] -> clients times [n]."""
        phi = with_bias(z, float(self.bias))
        return [certainty(score, phi) for score in self.scores]


HEADS: dict[str, type[Ensemble] | type[Discriminant]] = {head.kind: head for head in (Ensemble, Discriminant)}
Head = Ensemble | Discriminant


KNOWN_AS = {"ensemble": "the ensemble of heads (FedAUX)", "gaussians": "the Gaussians of moments (moments-head)"}
"""What the kinds of heads are called in reports."""


def heads_of(system: System[Any], releases: Sequence[Released[Release]], sharpness: float = SHARPNESS) -> list[Head]:
    """Return every head that can be made of what clients released, the best known one first (post-processing).

    Raises:
        Unsuitable: the system is none of a federation's.
    """
    if isinstance(system, FederatedHeads):
        return [Ensemble.of([system.heads(release) for release in releases], sharpness)]
    if isinstance(system, MomentsHead):
        return [system.fit(releases)]
    if isinstance(system, HeadsAndMoments):
        return [Ensemble.of([system.heads(release) for release in releases], sharpness), system.fit(releases)]
    raise Unsuitable(f"no classifier is made of {system.method}")


def signals_of(system: System[Any], releases: Sequence[Released[Release]]) -> list[tuple[float, float | None]]:
    """Return how large what each head is made of was released, in units of its noise: 1 is noise alone.

    The second is the size that noise alone passes in one of fifty cases, for heads of clients: few directions of their
    weights tell classes apart, so these may do so where most of the weights' length is noise. Of moments it is None.
    """
    answers = [system.answers(release.value) for release in releases]
    signals = list[tuple[float, float | None]]()
    if isinstance(system, FederatedHeads | HeadsAndMoments):
        heads = np.stack([answer[1].vector / answer[1].noise_stddev for answer in answers])
        signals.append((float(np.sqrt((heads**2).mean())), float(np.sqrt(1 + 2 * np.sqrt(2 / heads.size)))))
    if isinstance(system, MomentsHead | HeadsAndMoments):
        total = np.sum([answer[-1].vector.astype(np.float64) for answer in answers], axis=0)
        noise = np.linalg.norm([answer[-1].noise_stddev for answer in answers])
        signals.append((float(np.sqrt((total**2).mean()) / noise), None))
    return signals


@dataclass(frozen=True)
class FederatedClassifier:
    """A classifier of records; ``entries`` are the ledgers' entries that paid for it, one a release."""

    contract: Federation
    architecture: Architecture
    model: ModelSpec
    features: FrozenFeatures
    head: Head
    entries: tuple[str, ...]

    def probabilities(self, inputs: Tensor) -> Floats:
        """Return each class's probability. Shapes: [n, ...] -> [n, classes]."""
        return self.head.probabilities(self.features.whole(inputs))

    def save(self, path: Path) -> None:
        """Write the classifier to one safetensors file."""
        from safetensors.torch import save_file

        head = {f"head/{name}": array for name, array in asdict(self.head).items()}
        tensors = {name: torch.from_numpy(np.array(array, order="C")) for name, array in head.items()}
        tensors |= tensors_of(self.features)
        facts = {
            "kind": self.head.kind,
            "contract": self.contract.model_dump(mode="json"),
            "architecture": self.architecture,
            "model": self.model.model_dump(mode="json"),
            "entries": self.entries,
        }
        save_file(tensors, path, metadata={"nacre": json.dumps(facts)})

    @classmethod
    def load(cls, path: Path) -> "FederatedClassifier":
        """Read a classifier back.

        Raises:
            ArtifactError: the file is missing or damaged, or its network is not the one that its contract names.
        """
        facts, tensors = parts_of(path)
        try:
            classifier = cls._of(facts, tensors)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as fault:
            raise FileDamaged(f"classifier {path.name}", "make it again") from fault
        if classifier.features.sha256 != classifier.contract.extractor:
            raise ArtifactError(f"classifier {path.name} has another network than its contract names; make it again")
        return classifier

    @classmethod
    def _of(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> "FederatedClassifier":
        model = ModelSpec.model_validate(facts["model"])
        features = features_of(facts["architecture"], model, tensors)
        parts = {name.removeprefix("head/"): array for name, array in tensors.items() if name.startswith("head/")}
        head = HEADS[facts["kind"]](**{name: tensor.numpy() for name, tensor in parts.items()})
        contract = Federation.model_validate_json(json.dumps(facts["contract"]))
        return cls(contract, facts["architecture"], model, features, head, tuple(facts["entries"]))


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read the facts and the tensors of a classifier's file.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            facts = dict(json.loads(file.metadata()["nacre"]))
            return facts, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as fault:
        raise FileDamaged(f"classifier {path.name}", "make it again") from fault
