"""Labels drawn anew follow their model, and are drawn so only where the release does not speak against it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpmodels.contract.schema import Schema
from dpmodels.embeddings.moments import band
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.load import load_generator
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MomentTarget
from dpmodels.generators.refinements.label_fit import explained, fitted, label_model
from dpmodels.generators.refinements.labels import LabelModel
from tests.kit.mixtures import model

ROWS = 60_000


def random_labels(classes: int, sizes: tuple[int, ...], seed: int = 0) -> LabelModel:
    rng = np.random.default_rng(seed)
    return LabelModel(rng.normal(0, 0.5, classes), [rng.normal(0, 1, (classes, size)) for size in sizes])


def random_cells(sizes: tuple[int, ...], rows: int = ROWS, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in sizes])


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_every_class_is_drawn_as_often_as_its_probability_says(classes):
    labels, cells = random_labels(classes, (3, 2)), random_cells((3, 2))
    shares, drawn = labels.probabilities(cells), labels.draw(cells, np.random.default_rng(2))
    assert np.allclose(shares.sum(axis=0), 1)
    for kind in range(6):  # rows of the same cells
        alike = cells[0] * 2 + cells[1] == kind
        counts = np.bincount(drawn[alike], minlength=classes)
        expected = shares[:, alike].sum(axis=1)
        assert np.abs(counts - expected).max() < 4 * np.sqrt(expected.max())
    first = np.count_nonzero(drawn == 0)
    assert abs(first - shares[0].sum()) <= 1  # systematic: the first class is met up to one row


def test_a_class_of_no_probability_is_never_drawn():
    labels = LabelModel(np.array([0.0, -np.inf, 0.3]), [np.zeros((3, 4))])
    drawn = labels.draw(random_cells((4,)), np.random.default_rng(0))
    assert set(np.unique(drawn)) == {0, 2}


def two_columns(table: np.ndarray) -> MixtureModel:
    """Return a mixture over two binary columns and a binary target with these shares. Shapes: [2, 2, 2], target first.

    Each of its four components of a class has one cell of the two columns.
    """
    columns = {name: {"type": "categorical", "values": ["0", "1"]} for name in ("a", "b", "target")}
    schema = Schema.model_validate({"name": "xor", "target": "target", "columns": columns})
    fine = Partition.fine(schema, 8)
    cells = torch.tensor([[1.0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    picks = np.stack([np.repeat(np.arange(4), np.rint(64 * part.ravel() / part.sum()).astype(int)) for part in table])
    probabilities = torch.stack([cells[torch.from_numpy(row)] for row in picks])
    detail = [np.ones((2, 2)) for _ in range(2)]
    counts = torch.from_numpy(table.sum(axis=(1, 2)) * 20_000)
    return MixtureModel(schema, 8, fine, probabilities, detail, counts, "e")


def target_of(table: np.ndarray, noise: float, seed: int = 0) -> MomentTarget:
    """Return the moments of the same table with noise, whose rows and columns have known sums."""
    rng, two_way = np.random.default_rng(seed), np.zeros((2, 4, 4))
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 2  # what a table's sums leave open
    two_way[:, :2, 2:] = table + rng.normal(0, noise, 2)[:, None, None] * sign
    two_way += two_way.transpose(0, 2, 1)
    one_way = np.concatenate([table.sum(axis=2), table.sum(axis=1)], axis=1)
    share, ones, noisy = (torch.from_numpy(part).float() for part in (table.sum(axis=(1, 2)), one_way, two_way))
    return MomentTarget(share, ones, noisy, noisy, noise, [2, 2], band(2, 1))


XOR = np.array([[[0.2, 0.05], [0.05, 0.2]], [[0.05, 0.2], [0.2, 0.05]]])
LOG_LINEAR = np.array([[[36, 12], [12, 4]], [[4, 12], [12, 36]]]) / 128  # independent within each class


def test_the_fit_finds_the_model_that_rows_were_labelled_by():
    generator = model()
    truth = random_labels(2, tuple(generator.partition.sizes))
    rng = np.random.default_rng(5)
    cells = np.stack([rng.integers(0, size, ROWS) for size in generator.partition.sizes], axis=1)
    label = truth.draw(cells.T, rng)
    details = [np.ones((2, len(merge))) for merge in generator.partition.merge]
    fit = fitted(generator.partition, details, cells, label)
    assert fit is not None
    firsts = [np.unique(merge, return_index=True)[1] for merge in generator.partition.merge]
    fine = np.stack([first[column] for first, column in zip(firsts, cells.T, strict=True)])
    assert np.abs(fit.probabilities(fine) - truth.probabilities(cells.T)).max() < 0.04


def test_within_a_merged_cell_a_fine_cell_says_what_the_classes_have_of_it():
    generator = model()
    detail = [part.copy() for part in generator.detail]
    detail[0][1] = np.tile([0.25, 0.75, 0, 0, 0], 2)  # 0.5 and 0.5 in the first class
    rng = np.random.default_rng(5)
    cells = np.stack([rng.integers(0, size, ROWS) for size in generator.partition.sizes], axis=1)
    fit = fitted(generator.partition, detail, cells, rng.integers(0, 2, ROWS))
    assert fit is not None
    fine = np.zeros((4, 2), dtype=np.int64)
    fine[0] = [0, 1]
    first, second = fit.probabilities(fine)
    assert np.log(second[0] / first[0]) - np.log(second[1] / first[1]) == pytest.approx(np.log(0.5 / 1.5), abs=1e-9)


def test_rows_of_one_class_have_no_model():
    generator = model((600.0, 0.0))
    cells = random_cells(tuple(generator.partition.sizes), 100).T
    assert fitted(generator.partition, generator.detail, cells, np.zeros(100, dtype=np.int64)) is None


def test_labels_that_two_columns_decide_together_stay_with_the_mixture_unless_noise_hides_it():
    generator = two_columns(XOR)
    measured = generator.partition
    assert label_model(generator, target_of(XOR, 0.01), measured, ROWS, 0) is None
    hidden = label_model(generator, target_of(XOR, 0.2), measured, ROWS, 0)
    assert hidden is not None
    records = replace(generator, labels=hidden).draw(ROWS, np.random.default_rng(0))
    shares = [np.bincount(2 * records.states[:, 0] + records.states[:, 1], records.states[:, 2] == y) for y in (0, 1)]
    odds = shares[1] / (shares[0] + shares[1])
    assert np.abs(odds - 0.5).max() < 0.02  # each column alone says nothing, so neither do the labels


def test_labels_that_every_column_bears_on_alone_are_drawn_anew():
    generator = two_columns(LOG_LINEAR)
    targets = [target_of(LOG_LINEAR, 0.02, seed) for seed in range(40)]
    models = [label_model(generator, target, generator.partition, 2000, 0) for target in targets]
    assert sum(each is not None for each in models) >= 34  # two squared normals exceed 6 in 5 of 100 cases
    assert label_model(generator, target_of(LOG_LINEAR, 0.02), generator.partition, 0, 0) is None
    assert label_model(generator, target_of(LOG_LINEAR, 0.0), generator.partition, ROWS, 0) is None


@pytest.mark.parametrize(("claimed", "accepted"), [(1.0, True), (2 / 3, False), (3 / 2, True)])
def test_the_truth_is_explained_by_the_noise_it_was_measured_with_and_not_by_less(claimed, accepted):
    sizes, rng = [12, 12, 12], np.random.default_rng(0)
    cells = np.stack([rng.integers(0, 12, ROWS) for _ in sizes], axis=1)
    shares = np.full((2, ROWS), 0.5)
    offset, ones = np.arange(3) * 12, np.zeros((ROWS, 36))
    ones[np.arange(ROWS)[:, None], cells + offset] = 1
    truth = ones.T @ ones / ROWS / 2
    noise, two_way = 0.003, np.zeros((2, 36, 36))
    for i in range(3):
        for j in range(i + 1, 3):
            raw = rng.normal(0, noise, (2, 12, 12))
            raw -= raw.mean(axis=1, keepdims=True)
            raw -= raw.mean(axis=2, keepdims=True)
            block = np.ix_(range(2), range(12 * i, 12 * i + 12), range(12 * j, 12 * j + 12))
            two_way[block] = raw + truth[None, 12 * i : 12 * i + 12, 12 * j : 12 * j + 12]
    two_way = torch.from_numpy(two_way + two_way.transpose(0, 2, 1)).float()
    target = MomentTarget(torch.ones(2) / 2, torch.zeros(2, 36), two_way, two_way, claimed * noise, sizes, band(3, 2))
    assert explained(target, cells, shares) == accepted


def test_a_saved_generator_draws_the_same_rows_and_one_without_labels_keeps_its_bits(tmp_path):
    generator = two_columns(LOG_LINEAR)
    with_labels = replace(generator, labels=random_labels(2, (2, 2)))
    for name, made in (("plain", generator), ("labels", with_labels)):
        made.save(tmp_path / name)
        (here,), (there,) = made.sample(500, 3), load_generator(tmp_path / name).sample(500, 3)
        assert np.array_equal(here.states, there.states)
    assert load_generator(tmp_path / "plain").labels is None
