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
from typing import NamedTuple

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.archive.fedaux_data import TASKS, Arrays, images
from benchmarks.dirichlet import dirichlet_split
from dpmodels.arrays import Floats
from dpmodels.embeddings.frozen import Examples
from dpmodels.methods.federations.heads import SHARPNESS, certainty
from dpmodels.methods.federations.models import State, loaded
from dpmodels.methods.federations.rounds import (
    Algorithm,
    Descent,
    RoundSpec,
    Server,
    Update,
    accuracy,
    aggregate,
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
    """The reduced setting: records of all clients, public records to distill on, and epochs of either training."""

    records: int
    public: int
    local_epochs: int
    distilling_epochs: int


def one_shot(
    task: str, data: Arrays, pretrained: State, alpha: float, seed: int, setting: Setting
) -> dict[str, tuple[float, float | None]]:
    """Return the accuracy on test images, per cent, of each method's server and of its ensemble after one round."""
    model, shape = TASKS[task].model, TASKS[task].shape
    rows = np.random.default_rng(seed).permutation(len(data["y"]))[: setting.records]
    inputs, labels = images(TASKS[task].own, shape)
    examples = Examples(inputs[rows], torch.from_numpy(labels[rows]))
    parts = dirichlet_split(labels[rows], CLIENTS, alpha, seed)
    test_inputs, test_labels = images(TASKS[task].test, shape)
    test = Examples(test_inputs, torch.from_numpy(test_labels))
    few = test.take(torch.arange(FEW))
    first = len(data["auxiliary"]) // 5
    public = images(TASKS[task].auxiliary, shape)[0][first : first + setting.public]
    clients = [f"c{number}" for number in range(CLIENTS)]
    scores: dict[str, tuple[float, float | None]] = {}
    trained: dict[tuple[bool, bool], list[Update]] = {}
    for name, method in METHODS.items():
        spec = RoundSpec(
            algorithm=method.algorithm,
            model=model,
            local=Descent(epochs=setting.local_epochs),
            distillation=Descent(epochs=setting.distilling_epochs, learning_rate=2e-4, batch_size=128),
            sharpness=method.sharpness,
        )
        server = start(["resnet8"], spec, seed, {"resnet8": pretrained} if method.pretrained else None)
        key = method.pretrained, method.algorithm == "fedprox"
        if key not in trained:
            trained[key] = [
                train_client(server, examples.take(torch.from_numpy(part)), client, "resnet8", spec, seed)
                for client, part in zip(clients, parts, strict=True)
            ]
        updates, on_public, on_test = trained[key], None, None
        if method.algorithm == "fedaux":
            heads = certainty_heads(data, [rows[part] for part in parts], first, method.by_record)
            on_public = certainties(clients, heads, data["auxiliary"][first : first + setting.public])
            on_test = certainties(clients, heads, data["z_test"][:FEW])
        ended, dropped = aggregate(server, updates, spec, seed, public, on_public)
        assert not dropped
        ensemble = None
        if method.algorithm in ("feddf", "fedbe", "fedaux"):
            averaged = aggregate(server, updates, spec.model_copy(update={"algorithm": "fedavg"}), seed)[0]
            soft = teacher(updates, averaged, spec, seed, few.inputs, on_test)
            ensemble = 100 * float((soft.argmax(axis=1) == test_labels[:FEW]).mean())
        scores[name] = 100 * server_accuracy(ended, spec, test), ensemble
    return scores


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


def server_accuracy(server: Server, spec: RoundSpec, test: Examples) -> float:
    """Return the share of test images that the server's model gets right."""
    return accuracy(loaded("resnet8", spec.model, server.models["resnet8"]), test)
