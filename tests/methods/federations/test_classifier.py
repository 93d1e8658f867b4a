"""The classifier that a private federation hands over: it says the same from its file, and damage is seen."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from dpmodels.errors import ArtifactError
from dpmodels.methods.federations.classifier import Ensemble, FederatedClassifier
from dpmodels.methods.federations.heads import FederatedHeads, Heads, HeadsMeasurement, weighted_ensemble
from dpmodels.methods.federations.moments_head import Discriminant, MomentsHead, discriminant
from tests.kit.parties import CLASSES, FEATURES, SPEC, make_contract, make_examples, make_features

EXTRACT = make_features()
TEST = make_examples(40, seed=4)
NEGATIVES = EXTRACT.whole(make_examples(30, seed=7).inputs)
CONTRACT = make_contract(EXTRACT, NEGATIVES, {"a": 100, "b": 100, "c": 100})


def clients() -> list[Heads]:
    """Return heads that could have been released."""
    system, rng = FederatedHeads(HeadsMeasurement(score_lambda=0.01, head_lambda=0.01)), np.random.default_rng(0)
    about = CONTRACT.of("a")
    problems = system.design(system.settled(about), about)
    shapes = (1, FEATURES + 1), (CLASSES, FEATURES + 1)
    return [Heads(name, *(rng.standard_normal(shape) for shape in shapes), problems) for name in "abc"]


def gaussians() -> Discriminant:
    """Return Gaussians that could have been released."""
    examples, own = make_examples(500), MomentsHead()
    moments = own.design(own.measurement, CONTRACT)
    return discriminant(
        moments, moments.total(EXTRACT.whole(examples.inputs), examples.labels.numpy()), 1.0, own.measurement.floor
    )


def classifier(head: Ensemble | Discriminant) -> FederatedClassifier:
    return FederatedClassifier(CONTRACT, "resnet8", SPEC, EXTRACT, head, ("entry-1", "entry-2"))


@pytest.mark.parametrize("kind", ["ensemble", "gaussians"])
def test_a_classifier_says_the_same_from_its_file(tmp_path: Path, kind: str) -> None:
    made = classifier(Ensemble.of(clients()) if kind == "ensemble" else gaussians())
    made.save(tmp_path / "classifier.safetensors")
    found = FederatedClassifier.load(tmp_path / "classifier.safetensors")
    said = found.probabilities(TEST.inputs)
    assert np.array_equal(said, made.probabilities(TEST.inputs)) and np.allclose(said.sum(axis=1), 1)
    assert found.contract == CONTRACT and found.entries == made.entries and found.head.kind == kind


def test_an_ensemble_says_what_its_clients_do() -> None:
    own, z = clients(), EXTRACT.whole(TEST.inputs)
    wanted = weighted_ensemble([each.logits(z) for each in own], [each.certainty(z) for each in own], 4.0)
    assert np.allclose(Ensemble.of(own, sharpness=4.0).probabilities(z), wanted)


def test_gaussians_know_the_class_of_records_like_those_they_were_made_of() -> None:
    said = classifier(gaussians()).probabilities(TEST.inputs)
    assert (said.argmax(axis=1) == TEST.labels.numpy()).mean() > 0.8


@pytest.mark.parametrize("damage", ["missing", "cut", "network", "kind", "shape"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "classifier.safetensors"
    made = classifier(Ensemble.of(clients()))
    made.save(path)
    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["nacre"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "network":
        replace(made, features=make_features(seed=1)).save(path)
    else:
        if damage == "kind":
            facts["kind"] = "oracle"
        tensors["network/0.0.weight"] = torch.zeros(3)
        save_file(tensors, path, metadata={"nacre": json.dumps(facts)})
    with pytest.raises(ArtifactError, match=r"classifier\.safetensors"):
        FederatedClassifier.load(path)
