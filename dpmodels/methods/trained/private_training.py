"""Systems that train under DP-SGD: Gaussian looks at the data first, then steps, in one plan and one charge.

    measure   v_1, v_2, ... Gaussian releases, each chosen from those before                  the looks
              weights by DP-SGD on an objective built from the looks                          mechanisms/dp_sgd
    fit       builds the generator; everything was trained inside the charge

Privacy: look i gets noise of multiplier z / sqrt(share_i), where z is the multiplier of one Gaussian that spends the
whole budget. DP-SGD gets the least noise with which looks and steps together stay within the budget by privacy loss
distributions, as the ledger computes them (accounting/remainder.py). Weights are released as whole multiples of
2**-WEIGHT_BITS.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from pydantic import BaseModel

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent, ParallelEvent, SampledGaussianEvent, leaves
from dpmodels.accounting.remainder import sampled_noise_multiplier
from dpmodels.accounting.split import gaussians
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_vectors
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.operators.network import OperatorNetwork, OperatorPart, bound
from dpmodels.generators.sampling import Sampler
from dpmodels.generators.vae_model import VaeModel
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.dp_sgd.spec import Rows, SgdSpec
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.contract import Contract
from dpmodels.releases.draw import read
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, Programme, Step, Sum, Train
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of, without_color

if TYPE_CHECKING:
    from dpmodels.methods.trained.warm_start import WarmStart

WEIGHT_BITS = 24
"""A weight is released as a whole multiple of 2**-24."""

STEPS = ("sampling_probability", "steps", "clip_norm", "learning_rate", "average", "micro_batch")
"""The parameters of DP-SGD that a fingerprint covers; parameters added later are in the plan alone."""


class Untrained(Frozen):
    """Settings of fitting: none, for everything is trained inside the charge."""


@dataclass(frozen=True)
class Look:
    """A Gaussian release that is planned: its size, sensitivity in lattice steps, and share of the budget's squared mu.

    The size is 0 where what is released before decides it.
    """

    name: str
    dim: int
    l2_sensitivity: int
    share: float


@dataclass(frozen=True)
class Networks:
    """What the estimates lead to: the objectives that are trained, each on rows of its own.

    Attributes:
        objectives: modules whose ``released`` is the network that is released.
        counts: the released counts. Shapes: [objectives, classes].
        stddev: the standard deviation of values about what is decoded. Shapes: [dim].
    """

    objectives: list[Any]
    counts: Tensor
    stddev: Tensor


Reader = Callable[[Data], Sensitive[VectorRows]]
"""Reads all records as vectors, once."""

Estimate = TypeVar("Estimate")


class Training(ABC, Generic[Estimate]):
    """One method at one schema and one set of parameters.

    Attributes:
        looks: the Gaussian releases, with those of ``warm`` first; sgd: the parameters of training.
        vectors: how records are read; warm: nacre's release that training starts from, or None.
        operator: the network that an operator brings, or None.
    """

    looks: tuple[Look, ...]
    sgd: SgdSpec
    vectors: Vectors
    warm: "WarmStart | None" = None
    operator: OperatorPart | None = None

    @abstractmethod
    def programme(self, rows: Reader) -> Generator[Step, Any, Estimate]:
        """Yield every look, then what is trained, in the paper's order; return what the looks were read to."""

    @abstractmethod
    def networks(self, estimate: Estimate, start: bool) -> Networks:
        """Return what an estimate leads to (post-processing); with ``start``, networks of good first weights."""

    def class_counts(self, estimate: Estimate) -> tuple[Floats, float] | None:
        """Return the released number of records of each class and its noise_stddev, or None if none was released."""
        return None

    def charged(self, steps: SampledGaussianEvent) -> Event:
        """Return the event that all trainings are charged as, from the event of one."""
        return steps

    def look(self, name: str, total: Callable[[Data], Sensitive[Whole]], dim: int = 0) -> Sum:
        """Take a planned look; ``dim`` is its size where the plan could not know it."""
        planned = next(look for look in self.looks if look.name == name)
        return Sum(total, dim or planned.dim, planned.l2_sensitivity)

    def train(self, estimate: Estimate, rows: Callable[[Data], Sensitive[Rows]], index: int = 0) -> Train:
        """Train one objective on rows that are made of the records."""
        networks = self.networks(estimate, start=False)
        dim = sum(parameter.numel() for parameter in networks.objectives[index].released.parameters())
        records = float(networks.counts[index].sum())
        return Train(partial(self.objective, estimate, index), rows, records, _weights, dim, self.sgd)

    def objective(self, estimate: Estimate, index: int, start: bool) -> Any:
        """Return an objective to train."""
        return self.networks(estimate, start).objectives[index]

    def model(self, estimate: Estimate, networks: Networks, entry: str) -> Sampler:
        """Return the generator, given objectives that hold the released weights."""
        pairs = ((objective.decoder, objective.prior) for objective in networks.objectives)
        decoders, priors = zip(*pairs, strict=True)
        return VaeModel(self.vectors, list(decoders), list(priors), networks.counts, networks.stddev, entry)

    def estimate(self, answer: Callable[[Step], Any], rows: Reader | None = None) -> Estimate:
        """Take the programme's steps, each with the given answer, and return what the looks were read to.

        Privacy: post-processing, where answers are those of a release; then no rows are read.
        """
        programme = self.programme(rows or _no_rows)
        step = next(programme)
        while True:
            try:
                step = programme.send(answer(step))
            except StopIteration as end:
                estimate: Estimate = end.value
                return estimate

    def fingerprint(self) -> str:
        """Return the SHA-256 of the sizes and sensitivities that schema and parameters lead to."""
        looks = [(look.name, look.dim, look.l2_sensitivity, look.share) for look in self.looks]
        return fingerprint_of(
            self.vectors.dim, self.vectors.kind, looks, {key: getattr(self.sgd, key) for key in STEPS}
        )


