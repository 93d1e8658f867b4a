"""The classifier of a federation in rounds: one network, trained on records without noise. No epsilon holds for it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from scipy.special import softmax

from dpmodels.arrays import Floats
from dpmodels.contract.federation import UNPROTECTED, Federation
from dpmodels.late import Tensor
from dpmodels.methods.federations.classifier import FederatedClassifier, damaged, parts_of
from dpmodels.methods.federations.models import Architecture, ModelSpec, State, loaded
from dpmodels.methods.federations.rounds import predict


@dataclass(frozen=True)
class TrainedClassifier:
    """A network's weights, and the contract of the federation that it was trained by."""

    kind: ClassVar[str] = "network"
    contract: Federation
    architecture: Architecture
    model: ModelSpec
    weights: State

    def probabilities(self, inputs: Tensor) -> Floats:
        """Return each class's probability. Shapes: [n, ...] -> [n, classes]."""
        said: Floats = softmax(predict(loaded(self.architecture, self.model, self.weights), inputs), axis=1)
        return said

    def save(self, path: Path) -> None:
        """Write the classifier to one safetensors file, which says that it is not protected."""
        from safetensors.torch import save_file

        facts = {
            "kind": self.kind,
            "contract": self.contract.model_dump(mode="json"),
            "architecture": self.architecture,
            "model": self.model.model_dump(mode="json"),
            "unprotected": UNPROTECTED,
        }
        save_file({name: held.contiguous() for name, held in self.weights.items()}, path, {"nacre": json.dumps(facts)})

    @classmethod
    def load(cls, path: Path) -> "TrainedClassifier":
        """Read a classifier back.

        Raises:
            ArtifactError: the file is missing or damaged.
        """
        facts, tensors = parts_of(path)
        try:
            contract = Federation.model_validate_json(json.dumps(facts["contract"]))
            found = cls(contract, facts["architecture"], ModelSpec.model_validate(facts["model"]), tensors)
            loaded(found.architecture, found.model, found.weights)
        except (KeyError, TypeError, ValueError, RuntimeError) as fault:
            raise damaged(path) from fault
        return found


def load_classifier(path: Path) -> FederatedClassifier | TrainedClassifier:
    """Read the classifier of a hand-off, whatever it was made of.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    facts, _ = parts_of(path)
    return (
        TrainedClassifier.load(path) if facts.get("kind") == TrainedClassifier.kind else FederatedClassifier.load(path)
    )
