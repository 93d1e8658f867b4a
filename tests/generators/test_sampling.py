"""Batches are free of each other, and what is drawn within one follows its shares."""

import numpy as np
import pytest
import torch

from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.load import KINDS
from dpmodels.generators.randomness import categorical, cumulate, draw_block, draw_grouped
from dpmodels.generators.sampling import batch_stream
from tests.kit.cells import Cells, make
from tests.kit.mixtures import model, network

SHARES = np.array([[0.5, 0.0, 0.3, 0.2], [0.05, 0.9, 0.05, 0.0]])


def test_a_block_holds_each_outcome_as_often_as_its_share_says_in_random_order() -> None:
    rng, cumulative = np.random.default_rng(0), cumulate(SHARES)
    first = np.zeros((2, 4))
    for _ in range(4000):
        drawn = draw_block(cumulative, 7, rng)
        counts = np.stack([np.bincount(row, minlength=4) for row in drawn])
        assert (np.abs(counts - 7 * SHARES) < 1).all()
        first += np.eye(4)[drawn[:, 2]]  # any one place, here the third, follows the shares by itself
    assert np.abs(first / 4000 - SHARES).max() < 0.04


def test_grouped_rows_follow_their_own_group() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 5000)
    drawn = draw_grouped(cumulate(SHARES), group, rng)
    for label in (0, 1):
        counts = np.bincount(drawn[group == label], minlength=4)
        assert (np.abs(counts - counts.sum() * SHARES[label]) < 1).all()
    early, late = drawn[:2500][group[:2500] == 0], drawn[2500:][group[2500:] == 0]
    assert abs((early == 0).mean() - (late == 0).mean()) < 0.08


def test_shares_without_weight_are_even() -> None:
    assert cumulate(np.array([[0.0, 0.0], [1.0, 3.0]])) == pytest.approx(np.array([[0.5, 1.0], [0.25, 1.0]]))


def test_categories_follow_the_softmax_to_its_ends() -> None:
    logits = torch.tensor([0.3, -1e4, 1.7, 0.0])
    drawn = categorical(logits[:, None].expand(4, 100_000), torch.from_numpy(np.random.default_rng(0).random(100_000)))
    assert np.bincount(drawn, minlength=4) / 1e5 == pytest.approx(torch.softmax(logits, 0).numpy(), abs=6e-3)
    ends = torch.tensor([0.0, 1 - 2**-24])
    assert categorical(torch.tensor([-1e4, 0.0, 0.0, -1e4])[:, None].expand(4, 2), ends).tolist() == [1, 2]


@pytest.mark.parametrize("model", [model(), network(), Cells(make())])
def test_any_batch_can_be_drawn_alone(model: Cells) -> None:
    rows = 2 * model.batch_rows + 100
    whole = list(sample_valid(model, rows, 5))
    assert [len(batch) for batch in whole] == [model.batch_rows] * 2 + [100]
    for first, size in ((1, model.batch_rows), (2, 100)):
        (alone,) = sample_valid(model, size, 5, first=first)
        assert np.array_equal(alone.states, whole[first].states) and np.array_equal(alone.values, whole[first].values)
    assert not np.array_equal(whole[0].states, whole[1].states)


def test_every_batch_and_every_pool_of_spares_has_a_stream_of_its_own() -> None:
    keys = [(seed, batch, spare) for seed in range(3) for batch in (0, 1, 2**20) for spare in range(3)]
    assert len({int(batch_stream(*key).integers(2**62)) for key in keys}) == len(keys)


def test_a_file_is_made_of_whole_batches_of_any_generator() -> None:
    from tasks.stages.sample import FILE_ROWS

    assert all(FILE_ROWS % kind.batch_rows == 0 for kind in KINDS.values())
