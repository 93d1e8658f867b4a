"""Rounds of federated training as plain functions, which any engine may carry: FedAvg, FedProx, FedDF, FedBE, FedAUX.

    start           the server's models, one an architecture, pre-trained or not
    select          which clients take part in a round
    train_client    (server, own records) -> update
    aggregate       (server, updates, public records) -> server, and why each update that was left out was

    FedAvg   theta = sum_i |D_i| theta_i / sum_i |D_i|, over the clients of one architecture
    FedProx  FedAvg; clients are held near the server's model by mu / 2 ||theta - theta_0||^2
    FedDF    FedAvg, then distilled on public records towards softmax(mean_i f_i), of clients of all architectures
    FedBE    FedDF towards the mean of probabilities of clients, their mean, and models drawn around it
    FedAUX   FedDF towards softmax(sum_i s_i f_i / sum_i s_i), where s_i is how certain client i is

Privacy: none. An update is a function of a client's records without noise, and as sensitive as they are. Only the
certainties s_i may be private (heads.py); so no epsilon may be claimed for the records of a client that sends updates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dpmodels.arrays import Floats
from dpmodels.embeddings.frozen import Examples
from dpmodels.errors import InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.generators.randomness import stream
from dpmodels.methods.federations.heads import SHARPNESS, weighted_ensemble
from dpmodels.methods.federations.models import Architecture, Classifier, ModelSpec, State, build, loaded, state_of

Algorithm = Literal["fedavg", "fedprox", "feddf", "fedbe", "fedaux"]
PREDICTED = 512
"""Records that a model looks at at once when nothing is learned."""


class Descent(Frozen):
    """How a model is trained, by Adam."""

    epochs: Annotated[int, Field(ge=1)] = 1
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    batch_size: Annotated[int, Field(ge=1)] = 32


class RoundSpec(Frozen):
    """What all rounds have in common.

    Attributes:
        model: of all architectures; only_head: whether the feature extractor stays as it is.
        proximal: mu of FedProx; drawn: number of models that FedBE draws; sharpness: power of FedAUX's certainties.
    """

    algorithm: Algorithm
    model: ModelSpec
    local: Descent = Descent()
    distillation: Descent = Descent(learning_rate=5e-5, batch_size=128)
    only_head: bool = False
    proximal: Annotated[float, Field(gt=0)] = 1e-3
    drawn: Annotated[int, Field(ge=1, le=100)] = 10
    sharpness: Annotated[float, Field(ge=0, le=1000)] = SHARPNESS


@dataclass(frozen=True)
class Server:
    """The server's state after a number of rounds: one model an architecture."""

    round: int
    models: Mapping[Architecture, State]


@dataclass(frozen=True)
class Update:
    """What a client sends: the weights that it trained, and on how many records."""

    client: str
    architecture: Architecture
    records: int
    weights: State


def start(
    architectures: Sequence[Architecture],
    spec: RoundSpec,
    seed: int,
    pretrained: Mapping[Architecture, State] | None = None,
) -> Server:
    """Return the server before the first round, with models that were pre-trained (+P) or with new ones."""
    models = pretrained or {}
    return Server(0, {name: models.get(name) or state_of(build(name, spec.model, seed)) for name in architectures})


def select(clients: Sequence[str], rate: float, round_number: int, seed: int) -> list[str]:
    """Draw the clients that take part in a round, at least one."""
    rng = np.random.default_rng([seed, round_number])
    numbers = rng.choice(len(clients), max(1, round(rate * len(clients))), replace=False)
    return [clients[number] for number in sorted(numbers)]


def train_client(
    server: Server, records: Examples, client: str, architecture: Architecture, spec: RoundSpec, seed: int
) -> Update:
    """Train the server's model on a client's records. Privacy: the update is as sensitive as the records."""
    model = loaded(architecture, spec.model, server.models[architecture], records.inputs.device)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trained = model.head if spec.only_head else model

    def loss(rows: Tensor) -> Tensor:
        objective = functional.cross_entropy(model(records.inputs[rows]), records.labels[rows])
        if spec.algorithm == "fedprox":
            away = [((w - before[name]) ** 2).sum() for name, w in model.named_parameters()]
            objective = objective + spec.proximal / 2 * torch.stack(away).sum()
        return objective

    _descend(trained, loss, len(records.labels), spec.local, seed_of(seed, server.round, *client.encode()))
    return Update(client, architecture, len(records.labels), state_of(model))


def aggregate(
    server: Server,
    updates: Sequence[Update],
    spec: RoundSpec,
    seed: int,
    public: Tensor | None = None,
    certainties: Mapping[str, Floats] | None = None,
) -> tuple[Server, dict[str, str]]:
    """Return the server after a round, and by client why an update was left out.

    An architecture whose clients all were left out stays as it was. Shapes: public [n, ...]; each certainty [n].

    Raises:
        InvalidArgument: the algorithm distills and there are no public records, or certainties are missing.
    """
    senders = [each.client for each in updates]
    dropped = {name: "it sent more than one update" for name in senders if senders.count(name) > 1}
    dropped |= {each.client: fault for each in updates if (fault := fault_of(each, server, spec))}
    usable = [each for each in updates if each.client not in dropped]
    models = {name: _mean(group) if (group := _of(usable, name)) else old for name, old in server.models.items()}
    averaged = Server(server.round + 1, models)
    if spec.algorithm in ("fedavg", "fedprox") or not usable:
        return averaged, dropped
    if public is None:
        raise InvalidArgument("public", None, f"be records to distill {spec.algorithm} on")
    soft = teacher(usable, averaged, spec, seed, public, certainties)
    taught = {
        name: distil(name, models[name], public, soft, spec, seed_of(seed, averaged.round))
        for name in {each.architecture: None for each in usable}
    }
    return Server(averaged.round, {**models, **taught}), dropped


