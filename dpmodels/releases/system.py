"""What every system is: it plans, it says step by step what it measures, and it fits a generator to what that released.

plan(schema, budget)      -> Plan        what it will charge; touches no data
programme(plan)           -> steps       what it measures, each step chosen from what those before it released
fit(release)              -> Generator   post-processing, free for ever
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpmodels.embeddings.base import Embedding
from dpmodels.generators.loop import Progress
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.draw import Desk, Ticks, draw, read
from dpmodels.releases.plan import Plan
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, Programme, Sum, Vector
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema


class Generator(Protocol):
    """A trained generator; sampling is post-processing."""

    def default_rows(self) -> int:
        """Return the released (noisy) number of records."""

    def sample(self, rows: int, seed: int) -> Iterator[Records]:
        """Yield batches of synthetic records; the same (rows, seed) gives the same records."""

    def save(self, path: Path) -> None:
        """Write the generator to one safetensors file."""


@dataclass(frozen=True)
class NoisySum:
    """A released sum of records. Units: ``noise_stddev`` in lattice steps. Shapes: ``vector`` [embedding.dim]."""

    embedding: Embedding
    noise_stddev: float
    vector: Vector


class System(ABC):
    """A measurement: planned, charged and drawn."""

    @abstractmethod
    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge from public inputs; touches no data."""

    @abstractmethod
    def programme(self, plan: Plan) -> Programme:
        """Yield the steps of a plan, each made of what those before it released."""

    @abstractmethod
    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""

    def measure(
        self,
        sensitive: Sensitive[Iterable[Records]],
        plan: Plan,
        *,
        ledger: Ledger,
        charge: Charge,
        staged: Path,
        released: Path,
        device: str = "cpu",
        progress: Ticks | None = None,
    ) -> Released[Path]:
        """Run the programme on the data, inside one ledger charge; the only verb that reads data.

        Privacy: adaptive composition of the events of ``plan.event``, which are charged; each step's own proof is where
            the step is made. Nothing else is read out.
        """
        return draw(self, Data(sensitive, device), plan, Desk(ledger, charge, staged, released, progress))

    def sums(self, release: Release) -> list[NoisySum]:
        """Return the noisy sums of records that a release is made of, each of which other rows can be held against."""
        return [
            NoisySum(step.embedding, lattice_noise_stddev(step.l2_sensitivity, step.noise_multiplier), value)
            for step, value in read(self.programme(release.plan), release)
            if isinstance(step, Sum) and step.embedding is not None
        ]


class Synthesizer(System):
    """A system that makes a generator of its release."""

    @abstractmethod
    def fit(
        self,
        release: Released[Release],
        *,
        seed: int,
        device: str,
        checkpoint: Path,
        progress: Progress | None = None,
    ) -> Generator:
        """Fit a generator to a release, resuming from the checkpoint if there is one (post-processing)."""

    @abstractmethod
    def marginals(self, release: Release) -> Any:
        """Return the one-way counts that a release states, or None if it states none (post-processing)."""
