"""Depth among sentences: by its definition, to the last bit; and what a sentence that is replaced changes of a draw."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.privacy import Adjacency
from dpmodels.text.depth import TukeyDepth
from dpmodels.text.recoder import Recoder, on_lattice

STATISTICS = ["worst", "sum"]


def scores_of(depth: TukeyDepth, sentences: np.ndarray) -> np.ndarray:
    return depth.scores(on_lattice(sentences), np.array([0, len(sentences)]))[0]


def by_definition(candidates: np.ndarray, directions: np.ndarray, sentences: np.ndarray, statistic: str) -> list[int]:
    """Count, candidate by candidate and direction by direction."""
    found = []
    for candidate in on_lattice(candidates):
        above = [sum(s @ v >= candidate @ v for s in on_lattice(sentences)) for v in on_lattice(directions).T]
        gaps = [abs(2 * int(count) - len(sentences)) for count in above]
        found.append(-max(gaps) if statistic == "worst" else -sum(gaps))
    return found


def space(seed: int, m: int = 40, width: int = 5, p: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, width)), rng.normal(size=(width, p)) / 3


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 30])
def test_the_scores_are_those_of_the_definition(statistic, count):
    candidates, directions = space(count)
    candidates[3] = candidates[4]
    sentences = np.random.default_rng(9).normal(size=(count, 5))
    sentences[: count // 2] = candidates[: count // 2]  # a candidate may lie where a sentence lies
    found = scores_of(TukeyDepth(candidates, directions, statistic), sentences)
    assert found.tolist() == by_definition(candidates, directions, sentences, statistic)
    assert found[3] == found[4]
    if count < 2:
        assert len(set(found.tolist())) == 1  # nothing to choose by


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_documents_scores_keep_every_bit_whatever_comes_with_it(statistic):
    rng = np.random.default_rng(3)
    candidates, directions = space(1, 300, 64, 50)
    layers = [rng.normal(size=(256, 64)) / 8]
    recoder = Recoder([on_lattice(layers[0])], [on_lattice(rng.normal(size=64))])
    depth = TukeyDepth(candidates, directions, statistic)
    documents = [rng.normal(size=(count, 256)).astype(np.float32) / 16 for count in (1, 0, 7, 40, 3, 129)]
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [3, 3, 2]):
        own = [documents[index] for index in order]
        ends = np.cumsum([0, *map(len, own)])
        together = depth.scores(recoder(np.concatenate(own)), ends)
        for index, found in zip(order, together, strict=True):
            alone = np.array([recoder(row[np.newaxis])[0] for row in documents[index]]).reshape(-1, 64)
            assert np.array_equal(depth.scores(alone, np.array([0, len(alone)]))[0], found)


def loss(depth: TukeyDepth, before: np.ndarray, after: np.ndarray, epsilon: float) -> float:
    """Return the largest log ratio of the exact probabilities of an outcome with two documents."""
    scale = pure_scale(depth.sensitivity, epsilon, adjacency=Adjacency.REPLACE_ONE)
    logs = [scores_of(depth, sentences) / scale for sentences in (before, after)]
    return float(np.abs(np.subtract(*[log - logsumexp(log) for log in logs])).max())


@settings(max_examples=1000, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    epsilon=st.sampled_from([0.1, 1.0, 10.0, 25.0, 100.0]),
    count=st.integers(1, 9),
    width=st.integers(1, 3),
    statistic=st.sampled_from(STATISTICS),
    far=st.sampled_from([0.1, 1.0, 100.0]),
)
def test_a_sentence_that_is_replaced_changes_no_probability_by_more_than_epsilon(
    seed, epsilon, count, width, statistic, far
):
    """Documents and candidates of few values, where many lie in one place, and a new sentence that may lie far out."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(width, int(rng.integers(1, 5)))) / 3
    depth = TukeyDepth(np.rint(2 * rng.normal(size=(30, width))) / 2, directions, statistic)
    before = np.rint(2 * rng.normal(size=(count, width))) / 2
    after = before.copy()
    after[rng.integers(count)] = far * rng.normal(size=width)
    moved = np.abs(scores_of(depth, before) - scores_of(depth, after))
    assert moved.max() <= depth.sensitivity
    assert loss(depth, before, after, epsilon) <= epsilon * (1 + 1e-12)
    assert loss(depth, after, before, epsilon) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_worst_case_comes_near(statistic, epsilon):
    """One candidate leaves the middle as all others reach it, along every direction."""
    depth = TukeyDepth(np.array([[-0.5], *[[0.5]] * 2000]), np.ones((1, 5)), statistic)
    found = loss(depth, np.array([[-1.0], [0.0]]), np.array([[1.0], [0.0]]), epsilon)
    assert 0.99 * epsilon < found <= epsilon


def test_every_grid_of_small_documents_keeps_the_bound():
    """All documents of three sentences on a line of five places, and all that may come of one of them."""
    depth = TukeyDepth(np.arange(-2.5, 3)[:, np.newaxis], np.ones((1, 1)))
    places = np.arange(-2.0, 3)
    checked = 0
    for first in places:
        for second in places:
            for third in places:
                for new in places:
                    before, after = np.array([[first], [second], [third]]), np.array([[new], [second], [third]])
                    assert loss(depth, before, after, 2.0) <= 2.0
                    checked += 1
    assert checked == 625
