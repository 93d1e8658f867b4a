"""A plan: all that will be charged and measured, decided from public inputs alone."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from dpmodels.accounting.events import Event
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Adjacency, PrivacyBudget
from dpmodels.schema.schema import Schema


class Plan(BaseModel):
    """All that will be charged and measured, decided from public inputs alone.

    Attributes:
        method: name of the system in the registry.
        schema: the public contract of the data, in full: a release can be read with nothing but itself.
        budget: the target.
        event: what the ledger is charged.
        noise_multiplier: noise standard deviation over ``l2_sensitivity``.
        l2_sensitivity: in lattice steps.
        measurement: the method's own public parameters.
        fingerprint: hash of everything drawn from the public seed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
    method: str
    table: Schema
    budget: PrivacyBudget
    event: Event
    noise_multiplier: float
    l2_sensitivity: int
    measurement: dict[str, Any]
    fingerprint: str

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON form."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def check_unit(schema: Schema, budget: PrivacyBudget) -> None:
    """Refuse a budget for another unit of privacy than the schema's, or under replace-one, which no method proves."""
    if budget.adjacency != Adjacency.ADD_OR_REMOVE_ONE:
        raise InvalidArgument("adjacency", budget.adjacency, "be add_or_remove_one: no method plans for another yet")
    if budget.unit != schema.unit:
        raise Unsuitable(f"the budget's unit is {budget.unit} and the schema's {schema.unit}; make them one")
