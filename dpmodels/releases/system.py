"""What every system does: it plans, it says step by step what it measures, and it fits a generator to the release.

plan(contract, budget)    -> Line        what it will charge; touches no data
programme(design)         -> steps       what it measures, each step chosen from what those before it released
fit(release, craft)       -> Generator   post-processing, free for ever

The three share a ``design``: what the system makes of its public parameters and the contract, such as cells, weights
and sensitivities. The design is made for the plan. Whenever something is measured or read it is made again and compared
with the plan's fingerprint.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel

from dpmodels.accounting.events import Event, GaussianEvent, ParallelEvent, leaves
from dpmodels.contract.schema import Schema
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.loop import Progress
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.contract import Contract, check_contract, check_kept_whole
from dpmodels.releases.draw import Desk, draw, read
from dpmodels.releases.plan import RELEASE, Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum, Programme, Sum

Design = TypeVar("Design")


class Generator(Protocol):
    """A trained generator; sampling is post-processing."""

    def default_rows(self) -> int:
        """Return the released (noisy) number of records."""

    def sample(self, rows: int, seed: int) -> Iterator[Any]:
        """Yield batches of synthetic records; the same (rows, seed) gives the same records."""

    def save(self, path: Path) -> None:
        """Write the generator to one safetensors file."""


@dataclass(frozen=True)
class Craft:
    """What fitting needs besides the release.

    Attributes:
        checkpoint: where a long fit keeps the state from which it can go on; None for no checkpoint.
    """

    seed: int = 0
    device: str = "cpu"
    checkpoint: Path | None = None
    progress: Progress | None = None


class System(ABC, Generic[Design]):
    """A measurement: planned, charged, drawn and read.

    Attributes:
        method: name in the registry; measurement: the pydantic model of the public parameters.
        line: name of the line that the system plans; about: what contracts that the system is for are about.
        whole_units: whether parts that are measured side by side keep a unit whole whatever its rows hold.
        takes_users: whether the system measures users and their rows as two tables (the schema's key ``users``).
        takes_workload: whether it measures more closely what will be asked for (the schema's key ``workload``).
    """

    method: str
    measurement: Any
    line: ClassVar[str] = RELEASE
    about: ClassVar[str] = "a table"
    whole_units: ClassVar[bool] = False
    takes_users: ClassVar[bool] = False
    takes_workload: ClassVar[bool] = False

    @abstractmethod
    def design(self, spec: Any, contract: Any) -> Design:
        """Make the design from public inputs; touches no data.

        Raises:
            InvalidArgument: this system cannot measure what the contract describes, or a parameter does not suit it.
        """

    @abstractmethod
    def event(self, design: Design, budget: PrivacyBudget) -> Event:
        """Decide what to charge: for each step of the programme one leaf event or one parallel event."""

    @abstractmethod
    def programme(self, design: Design) -> Programme:
        """Yield the steps, each of which may depend on what those before it released."""

    @abstractmethod
    def fingerprint(self, design: Design) -> str:
        """Return a hash of everything in a design that is needed to read a release rightly."""

    @abstractmethod
    def noise(self, line: Line) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""

    def released_noise(self, release: Any) -> dict[str, float]:
        """Return, by the names of ``noise``, what could only be planned about and the release decided."""
        return {}

    least_is_certain: ClassVar[bool] = True
    """Whether no fewer units than ``least_units`` stand out of their noise, whatever they hold."""

    def least_units(self, line: Line) -> float | None:
        """Say about how many units there must be for what is released to stand out of its noise; None if unknown.

        The noise of a sum of so many numbers has the length noise_stddev * sqrt(dim), and units, each of which adds at
        most the sensitivity, must be so many to reach it. This reads the first sum, whose size is public.
        """
        step = next(self.steps(line))
        if not isinstance(step, Sum) or not isinstance(next(leaves([line.event])), GaussianEvent):
            return None
        return line.noise_stddev(0, step.l2_sensitivity) * math.sqrt(step.dim) / step.l2_sensitivity

    def held_bytes(self, design: Design) -> int:
        """Say about how many bytes a measurement holds of each record at once, at most; 0 where records stream."""
        return 0

    def suits(self, contract: Contract) -> bool:
        """Tell whether the system is for what a contract is about."""
        return contract.about == self.about

    def settled(self, contract: Any) -> BaseModel:
        """Return all parameters with their values; those whose defaults depend on the contract are set here."""
        settled: BaseModel = self.measurement
        return settled

    def priced(self, spec: Any, contract: Any, budget: PrivacyBudget) -> Any:
        """Return settled parameters with those set whose defaults depend on the budget as well."""
        return spec

    def plan(self, contract: Contract, budget: PrivacyBudget) -> Line:
        """Decide what to charge and to measure from public inputs; touches no data.

        Raises:
            InvalidArgument: the budget's unit or adjacency is not the contract's, or the system is not for it.
        """
        if not self.suits(contract):
            raise InvalidArgument("method", self.method, f"be one for {contract.about}")
        if contract.users and not self.takes_users:
            raise InvalidArgument("method", self.method, "be nacre for a schema with `users`")
        if contract.workload and not self.takes_workload:
            raise InvalidArgument("method", self.method, "be nacre for a schema with `workload`")
        spec = self.priced(self.settled(contract), contract, budget)
        design = self.design(spec, contract)
        check_contract(contract, budget)
        event = self.event(design, budget)
        if not self.whole_units and any(isinstance(each, ParallelEvent) for each in leaves([event])):
            check_kept_whole(contract.unit, budget.adjacency)
        return Line(
            name=self.line,
            part=contract.part,
            method=self.method,
            contract=contract,
            budget=budget,
            event=event,
            measurement=spec.model_dump(mode="json"),
            fingerprint=self.fingerprint(design),
        )

    def of(self, line: Line) -> Design:
        """Make the design of a line again.

        Raises:
            ArtifactError: this version makes another design, by which a release would be misread.
        """
        design = self.design(type(self.measurement).model_validate(line.measurement), line.contract)
        if self.fingerprint(design) != line.fingerprint:
            raise ArtifactError(f"the release of {line.method} was planned with other cells or features than these")
        return design

    def steps(self, line: Line) -> Programme:
        """Return the programme of a line."""
        return self.programme(self.of(line))

    def measure(self, records: Sensitive[Any], line: Line, desk: Desk) -> Released[Path]:
        """Run the programme on the data, inside one ledger charge; the only verb that reads data.

        Privacy: adaptive composition of the events of ``line.event``, which are charged; the proof of each step's
            sensitivity is where the step is made. Nothing else leaves the data.
        """
        return draw(self, records, line, desk)

    def answers(self, release: Release) -> list[Any]:
        """Return what each step of the programme released (post-processing)."""
        return [answer for _, answer in read(self, release)]

    def sums(self, release: Release) -> list[NoisySum]:
        """Return the noisy sums of embeddings in a release; the sums of other rows can be compared with them."""
        answers = read(self, release)
        return [answer for step, answer in answers if isinstance(step, Sum) and answer.embedding is not None]


class Synthesizer(System[Design]):
    """A system that fits a generator to its release."""

    @abstractmethod
    def fit(self, release: Released[Release], craft: Craft) -> Generator:
        """Fit a generator to a release, resuming from the checkpoint if there is one (post-processing)."""

    @abstractmethod
    def marginals(self, release: Release) -> Any:
        """Return the one-way counts that a release states, or None if it states none (post-processing)."""

    def tables(self, release: Release) -> Iterable[Any]:
        """Return the tables of counts that a release holds besides those of ``marginals`` (post-processing)."""
        return ()


def fingerprint_of(*facts: Any) -> str:
    """Return the SHA-256 of public facts, written as JSON."""
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def without_image(schema: Schema, method: str) -> Schema:
    """Return a schema that has no image.

    Raises:
        InvalidArgument: the schema has an image, and the method is for columns.
    """
    if schema.image:
        fit = "nacre-photos" if schema.image[1].is_color else "nacre-images"
        raise InvalidArgument("method", method, f"be {fit} for a schema with a column of type image")
    return schema


def without_color(schema: Schema, method: str) -> Schema:
    """Return a schema that has no image in color.

    Raises:
        InvalidArgument: the schema has one, and the method draws ink.
    """
    if schema.image and schema.image[1].is_color:
        raise InvalidArgument("method", method, "be nacre-photos for images in color; it is for gray ones")
    return schema
