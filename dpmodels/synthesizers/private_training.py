"""Systems that train under DP-SGD: Gaussian looks at the data first, then steps, all one plan and one charge.

    measure   v_1, v_2, ... Gaussian releases, each chosen from those before                  the looks
              weights by DP-SGD on an objective built from the looks                          mechanisms/dp_sgd.py
    fit       builds the generator; everything was trained inside the charge

Privacy: look i gets noise of multiplier z / sqrt(share_i), z that of the whole budget as one Gaussian. DP-SGD gets the
least noise with which looks and steps together stay within the budget by privacy loss distributions, as the ledger
reckons them (accounting/remainder.py). Weights are released as whole numbers of 2**-WEIGHT_BITS.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent, SampledGaussianEvent
from dpmodels.accounting.remainder import sampled_noise_multiplier
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_vectors
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.sizes import VaeSpec
from dpmodels.generators.vae_model import VaeModel
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.dp_sgd import Rows, SgdSpec
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.draw import read
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Data, Programme, Sum, Train
from dpmodels.releases.steps import Training as DataTraining
from dpmodels.releases.system import Synthesizer
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.marginals import Marginals, of_classes

if TYPE_CHECKING:
    from dpmodels.generators.vae import Objective

WEIGHT_BITS = 24
"""A weight is released as a whole number of 2**-24."""

Whole = NDArray[np.int64]


class Untrained(BaseModel):
    """Settings of fitting: none, for everything is trained inside the charge."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Phase:
    """One Gaussian release: its size, sensitivity in lattice steps, and share of the budget's squared mu."""

    name: str
    dim: int
    l2_sensitivity: int
    share: float

    def noise_multiplier(self, whole: float) -> float:
        """Return the noise multiplier where the whole budget as one Gaussian has ``whole``."""
        return whole / math.sqrt(self.share)

    def noise_stddev(self, whole: float) -> float:
        """Return the standard deviation of the noise in lattice steps."""
        return lattice_noise_stddev(self.l2_sensitivity, self.noise_multiplier(whole))


@dataclass(frozen=True)
class Training:
    """One DP-SGD training: its objective, and the released number of records that it reads."""

    objective: "Objective"
    records: float


@dataclass(frozen=True)
class Built:
    """What released looks lead to.

    Shapes: ``counts`` [decoders, classes], released; ``stddev`` [dim] of values about what is decoded.
    """

    trainings: list[Training]
    counts: Tensor
    stddev: Tensor


