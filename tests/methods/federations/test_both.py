"""Heads and moments in one release: each reads as it does alone, and the three noises cost the one budget."""

from pathlib import Path

import numpy as np
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.embeddings.frozen import transform_frozen
from dpmodels.errors import InvalidArgument
from dpmodels.mechanisms import gaussian
from dpmodels.methods.federations.classifier import Ensemble, heads_of
from dpmodels.methods.federations.heads import FederatedHeads, HeadsMeasurement
from dpmodels.methods.federations.heads_and_moments import BothMeasurement, HeadsAndMoments
from dpmodels.methods.federations.moments_head import Discriminant, MomentsHead
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.release import read_release
from tests.kit.errors import refused
from tests.kit.parties import make_contract, make_examples, make_features, split
from tests.kit.support import desk_in

EXTRACT = make_features()
NEGATIVES = EXTRACT.whole(make_examples(150, seed=7).inputs)
OWN = split(make_examples(2000), alpha=1.0)
CONTRACT = make_contract(EXTRACT, NEGATIVES, {name: len(own.labels) for name, own in OWN.items()})
SYSTEM = HeadsAndMoments(negatives=NEGATIVES)


def budget(epsilon: float) -> PrivacyBudget:
    return PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=CONTRACT.adjacency)


def test_three_noises_cost_what_was_asked_for_and_no_less() -> None:
    line = SYSTEM.plan(CONTRACT.of("a"), budget(1.0))
    assert len(line.event.events) == 3 and 0.99 < spent_epsilon([line.event], line.budget.delta_exact) <= 1
    mu_squared = [one.noise_multiplier**-2 for one in line.event.events]
    assert sum(mu_squared[:2]) == pytest.approx(mu_squared[2])  # half of the squared mu each
    named = SYSTEM.noise(line)
    assert len(named) == 4 and set(FederatedHeads().noise(FederatedHeads().plan(CONTRACT.of("a"), budget(1)))) < set(
        named
    )


def test_both_read_what_each_would_read_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    releases: dict[str, list] = {"both": [], "heads": [], "moments": []}
    given = HeadsMeasurement(score_lambda=0.01, head_lambda=0.01)  # what is chosen depends on the heads' share
    both = HeadsAndMoments(BothMeasurement(heads=given), NEGATIVES)
    systems = {"both": both, "heads": FederatedHeads(given, NEGATIVES), "moments": MomentsHead()}
    for client, own in OWN.items():
        for name, system in systems.items():
            line = system.plan(CONTRACT.of(client), budget(8.0))
            path = system.measure(
                transform_frozen(EXTRACT, Sensitive(own)), line, desk_in(tmp_path / f"{name}-{client}", line)
            )
            releases[name].append(read_release(path.value))
    made = heads_of(both, releases["both"])
    alone = [heads_of(systems["heads"], releases["heads"])[0], heads_of(systems["moments"], releases["moments"])[0]]
    assert [type(one) for one in made] == [Ensemble, Discriminant] == [type(one) for one in alone]
    assert np.array_equal(made[0].heads, alone[0].heads) and np.array_equal(made[0].scores, alone[0].scores)
    assert np.allclose(made[1].means, alone[1].means)
    test = make_examples(300, seed=5)
    for one in made:
        assert (one.probabilities(EXTRACT.whole(test.inputs)).argmax(axis=1) == test.labels.numpy()).mean() > 0.7


def test_what_cannot_be_added_up_is_not_left_to_an_aggregator() -> None:
    central = BothMeasurement.model_validate({"moments": {"trust": "central"}})
    with refused(InvalidArgument, name="moments.trust", value="central"):
        HeadsAndMoments(central, NEGATIVES).plan(CONTRACT.of("a"), budget(1.0))
