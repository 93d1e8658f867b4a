from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from dpmodels.codec.encode import Records
from dpmodels.embeddings.moments import band
from dpmodels.embeddings.residuals import centered
from dpmodels.errors import ArtifactError, FileDamaged, InvalidArgument
from dpmodels.generators.denoise import (
    denoise_pairs,
    independent,
    pool,
    project,
    rake,
    shrink,
    split_by_halves,
    towards_mean,
    unmet,
)
from dpmodels.generators.load import load_generator
from dpmodels.generators.moment_matching import MixtureSpec, MomentMatching, MomentTarget, components
from tests.kit.dying import die_after_a_checkpoint
from tests.kit.mixtures import model

SPEC = MixtureSpec(components=20, directions=2, steps=9, checkpoint_every=4)


def target() -> MomentTarget:
    """Two classes of two binary columns, perfectly dependent in the first class and independent in the second."""
    share = torch.tensor([0.6, 0.4])
    one_way = torch.stack([0.6 * torch.full((4,), 0.5), 0.4 * torch.tensor([0.9, 0.1, 0.3, 0.7])])
    two_way = torch.zeros(2, 4, 4)
    two_way[0, :2, 2:] = 0.6 * torch.tensor([[0.5, 0.0], [0.0, 0.5]])
    two_way[1, :2, 2:] = 0.4 * torch.outer(torch.tensor([0.9, 0.1]), torch.tensor([0.3, 0.7]))
    two_way = two_way + two_way.transpose(1, 2)
    return MomentTarget(share, one_way, two_way, two_way, 0.0, [2, 2], band(2, 1))


def test_strips_hold_every_measured_pair_of_cells_once():
    sizes, reach = [30, 50, 20, 5, 40], 2
    zero = torch.zeros(1, 145, 145)
    target = MomentTarget(torch.ones(1), torch.zeros(1, 145), zero, zero, 0.0, sizes, band(5, reach))
    seen = torch.zeros(145, 145)
    for strip in target.strips():
        seen[strip.rows, strip.columns] += strip.mask
    column = torch.arange(5).repeat_interleave(torch.tensor(sizes))
    apart = column[None, :] - column[:, None]
    assert torch.equal(seen, ((apart >= 1) & (apart <= reach)).float())


def training(spec: MixtureSpec = SPEC) -> MomentMatching:
    return MomentMatching(target(), spec, seed=5, device="cpu")


def test_the_mixture_reproduces_dependence_and_independence(tmp_path):
    matching = training(SPEC.model_copy(update={"steps": 300, "learning_rate": 0.1}))
    before = matching.loss().item()
    p = matching.run(tmp_path / "a.safetensors")
    assert matching.loss().item() < 1e-3 * before
    for label, w in enumerate(target().share):
        gram = w * p[label].T @ p[label] / p.shape[1]
        assert torch.allclose(gram[:2, 2:], target().two_way[label, :2, 2:], atol=0.01)
    assert torch.allclose(p[:, :, :2].sum(2), torch.ones(p.shape[:2]))


def test_a_resumed_training_ends_where_an_uninterrupted_one_does(tmp_path, monkeypatch):
    straight, broken = training().run(tmp_path / "a.safetensors"), training()
    die_after_a_checkpoint(broken, tmp_path / "b.safetensors", monkeypatch)
    assert broken.step == 4
    assert torch.equal(training().run(tmp_path / "b.safetensors"), straight)


def noisy_target(stddev: float) -> MomentTarget:
    """Two columns of eight cells, one of them the other's shadow, measured with noise of which half was shrunk away."""
    truth = np.zeros((1, 16, 16))
    truth[0, :8, 8:] = 0.625 / 8 * np.eye(8) + 0.375 / 64
    truth += truth.transpose(0, 2, 1)
    noise = np.zeros_like(truth)
    noise[0, :8, 8:] = np.random.default_rng(3).normal(0, stddev, (8, 8))
    noise += noise.transpose(0, 2, 1)
    noise = centered(noise, np.array([0, 8, 16]))
    second, noisy = (torch.from_numpy(truth + part * noise).float() for part in (0.5, 1.0))
    return MomentTarget(torch.ones(1), torch.full((1, 16), 0.125), second, noisy, stddev, [8, 8], band(2, 1))


