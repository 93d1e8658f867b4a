"""Heads of clients through the one driver: charged to each client's own account, with the noise that was charged."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from dpmodels.audit.tap import Killed
from dpmodels.embeddings.frozen import transform_frozen
from dpmodels.errors import ArtifactError, BudgetExhausted, InvalidArgument, Unsuitable
from dpmodels.ledger.ledger import Ledger
from dpmodels.mechanisms import gaussian
from dpmodels.methods.federations.heads import (
    HEAD_NOISE,
    SCORE_NOISE,
    FederatedHeads,
    Heads,
    HeadsMeasurement,
    weighted_ensemble,
)
from dpmodels.privacy import Adjacency, PrivacyBudget, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.release import read_release
from dpmodels.statistics.component_moments import Points
from tests.kit.errors import refused
from tests.kit.every_method import tap
from tests.kit.noise import has_stddev
from tests.kit.parties import FEATURES, make_contract, make_examples, make_features, split
from tests.kit.points import clipped
from tests.kit.support import desk_in

__all__ = ["tap"]  # a fixture

EXTRACT = make_features()
NEGATIVES = EXTRACT.whole(make_examples(150, seed=7).inputs)
OWN = split(make_examples(400), alpha=0.1)


def budget_of(adjacency: Adjacency, epsilon: float = 1.0) -> PrivacyBudget:
    return PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=adjacency)


def contract(public: bool = True):
    return make_contract(EXTRACT, NEGATIVES, {name: len(own.labels) if public else None for name, own in OWN.items()})


def system(**measurement: float) -> FederatedHeads:
    return FederatedHeads(HeadsMeasurement(**measurement), NEGATIVES)


def released(folder: Path, client: str, epsilon: float = 1.0, **measurement: float) -> Heads:
    """Measure one client's heads under a ledger of its own."""
    own, about = system(**measurement), contract().of(client)
    line = own.plan(about, budget_of(about.adjacency, epsilon))
    desk = desk_in(folder / client, line)
    path = own.measure(transform_frozen(EXTRACT, Sensitive(OWN[client])), line, desk)
    return own.heads(read_release(path.value))


def test_each_client_pays_once_from_its_own_account(tmp_path):
    own = system()
    for client in OWN:
        line = own.plan(contract().of(client), budget_of(Adjacency.REPLACE_ONE))
        assert line.part == "client"
        folder = tmp_path / client
        desk = desk_in(folder, line)
        for _ in range(2):  # a measurement that is asked for again is the same release
            own.measure(transform_frozen(EXTRACT, Sensitive(OWN[client])), line, desk)
        balance = desk.ledger.balance("a")
        assert balance.charges == 1 and Decimal("0.99") < balance.spent_epsilon <= 1
        again = desk_in(folder, line, run="second", ledger=desk.ledger)
        with pytest.raises(BudgetExhausted):
            own.measure(transform_frozen(EXTRACT, Sensitive(OWN[client])), line, again)


def test_a_federation_of_clients_has_spent_what_its_heaviest_client_has(tmp_path):
    own, ledger, whole = system(), Ledger(tmp_path / "ledger.sqlite"), contract()
    ledger.open_account("all", dataset=whole.name, budget_cap=budget_of(Adjacency.REPLACE_ONE, 3.0))
    for place, client in enumerate(OWN):
        line = own.plan(whole.of(client), budget_of(Adjacency.REPLACE_ONE, 2.0 if place == 1 else 1.0))
        ledger.open_account(client, dataset=line.contract.name, budget_cap=line.budget, parent="all")
        desk = desk_in(tmp_path / client, line)
        paid = Desk(ledger, desk.charge.model_copy(update={"account": client}), desk.staged, desk.released)
        own.measure(transform_frozen(EXTRACT, Sensitive(OWN[client])), line, paid)
    spent = [float(ledger.balance(name).spent_epsilon) for name in OWN]
    assert spent == pytest.approx([1, 2, 1, 1], rel=1e-3)
    assert float(ledger.balance("all").spent_epsilon) == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("drawn", [0, 1])
