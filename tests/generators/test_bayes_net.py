"""The Bayesian network: its distributions follow the tables, its samples follow the distributions."""

from dataclasses import replace

import numpy as np
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.embeddings.contingency import Family, Views
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import ArtifactError, FileDamaged, InvalidArgument
from dpmodels.generators.bayes_net import BayesNetModel, Estimate, conditional
from dpmodels.generators.load import load_generator
from tests.kit.errors import refused
from tests.kit.support import make_schema

PARTITION = Partition.fine(make_schema(), 10, conditional=False)  # age, ward, dose, smoker, sick
FAMILIES = [Family(4, ()), Family(3, (8,)), Family(0, (8, 6)), Family(2, (1,)), Family(1, (5, 8))]


def model(**changes: object) -> BayesNetModel:
    """A network in which being sick decides smoking, and both the age."""
    rng = np.random.default_rng(0)
    views = Views.of(PARTITION, [np.full(size, 10) for size in PARTITION.sizes], 4)
    tables = [rng.dirichlet(np.ones(shape[1]), size=shape[0]) for shape in map(views.shape, FAMILIES)]
    tables[0], tables[1] = np.array([[0.7, 0.3]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    detail = [np.ones(size) for size in PARTITION.sizes]
    facts = {"records": 1234.4, "release_entry": "e", **changes}
    return BayesNetModel(make_schema(), 10, views, FAMILIES, tables, detail, **facts)


def sampled_cells(rows: int, seed: int = 0) -> np.ndarray:
    return np.concatenate([PARTITION.cells(batch) for batch in model().sample(rows, seed)])


def test_samples_follow_every_conditional_distribution():
    cells, made = sampled_cells(BayesNetModel.batch_rows + 5000), model()
    assert len(cells) == BayesNetModel.batch_rows + 5000
    for family, p in zip(made.families, made.conditionals, strict=True):
        given = made.views.rows_of(family, list(cells.T))
        counts = np.zeros(p.shape)
        np.add.at(counts, (given, cells[:, family.child]), 1)
        # systematic draws: off by about one row a batch, where independent ones would be off by tens
        assert np.abs(counts - counts.sum(axis=1, keepdims=True) * p).max() < 12


def test_the_same_rows_and_seed_give_the_same_sample_and_another_seed_another():
    assert np.array_equal(sampled_cells(500, 3), sampled_cells(500, 3))
    assert not np.array_equal(sampled_cells(500, 3), sampled_cells(500, 4))


def test_a_saved_network_is_read_back_and_samples_the_same(tmp_path):
    made, path = model(), tmp_path / "generator.safetensors"
    made.save(path)
    back = load_generator(path)
    assert isinstance(back, BayesNetModel) and back.families == FAMILIES and back.release_entry == "e"
    (a,), (b,) = made.sample(300, 7), back.sample(300, 7)
    assert np.array_equal(a.states, b.states) and np.array_equal(a.values, b.values)
    assert back.default_rows() == 1234 and model(records=-3.0).default_rows() == 1
    again = tmp_path / "again.safetensors"
    back.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_a_damaged_file_and_no_rows_are_refused(tmp_path):
    path = tmp_path / "generator.safetensors"
    model().save(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileDamaged):
        load_generator(path)
    with refused(InvalidArgument, name="rows", value=0):
        next(model().sample(0, 0))


def test_samples_decode_to_the_schema_with_nulls_and_zeros():
    (batch,) = model().sample(2000, 0)
    table = Codec(make_schema()).decode(batch)
    assert 0 < table["dose"].null_count < 2000 and table["age"].null_count == 0


def one_way(counts: np.ndarray, noise: float = 1e-6) -> tuple[Estimate, np.ndarray]:
    return Estimate(counts, noise), np.ones(len(counts))


def test_without_noise_the_conditional_is_the_table_and_an_impossible_row_is_the_marginal():
    table = np.array([[30.0, 10.0, 0.0], [0.0, 0.0, 0.0], [5.0, 5.0, 50.0]])
    made = conditional(Estimate(table, 1e-6), *one_way(table.sum(axis=0)))
    assert made[[0, 2]] == pytest.approx(table[[0, 2]] / table[[0, 2]].sum(axis=1, keepdims=True), abs=1e-4)
    assert made[1] == pytest.approx(table.sum(axis=0) / 100, abs=1e-4)


def test_noise_over_independent_columns_is_shrunk_away_and_dependence_kept():
    rng, noise = np.random.default_rng(0), 20.0
    p, given = np.array([0.5, 0.2, 0.15, 0.1, 0.05]), rng.dirichlet(np.ones(40)) * 20_000
    counts, parts = one_way(20_000 * p, noise)
    flat = conditional(Estimate(np.outer(given, p) + rng.normal(size=(40, 5)) * noise, noise), counts, parts)
    raw = np.outer(given, p) + rng.normal(size=(40, 5)) * noise
    weight = given / given.sum()
    assert weight @ np.abs(flat - p).sum(axis=1) < 0.3 * (weight @ np.abs(raw / raw.sum(1, keepdims=True) - p).sum(1))
    bent = np.where(np.arange(40)[:, None] % 2, p, p[::-1])
    table = given[:, None] * bent
    kept = conditional(Estimate(table + rng.normal(size=(40, 5)) * noise, noise), *one_way(table.sum(axis=0), noise))
    assert weight @ np.abs(kept - bent).sum(axis=1) < 0.15


@pytest.mark.parametrize("table", [np.zeros((1, 3)), -np.ones((4, 3)), np.full((4, 3), -1e12)])
def test_whatever_the_noise_rows_are_distributions(table):
    made = conditional(Estimate(table, 5.0), *one_way(np.array([-3.0, 1.0, 0.0]), 5.0))
    assert (made >= 0).all() and made.sum(axis=1) == pytest.approx(1)


def test_a_header_of_another_contract_or_of_millions_of_cells_is_refused_before_it_takes_memory(tmp_path):
    """Whoever trained the generator wrote its header; gigabytes of cells cost a file of kilobytes."""
    path, contract = tmp_path / "generator.safetensors", make_schema()
    model().save(path)
    assert load_generator(path, contract).default_rows() == 1234
    replace(model(), most_cells=2**27).save(path)
    with pytest.raises(FileDamaged):
        load_generator(path, contract)
    replace(model(), schema=contract.model_copy(update={"name": "other"})).save(path)
    with pytest.raises(ArtifactError, match="another contract"):
        load_generator(path, contract)
