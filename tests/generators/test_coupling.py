"""Values change places within cells so that columns rise together, and nothing else of the rows changes."""

from dataclasses import replace

import numpy as np
import pytest

from dpmodels.audit.desks import measured
from dpmodels.audit.made import shop
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.load import load_generator
from dpmodels.generators.refinements.coupling import Coupling, Line, _knots, coupling_of
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from tests.kit.mixtures import model

ROWS = 40_000


def partition(cells: int = 4) -> Partition:
    number = {"type": "number", "min": -4, "max": 4, "outside": "clip", "nullable": True}
    target = {"type": "categorical", "values": ["no", "yes"]}
    columns = {"one": number, "target": target, "other": number, "alone": number}
    return Partition.fine(Schema.model_validate({"name": "t", "target": "target", "columns": columns}), cells)


def normal_rows(rho: float, rows: int = ROWS, seed: int = 0) -> tuple[Records, np.ndarray]:
    """Return rows whose values are uniform within the cells of a normal of correlation ``rho``, and its values."""
    rng = np.random.default_rng(seed)
    true = rng.multivariate_normal([0, 0, 0], [[1, rho, 0], [rho, 1, 0], [0, 0, 1]], rows).clip(-3.99, 3.99)
    states = np.zeros((rows, 4), dtype=np.int32)
    states[:, 1] = rng.random(rows) < 0.3
    states[rng.random(rows) < 0.1, 2] = 1  # no value
    values = np.zeros((rows, 4))
    values[:, [0, 2, 3]] = (np.floor((true + 4) / 2) + rng.random((rows, 3))) / 4
    values[states[:, 2] > 0, 2] = 0
    return Records(states, values), true


def correlation(records: Records) -> float:
    valued = records.states[:, 2] == 0
    return float(np.corrcoef(records.values[valued][:, [0, 2]].T)[0, 1])


def copied(records: Records) -> Records:
    return Records(records.states.copy(), records.values.copy())


@pytest.mark.parametrize("rho", [-0.95, -0.6, 0.6, 0.95])
def test_columns_that_rise_together_do_so_within_their_cells_too(rho):
    (rows, true), cells = normal_rows(rho), partition()
    coupling = coupling_of(cells, rows, 0.5)
    (line,) = coupling.lines
    assert (line.leading, line.following) == (0, 1)
    at = np.array([0.4, 0.6])  # in units of eight standard deviations
    assert np.diff(line.center(at))[0] == pytest.approx(0.2 * rho, rel=0.35)
    assert line.spread(at) * 8 == pytest.approx(np.sqrt(1 - rho**2), abs=0.45)
    before, made = correlation(rows), coupling.applied(copied(rows), cells, np.random.default_rng(0))
    real = np.corrcoef(true[rows.states[:, 2] == 0][:, :2].T)[0, 1]
    assert abs(correlation(made) - real) < 0.7 * abs(before - real)


@pytest.mark.parametrize("rho", [-0.95, 0.7])
def test_nothing_but_places_within_cells_and_classes_changes(rho):
    (rows, _), cells = normal_rows(rho), partition()
    made = coupling_of(cells, rows, 0.5).applied(copied(rows), cells, np.random.default_rng(0))
    assert (made.states == rows.states).all() and (cells.cells(made) == cells.cells(rows)).all()
    assert (made.values[:, [0, 3]] == rows.values[:, [0, 3]]).all() and (made.values != rows.values).any()
    group = cells.cells(rows)[:, 1] * 2 + rows.states[:, 1]
    for each in np.unique(group):
        assert (np.sort(made.values[group == each, 2]) == np.sort(rows.values[group == each, 2])).all()


def test_columns_that_hardly_correlate_are_left_alone_and_each_follows_one_other():
    assert coupling_of(partition(), normal_rows(0.3)[0], 0.5) is None
    assert coupling_of(partition(), normal_rows(0.9)[0], 1.0) is None
    rng, base = np.random.default_rng(0), np.random.default_rng(1).normal(size=ROWS)
    values = np.zeros((ROWS, 4))
    values[:, [0, 2, 3]] = (np.stack([base, base, base], axis=1) + rng.normal(0, 0.4, (ROWS, 3))).clip(-4, 4) / 8 + 0.5
    coupling = coupling_of(partition(16), Records(np.zeros((ROWS, 4), dtype=np.int32), values), 0.5)
    assert len(coupling.lines) == 2 == len({line.following for line in coupling.lines})


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_few_rows_and_cells_in_which_all_rows_are_do_no_harm(rows):
    (records, _), cells = normal_rows(0.9, rows), partition()
    knots = np.array([[0.2, 0.5, 0.8], [0.1, 0.5, 0.9], [1e-12, 0.1, 1.0]])
    coupling = Coupling((Line(0, 1, knots), Line(1, 2, knots[:, :2])))
    made = coupling.applied(copied(records), cells, np.random.default_rng(0))
    assert np.isfinite(made.values).all() and (cells.cells(made) == cells.cells(records)).all()
    records.values[:] = 0.1
    assert (coupling.applied(copied(records), cells, np.random.default_rng(0)).values == 0.1).all()


def test_a_saved_generator_draws_the_same_rows_and_one_without_coupling_keeps_its_bits(tmp_path):
    plain = model()
    coupled = replace(plain, coupling=Coupling((Line(0, 2, np.array([[0.2, 0.7], [0.3, 0.6], [0.1, 0.1]])),)))
    for name, made in (("plain", plain), ("coupled", coupled)):
        made.save(tmp_path / name)
        loaded = load_generator(tmp_path / name)
        assert (loaded.coupling is None) == (name == "plain")
        first, second = (each.draw(500, np.random.default_rng(3)) for each in (made, loaded))
        assert (first.states == second.states).all() and (first.values == second.values).all()


def test_rows_of_users_are_not_coupled(tmp_path):
    spec = {"zooms": 0, "fine_cells": 16}
    training = {"components": 20, "steps": 20, "coupling": 0.1}
    schema = shop.make_schema()
    system = create("nacre", spec, training)
    line = system.plan(schema, PrivacyBudget(epsilon=10, delta=1e-5, unit=schema.unit))
    released, _ = measured(system, tmp_path, line, shop.make_records(500))
    assert system.fit(released, Craft(seed=0)).coupling is None


def test_a_cell_whose_values_are_alike_has_a_spread_that_rounding_makes_no_less_than_nothing() -> None:
    cell = np.repeat(np.arange(4), 2000)
    values = np.stack([np.repeat([0.0, 1.0, 2.0, 3.0], 2000), np.repeat([0.1, 0.7, 1.1, 1.3], 2000)], axis=1)
    x, y, spread = _knots(cell, values)
    assert len(x) == len(y) == 4 and np.isfinite(spread).all() and (spread > 0).all()