class Phases(ABC):
    """One method at one schema and one set of parameters.

    Attributes:
        looks: the Gaussian releases; sgd, vae: the parameters of training; vectors: how records are read.
        whole: noise multiplier of the whole budget as one Gaussian.
    """

    looks: tuple[Phase, ...]
    sgd: SgdSpec
    vae: VaeSpec
    vectors: Vectors

    @abstractmethod
    def statistic(self, rows: Sensitive[VectorRows], released: list[Whole], whole: float) -> Sensitive[Whole]:
        """Return what the next look releases, given the vectors released before it."""

    def dim(self, released: list[Whole], whole: float) -> int:
        """Return the size of the next look; a public one, unless a look's form is read off those before it."""
        return self.looks[len(released)].dim

    @abstractmethod
    def build(self, released: list[Whole], whole: float, start: bool) -> Built:
        """Return the trainings that the looks lead to (post-processing); with ``start``, from good first weights."""

    @abstractmethod
    def training_rows(self, rows: Sensitive[VectorRows], released: list[Whole], whole: float) -> list[Sensitive[Rows]]:
        """Return what each training reads."""

    def class_counts(self, released: list[Whole], whole: float) -> tuple[NDArray[np.float64], float] | None:
        """Return the released number of records of each class and its noise; None where none was released as such."""
        return None

    def fingerprint(self) -> str:
        """Return the SHA-256 of the sizes and sensitivities that schema and parameters lead to."""
        facts = [
            self.vectors.dim,
            self.vectors.kind,
            [(look.name, look.dim, look.l2_sensitivity, look.share) for look in self.looks],
            self.sgd.model_dump(),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@dataclass(frozen=True)
class PrivateTraining(Synthesizer):
    """The three verbs of a method whose generator is trained inside the charge."""

    method: str
    measurement: BaseModel
    system: Callable[[Any, Schema], Phases]

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: the looks and the steps, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or is not one record.
        """
        check_unit(schema, budget)
        if schema.unit.max_rows != 1:
            raise InvalidArgument("unit", schema.unit, f"be one record for {self.method}: its batches are of records")
        system = self.system(self.measurement, schema)
        whole, sgd = gaussian_noise_multiplier(budget), system.sgd
        looks = [
            GaussianEvent(noise_multiplier=look.noise_multiplier(whole), mechanism=look.name) for look in system.looks
        ]
        steps = SampledGaussianEvent(
            noise_multiplier=sampled_noise_multiplier(budget, looks, sgd.sampling_probability, sgd.steps),
            sampling_probability=sgd.sampling_probability,
            steps=sgd.steps,
            mechanism="DP-SGD",
        )
        return Plan(
            method=self.method,
            table=schema,
            budget=budget,
            event=ComposedEvent(events=(*looks, steps)),
            noise_multiplier=whole,
            l2_sensitivity=max(look.l2_sensitivity for look in system.looks),
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=system.fingerprint(),
        )

    def programme(self, plan: Plan) -> Programme:
        """Release every look, then the decoders' weights."""
        system, whole, looks = self._system(plan), plan.noise_multiplier, list[Whole]()
        rows = lru_cache(maxsize=1)(lambda data: transform_vectors(system.vectors, data.records))
        for look in system.looks:
            total = partial(_statistic, system, rows, list(looks), whole)
            dim, l2 = system.dim(looks, whole), look.l2_sensitivity
            names = {"part": np.repeat(look.name, dim)}
            looks.append((yield Sum(total, dim, l2, l2, look.noise_multiplier(whole), columns=names)))
        yield Train(partial(_trainings, system, rows, looks, whole), _weights, system.sgd)

    def fit(
        self,
        release: Released[Release],
        *,
        seed: int,
        device: str,
        checkpoint: Path,
        progress: Callable[[int, int, float], None] | None = None,
    ) -> VaeModel:
        """Build the generator from looks and weights; nothing is left to train.

        Privacy: post-processing.
        """
        plan = release.value.plan
        system = self._system(plan)
        looks, vector = self._looks(release.value)
        built = system.build(looks, plan.noise_multiplier, start=False)
        decoders = [training.objective.decoder for training in built.trainings]
        weights = [parameter for decoder in decoders for parameter in decoder.parameters()]
        if sum(w.numel() for w in weights) != len(vector):
            raise ArtifactError("the release holds weights of another network than this version builds")
        flat = torch.from_numpy(np.ldexp(vector.astype(np.float64), -WEIGHT_BITS)).float()
        with torch.no_grad():
            for weight, values in zip(weights, torch.split(flat, [w.numel() for w in weights]), strict=True):
                weight.copy_(values.view_as(weight))
        priors = [training.objective.prior for training in built.trainings]
        return VaeModel(system.vectors, decoders, priors, built.counts, built.stddev, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes, where they were released: weights state no counts (post-processing)."""
        system = self._system(release.plan)
        counted = system.class_counts(self._looks(release)[0], release.plan.noise_multiplier)
        return of_classes(release.plan.table, *counted) if counted else None

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise, as a share of what a record can add."""
        system, steps = self._system(plan), _steps(plan)
        named = {
            f"{look.name}, where one record adds at most 1": look.noise_multiplier(plan.noise_multiplier)
            for look in system.looks
        }
        return {**named, "gradient of a step, where one record adds at most 1": steps.noise_multiplier}

    def _system(self, plan: Plan) -> Phases:
        system = self.system(type(self.measurement).model_validate(plan.measurement), plan.table)
        if system.fingerprint() != plan.fingerprint:
            raise ArtifactError("the release was planned with other looks than this version takes")
        return system

    def _looks(self, release: Release) -> tuple[list[Whole], Whole]:
        """Split a release into its looks and the weights."""
        *looks, weights = (value for _, value in read(self.programme(release.plan), release))
        return looks, weights


Reader = Callable[[Data], Sensitive[VectorRows]]
"""Reads all records as vectors, once."""


def _statistic(system: Phases, rows: Reader, looks: list[Whole], whole: float, data: Data) -> Sensitive[Whole]:
    return system.statistic(rows(data), looks, whole)


def _trainings(
    system: Phases, rows: Reader, looks: list[Whole], whole: float, data: Data, start: bool
) -> list[DataTraining]:
    """Build the trainings that the looks lead to, with the rows that each reads."""
    built = system.build(looks, whole, start)
    reads = system.training_rows(rows(data), looks, whole)
    return [DataTraining(own.objective, own.records, read) for own, read in zip(built.trainings, reads, strict=True)]


def _weights(objectives: list[Any]) -> Whole:
    """Read the decoders' weights off trained objectives, as whole numbers. Shapes: [weights]."""
    flat = [p.detach().cpu().double().flatten() for own in objectives for p in own.decoder.parameters()]
    whole: Whole = np.rint(np.ldexp(torch.cat(flat).numpy(), WEIGHT_BITS)).astype(np.int64)
    return whole


def _steps(plan: Plan) -> SampledGaussianEvent:
    """Return the event of a plan's steps, its last."""
    last = plan.event.events[-1] if isinstance(plan.event, ComposedEvent) else plan.event
    if not isinstance(last, SampledGaussianEvent):
        raise ArtifactError("the plan does not end with the steps of DP-SGD")
    return last