def test_training_cools_down_once_noise_explains_the_distance_and_goes_on_where_there_is_none():
    spec = MixtureSpec(components=64, directions=4, steps=400, cooling=30, strong_steps=0)
    ends, left = [], []
    for stddev in (0.02, 0.004, 0.0):
        matching = MomentMatching(noisy_target(stddev), spec, seed=1, device="cpu")
        before = matching.loss().item()
        matching.run(None)
        assert matching.step == matching.end
        ends.append(matching.end)
        left.append(matching.loss().item() / before)
        assert stddev == 0 or matching.misfit() < 1
    assert ends[0] < ends[1] < ends[2] == 400, ends
    assert left[0] > left[1] > left[2], left


def flat_target(stddev: float, related: float) -> tuple[MomentTarget, torch.Tensor]:
    """Six columns of eight cells, the first two of them related; returns what was measured, and the truth."""
    offsets, rng = np.arange(0, 49, 8), np.random.default_rng(2)
    truth = np.full((1, 48, 48), 1 / 64)
    wave = np.sin(np.arange(8) * np.pi / 4)
    truth[0, :8, 8:16] += related / 64 * np.outer(wave, wave)
    noise = centered(rng.normal(0, stddev, (1, 48, 48)), offsets)
    upper = np.triu(np.ones((48, 48)), 1)
    truth, noise = (each * upper + (each * upper).transpose(0, 2, 1) for each in (truth, noise))
    second, noisy = (torch.from_numpy(truth + part * noise).float() for part in (0.3, 1.0))
    ones = torch.full((1, 48), 0.125)
    return MomentTarget(torch.ones(1), ones, second, noisy, stddev, [8] * 6, band(6, 5)), torch.from_numpy(truth)


def test_a_fit_goes_on_for_relations_that_stand_out_and_leaves_what_it_has_met():
    spec = MixtureSpec(components=64, directions=4, steps=400, cooling=10)
    for related, goes_on in ((0.9, True), (0.0, False)):
        measured, truth = flat_target(0.0035, related)
        short, whole = (
            MomentMatching(measured, each, seed=1, device="cpu")
            for each in (spec.model_copy(update={"strong_steps": 0}), spec)
        )
        before, after = (each.run(None)[0] for each in (short, whole))
        assert whole.goes_on_for_relations == goes_on and whole.end == short.end + 60 * goes_on < 400
        if not goes_on:
            assert torch.equal(before, after)
            continue
        tables = [each.T @ each / len(each) for each in (before, after)]
        off = [float((each[:8, 8:16] - truth[0, :8, 8:16]).norm()) for each in tables]
        assert off[1] < 0.8 * off[0], off
        moved = (tables[1] - tables[0])[16:24, 24:].norm() / (0.0035 * 8 * 3**0.5)
        assert moved < 0.1, moved


def test_every_class_gets_its_share_of_a_relation_that_one_of_them_shows():
    measured, truth = flat_target(0.0035, 0.9)
    shares = torch.tensor([0.75, 0.25])
    flat = torch.full((1, 48, 48), 1 / 64) * (truth != 0)
    pairs = [torch.cat([one - flat / 4, flat / 4]).float() for one in (measured.two_way, measured.noisy)]
    ones = shares[:, None] * measured.one_way
    both = replace(measured, share=shares, one_way=ones, two_way=pairs[0], noisy=pairs[1])
    independent, lacks = torch.full((2, 5, 48), 0.125), list[torch.Tensor]()
    for each, mixture in ((measured, independent[:1]), (both, independent)):
        related = each.with_relations(mixture)
        assert related
        lacks.append(related.two_way - each.share[:, None, None] / 64)
    assert torch.allclose(lacks[1][:, :8, 8:16], shares[:, None, None] * lacks[0][:, :8, 8:16], atol=1e-6)
    assert lacks[0][:, :8, 8:16].norm() > 0.03 and lacks[1][:, :8, 16:].abs().max() < 1e-6
    assert not replace(both, together=3.0).with_relations(independent)
    assert not replace(both, tolerance=0.5).with_relations(independent)


