"""PrivBayes from plan to generator: what it charges, what noise it draws, what it selects, and that it learns."""

from decimal import Decimal

import dp_accounting as dpa
import numpy as np
import pyarrow as pa
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.translation import to_dp_accounting
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.contingency import SCORE_STEP, SHARE_BITS, ContingencyTables, Family
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.generators.bayes_net import BayesNetModel
from dpmodels.mechanisms import exponential, gaussian
from dpmodels.mechanisms.exponential import exponential_scale
from dpmodels.methods.registry import create
from dpmodels.methods.tables.bayes_structure import (
    Network,
    PrivBayesMeasurement,
    read_family,
    write_family,
)
from dpmodels.methods.tables.privbayes import PrivBayes, tables_of
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.steps import NoisySum
from dpmodels.releases.system import Craft
from tests.kit import support
from tests.kit.errors import refused
from tests.kit.support import make_records, make_schema

BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)
PRIVBAYES = PrivBayes()


def measured(folder, plan: Line, *batches: Records):
    return support.measured(PRIVBAYES, folder, plan, *batches)


def fitted(folder, plan: Line, records: Records) -> BayesNetModel:
    release, _ = measured(folder, plan, records)
    return PRIVBAYES.fit(release, Craft())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("shares", [(0.05, 0.4), (0.15, 0.1), (0.4, 0.02)])
def test_looks_and_selections_together_cost_the_budget_and_not_more(epsilon, shares):
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    plan = PrivBayes(PrivBayesMeasurement(fine_share=shares[0], select_share=shares[1])).plan(make_schema(), budget)
    spent = spent_epsilon([plan.event], Decimal("1e-5"))
    assert Decimal(repr(0.999 * epsilon)) < spent <= Decimal(repr(epsilon))


def test_the_ledgers_epsilon_is_that_of_dp_accounting_for_the_whole_plan(tmp_path):
    plan = PRIVBAYES.plan(make_schema(), BUDGET)
    _, ledger = measured(tmp_path, plan, make_records(200))
    accountant = dpa.pld.PLDAccountant(dpa.NeighboringRelation.ADD_OR_REMOVE_ONE)
    theirs = accountant.compose(to_dp_accounting(plan.event)).get_epsilon(1e-5)
    spent = float(ledger.balance("a").spent_epsilon)
    assert spent == pytest.approx(theirs, rel=1e-3) and 0.9999 < spent <= 1
    assert [entry.kind for entry in ledger.entries()].count("reserve") == 1


def test_every_part_is_charged_for_its_own_sensitivity_at_the_noise_that_is_drawn():
    plan = PRIVBAYES.plan(make_schema(), BUDGET)
    network = PRIVBAYES.of(plan)
    fine, *selections, tables = plan.event.events
    noise = plan.noise_stddev(0, network.first.l2_sensitivity)
    assert len(selections) == network.columns - 1
    for event, radius in ((fine, network.first.l2_sensitivity), (tables, network.tables_radius)):
        assert event.noise_multiplier * radius <= noise
        assert event.noise_multiplier * radius == pytest.approx(noise, rel=1e-6)
    assert len({event.noise_multiplier for event in selections}) == 1
    views, _ = network.views(NoisySum(np.arange(network.first.dim) * network.first.one_way, noise))
    families = [Family(0, ()), Family(1, (0,)), Family(2, (0, 2)), Family(3, (4, 1)), Family(4, (6,))]
    steps = network.steps(views, families)
    assert 0.99 * network.tables_radius**2 < sum(step**2 for step in steps) <= network.tables_radius**2
    assert steps[2] > steps[4]  # a wide table gets more of it


def test_a_user_is_charged_for_all_rows():
    schema = make_schema(unit={"user": "patient", "max_rows": 2})
    plan = PRIVBAYES.plan(schema, PrivacyBudget(epsilon=1, delta=1e-5, unit=schema.unit))
    assert PRIVBAYES.of(plan).l2_sensitivity == pytest.approx(
        2 * PRIVBAYES.of(PRIVBAYES.plan(make_schema(), BUDGET)).l2_sensitivity, rel=1e-5
    )
    with pytest.raises(Unsuitable, match="unit"):
        PRIVBAYES.plan(schema, BUDGET)


