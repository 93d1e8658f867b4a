"""Rounds of every algorithm on a small federation: what is averaged, what is distilled, and who is left out."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from dpmodels.embeddings.frozen import Examples
from dpmodels.errors import InvalidArgument
from dpmodels.methods.federations import rounds
from dpmodels.methods.federations.models import Architecture, ModelSpec, State, build, loaded, state_of
from dpmodels.methods.federations.pretraining import PretrainingSpec, pretrain
from dpmodels.methods.federations.rounds import Algorithm, Descent, RoundSpec, Server, Update, aggregate, train_client
from tests.kit.errors import refused
from tests.kit.parties import SPEC, make_examples, split

PUBLIC = make_examples(160, seed=8)
TEST = make_examples(200, seed=9)
OWN = split(make_examples(320), alpha=0.05)
ALGORITHMS = get_args(Algorithm)


def spec_of(algorithm: Algorithm, **changes: Any) -> RoundSpec:
    return RoundSpec(
        algorithm=algorithm,
        model=SPEC,
        local=Descent(epochs=2, learning_rate=3e-3, batch_size=16),
        distillation=Descent(epochs=2, learning_rate=3e-3, batch_size=32),
        drawn=2,
        **changes,
    )


def knowing(own: dict[str, Examples]) -> dict[str, np.ndarray]:
    """Return certainties that are the share of the client's records that have a public record's class."""
    shares = {name: np.bincount(each.labels, minlength=SPEC.classes) / len(each.labels) for name, each in own.items()}
    return {name: share[PUBLIC.labels.numpy()] + 1e-8 for name, share in shares.items()}


def trained(
    spec: RoundSpec, number: int, server: Server, architectures: dict[str, Architecture] | None = None
) -> Server:
    named = architectures or dict.fromkeys(OWN, "resnet8")
    for _ in range(number):
        updates = [train_client(server, own, name, named[name], spec, 0) for name, own in OWN.items()]
        server, dropped = aggregate(server, updates, spec, 0, PUBLIC.inputs, knowing(OWN))
        assert not dropped
    return server


def right(spec: RoundSpec, server: Server, architecture: Architecture = "resnet8") -> float:
    return rounds.accuracy(loaded(architecture, spec.model, server.models[architecture]), TEST)


@pytest.fixture(scope="module")
def pretrained() -> State:
    return pretrain("resnet8", SPEC, PUBLIC.inputs, PretrainingSpec(steps=30, batch_size=64, mirror=False), 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.nightly_if("True-fedbe", "True-feddf", "False-fedaux", "False-fedprox", "True-fedavg")
def test_every_algorithm_trains_and_the_seed_decides(algorithm, plus, pretrained):
    spec = spec_of(algorithm)
    begin = rounds.start(["resnet8"], spec, 0, {"resnet8": pretrained} if plus else None)
    first, second = (trained(spec, 2, begin).models["resnet8"] for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(tensor.isfinite().all() for tensor in first.values())
    assert any(not torch.equal(first[name], begin.models["resnet8"][name]) for name in first)
    if plus:
        extractor = {name for name in pretrained if name.startswith("extractor")}
        assert all(torch.equal(begin.models["resnet8"][name], pretrained[name]) for name in extractor)


def test_at_strong_skew_certainties_beat_the_plain_mean():
    """Each client knows about one class: the plain mean of their logits is far from what the one who knows says."""
    found = {}
    for algorithm in ("feddf", "fedaux"):
        spec = spec_of(algorithm).model_copy(update={"local": Descent(epochs=8, learning_rate=3e-3, batch_size=16)})
        found[algorithm] = right(spec, trained(spec, 1, rounds.start(["resnet8"], spec, 0)))
    assert found["fedaux"] > found["feddf"] + 0.15


def test_weights_are_averaged_by_records_and_by_architecture():
    spec = spec_of("fedavg")
    named: dict[str, Architecture] = {"a": "resnet8", "b": "resnet8", "c": "mlp", "d": "mobilenet"}
    server = rounds.start(["resnet8", "mlp", "mobilenet", "shufflenet"], spec, 0)
    updates = [train_client(server, OWN[name], name, which, spec, 0) for name, which in named.items()]
    after, _ = aggregate(server, updates, spec, 0)
    a, b, c, d = updates
    for name, mean in after.models["resnet8"].items():
        both = (a.weights[name].double() * a.records + b.weights[name].double() * b.records) / (a.records + b.records)
        assert torch.allclose(mean.double(), both, atol=1e-7)
    for alone, which in ((c, "mlp"), (d, "mobilenet")):
        assert all(torch.equal(after.models[which][name], tensor) for name, tensor in alone.weights.items())
    assert after.models["shufflenet"] is server.models["shufflenet"]
    assert after.round == 1


def test_clients_of_other_architectures_teach_each_other():
    spec = spec_of("fedaux")
    named: dict[str, Architecture] = {"a": "resnet8", "b": "resnet8", "c": "mlp", "d": "mlp"}
    begin = rounds.start(["resnet8", "mlp"], spec, 0)
    both = trained(spec, 2, begin, named)
    known = {
        which: np.unique(np.concatenate([OWN[name].labels.numpy() for name in named if named[name] == which])).size
        for which in ("resnet8", "mlp")
    }
    assert min(known.values()) >= 1
    for which in ("resnet8", "mlp"):
        assert right(spec, both, which) > right(spec, begin, which)


def test_a_proximal_term_holds_a_client_near_the_server():
    own, server = OWN["a"], rounds.start(["mlp"], spec_of("fedprox"), 0)

    def away(spec: RoundSpec) -> float:
        update = train_client(server, own, "a", "mlp", spec, 0)
        return sum(((update.weights[name] - held) ** 2).sum().item() for name, held in server.models["mlp"].items())

    free, held, tight = (
        away(spec) for spec in (spec_of("fedavg"), spec_of("fedprox", proximal=0.1), spec_of("fedprox", proximal=10.0))
    )
    assert free > held > 2 * tight


def test_where_only_heads_are_trained_the_extractor_stays():
    spec = spec_of("fedaux", only_head=True)
    begin = rounds.start(["resnet8"], spec, 0)
    after = trained(spec, 1, begin).models["resnet8"]
    changed = {name for name in after if not torch.equal(after[name], begin.models["resnet8"][name])}
    assert changed == {"head.weight", "head.bias"}


def spoiled(update: Update, how: str) -> Update:
    weights = dict(update.weights)
    if how == "numbers":
        weights["head.weight"] = torch.full_like(weights["head.weight"], torch.nan)
    if how == "shapes":
        weights["extractor.1.weight"] = weights["extractor.1.weight"][:-1]
    if how == "classes":
        weights = state_of(build("mlp", ModelSpec(inputs=(1, 8, 8), classes=SPEC.classes + 1, width=4), 0))
    if how == "names":
        del weights["head.bias"]
    changes = {"architecture": "resnet8"} if how == "architecture" else {"records": 0} if how == "records" else {}
    return replace(update, weights=weights, **changes)


@pytest.mark.parametrize("how", ["numbers", "shapes", "classes", "names", "architecture", "records"])
@pytest.mark.parametrize("algorithm", ["fedavg", "fedbe", "fedaux"])
def test_a_client_that_sends_what_cannot_be_used_is_left_out_and_the_round_goes_on(algorithm, how):
    spec = spec_of(algorithm)
    server = rounds.start(["mlp"], spec, 0)
    updates = [train_client(server, own, name, "mlp", spec, 0) for name, own in OWN.items()]
    bad = spoiled(updates[2], how)
    after, dropped = aggregate(server, [*updates[:2], bad, updates[3]], spec, 0, PUBLIC.inputs, knowing(OWN))
    without, none = aggregate(server, [*updates[:2], updates[3]], spec, 0, PUBLIC.inputs, knowing(OWN))
    assert list(dropped) == ["c"] and how in dropped["c"] and not none
    assert all(torch.equal(after.models["mlp"][name], held) for name, held in without.models["mlp"].items())


def test_a_client_that_comes_twice_is_left_out_and_a_round_without_clients_changes_nothing():
    spec = spec_of("feddf")
    server = rounds.start(["mlp"], spec, 0)
    update = train_client(server, OWN["a"], "a", "mlp", spec, 0)
    after, dropped = aggregate(server, [update, update], spec, 0, PUBLIC.inputs)
    assert "more than one" in dropped["a"] and after.models == dict(server.models) and after.round == 1


def test_what_an_algorithm_needs_is_asked_for():
    server = rounds.start(["mlp"], spec_of("feddf"), 0)
    update = train_client(server, OWN["a"], "a", "mlp", spec_of("feddf"), 0)
    with refused(InvalidArgument, name="public", value=None):
        aggregate(server, [update], spec_of("feddf"), 0)
    with refused(InvalidArgument, name="certainties", value=None):
        aggregate(server, [update], spec_of("fedaux"), 0, PUBLIC.inputs, {"b": np.ones(len(PUBLIC.labels))})


def test_clients_are_drawn_by_seed_and_round():
    names = [f"c{place}" for place in range(20)]
    drawn = [rounds.select(names, 0.4, number, 0) for number in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and len(set(drawn[0])) == 8
    assert len(rounds.select(names, 0.001, 0, 0)) == 1 and rounds.select(names, 1.0, 3, 5) == names


def test_a_table_is_learned_too():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 6)).astype(np.float32)
    table = Examples(torch.from_numpy(rows), torch.from_numpy((rows[:, 0] + rows[:, 1] > 0).astype(np.int64)))
    spec = spec_of("fedavg").model_copy(update={"model": ModelSpec(inputs=(6,), classes=2, width=4)})
    server = rounds.start(["mlp"], spec, 0)
    for _ in range(3):
        halves = {"a": table.take(torch.arange(200)), "b": table.take(torch.arange(200, 400))}
        server, _ = aggregate(server, [train_client(server, h, n, "mlp", spec, 0) for n, h in halves.items()], spec, 0)
    assert rounds.accuracy(loaded("mlp", spec.model, server.models["mlp"]), table) > 0.9
