"""What is read off the moments of documents: the noise is taken out, and what is left is close where noise is small."""

import numpy as np
import pytest

from dpmodels.errors import InvalidArgument
from dpmodels.generators.points import PointModel
from dpmodels.privacy import PrivacyBudget
from dpmodels.schema.embedded import BITS, Embedded
from dpmodels.synthesizers.document_moments import DocumentMeasurement, DocumentMomentsSystem, Estimate
from tests.mails import make_records, make_schema
from tests.support import measured

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


@pytest.mark.parametrize(
    ("contract", "sentence"),
    [({"protects": "sentence"}, "protects sentences"), ({"encoder": {"name": "given", "dim": 5000}}, "fewer")],
)
def test_what_it_cannot_measure_is_refused_in_a_plan(contract, sentence):
    asked = make_schema(**contract)
    budget = PrivacyBudget(epsilon=1, delta=1e-5, unit=asked.unit, adjacency=asked.adjacency)
    with pytest.raises(InvalidArgument, match=sentence):
        DocumentMomentsSystem().plan(asked, budget)
