"""The paper's own comparison, reduced: one round of whole networks without privacy, all 20 clients (C = 1).

    FedAvg, FedProx    weights averaged; clients of FedProx are held near the server's
    FedDF              and distilled from the mean of the clients' logits
    FedBE              and distilled from the mean of probabilities, also of models drawn around the clients'
    FedAUX             and distilled from logits weighted by certainty; as published (power 1), and by its eighth power

+P starts from the pre-trained network. Certainty heads are exact. Their lambda is the paper's for the mean loss of a
record; the published code gives 1 / lambda as scikit-learn's C, which is of the sum, so that it is n times less there.
Distilled is on four fifths of the public images; the rest are negatives. An ensemble is judged before it is distilled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.archive.fedaux_data import TASKS, Arrays, images
from benchmarks.dirichlet import dirichlet_split
from dpmodels.arrays import Floats, Whole
from dpmodels.embeddings.frozen import Examples
from dpmodels.methods.federations.heads import SHARPNESS, certainty
from dpmodels.methods.federations.models import Architecture, State, loaded
from dpmodels.methods.federations.rounds import (
    Algorithm,
    Descent,
    RoundSpec,
    Server,
    Update,
    accuracy,
    aggregate,
    select,
    start,
    teacher,
    train_client,
)
from dpmodels.statistics.logistic import Logistic, with_bias

CLIENTS, BIAS, LAMBDA = 20, 0.3, 0.01
FEW = 2000
"""Test images on which ensembles of twenty networks are judged."""


class Method(NamedTuple):
    """A row of the table: whether it begins with the pre-trained network, and what FedAUX weighs clients by."""

    algorithm: Algorithm
    pretrained: bool
    sharpness: float = 1.0
    by_record: bool = True


METHODS = {
    "FedAvg": Method("fedavg", False),
    "FedProx": Method("fedprox", False),
    "FedDF": Method("feddf", False),
    "FedBE": Method("fedbe", False),
    "FedAvg+P": Method("fedavg", True),
    "FedProx+P": Method("fedprox", True),
    "FedDF+P": Method("feddf", True),
    "FedBE+P": Method("fedbe", True),
    "FedAUX, power 1": Method("fedaux", True),
    "FedAUX (default)": Method("fedaux", True, SHARPNESS),
    "FedAUX, power 1, lambda of the code": Method("fedaux", True, 1.0, by_record=False),
    "FedAUX, power 8, lambda of the code": Method("fedaux", True, SHARPNESS, by_record=False),
}


class Setting(NamedTuple):
    """The reduced setting: records of all clients, public ones to distill on, epochs of either training, and tests."""

    records: int
    public: int
    local_epochs: int
    distilling_epochs: int
    tests: int = 10_000


QUICK = Setting(200, 100, 1, 1, 500)


class Course(NamedTuple):
    """How a federation goes: rounds, the share of clients in each, and the clients' architectures, in turn."""

    rounds: int = 1
    participation: float = 1.0
    architectures: tuple[Architecture, ...] = ("resnet8",)


