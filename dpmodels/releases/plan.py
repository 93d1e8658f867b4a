"""A plan: all that a run will charge and measure, line by line, decided from public inputs alone."""

import hashlib
import json
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_serializer,
    model_validator,
)

from dpmodels.accounting.events import Event, GaussianEvent, leaves
from dpmodels.contract.federation import ROUNDS
from dpmodels.contract.schema import Schema
from dpmodels.errors import ArtifactError
from dpmodels.frozen import Frozen
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.contract import AnyContract, Contract, read_contract, table_of, write_contract

RELEASE, REPORT = "release", "report"
"""Names of the lines of a run on a table: its release, and the charged scores of its report if they were asked for."""


LATE = ("floor",)
"""Parameters that came after lines were written without them: None is what such lines meant, and is not written."""


class Former(Frozen):
    """What is kept of a line that was written in format 1, or in format 2 with fewer parameters.

    Attributes:
        hash: hash of that line as it was written, by which the ledger and the hand-offs know the line.
        scale: L2 sensitivity (in lattice steps) and noise multiplier whose product was the one noise scale of all sums;
            None where every sum had a scale of its own. The last bits of the scale may decide where cells were cut.
    """

    hash: str
    scale: tuple[int, float] | None = None


class Line(BaseModel):
    """One measurement of a plan and its price: one charge, or one for each part of the data.

    Attributes:
        name: name of the line in the plan.
        part: "" for the whole data set, otherwise the kind of part; each part is charged on its own.
        method: name of the system that plans, measures and reads the line.
        contract: everything public about the data, in full, so that a release can be read with nothing but itself.
        budget: the target; event: what the ledger is charged.
        measurement: all public parameters of the method; none is left to the defaults of a version.
        fingerprint: hash of what the method makes of contract and parameters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
    name: str = RELEASE
    part: str = ""
    method: str
    contract: AnyContract
    budget: PrivacyBudget
    event: Event
    measurement: dict[str, Any]
    fingerprint: str
    former: Former | None = Field(default=None, exclude_if=lambda given: given is None)

    @field_serializer("measurement")
    def _without_late(self, measurement: dict[str, Any]) -> dict[str, Any]:
        """Leave out what a line of an earlier version lacks, so that its text and its hash stay."""
        return _without(measurement)

    @property
    def table(self) -> Schema:
        """The contract of a method that is for tables; of users and their rows the one flat table that is measured."""
        return table_of(self.contract).flat

    @property
    def family(self) -> str:
        """The kind of part of which one charge pays for all; a partition of a table is charged to its own account."""
        return "" if self.contract.is_table else self.part

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON form; for a line of an earlier version the hash that it had there."""
        return self.former.hash if self.former else canonical_hash(self.model_dump(mode="json"))

    def noise(self, event: GaussianEvent, l2_sensitivity: int) -> tuple[int, float]:
        """Return the sensitivity and the noise multiplier whose product is the noise scale of a sum."""
        return (self.former and self.former.scale) or (l2_sensitivity, event.noise_multiplier)

    def noise_stddev(self, step: int, l2_sensitivity: int) -> float:
        """Return the standard deviation of the noise of the sum that takes event number ``step``.

        Units: ``l2_sensitivity`` of the sum, and the standard deviation, in lattice steps.
        """
        event = list(leaves([self.event]))[step]
        if not isinstance(event, GaussianEvent):
            raise ArtifactError(f"step {step} of line {self.name} is charged as {event.kind}, which no sum is")
        return lattice_noise_stddev(*self.noise(event, l2_sensitivity))


class Plan(Frozen):
    """The lines of one run, all about the same data, or one for each client of a federation.

    Attributes:
        about: the federation, or the client of it, of a plan without lines: nothing is drawn, so nothing is charged.
    """

    format: Literal[2] = 2
    lines: tuple[Line, ...]
    about: AnyContract | None = None

    @property
    def release(self) -> Line:
        """The first line: what the run releases.

        Raises:
            ArtifactError: the plan has no line, because nothing is released under differential privacy.
        """
        if not self.lines:
            raise ArtifactError("this run releases nothing under differential privacy, so no line of a plan is charged")
        return self.lines[0]

    @property
    def contract(self) -> Contract:
        """What is public of the data that the first line is about, or the plan if it has no line."""
        return self.about or self.release.contract

    @property
    def method(self) -> str:
        """What makes the run's product."""
        return ROUNDS if self.about else self.release.method

    @property
    def family(self) -> str:
        """The kind of part of which one charge of the first line pays for all."""
        return "client" if self.about else self.release.family

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients of a federation, one a line; empty for every other plan, that of a single client included."""
        clients = tuple(line.contract.client for line in self.lines)
        return clients if len(clients) > 1 and all(clients) else ()

    @property
    def whole(self) -> Contract:
        """What all lines together are about: the federation, where each is about one of its clients."""
        return self.contract.whole if self.clients else self.contract

    @property
    def report(self) -> Line | None:
        """The line of the report's charged scores, if the run was asked for them."""
        return next((line for line in self.lines if line.name == REPORT), None)

    def __getitem__(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    @property
    def events(self) -> list[Event]:
        """The events that all lines charge."""
        return [line.event for line in self.lines]

    @model_validator(mode="before")
    @classmethod
    def _hand_out(cls, data: Any) -> Any:
        """Give every line the contract, which the file holds once."""
        if not isinstance(data, dict) or "contract" not in data:
            return data
        rest = {key: value for key, value in data.items() if key != "contract"}
        if not data["lines"]:
            return {**rest, "about": data["contract"]}
        return {**rest, "lines": [_with_contract(line, data["contract"]) for line in data["lines"]]}

    @model_serializer(mode="wrap")
    def _write_once(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if self.about:
            return {"format": written["format"], "contract": written["about"], "lines": []}
        contract = written["lines"][0]["contract"]
        for line in written["lines"]:
            del line["contract"]
        if self.clients:
            contract = write_contract(self.whole)
            for line, client in zip(written["lines"], self.clients, strict=True):
                line["client"] = client
        return {"format": written["format"], "contract": contract, "lines": written["lines"]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.about is not None and self.about.kind == "federation") == bool(self.lines):
            raise ValueError("a plan has lines, or says which federation it charges nothing for")
        names = [(line.name, line.contract.name) for line in self.lines]
        about = {line.contract.hash if not self.clients else line.contract.whole.hash for line in self.lines}
        if len(set(names)) < len(names) or len(about) > 1:
            raise ValueError("the lines of a plan have names of their own and are about the same data")
        return self


def _with_contract(line: dict[str, Any], contract: Any) -> dict[str, Any]:
    """Give a line the contract of its plan, or of the client of it that the line names."""
    if client := line.get("client", ""):
        whole = read_contract(contract)
        contract = whole.of(client) if whole.kind == "federation" else None
    return {**{key: value for key, value in line.items() if key != "client"}, "contract": contract}


def _without(measurement: dict[str, Any]) -> dict[str, Any]:
    written = {key: value for key, value in measurement.items() if value is not None or key not in LATE}
    return {key: _without(value) if isinstance(value, dict) else value for key, value in written.items()}


def canonical_hash(content: Any) -> str:
    """Return the SHA-256 of content in its canonical JSON form."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
