"""The paper's own comparison, reduced: one round of whole networks without privacy, all 20 clients (C = 1).

    FedAvg+P   weights averaged                        FedDF(+P)  and distilled from the mean of the clients' logits
    FedAUX     distilled from their logits weighted by certainty (exact heads; the networks travel without noise)

+P starts from the pre-trained network. Distilled is on four fifths of the public images; the rest are negatives.
"""

from typing import NamedTuple

import numpy as np
import torch

from benchmarks.archive.fedaux_data import TASKS, Arrays, images
from benchmarks.dirichlet import dirichlet_split
from dpmodels.embeddings.frozen import Examples
from dpmodels.methods.federations.heads import certainty
from dpmodels.methods.federations.models import ModelSpec, State, loaded
from dpmodels.methods.federations.rounds import (
    Algorithm,
    Descent,
    RoundSpec,
    Server,
    Update,
    aggregate,
    start,
    train_client,
)
from dpmodels.statistics.logistic import Logistic, with_bias

METHODS: dict[str, tuple[Algorithm, bool]] = {
    "FedAvg+P": ("fedavg", True),
    "FedDF": ("feddf", False),
    "FedDF+P": ("feddf", True),
    "FedAUX": ("fedaux", True),
}
CLIENTS, BIAS = 20, 0.3


class Setting(NamedTuple):
    """The reduced setting: records of all clients, public records to distill on, and epochs of either training."""

    records: int
    public: int
    local_epochs: int
    distilling_epochs: int


def one_shot(task: str, data: Arrays, pretrained: State, alpha: float, seed: int, setting: Setting) -> dict[str, float]:
    """Return each method's accuracy on test images after one round."""
    own, public, local, distilling = setting
    model, shape = TASKS[task].model, TASKS[task].shape
    rows = np.random.default_rng(seed).permutation(len(data["y"]))[:own]
    inputs, labels = images(TASKS[task].own, shape)
    held = Examples(inputs[rows], torch.from_numpy(labels[rows]))
    parts = dirichlet_split(labels[rows], CLIENTS, alpha, seed)
    first = len(data["auxiliary"]) // 5
    shown = images(TASKS[task].auxiliary, shape)[0][first : first + public]
    test, truth = images(TASKS[task].test, shape)
    sure = certainties(data, [rows[part] for part in parts], first, public)
    found: dict[str, float] = {}
    trained: dict[bool, list[Update]] = {}
    for name, (algorithm, helped) in METHODS.items():
        spec = RoundSpec(
            algorithm=algorithm,
            model=model,
            local=Descent(epochs=local),
            distillation=Descent(epochs=distilling, learning_rate=2e-4, batch_size=128),
        )
        server = start(["resnet8"], spec, seed, {"resnet8": pretrained} if helped else None)
        if helped not in trained:
            trained[helped] = [
                train_client(server, held.take(torch.from_numpy(part)), f"c{place}", "resnet8", spec, seed)
                for place, part in enumerate(parts)
            ]
        given = {f"c{place}": each for place, each in enumerate(sure)} if algorithm == "fedaux" else None
        ended, dropped = aggregate(server, trained[helped], spec, seed, shown, given)
        assert not dropped
        found[name] = accuracy(ended, model, test, truth)
    return found


def certainties(data: Arrays, parts: list[np.ndarray], negatives: int, public: int) -> list[np.ndarray]:
    """Return how certain each client is of the public records to distill on, by exact heads of the paper's strength."""
    aside, shown = data["auxiliary"][:negatives], data["auxiliary"][negatives : negatives + public]
    found = []
    for part in parts:
        z = np.concatenate([data["z"][part], aside])
        problem = Logistic(z.shape[1], 1, 0.01 * len(z), BIAS, False, len(z))
        w = problem.solve(problem.features(z), np.repeat([[1.0], [0.0]], [len(part), negatives], axis=0))
        assert w is not None
        found.append(certainty(w[0], with_bias(shown, BIAS)))
    return found


def accuracy(server: Server, model: ModelSpec, test: torch.Tensor, truth: np.ndarray) -> float:
    """Return the share of test images that the server's model gets right, per cent."""
    network = loaded("resnet8", model, server.models["resnet8"]).eval()
    with torch.no_grad():
        said = torch.cat([network(rows) for rows in test.split(512)])
    return 100 * float((said.argmax(dim=1).numpy() == truth).mean())