def test_a_client_that_dies_goes_on_with_the_same_heads_and_one_charge(tmp_path, tap, drawn):
    own, about = system(), contract().of("a")
    line = own.plan(about, budget_of(about.adjacency))
    desk = desk_in(tmp_path / "a", line)
    tap.left = drawn
    with pytest.raises(Killed):
        own.measure(transform_frozen(EXTRACT, Sensitive(OWN["a"])), line, desk)
    before, tap.left = tap.restart(), -1
    path = own.measure(transform_frozen(EXTRACT, Sensitive(OWN["a"])), line, desk)
    steps = [*before, *tap.draws]
    assert len(steps) == 2 and desk.ledger.balance("a").charges == 1
    vector = read_release(path.value).value.vector
    assert np.array_equal(vector, np.concatenate([step.released for step in steps]))


def test_a_release_is_read_without_the_negatives(tmp_path):
    found = released(tmp_path, "a")
    line = system().plan(contract().of("a"), budget_of(Adjacency.REPLACE_ONE))
    alone = FederatedHeads().heads(read_release(desk_in(tmp_path / "a", line).released))
    assert np.array_equal(alone.head, found.head) and np.array_equal(alone.score, found.score)
    assert found.client == "a" and found.score.shape == (1, FEATURES + 1) and found.head.shape == (4, FEATURES + 1)


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_regularization_is_chosen_for_the_noise_of_the_weights_unless_it_is_given(public: bool, epsilon: float) -> None:
    about = contract(public).of("a")
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=about.adjacency)
    line = system(records=None if public else 100).plan(about, budget)
    noise = list(system().noise(line).values())
    assert noise == pytest.approx([SCORE_NOISE, HEAD_NOISE], rel=0.02)  # the strengths have three digits
    given = system(records=None if public else 100, score_lambda=0.5).plan(about, budget).measurement
    assert given == line.measurement | {"score_lambda": 0.5}


