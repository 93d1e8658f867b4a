"""The baselines of the benchmark of documents: their noise has the scale that they are compared at."""

import numpy as np
import pytest

from benchmarks.sentdp_baselines import STEPS, Box, Words, random_guess, truncated, words_of
from dpmodels.schema.documents import Encoder
from dpmodels.text.encoders import load_encoder
from dpmodels.text.passages import Passages


def passages(count: int, sentences: int, dim: int) -> Passages:
    rows = np.random.default_rng(0).normal(size=(count * sentences, dim)).astype(np.float32)
    ends = np.arange(0, count * sentences + 1, sentences)
    return Passages([str(index) for index in range(count)], np.full(count, -1, dtype=np.int32), rows, ends)


def test_truncation_keeps_the_middle_and_gets_noise_of_the_scale_of_the_paper():
    documents, epsilon = passages(400, 5, 8), 10.0
    box = Box.of(np.random.default_rng(1).normal(size=(5000, 8)))
    plain = truncated(documents, box, None)
    cut = np.clip(documents.vectors, box.low, box.low + box.width).reshape(400, 5, 8).mean(axis=1)
    assert np.allclose(plain, cut, atol=2 / STEPS * box.width.max())
    noise = (truncated(documents, box, epsilon) - plain) / (8 * box.width / (5 * epsilon))
    assert np.abs(noise).mean() == pytest.approx(1.0, rel=0.1)  # the mean magnitude of Laplace noise is its scale


def test_a_word_stays_with_little_noise_and_is_lost_with_much():
    encode = load_encoder(Encoder(name="hashed", dim=64))
    public = ["the ship and the wave", "a horse and a drum"]
    words = Words.of(public, encode)
    assert words.replaced(public, encode, 1e4, 0) == public
    many = ["ship " * 300]
    (changed,) = words.replaced(many, encode, 1.0, 0)
    assert len(words_of(changed)) == 300 and words_of(changed).count("ship") < 150
    assert words.replaced(["", "drum"], encode, 1e4, 0) == ["", "drum"]


def test_guessing_is_right_as_often_as_the_classes_are_uneven():
    assert random_guess(np.array([0, 0, 0, 1])) == pytest.approx(0.625)