def test_a_selection_is_drawn_at_the_scale_that_is_charged_for_the_rows_of_a_unit(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(exponential, "_selector", lambda scores, scale: seen.append(scale) or 0)
    for rows in (1, 3):
        schema = make_schema(unit={"user": "patient", "max_rows": rows})
        plan = PRIVBAYES.plan(schema, PrivacyBudget(epsilon=1, delta=1e-5, unit=schema.unit))
        measured(tmp_path / str(rows), plan, make_records(50))
        _, selection, *_ = plan.event.events
        assert set(seen) == {exponential_scale(rows * SCORE_STEP, selection.noise_multiplier)} and len(seen) == 4
        seen.clear()


def test_the_drawn_noise_has_the_charged_scale(tmp_path):
    """A confidence band of 5 standard errors accepts the true scale and excludes 2/3 and 3/2 of it."""
    plan, records = PRIVBAYES.plan(make_schema(), BUDGET), make_records(2000)
    network, drawn = PRIVBAYES.of(plan), []
    for run in range(2):
        first, *_, last = answers = PRIVBAYES.answers(measured(tmp_path / str(run), plan, records)[0].value)
        found = tables_of(network, answers)
        tables = ContingencyTables(found.views, Sensitive([records]))
        truth = tables.transform_tables(found.families, network.steps(found.views, found.families)).reveal()
        drawn += [first.vector - network.first.lattice_sum(records).numpy(), last.vector - truth]
    noise = np.concatenate(drawn) / first.noise_stddev
    band = 5 / np.sqrt(2 * len(noise))
    assert abs(noise.std() - 1) < band < 1 / 3 and abs(noise.mean()) < 5 / np.sqrt(len(noise))


def test_candidates_prices_and_weights_depend_on_the_data_through_what_is_released_alone(tmp_path, monkeypatch):
    """Replay on neighbours: with every release copied, all that was offered to the next mechanism has the same form."""
    asked: list[tuple[object, ...]] = []

    def replayed(values: np.ndarray, scale: float) -> np.ndarray:
        asked.append((values.shape, scale))
        return np.random.default_rng(len(asked)).integers(10**6, 10**8, len(values))

    def chosen(scores: np.ndarray, scale: float) -> int:
        asked.append((scores.shape, scale))
        return len(asked) * 5 % len(scores)

    monkeypatch.setattr(gaussian, "_sampler", replayed)
    monkeypatch.setattr(exponential, "_selector", chosen)
    plan, table = PRIVBAYES.plan(make_schema(), BUDGET), make_records(300)
    runs = []
    for name, rows in (
        ("d", table),
        ("neighbour", Records.concat([table, make_records(1, 9)])),
        ("empty", table.take([])),
    ):
        runs.append((measured(tmp_path / name, plan, rows)[0].value.vector.tolist(), list(asked)))
        asked.clear()
    assert runs[0] == runs[1] == runs[2]


def test_a_record_moves_every_score_that_is_offered_by_at_most_one_step(tmp_path, monkeypatch):
    offered: list[np.ndarray] = []
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: np.full_like(values, 10**8))
    monkeypatch.setattr(exponential, "_selector", lambda scores, scale: offered.append(scores) or 0)
    plan, table = PRIVBAYES.plan(make_schema(), BUDGET), make_records(120)
    for name, rows in (("d", table), ("neighbour", Records.concat([table, make_records(1, 9)]))):
        measured(tmp_path / name, plan, rows)
    here, there = offered[:4], offered[4:]
    moved = np.concatenate([np.abs(a - b) for a, b in zip(here, there, strict=True)])
    assert 0 < moved.max() <= SCORE_STEP


def dependent_records(rows: int) -> Records:
    """Return clinic rows in which smoking follows age among the sick and opposes it among the others."""
    records, rng = make_records(rows), np.random.default_rng(1)
    old, sick = records.values[:, 0] > 0.6, records.states[:, 4] == 1
    records.states[:, 3] = np.where(rng.random(rows) < 0.95, old == sick, old != sick)
    return records


def test_with_a_large_budget_it_finds_a_dependence_of_three_columns(tmp_path):
    plan, real = PRIVBAYES.plan(make_schema(), PrivacyBudget(epsilon=50, delta=1e-5)), dependent_records(8000)
    model = fitted(tmp_path, plan, real)
    assert abs(model.default_rows() - 8000) < 50 and model.families[0] == Family(4, ())  # the target comes first
    (synthetic,) = model.sample(8000, 0)
    for label in (0, 1):
        agree = []
        for records in (real, synthetic):
            chosen = records.states[:, 4] == label
            agree.append(np.mean((records.values[chosen, 0] > 0.6) == records.states[chosen, 3]))
        assert agree[1] == pytest.approx(agree[0], abs=0.1)
    for column in (1, 2, 3, 4):
        shares = [np.bincount(r.states[:, column], minlength=3) / len(r) for r in (real, synthetic)]
        assert np.abs(shares[0] - shares[1]).max() < 0.02


def test_a_family_that_says_more_is_chosen_and_a_price_keeps_wide_tables_out(tmp_path):
    records = dependent_records(8000)
    degrees = {}
    for price in (0.1, 100.0):
        method = PrivBayes(PrivBayesMeasurement(price=price))
        plan = method.plan(make_schema(), BUDGET)
        release, _ = support.measured(method, tmp_path / str(price), plan, records)
        families = tables_of(method.of(plan), method.answers(release.value)).families
        assert sorted(family.child for family in families) == [0, 1, 2, 3, 4]
        degrees[price] = sum(len(family.parents) for family in families)
    assert degrees[0.1] >= 3 and degrees[100.0] == 0


