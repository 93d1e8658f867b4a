"""A trained generator made of decoders: one, or one for each cluster, with priors and released counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import Vectors
from dpmodels.generators.checkpoint import filled, under
from dpmodels.generators.heads import head_of
from dpmodels.generators.model_file import write_model
from dpmodels.generators.operators.network import NetworkShape, OperatorNetwork, OperatorPart
from dpmodels.generators.sampling import Sampler, draw_cells
from dpmodels.late import Tensor, torch

if TYPE_CHECKING:
    from dpmodels.generators.vae import Decoder, Prior


@dataclass
class VaeModel(Sampler):
    """Draws a decoder and a class by their released counts, z from the prior, and a record from the decoder.

    Shapes: ``class_counts`` [decoders, classes] float64, noisy and possibly negative; ``stddev`` [dim], of values.
    """

    batch_rows: ClassVar[int] = 8192
    vectors: Vectors
    decoders: "list[Decoder]"
    priors: "list[Prior]"
    class_counts: Tensor
    stddev: Tensor
    release_entry: str

    def __post_init__(self) -> None:
        self.schema: Schema = self.vectors.schema

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        head = head_of(self.vectors, self.stddev)
        randomness = torch.Generator().manual_seed(int(rng.integers(2**32)))  # torch takes no more
        which, y = draw_cells(self.class_counts, rows, randomness)
        out = torch.zeros(rows, head.outputs)
        for index, (decoder, prior) in enumerate(zip(self.decoders, self.priors, strict=True)):
            members = which == index
            with torch.no_grad():
                out[members] = decoder(prior.sample(y[members], randomness), y[members])
        return head.draw(out, y, randomness)

    def save(self, path: Path) -> None:
        tensors = {"counts": self.class_counts, "stddev": self.stddev}
        for index, (decoder, prior) in enumerate(zip(self.decoders, self.priors, strict=True)):
            # an operator's network may name one weight twice, and a file holds no tensor twice
            tensors |= {f"{index}/decoder/{key}": value.clone() for key, value in decoder.state_dict().items()}
            tensors |= {f"{index}/prior/{key}": value for key, value in prior.state_dict().items()}
        facts: dict[str, Any] = {
            "most_cells": self.vectors.most_cells,
            "numbers": self.vectors.kind,
            "release_entry": self.release_entry,
        }
        if part := getattr(self.decoders[0], "part", None):
            facts["operator"] = {"network": part.network.model_dump(), "shape": part.shape._asdict(), "seed": part.seed}
        write_model(path, "vae", self.schema, tensors, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "VaeModel":
        """Rebuild what ``save`` wrote."""
        decoders, priors, part = [], [], _part(facts.get("operator"))
        for index in range(len(tensors["counts"])):
            decoders.append(_decoder(under(f"{index}/decoder/", tensors), part))
            priors.append(_prior(under(f"{index}/prior/", tensors)))
        vectors = Vectors(facts["schema"], facts["most_cells"], 1.0, facts["numbers"])
        return cls(vectors, decoders, priors, tensors["counts"], tensors["stddev"], facts["release_entry"])


def _part(facts: Mapping[str, Any] | None) -> OperatorPart | None:
    """Read which network an operator brought; its class comes from the operator's file here, or there is none."""
    if facts is None:
        return None
    sizes, image = facts["shape"], facts["shape"]["image"]
    shape = NetworkShape(**{**sizes, "image": image and tuple(image)})
    return OperatorPart(OperatorNetwork.model_validate(facts["network"]), shape, facts["seed"])


def _decoder(state: dict[str, Tensor], part: OperatorPart | None) -> "Decoder":
    from dpmodels.generators.vae import Decoder, OperatorDecoder

    latent, outputs = state["base_weight"].shape
    if part:
        return filled(lambda: OperatorDecoder(latent, part), state).eval()
    hidden, inputs = state["net.0.weight"].shape
    return filled(lambda: Decoder(latent, inputs - latent, outputs, hidden), state).eval()


def _prior(state: dict[str, Tensor]) -> "Prior":
    from dpmodels.generators.vae import Prior

    classes, _, latent = state["means"].shape
    prior = Prior.standard(classes, latent)
    for name, value in state.items():
        setattr(prior, name, value)
    return prior
