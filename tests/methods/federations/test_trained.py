"""A network that was trained in rounds: it says the same from its file, which says that no epsilon holds."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from dpmodels.contract.federation import UNPROTECTED
from dpmodels.errors import ArtifactError
from dpmodels.methods.federations.classifier import FederatedClassifier
from dpmodels.methods.federations.models import build, state_of
from dpmodels.methods.federations.trained_classifier import TrainedClassifier, load_classifier
from tests.kit.parties import CLASSES, SPEC, make_contract, make_examples, make_features

EXTRACT = make_features()
CONTRACT = make_contract(EXTRACT, EXTRACT.whole(make_examples(30, seed=7).inputs), {"a": 100, "b": 100})
MADE = TrainedClassifier(CONTRACT, "resnet8", SPEC, state_of(build("resnet8", SPEC, 3)))


def test_it_comes_back_and_says_what_it_is(tmp_path: Path) -> None:
    place, inputs = tmp_path / "classifier.safetensors", make_examples(40, seed=4).inputs
    MADE.save(place)
    found = load_classifier(place)
    said = found.probabilities(inputs)
    assert isinstance(found, TrainedClassifier) and found.contract == CONTRACT
    assert np.array_equal(said, MADE.probabilities(inputs)) and said.shape == (40, CLASSES)
    assert np.allclose(said.sum(axis=1), 1)
    with safe_open(place, framework="pt") as file:
        assert json.loads(file.metadata()["nacre"])["unprotected"] == UNPROTECTED


def test_a_damaged_file_or_one_of_another_kind_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "classifier.safetensors"
    MADE.save(place)
    with pytest.raises(ArtifactError, match="damaged"):
        FederatedClassifier.load(place)
    place.write_bytes(place.read_bytes()[:-40])
    with pytest.raises(ArtifactError, match="damaged"):
        load_classifier(place)
    with pytest.raises(ArtifactError, match="missing"):
        load_classifier(tmp_path / "none.safetensors")
