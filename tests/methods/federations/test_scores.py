"""The certainty head alone: the one of both heads, with all of the budget."""

from pathlib import Path

import numpy as np
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.embeddings.frozen import transform_frozen
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.mechanisms import gaussian
from dpmodels.methods.federations.heads import FederatedHeads, HeadsMeasurement, ScoresMeasurement
from dpmodels.methods.federations.scores import FederatedScores
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.release import read_release
from tests.kit.errors import refused
from tests.kit.parties import make_contract, make_examples, make_features, split
from tests.kit.support import desk_in

EXTRACT = make_features()
NEGATIVES = EXTRACT.whole(make_examples(150, seed=7).inputs)
OWN = split(make_examples(400), alpha=0.1)
SIZES = {name: len(own.labels) for name, own in OWN.items()}


def measured(system, folder: Path, sizes: dict[str, int | None]):
    about = make_contract(EXTRACT, NEGATIVES, sizes).of("a")
    line = system.plan(about, PrivacyBudget(epsilon=1.0, delta=1e-5, adjacency=about.adjacency))
    path = system.measure(transform_frozen(EXTRACT, Sensitive(OWN["a"])), line, desk_in(folder, line))
    return read_release(path.value)


def test_it_says_what_the_first_of_both_heads_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    heads = FederatedHeads(HeadsMeasurement(score_lambda=0.02), NEGATIVES)
    scores = FederatedScores(ScoresMeasurement(score_lambda=0.02), NEGATIVES)
    z = EXTRACT.whole(make_examples(50, seed=3).inputs)
    both = heads.heads(measured(heads, tmp_path / "heads", SIZES)).certainty(z)
    alone = FederatedScores().certainty(measured(scores, tmp_path / "scores", SIZES), z)
    assert np.array_equal(both, alone) and len(np.unique(alone)) > 10


def test_the_whole_budget_is_its_own(tmp_path: Path) -> None:
    scores = FederatedScores(ScoresMeasurement(score_lambda=0.02), NEGATIVES)
    heads = FederatedHeads(HeadsMeasurement(score_lambda=0.02), NEGATIVES)
    found = measured(scores, tmp_path / "scores", SIZES).value.line
    assert 0.99 < spent_epsilon([found.event], found.budget.delta_exact) <= 1
    beside = measured(heads, tmp_path / "heads", SIZES).value.line
    ((name, alone),) = scores.noise(found).items()
    also, shared = next(iter(heads.noise(beside).items()))
    assert name == also == "weights of the certainty head" and alone == pytest.approx(shared * 0.2**0.5)


def test_it_asks_for_what_heads_ask_for(tmp_path: Path) -> None:
    private = dict.fromkeys(OWN)
    with refused(InvalidArgument, name="records", value=None):
        measured(FederatedScores(negatives=NEGATIVES), tmp_path / "a", private)
    with pytest.raises(ArtifactError, match="auxiliary features"):
        measured(FederatedScores(), tmp_path / "b", SIZES)
