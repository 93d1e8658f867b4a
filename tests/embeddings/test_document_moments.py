"""The two sums of embedded documents: what one document moves, that none moves more, and that any split is the same."""

import numpy as np
import pytest

from dpmodels.audit.made.mails import make_records
from dpmodels.codec.embedded import BITS, Embedded, on_sphere
from dpmodels.embeddings.document_moments import DocumentMean, DocumentMoments


def moments(radius: float, classes: int = 3, max_rows: int = 1) -> DocumentMoments:
    centre = np.rint(np.ldexp([0.3, 0.3, 0.3, 0.6, 0.0, 0.0], BITS)).astype(np.int64)
    return DocumentMoments(classes, centre, round(radius * 2**BITS), (0.45, 2.0), max_rows)


@pytest.mark.parametrize("radius", [1e-4, 0.1, 0.9, 3.0])
def test_no_document_moves_a_sum_by_more_than_its_sensitivity_and_some_come_near(radius):
    rng, far = np.random.default_rng(0), []
    vectors = on_sphere(rng.normal(size=(300, 6)) ** rng.choice([1, 3, 9], (300, 1)))
    documents = Embedded(np.concatenate([vectors, vectors * 0]), rng.integers(0, 3, 600).astype(np.int32))
    for embedding in (moments(radius), DocumentMean(6, 0.3, 1)):
        each = [embedding.lattice_sum(documents.take([i])).numpy().astype(object) for i in range(len(documents))]
        squares = [int((one * one).sum()) for one in each]
        assert max(squares) <= embedding.l2_sensitivity**2
        far.append((max(squares) ** 0.5) / embedding.l2_sensitivity)
    assert far[1] > 0.99 and (far[0] > 0.95 or radius > 2)


def test_any_split_and_order_of_documents_gives_the_same_sum():
    documents = make_records(200)
    shuffled = documents.take(np.random.default_rng(0).permutation(200))
    for embedding in (moments(0.5), DocumentMean(6, 0.3, 1)):
        parts = [embedding.lattice_sum(shuffled.take(part)) for part in np.array_split(np.arange(200), [0, 1, 70])]
        assert np.array_equal(sum(part.numpy() for part in parts), embedding.lattice_sum(documents).numpy())


def test_a_user_moves_a_sum_by_as_many_documents_as_a_user_may_have():
    assert moments(0.5, max_rows=7).l2_sensitivity == 7 * moments(0.5).l2_sensitivity
    assert DocumentMean(6, 0.3, 7).l2_sensitivity == 7 * DocumentMean(6, 0.3, 1).l2_sensitivity