@dataclass(frozen=True)
class PrivateTraining(Synthesizer[Training[Any]]):
    """A method whose generator is trained inside the charge."""

    method: str
    measurement: Any
    training: Callable[[Any, Schema], Training[Any]]
    settle: Callable[[Any, Schema], BaseModel] = lambda spec, schema: spec

    def settled(self, contract: Schema) -> BaseModel:
        """Set the parameters that suit tables or images, and bind an operator's network to its source."""
        settled = self.settle(self.measurement, contract)
        networks = {key: value for key, value in settled if isinstance(value, OperatorNetwork)}
        return settled.model_copy(update={key: bound(network) for key, network in networks.items()})

    def plan(self, contract: Contract, budget: PrivacyBudget) -> Line:
        """Decide what to charge, once an operator's network has been tried out on public random records."""
        line = super().plan(contract, budget)
        if part := self.of(line).operator:
            from dpmodels.generators.operators.modules import check_network

            check_network(part)
        return line

    def design(self, spec: BaseModel, contract: Schema) -> Training[Any]:
        """Lay out the looks and the training.

        Raises:
            Unsuitable: the unit is not one record, or there is an image in color.
        """
        if contract.unit.max_rows != 1:
            raise Unsuitable(f"{self.method} hides one record, not {contract.unit}; use another method, such as nacre")
        return self.training(spec, without_color(contract, self.method))

    def held_bytes(self, design: Training[Any]) -> int:
        """Count the vectors of a record, which training reads again and again."""
        return design.vectors.held_bytes

    def event(self, design: Training[Any], budget: PrivacyBudget) -> ComposedEvent:
        """Charge the looks, and DP-SGD's steps with what the looks leave of the budget."""
        sgd, whole = design.sgd, gaussian_noise_multiplier(budget)
        looks = [gaussian for look in design.looks for gaussian in gaussians(whole, {look.name: look.share})]
        steps = SampledGaussianEvent(
            noise_multiplier=sampled_noise_multiplier(budget, looks, sgd.sampling_probability, sgd.steps),
            sampling_probability=sgd.sampling_probability,
            steps=sgd.steps,
            mechanism="DP-SGD",
        )
        return ComposedEvent(events=(*looks, design.charged(steps)))

    def programme(self, design: Training[Any]) -> Programme:
        """Release every look, then what is trained."""
        yield from design.programme(lru_cache(maxsize=1)(lambda data: transform_vectors(design.vectors, data.records)))

    def fit(self, release: Released[Release], craft: Craft) -> Sampler:
        """Build the generator from looks and weights; nothing is left to train.

        Privacy: post-processing.
        """
        design = self.of(release.value.line)
        estimate, weights = self._released(design, release.value)
        networks = design.networks(estimate, start=False)
        parameters = [parameter for objective in networks.objectives for parameter in objective.released.parameters()]
        if sum(parameter.numel() for parameter in parameters) != len(weights):
            raise ArtifactError("the release holds weights of another network than this version builds")
        flat = torch.from_numpy(np.ldexp(weights.astype(np.float64), -WEIGHT_BITS)).float()
        with torch.no_grad():
            for parameter, values in zip(parameters, torch.split(flat, [p.numel() for p in parameters]), strict=True):
                parameter.copy_(values.view_as(parameter))
        return design.model(estimate, networks, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes, where they were released: weights state no counts (post-processing)."""
        design = self.of(release.line)
        counted = design.class_counts(self._released(design, release)[0])
        return of_classes(release.line.table, *counted) if counted else None

    def noise(self, line: Line) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise, as a share of what a record can add."""
        scales, steps = dict[str, float](), "gradient of a step, where one record adds at most 1"
        for event in _plain(line.event):
            look = f"{event.mechanism}, where one record adds at most 1"
            scales[steps if isinstance(event, SampledGaussianEvent) else look] = event.noise_multiplier
        return scales

    def fingerprint(self, design: Training[Any]) -> str:
        return design.fingerprint()

    def _released(self, design: Training[Any], release: Release) -> tuple[Any, Whole]:
        """Return what the looks of a release lead to, and all weights, one training after the other."""
        steps = read(self, release)
        answers = iter([answer for _, answer in steps])
        looks = sum(len(answer.vector) for step, answer in steps if isinstance(step, Sum))
        return design.estimate(lambda _: next(answers)), release.vector[looks:]


def _no_rows(data: Data) -> Sensitive[VectorRows]:
    raise ArtifactError("a release is read without rows")


def _weights(objective: Any) -> Whole:
    """Read the released weights off a trained objective, as whole numbers. Shapes: [weights]."""
    flat = [parameter.detach().cpu().double().flatten() for parameter in objective.released.parameters()]
    whole: Whole = np.rint(np.ldexp(torch.cat(flat).numpy(), WEIGHT_BITS)).astype(np.int64)
    return whole


def _plain(event: Event) -> Iterator[GaussianEvent | SampledGaussianEvent]:
    """Yield the events of the looks and the steps; of parallel trainings the first alone, for all are alike."""
    for each in leaves([event]):
        if isinstance(each, ParallelEvent):
            yield from _plain(each.events[0])
        elif isinstance(each, GaussianEvent | SampledGaussianEvent):
            yield each