def fault_of(update: Update, server: Server, spec: RoundSpec) -> str:
    """Say what is wrong with an update, without any number of it; nothing is wrong where the text is empty."""
    model = server.models.get(update.architecture)
    if model is None:
        return "its architecture is none of the server's"
    if update.weights.keys() != model.keys():
        return "its weights have other names than the server's"
    if len(update.weights["head.bias"]) != spec.model.classes:
        return "it has another number of classes than the server"
    if any(update.weights[name].shape != old.shape for name, old in model.items()):
        return "its weights have other shapes than the server's"
    if not all(tensor.is_floating_point() and tensor.isfinite().all() for tensor in update.weights.values()):
        return "its weights are not all numbers"
    return "" if update.records > 0 else "it was trained on no records"


def teacher(
    updates: Sequence[Update],
    averaged: Server,
    spec: RoundSpec,
    seed: int,
    public: Tensor,
    certainties: Mapping[str, Floats] | None,
) -> Floats:
    """Return what an ensemble of the updates' models says of public records. Shapes: [n, classes]."""
    logits = [predict(loaded(each.architecture, spec.model, each.weights, public.device), public) for each in updates]
    if spec.algorithm == "fedbe":
        logits += [predict(model.to(public.device), public) for model in _drawn(updates, averaged, spec, seed)]
        return np.asarray(np.mean([weighted_ensemble([one]) for one in logits], axis=0))
    if spec.algorithm == "feddf":
        return weighted_ensemble(logits)
    if certainties is None or not {each.client for each in updates} <= certainties.keys():
        raise InvalidArgument("certainties", None, "be given for every client that takes part in fedaux")
    return weighted_ensemble(logits, [certainties[each.client] for each in updates], spec.sharpness)


def distil(architecture: Architecture, state: State, public: Tensor, soft: Floats, spec: RoundSpec, seed: int) -> State:
    """Train a model to say what the teacher says, by the cross-entropy, whose gradient is that of KL."""
    model, target = loaded(architecture, spec.model, state, public.device), torch.from_numpy(soft).float()
    target = target.to(public.device)

    def loss(rows: Tensor) -> Tensor:
        return functional.cross_entropy(model(public[rows]), target[rows])

    _descend(model.head if spec.only_head else model, loss, len(public), spec.distillation, seed)
    return state_of(model)


def predict(model: Classifier, inputs: Tensor) -> Floats:
    """Return a model's logits. Shapes: [n, ...] -> [n, classes]."""
    model.eval()
    with torch.no_grad():
        parts = [model(inputs[begin : begin + PREDICTED]) for begin in range(0, len(inputs), PREDICTED)]
    return np.asarray(torch.cat(parts).double().cpu().numpy())


def accuracy(model: Classifier, examples: Examples) -> float:
    """Return the share of records whose class a model names."""
    return float((predict(model, examples.inputs).argmax(axis=1) == examples.labels.cpu().numpy()).mean())


def seed_of(seed: int, *position: int) -> int:
    """Return a seed for one place, such as a round or a client in it."""
    return int(np.random.SeedSequence([seed, *position]).generate_state(1)[0])


def _of(updates: Sequence[Update], architecture: Architecture) -> list[Update]:
    return [each for each in updates if each.architecture == architecture]


def _mean(updates: Sequence[Update]) -> State:
    """Average weights by numbers of records, in float64."""
    total = sum(each.records for each in updates)
    return {
        name: sum((each.weights[name].double() * (each.records / total) for each in updates), torch.tensor(0.0)).to(
            tensor.dtype
        )
        for name, tensor in updates[0].weights.items()
    }


def _drawn(updates: Sequence[Update], averaged: Server, spec: RoundSpec, seed: int) -> list[Classifier]:
    """Return the mean of each architecture, and models drawn from a Gaussian around it with the clients' variances."""
    models = []
    for name, mean in averaged.models.items():
        if group := _of(updates, name):
            away = {key: torch.stack([each.weights[key] - centre for each in group]) for key, centre in mean.items()}
            draw = stream(seed, averaged.round)
            models.append(loaded(name, spec.model, mean))
            for _ in range(spec.drawn):
                normal = {key: torch.randn(centre.shape, generator=draw) for key, centre in mean.items()}
                noisy = {
                    key: centre + away[key].square().mean(dim=0).sqrt() * normal[key] for key, centre in mean.items()
                }
                models.append(loaded(name, spec.model, noisy))
    return models


def _descend(
    trained: torch.nn.Module, loss: Callable[[Tensor], Tensor], records: int, descent: Descent, seed: int
) -> None:
    """Take steps of Adam over random batches, each record once an epoch."""
    optimizer = torch.optim.Adam(trained.parameters(), descent.learning_rate)
    for epoch in range(descent.epochs):
        order = torch.randperm(records, generator=stream(seed, epoch))
        for begin in range(0, records, descent.batch_size):
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss(order[begin : begin + descent.batch_size]))
            optimizer.step()
