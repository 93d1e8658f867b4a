"""Settings with which a method takes well under a second, for audits and tests. A new method is one line here."""

from dataclasses import dataclass, field
from typing import Any

from dpmodels.methods.registry import create
from dpmodels.releases.system import Synthesizer

MIXTURE = {"components": 16, "directions": 2, "steps": 5}
NETWORK = {"steps": 3, "batch_size": 16, "frequencies_per_step": 8, "network": {"hidden_dim": 8}}
SGD = {"sgd": {"steps": 20, "sampling_probability": 0.2}, "vae": {"hidden": 8, "imitation_steps": 10, "draws": 2}}
SMALL_GAN = {
    "latent": 4,
    "hidden": 16,
    "critic_hidden": 16,
    "penalty": 10,
    "loss": "wgan-gp",
    "critic_steps": 2,
    "generator_batch": 8,
    "pretraining_steps": 5,
}
GROUPED = {"groups": "layers-biases", "bounds": "quantile", "schedule": "dpkg"}
GAN: dict[str, Any] = {"sgd": {"steps": 20, "sampling_probability": 0.2, "clip_norm": 0.1}, "gan": SMALL_GAN}


@dataclass(frozen=True)
class Quick:
    """Quick settings of a method."""

    measurement: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def trained(self) -> bool:
        """Tell whether DP-SGD is among the steps."""
        return "sgd" in self.measurement


QUICK = {
    "nacre": Quick({"fine_cells": 16}, MIXTURE),
    "nacre-images": Quick({"coefficients": 12, "directions": 5}, {"rounds": 1, "images": 100}),
    "nacre-photos": Quick({"coefficients": 12}),
    "nacre-tree": Quick({"fine_cells": 16, "zooms": 1}, MIXTURE),
    "document-moments": Quick({}),
    "dp-gan": Quick(GAN),
    "dp-gm": Quick({"latent": 4, "clusters": 2, "iterations": 2, **SGD}),
    "dp-merf": Quick({"frequencies": {"count": 16}}, NETWORK),
    "dp-vae": Quick({"latent": 4, **SGD}),
    "dpkg": Quick({"clusters": 2, "iterations": 2, **GAN, "sgd": {**GAN["sgd"], **GROUPED}}),
    "moments": Quick({"cells": 8}, MIXTURE),
    "p3gm": Quick({"directions": 4, "components": 2, "iterations": 2, **SGD}),
    "p3gm-ae": Quick({"directions": 4, "components": 2, "iterations": 2, **SGD}),
    "pearl": Quick({"frequencies": {"count": 16}}, NETWORK),
    "privbayes": Quick({"fine_cells": 16}),
}


def quick(method: str) -> Synthesizer[Any]:
    """Make a method with its quick settings."""
    return create(method, QUICK[method].measurement, QUICK[method].training)
