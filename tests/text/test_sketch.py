"""Sketches: whole numbers of a bounded size, the same bits wherever a sentence stands, from which the mean is read."""

import numpy as np
import pytest

from dpmodels.text.passages import Passages
from dpmodels.text.sketch import BOUND, SENSITIVITY, best_dim, train_sketch


def make_passages(number: int, seed: int, sentences: int = 9, dim: int = 20) -> Passages:
    """Return documents whose sentences lie about one of four public points."""
    rng, points = np.random.default_rng(seed), np.linalg.qr(np.random.default_rng(99).normal(size=(dim, 4)))[0].T
    subjects = rng.integers(4, size=number)
    vectors = points[np.repeat(subjects, sentences)] + 0.3 * rng.normal(size=(number * sentences, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ends = np.arange(number + 1) * sentences
    return Passages(
        [str(index) for index in range(number)], subjects.astype(np.int32), vectors.astype(np.float32), ends
    )


@pytest.fixture(scope="module")
def sketch():
    return train_sketch(make_passages(200, 1), epsilon=10.0, dim=5, hidden=16, steps=300, seed=0)


def test_a_sentence_has_the_same_numbers_in_every_batch_and_every_place(sketch):
    vectors = make_passages(300, 2).vectors
    each = np.arange(len(vectors) + 1)
    whole = sketch.sums(vectors, each)
    assert whole.dtype == np.int64 and whole.shape == (2700, 5) and len(np.unique(whole, axis=0)) > 2000
    order = np.random.default_rng(0).permutation(len(vectors))
    assert np.array_equal(sketch.sums(vectors[order], each), whole[order])
    for place in range(0, 2700, 271):
        assert np.array_equal(sketch.sums(vectors[place : place + 1], each[:2]), whole[place : place + 1])


def test_replacing_a_sentence_by_any_other_moves_no_coordinate_by_more_than_the_sensitivity(sketch):
    rng, document, worst = np.random.default_rng(0), make_passages(1, 3), 0
    for size in [0.0, 1.0, 1e3, 1e30]:
        for _ in range(200):
            one, other = document.vectors.copy(), document.vectors.copy()
            direction = rng.normal(size=20)
            one[4], other[4] = size * direction, -size * direction
            moved = np.abs(sketch.sums(one, document.ends) - sketch.sums(other, document.ends))
            worst = max(worst, moved.max())
    assert 1.9 * BOUND < worst <= SENSITIVITY


def test_the_sketch_of_a_document_is_the_sum_of_those_of_its_sentences_and_none_is_zero(sketch):
    vectors = make_passages(2, 4).vectors
    found = sketch.sums(vectors, np.array([0, 0, 5, 5, 18]))
    apart = sketch.sums(vectors, np.arange(19))
    assert np.array_equal(found, [np.zeros(5), apart[:5].sum(axis=0), np.zeros(5), apart[5:].sum(axis=0)])
    assert np.isfinite(sketch.read(found, np.array([0, 5, 0, 13]))).all()
    assert sketch.sums(vectors[:0], np.array([0])).shape == (0, 5)


def test_a_mean_is_read_from_a_noisy_sketch_better_than_it_is_guessed(sketch):
    documents, rng = make_passages(300, 5), np.random.default_rng(0)
    sums = sketch.sums(documents.vectors, documents.ends)
    noise = rng.gamma(6, SENSITIVITY / 10.0, size=(300, 1)) * rng.uniform(-1, 1, size=sums.shape)
    means = documents.means()

    def error(found: np.ndarray) -> float:
        return float(np.square(found - means).sum(axis=1).mean())

    guessed = error(means.mean(axis=0))
    exact, noisy = (error(sketch.read(one, documents.counts)) for one in (sums, np.rint(sums + noise).astype(int)))
    assert exact < noisy < 0.5 * guessed


def test_the_same_public_documents_give_the_same_sketch():
    one, other = (train_sketch(make_passages(50, 1), 10.0, 3, 8, 20, seed=7) for _ in range(2))
    assert np.array_equal(one.weights, other.weights) and np.array_equal(one.reader[2], other.reader[2])
    third = train_sketch(make_passages(50, 1), 10.0, 3, 8, 20, seed=8)
    assert not np.array_equal(one.weights, third.weights)


def test_a_larger_epsilon_pays_for_more_numbers():
    assert [best_dim(epsilon) for epsilon in (0.01, 5, 10, 25)] == [2, 18, 25, 40]