@dataclass(frozen=True)
class Wards:
    """Records of 20 clients of a data set, split by class, and the public ones that they share."""

    task: str
    data: Arrays
    pretrained: Mapping[Architecture, State]
    alpha: float
    seed: int
    setting: Setting

    @cached_property
    def rows(self) -> Whole:
        """Return the rows of all clients' records."""
        return np.random.default_rng(self.seed).permutation(len(self.data["y"]))[: self.setting.records]

    @cached_property
    def parts(self) -> list[Whole]:
        """Return which of these rows each client has."""
        return dirichlet_split(self.data["y"][self.rows], CLIENTS, self.alpha, self.seed)

    @cached_property
    def records(self) -> Examples:
        """Return the records of all clients."""
        inputs, labels = images(TASKS[self.task].own, TASKS[self.task].shape)
        return Examples(inputs[self.rows], torch.from_numpy(labels[self.rows]))

    @cached_property
    def test(self) -> Examples:
        """Return the test images."""
        inputs, labels = images(TASKS[self.task].test, TASKS[self.task].shape, self.setting.tests)
        return Examples(inputs, torch.from_numpy(labels))

    @property
    def distilled_on(self) -> slice:
        """Return the public images that are no client's negatives."""
        first = len(self.data["auxiliary"]) // 5
        return slice(first, first + self.setting.public)

    @cached_property
    def public(self) -> torch.Tensor:
        """Return the public images that models are distilled on."""
        return images(TASKS[self.task].auxiliary, TASKS[self.task].shape)[0][self.distilled_on]

    @cached_property
    def updates(self) -> dict[tuple[object, ...], Update]:
        """Return what clients sent in first rounds, by all that it depends on."""
        return {}

    def ended(self, method: Method, course: Course) -> tuple[float, float | None]:
        """Return the accuracy on test images, per cent, of the servers' models and of the last round's ensemble."""
        spec = RoundSpec(
            algorithm=method.algorithm,
            model=TASKS[self.task].model,
            local=Descent(epochs=self.setting.local_epochs),
            distillation=Descent(epochs=self.setting.distilling_epochs, learning_rate=2e-4, batch_size=128),
            sharpness=method.sharpness,
        )
        server = start(course.architectures, spec, self.seed, self.pretrained if method.pretrained else None)
        names, on_public, on_test = [f"c{number}" for number in range(CLIENTS)], None, None
        if method.algorithm == "fedaux":
            negatives = self.distilled_on.start
            heads = certainty_heads(self.data, [self.rows[part] for part in self.parts], negatives, method.by_record)
            on_public = certainties(names, heads, self.data["auxiliary"][self.distilled_on])
            on_test = certainties(names, heads, self.data["z_test"][: self.setting.tests][:FEW])
        for number in range(course.rounds):
            taking = select(names, course.participation, number, self.seed)
            sent = [self._sent(server, names.index(name), spec, method, course) for name in taking]
            before, (server, dropped) = server, aggregate(server, sent, spec, self.seed, self.public, on_public)
            assert not dropped
        scores = [server_accuracy(server, spec, name, self.test) for name in course.architectures]
        ensemble = None
        if method.algorithm in ("feddf", "fedbe", "fedaux"):
            averaged = aggregate(before, sent, spec.model_copy(update={"algorithm": "fedavg"}), self.seed)[0]
            soft = teacher(sent, averaged, spec, self.seed, self.test.inputs[:FEW], on_test)
            ensemble = 100 * float((soft.argmax(axis=1) == self.test.labels[:FEW].numpy()).mean())
        return 100 * float(np.mean(scores)), ensemble

    def _sent(self, server: Server, number: int, spec: RoundSpec, method: Method, course: Course) -> Update:
        """Train a client; what it sends in a first round is the same for all methods that begin alike."""
        architecture = course.architectures[number % len(course.architectures)]
        key = (server.round, number, architecture, method.pretrained, method.algorithm == "fedprox")
        if server.round or key not in self.updates:
            records = self.records.take(torch.from_numpy(self.parts[number]))
            self.updates[key] = train_client(server, records, f"c{number}", architecture, spec, self.seed)
        return self.updates[key]


ONCE = Course()


def one_shot(wards: Wards, course: Course = ONCE, names: Sequence[str] = ()) -> dict[str, tuple[float, float | None]]:
    """Return for each method the accuracy of its server's models and of its ensemble."""
    return {name: wards.ended(method, course) for name, method in METHODS.items() if not names or name in names}


def certainty_heads(data: Arrays, parts: Sequence[np.ndarray], negatives: int, by_record: bool) -> list[Floats]:
    """Return each client's exact certainty head."""
    heads = []
    for part in parts:
        z = np.concatenate([data["z"][part], data["auxiliary"][:negatives]])
        own = np.repeat([1.0, 0.0], [len(part), negatives])
        if by_record:
            problem = Logistic(z.shape[1], 1, LAMBDA * len(z), BIAS, False, len(z))
            w = problem.solve(problem.features(z), own[:, np.newaxis])
            assert w is not None
            heads.append(w[0])
        else:
            sums = LogisticRegression(C=1 / LAMBDA, fit_intercept=False, max_iter=300)
            heads.append(sums.fit(with_bias(z, BIAS), own).coef_[0])
    return heads


def certainties(clients: Sequence[str], heads: Sequence[Floats], z: np.ndarray) -> Mapping[str, Floats]:
    """Return how certain each client is of vectors."""
    return {client: certainty(w, with_bias(z, BIAS)) for client, w in zip(clients, heads, strict=True)}


def server_accuracy(server: Server, spec: RoundSpec, architecture: Architecture, test: Examples) -> float:
    """Return the share of test images that the server's model gets right."""
    return accuracy(loaded(architecture, spec.model, server.models[architecture]), test)
