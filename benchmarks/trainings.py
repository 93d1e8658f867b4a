"""What a system of DP-SGD reads and trains, with its looks left without noise: for timings, and for tests."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from dpmodels.codec.encode import Records
from dpmodels.embeddings.vectors import transform_vectors
from dpmodels.mechanisms.dp_sgd.spec import Rows
from dpmodels.methods.trained.private_training import Estimate, Training
from dpmodels.privacy import Sensitive
from dpmodels.releases.steps import Data, NoisySum, Parallel, Step, Sum


def exact(
    training: Training[Estimate], records: Records, noise_stddevs: Iterator[float] | None = None
) -> tuple[Estimate, Sensitive[Rows]]:
    """Walk a programme on records; return what its looks lead to, and the rows that its first training reads.

    The looks have no noise, and say of it what ``noise_stddevs`` says; by default 1.
    """
    data = Data(transform_vectors(training.vectors, Sensitive([records])))
    trained: list[Sensitive[Rows]] = []
    stddevs = noise_stddevs or repeat(1.0)

    def answer(step: Step) -> Any:
        if isinstance(step, Sum):
            return NoisySum(step.total(data).reveal(), next(stddevs))
        part, first = (step.by(data)[0], next(step.programmes[0])) if isinstance(step, Parallel) else (data, step)
        trained.append(first.rows(part))  # type: ignore[union-attr]
        return None

    return training.estimate(answer, lambda data: data.records), trained[0]
