"""Systems that train under DP-SGD: Gaussian looks at the data first, then steps, in one plan and one charge.

    measure   v_1, v_2, ... Gaussian releases, each chosen from those before                  the looks
              weights by DP-SGD on an objective built from the looks                          mechanisms/dp_sgd
    fit       builds the generator; everything was trained inside the charge

Privacy: look i gets noise of multiplier z / sqrt(share_i), where z is the multiplier of one Gaussian that spends the
whole budget. DP-SGD gets the least noise with which looks and steps together stay within the budget by privacy loss
distributions, as the ledger computes them (accounting/remainder.py). Weights are released as whole multiples of
2**-WEIGHT_BITS.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent, ParallelEvent, SampledGaussianEvent, leaves
from dpmodels.accounting.remainder import sampled_noise_multiplier
from dpmodels.arrays import Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_vectors
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.sampling import Sampler
from dpmodels.generators.vae_model import VaeModel
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.dp_sgd.spec import Rows, SgdSpec
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.draw import read
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, NoisySum, Programme, Sum, Train
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of, without_color

if TYPE_CHECKING:
    from dpmodels.methods.trained.warm_start import WarmStart

WEIGHT_BITS = 24
"""A weight is released as a whole multiple of 2**-24."""

STEPS = ("sampling_probability", "steps", "clip_norm", "learning_rate", "average", "micro_batch")
"""The parameters of DP-SGD that a fingerprint covers; parameters added later are in the plan alone."""

Looks = list[NoisySum]
"""What the looks have released so far."""


class Untrained(Frozen):
    """Settings of fitting: none, for everything is trained inside the charge."""


@dataclass(frozen=True)
class Phase:
    """One Gaussian release: its size, sensitivity in lattice steps, and share of the budget's squared mu."""

    name: str
    dim: int
    l2_sensitivity: int
    share: float

    def event(self, whole: float) -> GaussianEvent:
        """Return the event that is charged; one Gaussian of multiplier ``whole`` would spend the whole budget."""
        return GaussianEvent(noise_multiplier=whole / math.sqrt(self.share), mechanism=self.name)


@dataclass(frozen=True)
class Built:
    """What released looks lead to: the objectives that are trained, each on rows of its own.

    Attributes:
        objectives: modules whose ``released`` is the network that is released.
        counts: the released counts. Shapes: [objectives, classes].
        stddev: the standard deviation of values about what is decoded. Shapes: [dim].
    """

    objectives: list[Any]
    counts: Tensor
    stddev: Tensor


class Phases(ABC):
    """One method at one schema and one set of parameters.

    Attributes:
        looks: the Gaussian releases, with those of ``warm`` first; sgd: the parameters of training.
        vectors: how records are read; warm: nacre's release that training starts from, or None.
    """

    looks: tuple[Phase, ...]
    sgd: SgdSpec
    vectors: Vectors
    warm: "WarmStart | None" = None

    @abstractmethod
    def statistic(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Whole]:
        """Return what the next look releases, given what was released before it."""

    def dim(self, released: Looks) -> int:
        """Return the size of the next look: a public constant, unless what was released before decides it."""
        return self.looks[len(released)].dim

    @abstractmethod
    def build(self, released: Looks, start: bool) -> Built:
        """Return the objectives that the looks lead to (post-processing); with ``start``, from good first weights."""

    @abstractmethod
    def training_rows(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Rows]:
        """Return the rows that a training reads."""

    def sampled(self, steps: SampledGaussianEvent) -> Event:
        """Return the event that all trainings are charged as, from the event of one."""
        return steps

    def trainings(self, rows: "Reader", released: Looks) -> Programme:
        """Train the objectives that the looks lead to."""
        yield self.training(released, 0, lambda data: self.training_rows(rows(data), released))

    def training(self, released: Looks, index: int, rows: Callable[[Data], Sensitive[Rows]]) -> Train:
        """Return the training of one objective."""
        built = self.build(released, start=False)
        dim = sum(parameter.numel() for parameter in built.objectives[index].released.parameters())
        return Train(
            partial(self.objective, released, index),
            rows,
            float(built.counts[index].sum()),
            _weights,
            dim,
            self.sgd,
        )

    def objective(self, released: Looks, index: int, start: bool) -> Any:
        """Return an objective to train."""
        return self.build(released, start).objectives[index]

    def model(self, released: Looks, built: Built, entry: str) -> Sampler:
        """Return the generator, given objectives that hold the released weights."""
        decoders, priors = zip(*((objective.decoder, objective.prior) for objective in built.objectives), strict=True)
        return VaeModel(self.vectors, list(decoders), list(priors), built.counts, built.stddev, entry)

    def class_counts(self, released: Looks) -> tuple[NDArray[np.float64], float] | None:
        """Return the released number of records of each class and its noise_stddev, or None if none was released."""
        return None

    def fingerprint(self) -> str:
        """Return the SHA-256 of the sizes and sensitivities that schema and parameters lead to."""
        looks = [(look.name, look.dim, look.l2_sensitivity, look.share) for look in self.looks]
        return fingerprint_of(
            self.vectors.dim, self.vectors.kind, looks, {key: getattr(self.sgd, key) for key in STEPS}
        )


