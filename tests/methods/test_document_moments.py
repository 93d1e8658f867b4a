"""What is read off the moments of documents: the noise is taken out, and what is left is close where noise is small."""

from contextlib import suppress

import numpy as np
import pytest

from dpmodels.audit.made.mails import make_records, make_schema
from dpmodels.codec.embedded import BITS, Embedded, on_sphere
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.errors import Unsuitable
from dpmodels.generators.points import PointModel, without_error
from dpmodels.methods.documents.document_moments import (
    DocumentLooks,
    DocumentMeasurement,
    DocumentMomentsSystem,
    Estimate,
)
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.steps import NoisySum, Step, Sum
from dpmodels.releases.system import Craft
from dpmodels.text.encoders import words_of
from tests.kit.support import measured

CONTRACT = make_schema()


def estimated(documents: Embedded, epsilon: float, folder, **spec: float) -> Estimate:
    system = DocumentMomentsSystem(DocumentMeasurement(**spec))
    line = system.plan(CONTRACT, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=CONTRACT.unit))
    release, _ = measured(system, folder, line, documents)
    return system.estimate(release.value)


def points(documents: Embedded) -> np.ndarray:
    return np.ldexp(documents.vectors.astype(np.float64), -BITS)


def test_with_a_large_budget_moments_are_those_of_the_documents(tmp_path):
    documents = make_records(4000)
    found, x = estimated(documents, 500, tmp_path, radius=3), points(documents)
    for label in range(3):
        own = x[documents.labels == label]
        assert found.counts[label] == pytest.approx(len(own), abs=1)
        assert found.means[label] == pytest.approx(own.mean(axis=0), abs=0.005)
    within = x - np.stack([x[documents.labels == label].mean(axis=0) for label in range(3)])[documents.labels]
    assert found.covariance == pytest.approx(within.T @ within / len(x), abs=0.003)


def make_mails() -> tuple[Documents, Embedded]:
    """Return the contract of mails that wordllama embeds, and embeddings that vary as its words do."""
    rng, words = np.random.default_rng(0), words_of(Encoder(name="wordllama", dim=16))
    labels = rng.integers(0, 3, 3000).astype(np.int32)
    vectors = words[rng.choice(len(words), (3000, 6))].sum(axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    contract = make_schema(embedding="", text="text", encoder={"name": "wordllama", "dim": 16})
    return contract, Embedded(on_sphere(vectors + 0.4 * np.eye(16)[labels]), labels)


def test_whitened_moments_are_read_in_the_space_of_the_encoder_and_without_it(tmp_path, monkeypatch):
    contract, documents = make_mails()
    system = DocumentMomentsSystem()
    line = system.plan(contract, PrivacyBudget(epsilon=500, delta=1e-5, unit=contract.unit))
    assert line.measurement["whitening"] > 0 and line.measurement["mean_weight"] == pytest.approx(1.97)
    release, _ = measured(system, tmp_path, line, documents)
    monkeypatch.setattr("dpmodels.text.encoders._files", lambda name: pytest.fail("the encoder was asked for"))
    found, x = system.estimate(release.value), points(documents)
    drawn = points(system.fit(release, Craft()).draw(6000, np.random.default_rng(0)))
    for label in range(3):
        own = x[documents.labels == label].mean(axis=0)
        assert np.linalg.norm(found.means[label] - own) < 0.1
        assert found.means[label] @ own > 0.99 * np.linalg.norm(found.means[label]) * np.linalg.norm(own)
    spread, made = np.cov(x.T), np.cov(drawn.T)
    assert np.linalg.norm(made - spread) < 0.2 * np.linalg.norm(spread)


def test_a_plan_that_does_not_say_so_does_not_whiten():
    assert DocumentLooks(DocumentMeasurement(), CONTRACT).spec.whitening is None
    assert DocumentMeasurement().settled(CONTRACT).whitening == 0  # embeddings that are given
    looks = list(measuring(DocumentMeasurement(mean_weight=2.0)))
    assert [type(step).__name__ for step in looks] == ["Sum", "Keep", "Sum"]


def measuring(spec: DocumentMeasurement) -> list[Step]:
    """Return the steps of a measurement that releases zeros."""
    programme = DocumentMomentsSystem().programme(DocumentLooks(spec, CONTRACT))
    steps = [next(programme)]
    with suppress(StopIteration):
        while True:
            step = steps[-1]
            zeros = np.zeros(step.dim if isinstance(step, Sum) else step.width, dtype=np.int64)
            steps.append(programme.send(NoisySum(zeros, 1.0) if isinstance(step, Sum) else zeros))
    return steps


def test_where_all_is_noise_the_classes_are_one_and_the_covariance_is_round(tmp_path):
    """Classes that noise alone tells apart are drawn toward the mean of all."""
    rng = np.random.default_rng(0)
    documents = Embedded(make_records(60).vectors, rng.integers(0, 3, 60).astype(np.int32))
    found = estimated(documents, 0.05, tmp_path)
    assert np.isfinite(found.means).all() and np.linalg.eigvalsh(found.covariance).min() > 0
    assert np.ptp(np.linalg.eigvalsh(found.covariance)) < 0.5


def test_drawn_classes_have_the_released_means_and_shares():
    means = np.array([[0.6, 0.0], [0.0, 0.6]])
    model = PointModel(
        make_schema(classes=["a", "b"], encoder={"name": "given", "dim": 2}),
        means,
        0.05 * np.eye(2),
        np.array([300.0, 100.0]),
        "",
    )
    drawn = Embedded.concat(list(model.sample(8192, seed=0)))
    assert np.bincount(drawn.labels).tolist() == pytest.approx([6144, 2048], abs=2)
    for label in (0, 1):
        middle = points(drawn)[drawn.labels == label].mean(axis=0)
        assert middle / np.linalg.norm(middle) == pytest.approx(means[label] / 0.6, abs=0.002)
    assert np.linalg.norm(points(drawn), axis=1) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("rows", "exact"), [(1, False), (12, False), (40, True)])
def test_drawn_noise_has_no_error_where_there_is_enough_of_it(rows, exact):
    noise = without_error(np.random.default_rng(0).standard_normal((rows, 10)))
    assert noise.shape == (rows, 10) and np.isfinite(noise).all()
    assert rows == 1 or np.abs(noise.mean(axis=0)).max() < 1e-12
    assert np.allclose(noise.T @ noise / rows, np.eye(10)) == exact


@pytest.mark.parametrize(
    ("contract", "sentence"),
    [({"protects": "sentence"}, "protects sentences"), ({"encoder": {"name": "given", "dim": 5000}}, "fewer")],
)
def test_what_it_cannot_measure_is_refused_in_a_plan(contract, sentence):
    asked = make_schema(**contract)
    budget = PrivacyBudget(epsilon=1, delta=1e-5, unit=asked.unit, adjacency=asked.adjacency)
    with pytest.raises(Unsuitable, match=sentence):
        DocumentMomentsSystem().plan(asked, budget)