def test_fitting_again_gives_the_same_generator(tmp_path):
    release, _ = measured(tmp_path, PRIVBAYES.plan(make_schema(), BUDGET), make_records(300))
    models = [PRIVBAYES.fit(release, Craft(seed=i)) for i in (0, 1)]
    (a,), (b,) = (model.sample(200, 1) for model in models)
    assert np.array_equal(a.states, b.states) and np.array_equal(a.values, b.values)


@pytest.mark.parametrize("target", [None, "age"])
def test_any_column_or_none_may_be_the_target(tmp_path, target):
    schema = make_schema(target=target)
    model = fitted(tmp_path, PRIVBAYES.plan(schema, BUDGET), make_records(300))
    table = Codec(schema).decode(next(model.sample(100, 0)))
    assert table.num_rows == 100 and table["sick"].null_count == 0 and model.families[0].child == 0


@pytest.mark.parametrize("rows", [0, 1, 50])
@pytest.mark.parametrize(("names", "target"), [(["ward"], "ward"), (["dose"], None), (["age", "dose", "sick"], "sick")])
def test_few_rows_few_columns_and_constant_columns_give_a_table(tmp_path, rows, names, target):
    columns = {name: make_schema().columns[name] for name in names}
    schema = Schema(name="clinic", target=target, columns=columns)
    constant = Records(np.zeros((rows, len(names)), dtype=np.int32), np.zeros((rows, len(names))))
    plan = PRIVBAYES.plan(schema, BUDGET)
    table: pa.Table = Codec(schema).decode(next(fitted(tmp_path, plan, constant).sample(100, 0)))
    assert table.num_rows == 100 and PRIVBAYES.noise(plan)


@pytest.mark.parametrize(("columns", "degree"), [(15, 3), (40, 2), (178, 1), (617, 1)])
def test_a_wide_table_has_a_lower_degree_and_offers_no_more_families_than_the_limits(columns, degree):
    number = {"type": "number", "min": -1.0, "max": 1.0}
    schema = Schema.model_validate({"name": "wide", "columns": {f"x{i}": number for i in range(columns)}})
    network = Network(PrivBayesMeasurement(), schema)
    assert network.degree == degree
    views, _ = network.views(NoisySum(np.full(network.first.dim, 10**9), 1e5))
    assert network.star == (columns == 617)  # then nothing joins but at the first column, the only parent
    offered = network.joining(views, [network.root] if network.star else list(range(columns // 2)))
    assert 0 < len(offered) < network.spec.family_limit
    assert not network.star or network.joining(views, [network.root, 5]) == []
    assert max(np.prod(views.shape(family)) for family in offered) <= network.spec.table_limit


def test_shares_and_networks_survive_whatever_the_noise_is():
    network = PRIVBAYES.of(PRIVBAYES.plan(make_schema(), BUDGET))
    for scale in (0, -1, 10**6):
        noise = np.random.default_rng(0).normal(size=network.first.dim) * abs(scale) + scale
        for shares in network.views(NoisySum(noise.astype(np.int64), 1e5))[1]:
            assert shares.sum() == 2**SHARE_BITS and shares.min() >= 0
    families = [Family(2, ()), Family(0, (5,)), Family(1, (0, 4, 6))]
    assert [read_family(write_family(family, 3)) for family in families] == families


def test_a_plan_of_other_cells_an_image_and_a_stream_that_is_read_once_are_refused(tmp_path):
    plan = PRIVBAYES.plan(make_schema(), BUDGET)
    with pytest.raises(ArtifactError, match="other cells"):
        PRIVBAYES.of(plan.model_copy(update={"measurement": {**plan.measurement, "fine_cells": 8}}))
    image = {"type": "image", "height": 8, "width": 8}
    digits = {"image": image, "digit": {"type": "categorical", "values": [0, 1]}}
    with refused(InvalidArgument, "image", name="method", value="privbayes"):
        PRIVBAYES.plan(Schema.model_validate({"name": "d", "target": "digit", "columns": digits}), BUDGET)
    with pytest.raises(Unsuitable, match="twice"):
        PRIVBAYES.measure(Sensitive(iter([make_records(3)])), plan, support.desk_in(tmp_path, plan))


def test_the_registry_knows_it_and_checks_its_settings():
    assert create("privbayes", {}, {}) == PrivBayes()
    with refused(InvalidArgument, name="select_share", value=0):
        create("privbayes", {"select_share": 0}, {})
    with refused(InvalidArgument, name="steps", value=1):
        create("privbayes", {}, {"steps": 1})