Reader = Callable[[Data], Sensitive[VectorRows]]
"""Reads all records as vectors, once."""


@dataclass(frozen=True)
class PrivateTraining(Synthesizer[Phases]):
    """A method whose generator is trained inside the charge; its design is its phases."""

    method: str
    measurement: Any
    phases: Callable[[Any, Schema], Phases]
    settle: Callable[[Any, Schema], BaseModel] = lambda spec, schema: spec

    def settled(self, contract: Schema) -> BaseModel:
        """Set the parameters that suit tables or images."""
        return self.settle(self.measurement, contract)

    def design(self, spec: BaseModel, contract: Schema) -> Phases:
        """Lay out the phases.

        Raises:
            InvalidArgument: the unit is not one record, or there is an image in color.
        """
        if contract.unit.max_rows != 1:
            raise Unsuitable(f"{self.method} hides one record, not {contract.unit}; use another method, such as nacre")
        return self.phases(spec, without_color(contract, self.method))

    def held_bytes(self, design: Phases) -> int:
        """Count the vectors of a record, which training reads again and again."""
        return design.vectors.held_bytes

    def event(self, design: Phases, budget: PrivacyBudget) -> ComposedEvent:
        """Charge the looks, and DP-SGD's steps with what the looks leave of the budget."""
        whole, sgd = gaussian_noise_multiplier(budget), design.sgd
        looks = [look.event(whole) for look in design.looks]
        steps = SampledGaussianEvent(
            noise_multiplier=sampled_noise_multiplier(budget, looks, sgd.sampling_probability, sgd.steps),
            sampling_probability=sgd.sampling_probability,
            steps=sgd.steps,
            mechanism="DP-SGD",
        )
        return ComposedEvent(events=(*looks, design.sampled(steps)))

    def programme(self, design: Phases) -> Programme:
        """Release every look, then what is trained."""
        rows = lru_cache(maxsize=1)(lambda data: transform_vectors(design.vectors, data.records))
        looks: Looks = (yield from design.warm.looks()) if design.warm else []
        for look in design.looks[len(looks) :]:
            total = partial(_statistic, design, rows, list(looks))
            looks.append((yield Sum(total, design.dim(looks), look.l2_sensitivity)))
        yield from design.trainings(rows, looks)

    def fit(self, release: Released[Release], craft: Craft) -> Sampler:
        """Build the generator from looks and weights; nothing is left to train.

        Privacy: post-processing.
        """
        design = self.of(release.value.line)
        looks, weights = self._looks(design, release.value)
        built = design.build(looks, start=False)
        parameters = [parameter for objective in built.objectives for parameter in objective.released.parameters()]
        if sum(parameter.numel() for parameter in parameters) != len(weights):
            raise ArtifactError("the release holds weights of another network than this version builds")
        flat = torch.from_numpy(np.ldexp(weights.astype(np.float64), -WEIGHT_BITS)).float()
        with torch.no_grad():
            for parameter, values in zip(parameters, torch.split(flat, [p.numel() for p in parameters]), strict=True):
                parameter.copy_(values.view_as(parameter))
        return design.model(looks, built, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes, where they were released: weights state no counts (post-processing)."""
        design = self.of(release.line)
        counted = design.class_counts(self._looks(design, release)[0])
        return of_classes(release.line.table, *counted) if counted else None

    def noise(self, line: Line) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise, as a share of what a record can add."""
        named, steps = dict[str, float](), "gradient of a step, where one record adds at most 1"
        for event in _plain(line.event):
            look = f"{event.mechanism}, where one record adds at most 1"
            named[steps if isinstance(event, SampledGaussianEvent) else look] = event.noise_multiplier
        return named

    def fingerprint(self, design: Phases) -> str:
        """Hash the sizes and sensitivities of the phases."""
        return design.fingerprint()

    def _looks(self, design: Phases, release: Release) -> tuple[Looks, Whole]:
        """Return the looks of a release, and all weights, one training after the other."""
        taken = read(self, release)
        looks = [answer for step, answer in taken if isinstance(step, Sum)]
        return looks, release.vector[sum(len(look.vector) for look in looks) :]


def _statistic(phases: Phases, rows: Reader, released: Looks, data: Data) -> Sensitive[Whole]:
    return phases.statistic(rows(data), released)


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