def test_a_model_lacks_what_stands_out_of_the_noise_alone():
    rng, stddev = np.random.default_rng(0), 0.01
    one, other = (np.sin(np.arange(n) * 2 * np.pi / n) / (n / 2) ** 0.5 for n in (8, 12))
    relation = np.outer(one, other)
    noise = centered(np.pad(rng.normal(0, stddev, (8, 12)), ((0, 12), (8, 0)))[None], np.array([0, 8, 20]))[0, :8, 8:]
    released = relation + noise
    lacks = unmet(released, relation, 0.9 * relation, stddev)
    assert np.allclose(lacks, 0.1 * relation, atol=0.02) and np.linalg.matrix_rank(lacks) == 1
    assert not unmet(released, relation, 0.995 * relation, stddev).any()
    assert not unmet(noise, 0.7 * noise, 0 * noise, stddev).any()


def test_a_mixture_has_more_components_where_each_stands_out_of_the_noise():
    counts = [components(noise, MixtureSpec()) for noise in (0.0, 1e-2, 6e-4, 2e-4, 1e-9)]
    assert counts == [1000, 1000, 1000, 2500, 4000]
    matching = MomentMatching(noisy_target(2e-3), MixtureSpec(components=100), seed=1, device="cpu")
    assert matching.components == 250


def test_the_truth_misfits_by_one_whatever_the_noise():
    copies = torch.eye(8).repeat(5, 2)  # 40 components in which the columns agree
    exact = torch.cat([copies, torch.full((24, 16), 0.125)])[None]
    for stddev, told in product((0.001, 0.01), (1, 2 / 3, 3 / 2)):
        matching = MomentMatching(replace(noisy_target(stddev), noise=stddev * told), SPEC, seed=1, device="cpu")
        matching.mixture.forward, matching.components = lambda: exact, 64  # type: ignore[method-assign]
        assert (0.85 < matching.misfit() < 1.15) == (told == 1)


def test_a_training_that_dies_while_it_cools_down_resumes_at_the_same_bits(tmp_path, monkeypatch):
    spec = MixtureSpec(components=64, directions=4, steps=400, cooling=30, checkpoint_every=5)
    straight = MomentMatching(noisy_target(0.02), spec, seed=1, device="cpu")
    done = straight.run(None)
    assert straight.goes_on_for_relations
    cooled = straight.end - spec.strong_steps
    late = MixtureSpec(**{**spec.model_dump(), "checkpoint_every": cooled - 10})
    broken, resumed = (MomentMatching(noisy_target(0.02), late, seed=1, device="cpu") for _ in range(2))
    die_after_a_checkpoint(broken, tmp_path / "b.safetensors", monkeypatch)
    assert broken.step == cooled - 10 and broken.end == cooled
    assert torch.equal(resumed.run(tmp_path / "b.safetensors"), done)
    assert resumed.end == straight.end


def test_centered_tables_have_rows_and_columns_of_mean_zero_and_lose_nothing_else():
    offsets = np.array([0, 3, 4, 9])
    tables = np.random.default_rng(0).normal(size=(2, 9, 9))
    found = centered(tables, offsets)
    for a, b in product(pairwise(offsets), repeat=2):
        rows, columns = slice(*a), slice(*b)
        block = tables[:, rows, columns]
        mean = block.mean(axis=(1, 2), keepdims=True)
        by_hand = block - block.mean(axis=1, keepdims=True) - block.mean(axis=2, keepdims=True) + mean
        assert np.allclose(found[:, rows, columns], by_hand)


