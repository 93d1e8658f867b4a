"""Settings with which a method takes well under a second, and small made data for it. A new method is one line here."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pyarrow as pa

from dpmodels.evaluation.audit.made import clinic, colors, mails, pictures
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.releases.system import Synthesizer
from dpmodels.schema.embedded import codec_of
from dpmodels.synthesizers.registry import create

OTHERS = 30
"""Records of a crowd that are not alike."""
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
    """Quick settings of a method; ``data`` makes the tables that it is tried on."""

    measurement: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)
    data: ModuleType = clinic

    @property
    def trained(self) -> bool:
        """Tell whether DP-SGD is among the steps."""
        return "sgd" in self.measurement


QUICK = {
    "nacre": Quick({"fine_cells": 16}, MIXTURE),
    "nacre-images": Quick({"coefficients": 12, "directions": 5}, {"rounds": 1, "images": 100}, pictures),
    "nacre-photos": Quick({"coefficients": 12}, {}, colors),
    "document-moments": Quick({}, {}, mails),
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


def quick_plan(method: str, schema: Any = None, epsilon: float = 1.0) -> Line:
    """Plan a method on the schema of its own data, or on another."""
    schema = schema or QUICK[method].data.make_schema()
    return quick(method).plan(schema, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=schema.unit))


def with_users(method: str, rows: int) -> Any:
    """Return the contract of a method's data whose unit is a user with so many rows."""
    data = QUICK[method].data
    if data is mails:
        return mails.make_schema(protects="user", user="who", most_documents=rows)
    columns = {"who": {"type": "identifier"}, **data.make_schema().model_dump()["columns"]}
    return data.make_schema(unit={"user": "who", "max_rows": rows}, columns=columns)


def crowd(data: ModuleType) -> Any:
    """Return records most of which are alike, so that others lie far outside of what is usual."""
    records = data.make_records(OTHERS)
    return records.take([0] * 300 + list(range(OTHERS)))


def extremes(data: ModuleType) -> Any:
    """Return records at the ends of what the schema allows, or beyond where others lie."""
    codec = codec_of(data.make_schema())
    schema = codec.output_schema if data is mails else data.make_table(1).schema
    return codec.encode(pa.table(data.EXTREMES, schema=schema))


def inserted(records: Any, more: Any, place: int) -> Any:
    """Put records among others, at a place."""
    return type(records).concat([records.take(slice(0, place)), more, records.take(slice(place, None))])
