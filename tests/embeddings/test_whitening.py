"""The public map of embeddings: it is whole and bounded, leads back, and maps each document by itself."""

import numpy as np
import pytest

from dpmodels.codec.embedded import BITS, Embedded, on_sphere
from dpmodels.contract.documents import Encoder
from dpmodels.embeddings.document_moments import DocumentMean, DocumentMoments
from dpmodels.embeddings.whitening import FURTHEST, MATRIX_BITS, Whitening
from dpmodels.errors import Unsuitable
from dpmodels.text.encoders import words_of

WORDLLAMA = Encoder(name="wordllama", dim=32)


def documents(rows: int, dim: int = 32) -> Embedded:
    rng = np.random.default_rng(0)
    vectors = on_sphere(rng.normal(size=(rows, dim)) ** rng.choice([1, 3, 9], (rows, 1)))
    vectors[0] = 0
    return Embedded(vectors, rng.integers(0, 3, rows).astype(np.int32))


def test_words_whose_spread_it_takes_away_wholly_or_by_half():
    words = words_of(WORDLLAMA)
    words = words / np.linalg.norm(words, axis=1, keepdims=True).clip(1)
    before = np.log(np.linalg.eigvalsh(words.T @ words))
    for exponent in (0.5, 1.0):
        mapped = words @ np.ldexp(Whitening.of(WORDLLAMA, exponent).matrix.astype(np.float64), -MATRIX_BITS)
        after = np.log(np.linalg.eigvalsh(mapped.T @ mapped))
        assert np.ptp(after) == pytest.approx((1 - exponent) * np.ptp(before), abs=0.02)


def test_no_document_leaves_the_sphere_and_none_depends_on_another():
    whitening, points = Whitening.of(WORDLLAMA, 1.0), documents(9000)
    assert np.abs(whitening.matrix).max() <= FURTHEST**0.5 * 2**MATRIX_BITS
    whole = whitening(points)
    squares = (whole.vectors.astype(np.int64) ** 2).sum(axis=1)
    assert squares[0] == 0 and squares.max() <= 4**BITS and squares[1:].min() > 0.99 * 4**BITS
    for rows in ([5], [8999, 0, 7], slice(4000, 4200)):
        assert np.array_equal(whitening(points.take(rows)).vectors, whole.vectors[rows])
    assert len(whitening(points.take(slice(0)))) == 0


def test_it_leads_back_and_is_kept_whole():
    whitening, points = Whitening.of(WORDLLAMA, 0.7), documents(50)
    back = on_sphere(whitening(points).vectors @ whitening.inverse())
    assert np.abs(back.astype(int) - points.vectors).max() <= 16
    integers = whitening.packed()
    assert len(integers) == Whitening.width(32)
    assert np.array_equal(Whitening.unpacked(integers, 32).matrix, whitening.matrix)


def test_no_whitened_document_moves_a_sum_by_more_than_its_sensitivity():
    whitening, points = Whitening.of(WORDLLAMA, 1.0), documents(60)
    centre = on_sphere(np.ones((1, 32)))[0].astype(np.int64) // 3
    for embedding in (
        DocumentMean(32, 0.3, 1, whitening),
        DocumentMoments(3, centre, 2 ** (BITS - 1), (0.45, 2.0), 1, whitening),
    ):
        each = [embedding.lattice_sum(points.take([i])).numpy() for i in range(60)]
        squares = [int((one.astype(object) ** 2).sum()) for one in each]
        assert 0.95 < max(squares) ** 0.5 / embedding.l2_sensitivity <= 1
        assert np.array_equal(sum(each), embedding.lattice_sum(points).numpy())


@pytest.mark.parametrize("name", ["given", "hashed"])
def test_an_encoder_without_words_is_refused(name):
    with pytest.raises(Unsuitable, match="no table of words"):
        Whitening.of(Encoder(name=name, dim=6), 0.5)