def test_what_is_new_is_no_part_of_the_settings_that_earlier_checkpoints_have():
    assert not {"each_has_rows", "strong_steps"} & set(MixtureSpec().model_dump())
    assert MixtureSpec.model_validate_json(MixtureSpec(each_has_rows=True).model_dump_json()).each_has_rows
    assert MixtureSpec.model_validate_json(MixtureSpec(strong_steps=0).model_dump_json()).strong_steps == 0


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    training().run(tmp_path / "c.safetensors")
    with pytest.raises(ArtifactError, match="another spec"):
        training(SPEC.model_copy(update={"steps": 10})).run(tmp_path / "c.safetensors")


def rows(count: int, seed: int = 1) -> Records:
    return Records.concat(list(model().sample(count, seed)))


def test_samples_follow_the_mixture_its_detail_and_the_class_counts():
    records = rows(20_000)
    fine = model().partition.codec.to_cells(records)
    assert np.array_equal(fine[:, 0] >= 5, records.states[:, 3] == 1)  # age and smoking are one
    assert set(fine[:, 0]) == {0, 1, 5, 6}
    assert np.bincount(records.states[:, 4]).tolist() == [12_000, 8_000]
    assert np.allclose(np.bincount(records.states[:, 1]) / 20_000, [0.2, 0.3, 0.5], atol=2e-3)
    assert np.allclose(np.bincount(records.states[:, 2]) / 20_000, [0.5, 0.25, 0.25], atol=2e-3)
    assert np.abs(np.bincount(fine[:, 2], minlength=12)[:10] / 10_000 - 0.1).max() < 0.015


def test_the_same_seed_gives_the_same_records_and_another_gives_others():
    one, same, other = rows(500), rows(500), rows(500, seed=2)
    assert np.array_equal(one.states, same.states) and np.array_equal(one.values, same.values)
    assert not np.array_equal(one.states, other.states)


@pytest.mark.parametrize("counts", [(-5.0, 3.0), (-5.0, -3.0), (0.0, 0.0)])
def test_noisy_class_counts_never_break_sampling(counts):
    (records,) = model(counts).sample(50, 0)
    assert len(records) == 50 and model(counts).default_rows() >= 1
    if counts[1] > 0:
        assert set(records.states[:, 4]) == {1}
    with pytest.raises(InvalidArgument):
        next(model().sample(0, 0))


def test_a_saved_model_samples_the_same_and_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "generator.safetensors"
    model().save(path)
    loaded = load_generator(path)
    (a,), (b,) = loaded.sample(100, 3), model().sample(100, 3)
    assert np.array_equal(a.states, b.states) and np.array_equal(a.values, b.values)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FileDamaged):
        load_generator(path)


def test_projection_is_the_nearest_counts_of_the_same_sum():
    assert project(np.array([3.0, -1.0, 2.0])) == pytest.approx([2.5, 0, 1.5])
    assert project(np.array([-3.0, 1.0])).sum() == 0
    assert pool([np.array([0.0, 4.0]), np.array([4.0, 0.0])], [np.ones(2), 3 * np.ones(2)]) == pytest.approx([1, 3])


def test_shrinkage_removes_noise_and_keeps_signal():
    rng = np.random.default_rng(0)
    noise, signal = rng.normal(0, 1, (30, 20)), 60 * np.outer(*(rng.normal(0, n**-0.5, n) for n in (30, 20)))
    assert np.abs(shrink(noise, 1.2)).max() == 0
    assert np.linalg.norm(shrink(signal + noise, 1.0) - signal) < 0.5 * np.linalg.norm(noise)