def test_a_chosen_regularization_can_always_be_certified() -> None:
    about = contract(False).of("a")
    for most in (500, 50_000, 1_000_000):
        for epsilon in (0.001, 1000):
            asked = about.model_copy(update={"most_records": most})
            system(records=most // 10).plan(asked, PrivacyBudget(epsilon=epsilon, delta=1e-5))


@pytest.mark.parametrize("public", [True, False])
def test_the_drawn_noise_is_that_of_the_proved_bounds(monkeypatch, tmp_path, public):
    """Of both heads together: mu of the two adds up to that of the budget, and 2 / (lambda n) is the sensitivity."""
    size, records, negatives = 500, 60, clipped(np.random.default_rng(1).standard_normal((40, 500)))
    sizes = {"a": records if public else None}
    about = make_contract(EXTRACT, negatives, sizes, most_records=1000).of("a")
    strengths = {"score_lambda": 0.01, "head_lambda": 0.01}
    own = FederatedHeads(HeadsMeasurement(records=records, bias=0.0, **strengths), negatives)
    drawn = []

    def sampler(values, stddev):
        noisy = gaussian.discrete_gaussian(values, stddev)
        drawn.append(noisy - values)
        return noisy

    monkeypatch.setattr(gaussian, "_sampler", sampler)
    line = own.plan(about, budget_of(about.adjacency))
    held = Points(clipped(np.random.default_rng(2).standard_normal((records, size))), np.arange(records) % 4)
    own.measure(Sensitive([held]), line, desk_in(tmp_path / "desk", line))
    problems, moves = own.of(line), 2 if public else 1
    mu = 1 / 3.7306
    proved = [
        moves / (0.01 * (records + 40)) / (mu * 0.2**0.5),
        moves * 2**0.5 / (0.01 * records) / (mu * 0.8**0.5),
    ]
    for noise, problem, stddev in zip(drawn, (problems.score, problems.head), proved, strict=True):
        real = noise * problem.step / (1 + 2e-3)
        assert has_stddev(real, stddev)
        assert not has_stddev(real, stddev * 2 / 3) and not has_stddev(real, stddev * 3 / 2)


def test_where_sizes_are_private_a_public_guess_is_asked_for():
    about = contract(public=False).of("a")
    with refused(InvalidArgument, name="records", value=None):
        system().plan(about, budget_of(about.adjacency))
    line = system(records=100).plan(about, budget_of(about.adjacency))
    assert line.measurement["records"] == 100


def test_a_head_is_a_clients_and_its_adjacency_the_contracts():
    with pytest.raises(Unsuitable, match="each client for itself"):
        system().plan(contract(), budget_of(Adjacency.REPLACE_ONE))
    with refused(InvalidArgument, name="adjacency"):
        system().plan(contract().of("a"), budget_of(Adjacency.ADD_OR_REMOVE_ONE))


def test_other_negatives_than_the_contracts_are_refused_before_any_noise(tmp_path):
    line = system().plan(contract().of("a"), budget_of(Adjacency.REPLACE_ONE))
    desk = desk_in(tmp_path / "desk", line)
    for other in (None, NEGATIVES[::-1]):
        with pytest.raises(ArtifactError, match="auxiliary features"):
            FederatedHeads(HeadsMeasurement(), other).measure(
                transform_frozen(EXTRACT, Sensitive(OWN["a"])), line, desk
            )
    assert [entry.kind for entry in desk.ledger.entries()] == ["open", "reserve"]


def test_certainty_weighs_the_client_that_knows(tmp_path):
    """With one class a client most are wrong about a record, and their mean is; the one that is certain is right."""
    test = make_examples(300, seed=5)
    z, labels = EXTRACT.whole(test.inputs), test.labels.numpy()

    def right(said: np.ndarray) -> float:
        return float((said.argmax(axis=1) == labels).mean())

    found = []
    for draw in range(8):  # of the noise, of which a single draw may favor either
        folder = tmp_path / str(draw)
        folder.mkdir()
        heads = [released(folder, name, epsilon=200.0, score_lambda=1e-3, head_lambda=1e-3) for name in OWN]
        assert [each.client for each in heads] == list(OWN)
        logits, sure = [each.logits(z) for each in heads], [each.certainty(z) for each in heads]
        found.append([right(weighted_ensemble(logits)), right(weighted_ensemble(logits, sure))])
    plain, weighted = np.mean(found, axis=0)
    assert weighted > plain + 0.05, found


def test_a_sharp_ensemble_follows_the_client_that_is_most_certain():
    rng = np.random.default_rng(0)
    logits, sure = rng.standard_normal((3, 50, 4)), rng.uniform(0.5, 0.6, (3, 50)) + 1e-3 * np.arange(3)[:, None]
    by_power = [weighted_ensemble(list(logits), list(sure), power) for power in (0.0, 1.0, 10_000.0)]
    assert np.allclose(by_power[0], weighted_ensemble(list(logits)))
    best = logits[sure.argmax(axis=0), np.arange(50)]
    apart = np.abs(np.sort(sure, axis=0)[-1] / np.sort(sure, axis=0)[-2] - 1) > 2e-3
    assert apart.sum() > 30 and np.allclose(by_power[2][apart], weighted_ensemble([best])[apart], atol=1e-6)
    wanted = (sure[:, :, None] * logits).sum(axis=0) / sure.sum(axis=0)[:, None]
    assert np.allclose(by_power[1], weighted_ensemble([wanted]))


def test_scores_are_never_zero_and_an_ensemble_of_one_is_its_model():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((5, 3)) * 1000
    alone = weighted_ensemble([logits], [np.full(5, 1e-8)])
    assert np.array_equal(alone.argmax(axis=1), logits.argmax(axis=1)) and np.allclose(alone.sum(axis=1), 1)
