"""The public part of a federation: a frozen extractor made of public records, and the vectors of such records.

It is made before anything is planned, the contract names it by its hashes, and every client gets the same file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dpmodels.arrays import Whole
from dpmodels.embeddings.frozen import Examples, FrozenFeatures, digest_of
from dpmodels.errors import FileDamaged, InvalidArgument, Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.checkpoint import under
from dpmodels.generators.loop import Progress
from dpmodels.late import Tensor, nn, torch
from dpmodels.methods.federations.models import Architecture, ModelSpec, build, extractor_of, loaded
from dpmodels.methods.federations.pretraining import PretrainingSpec, pretrain
from dpmodels.methods.federations.records import RecordsSpec

LEAST_PUBLIC = 64


class ExtractorSpec(Frozen):
    """How the public extractor is made.

    Attributes:
        features: size of a record's vector; width: of the network, see ``ModelSpec``.
        pretraining: settings of the contrastive pre-training on the public records; None leaves the network random.
        negatives: most public records that clients tell their own from.
    """

    architecture: Architecture = "mlp"
    width: Annotated[int, Field(ge=4, le=256, multiple_of=4)] = 16
    features: Annotated[int, Field(ge=1, le=8192)] = 32
    pretraining: PretrainingSpec | None = PretrainingSpec(steps=300, batch_size=256)
    negatives: Annotated[int, Field(ge=1, le=100_000)] = 1000
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


@dataclass(frozen=True)
class PublicPart:
    """The extractor, and the vectors of public records. Shapes: ``negatives`` [n, d]."""

    architecture: Architecture
    model: ModelSpec
    features: FrozenFeatures
    negatives: Whole
    records: RecordsSpec

    @classmethod
    def make(
        cls,
        auxiliary: Tensor,
        records: RecordsSpec,
        classes: int,
        spec: ExtractorSpec,
        progress: Progress | None = None,
    ) -> "PublicPart":
        """Pre-train a network on public records, and fit the map of its features to them.

        Raises:
            InvalidArgument: there are too few public records, or the architecture is for other records.
        """
        if len(auxiliary) < LEAST_PUBLIC:
            raise InvalidArgument("public", len(auxiliary), f"be at least {LEAST_PUBLIC} public records")
        if (spec.architecture == "mlp") != (len(records.record) == 1):
            raise InvalidArgument("architecture", spec.architecture, "be mlp for a table, and another one for images")
        model = ModelSpec(inputs=records.record, classes=classes, width=spec.width)
        mean, scale = _spread(auxiliary)
        network = build(spec.architecture, model, spec.seed)
        if spec.pretraining is not None:
            even = (auxiliary - mean) / scale
            state = pretrain(spec.architecture, model, even, spec.pretraining, spec.seed, progress)
            network = loaded(spec.architecture, model, state)
        _take_in(network.extractor, mean, scale)
        features = FrozenFeatures.of_public(network.extractor, auxiliary, spec.features)
        return cls(spec.architecture, model, features, features.whole(auxiliary[: spec.negatives]), records)

    @property
    def terms(self) -> dict[str, Any]:
        """Return what a federation's contract says of the public part."""
        return {
            "features": self.features.turn.shape[1],
            "extractor": self.features.sha256,
            "negatives": len(self.negatives),
            "auxiliary": digest_of(self.negatives),
        }

    def to_bytes(self) -> bytes:
        """Write the public part as safetensors."""
        from safetensors.torch import save

        tensors = {**tensors_of(self.features), "negatives": torch.from_numpy(self.negatives)}
        facts = {
            "architecture": self.architecture,
            "model": self.model.model_dump(mode="json"),
            "records": self.records.model_dump(mode="json"),
        }
        return save(tensors, metadata={"nacre": json.dumps(facts)})

    @classmethod
    def of_bytes(cls, content: bytes) -> "PublicPart":
        """Read the public part back.

        Raises:
            ArtifactError: the file is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            size = int.from_bytes(content[:8], "little")
            facts = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["nacre"])
            tensors, model = load(content), ModelSpec.model_validate(facts["model"])
            records, negatives = RecordsSpec.model_validate(facts["records"]), tensors["negatives"].numpy()
            if model.inputs != records.record:
                raise ValueError("the extractor is one of other records")
            features = features_of(facts["architecture"], model, tensors)
            if negatives.dtype != np.int64 or negatives.shape[1:] != features.turn.shape[1:]:
                raise ValueError("the public vectors are none of this extractor's")
            return cls(facts["architecture"], model, features, negatives, records)
        except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RuntimeError, Unsuitable) as fault:
            raise FileDamaged("the public part of the federation", "start a new run") from fault


@dataclass(frozen=True)
class PublicRecords:
    """Public records that are kept with a run: those that a round distills on, and labeled ones that judge classifiers.

    Shapes: ``distilled`` [n, ...], of no record where nothing is distilled.
    """

    distilled: Tensor
    judge: Examples | None = None

    def to_bytes(self) -> bytes:
        """Write the records as safetensors."""
        from safetensors.torch import save

        labeled = {} if self.judge is None else {"inputs": self.judge.inputs, "labels": self.judge.labels}
        return save({name: tensor.contiguous() for name, tensor in {"distilled": self.distilled, **labeled}.items()})

    @classmethod
    def of_bytes(cls, content: bytes) -> "PublicRecords":
        """Read the records back."""
        from safetensors.torch import load

        tensors = load(content)
        judge = Examples(tensors["inputs"], tensors["labels"]) if "inputs" in tensors else None
        return cls(tensors["distilled"], judge)


def tensors_of(features: FrozenFeatures) -> dict[str, Tensor]:
    """Return everything that a frozen map is made of, by name."""
    arrays = {"mean": features.mean, "turn": features.turn}
    tensors = {name: torch.from_numpy(array).contiguous() for name, array in arrays.items()}
    tensors["radius"] = torch.tensor(features.radius, dtype=torch.float64)
    network = features.network.state_dict()
    return tensors | {f"network/{name}": tensor.cpu().contiguous() for name, tensor in network.items()}


def features_of(architecture: Architecture, model: ModelSpec, tensors: Mapping[str, Tensor]) -> FrozenFeatures:
    """Return the frozen map that is made of these tensors.

    Raises:
        ValueError: they are no affine map, or of an extractor of other sizes.
    """
    if tensors["mean"].dim() != 1 or tensors["turn"].dim() != 2:
        raise ValueError("the map of the extractor's features is not affine")
    network = extractor_of(architecture, model, under("network/", tensors))
    return FrozenFeatures(network, tensors["mean"].numpy(), tensors["turn"].numpy(), float(tensors["radius"]))


def _spread(auxiliary: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each column of public tables; images stay as they are."""
    if auxiliary.dim() > 2:
        return torch.zeros(()), torch.ones(())
    numbers = auxiliary.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return numbers.mean(dim=0), numbers.std(dim=0).clamp(min=1e-6)


def _take_in(extractor: "nn.Module", mean: Tensor, scale: Tensor) -> None:
    """Have the first layer of a table's network standardize its columns, so that the network takes them as they are."""
    if mean.dim() == 0:
        return
    first = next(layer for layer in extractor.modules() if isinstance(layer, torch.nn.Linear))
    with torch.no_grad():
        first.weight.div_(scale)
        first.bias.sub_(first.weight @ mean)