def two_way(table: np.ndarray) -> np.ndarray:
    whole = np.zeros((25, 25))
    whole[:10, 10:] = table
    return whole + whole.T


def noise_of(stddev: float, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise of the tables of a class and of the sum of the classes, for two columns."""
    return np.full((2, 2), stddev), np.full((2, 2), stddev * classes**0.5)


def test_denoised_pairs_are_nearer_to_the_truth_than_what_was_measured():
    rng, offsets = np.random.default_rng(0), np.array([0, 10, 25])
    p, q = rng.dirichlet(np.ones(10)), rng.dirichlet(np.ones(15))
    truth = two_way(1e4 * np.outer(p, q))
    noisy = truth + two_way(rng.normal(0, 20, (10, 15)))
    (clean,) = denoise_pairs(noisy[None], 1e4 * np.concatenate([p, q])[None], offsets, band(2, 1), noise_of(20.0, 1))
    assert np.linalg.norm(clean - truth) < 0.5 * np.linalg.norm(noisy - truth)
    assert np.array_equal(clean, clean.T) and not clean[:10, :10].any()


def test_raking_meets_the_margins_and_keeps_the_odds_ratios():
    rng = np.random.default_rng(0)
    table, rows, columns = rng.random((3, 4)) + 0.1, np.array([5.0, 3, 2]), np.array([1.0, 2, 3, 4])
    raked = rake(table, rows, columns)
    assert raked.sum(axis=0) == pytest.approx(columns) and raked.sum(axis=1) == pytest.approx(rows, abs=1e-3)

    def odds(t: np.ndarray) -> float:
        return float(t[0, 0] * t[1, 1] / t[0, 1] / t[1, 0])

    assert odds(raked) == pytest.approx(odds(table))


def test_a_small_class_learns_the_shape_of_its_tables_from_a_large_one():
    rng, offsets = np.random.default_rng(0), np.array([0, 10, 25])
    near = np.exp(-((np.arange(10)[:, None] / 10 - np.arange(15) / 15) ** 2) / 0.02)
    truth = np.stack([two_way(n * near / near.sum()) for n in (1e5, 1e3)])
    noisy = truth + np.stack([two_way(rng.normal(0, 20, (10, 15))) for _ in range(2)])
    one_way = np.stack([np.concatenate([t[:10].sum(axis=1), t[10:].sum(axis=1)]) for t in truth])
    together = denoise_pairs(noisy, one_way, offsets, band(2, 1), noise_of(20.0, 2))[1]
    alone = denoise_pairs(noisy[1:], one_way[1:], offsets, band(2, 1), noise_of(20.0, 1))[0]
    assert np.linalg.norm(together - truth[1]) < 0.7 * np.linalg.norm(alone - truth[1])


def test_a_fine_histogram_keeps_what_stands_out_and_flattens_the_rest():
    counts = np.random.default_rng(0).normal(0, 5, 64)
    counts[37] += 1000
    shares = split_by_halves(counts, np.ones(64), independent(np.full(64, 25.0)))
    assert shares.sum() == pytest.approx(1) and shares[37] > 0.9
    flat = split_by_halves(np.full(8, 10.0), np.ones(8), independent(np.full(8, 25.0)))
    assert flat == pytest.approx(np.full(8, 1 / 8))


def test_noise_alone_takes_no_rare_category_away_and_clear_counts_stay_as_they_are():
    noisy = np.random.default_rng(0).normal(40, 40, 40)
    assert (project(noisy) == 0).any() and (project(towards_mean(noisy, 40.0)) > 0).all()
    clear = np.array([900.0, 5.0, 400.0, 0.0, 30.0, 10.0])
    assert np.allclose(towards_mean(clear, 1.0), clear, atol=0.01)
    assert np.array_equal(towards_mean(np.array([3.0, -1.0]), 50.0), [3.0, -1.0])  # too few to tell
    assert np.allclose(towards_mean(np.full(9, 7.0), 1.0), 7.0)
