"""Nacre from plan to generator: what it charges, what noise it draws, and that it learns."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import pair_weights
from dpmodels.embeddings.interactions import Interactions, JointTable
from dpmodels.embeddings.moments import Moments, pairs_within
from dpmodels.embeddings.products import Products
from dpmodels.embeddings.residuals import centered
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.targets import moment_target
from dpmodels.hand_off.vocabulary import is_noise
from dpmodels.methods.parts.joint_tables import joint_counts
from dpmodels.methods.parts.marginals import moment_tables
from dpmodels.methods.parts.pair_noise import HALVES, PAIR, SMALL_CLASS, measure_of
from dpmodels.methods.registry import create
from dpmodels.methods.tables.looks import Looks, NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.formats import read_plan
from dpmodels.releases.plan import Line, Plan
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum
from dpmodels.releases.system import Craft
from tests.kit import support
from tests.kit.errors import refused
from tests.kit.reports import release_of
from tests.kit.support import make_records, make_schema

BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)
NACRE = Nacre(training=MixtureSpec(components=128, steps=120))


def measured(tmp_path, plan: Line, records: Records, method: Nacre = NACRE):
    return support.measured(method, tmp_path, plan, records)


def seen(looks: Looks, first: np.ndarray, noise_stddev: float) -> NoisySum:
    """Return what the first look would have released on the schema's own cells."""
    return NoisySum(first, noise_stddev, looks.first)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_the_two_looks_together_cost_the_budget_and_not_more(epsilon, share):
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    plan = Nacre(NacreMeasurement(fine_share=share)).plan(make_schema(), budget)
    spent = spent_epsilon([plan.event], Decimal("1e-5"))
    assert Decimal(repr(0.999 * epsilon)) < spent <= Decimal(repr(epsilon))


def test_each_look_is_charged_for_its_own_sensitivity_at_the_noise_that_is_drawn():
    plan = NACRE.plan(make_schema(), BUDGET)
    looks = NACRE.of(plan)
    noise = plan.noise_stddev(looks.zooms, looks.first.l2_sensitivity)
    second = looks.second(seen(looks, np.zeros(looks.first.dim, dtype=np.int64), noise))
    for event, embedding in zip(plan.event.events[looks.zooms :], (looks.first, second), strict=True):
        assert event.noise_multiplier * embedding.l2_sensitivity <= noise
        assert event.noise_multiplier * embedding.l2_sensitivity == pytest.approx(noise, rel=1e-4)  # whole steps


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pooled_share", [None, 0.5, 0.75, 0.95])
def test_the_second_bound_holds_whatever_the_first_look_says(seed, pooled_share):
    looks = Looks(NacreMeasurement(pooled_share=pooled_share), make_schema())
    first = np.random.default_rng(seed).integers(-(10**9), 10**9, looks.first.dim)
    second = looks.second(seen(looks, first, 1e6))
    assert 0.999 * looks.second_radius < second.l2_sensitivity <= looks.second_radius
    one = second.lattice_sum(make_records(1)).numpy().astype(object)
    assert (one**2).sum() == second.squared_norm <= looks.second_radius**2


@pytest.mark.parametrize("smallest", [-5.0, 0.0, 10.0, 900.0, 1500.0, 3000.0, 1e6])
def test_margins_weigh_more_where_a_class_is_small_and_the_norm_stays_within_the_plan(smallest):
    for spec in (NacreMeasurement(), NacreMeasurement(one_way_weight=0.01), NacreMeasurement(one_way_weight=7)):
        looks = Looks(spec, make_schema())
        one_way, two_way = looks.weights(smallest, 45.0)
        squared = looks.columns * one_way**2 + looks.pairs * two_way**2
        assert 0.999 * looks.second_radius < squared**0.5 <= looks.second_radius
        factor = 1 if smallest > 2700 else 3 if smallest <= 900 else 1.8
        assert one_way / two_way == pytest.approx(factor * spec.one_way_weight, rel=0.01)


def test_columns_are_cut_into_fewer_runs_the_more_noise_there_is():
    looks = NACRE.of(NACRE.plan(make_schema(), BUDGET))
    least, most, ratios = NacreMeasurement().least_runs, NacreMeasurement().runs, (0.0, 20.0, 400.0, 800.0, 1e9)
    found = [looks.runs(50.0 * ratio, 50.0) for ratio in ratios]
    assert found == sorted(found) and found[0] == found[1] == least < found[3] < found[4] == most
    assert looks.runs(-5.0, 0.0) == most and looks.runs(-5.0, 1.0) == least
    coarse = looks.second(seen(looks, np.full(looks.first.dim, looks.first.one_way), 1e3 * looks.two_way))
    assert max(coarse.partition.sizes) <= least + 2


def test_settings_that_leave_no_whole_step_for_a_residual_are_refused_before_anything_is_charged():
    codes = {"type": "categorical", "values": [f"c{i}" for i in range(4000)]}
    columns = {"x": codes, "y": codes, "z": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "codes", "target": "z", "columns": columns})
    limits = {"square_limit": 2**26, "pair_limit": 2**24, "most_weight": 9}
    with refused(InvalidArgument, name="square_limit"):
        Looks(NacreMeasurement(pooled_share=0.95, **limits), schema)
    for spec in (NacreMeasurement(), NacreMeasurement(pooled_share=0.95)):
        looks = Looks(spec, schema)  # whose cells are as many as the limits let two columns have, and weigh least
        second = looks.second(seen(looks, np.full(looks.first.dim, 10**12), 1e-9 * looks.two_way))
        least = looks.second(seen(looks, np.full(looks.first.dim, 10**12), 1e12 * looks.two_way))
        assert sum(second.partition.sizes) > 0.9 * looks.most_cells
        assert second.scales.min() >= 1 and least.scales.min() >= 1


def test_a_sum_of_ten_billion_records_is_within_what_can_be_added_up():
    number = {"type": "number", "min": -1.0, "max": 1.0}
    for columns in (2, 64, 512):
        names = {f"x{i}": number for i in range(columns)}
        looks = Looks(NacreMeasurement(), Schema.model_validate({"name": "w", "columns": names}))
        most = math.isqrt(
            looks.norm // columns
        )  # of a first moment, where pairs of single cells leave it all of the norm
        assert max(most, looks.first.one_way) * 10**10 < 2**62


def test_a_user_is_charged_for_all_rows():
    schema = make_schema(unit={"user": "patient", "max_rows": 2})
    plan = NACRE.plan(schema, PrivacyBudget(epsilon=1, delta=1e-5, unit=schema.unit))
    assert NACRE.of(plan).l2_sensitivity == pytest.approx(
        2 * NACRE.of(NACRE.plan(make_schema(), BUDGET)).l2_sensitivity, rel=1e-5
    )
    with pytest.raises(Unsuitable, match="unit"):
        NACRE.plan(schema, BUDGET)


def test_the_drawn_noise_has_the_charged_scale(tmp_path):
    """A confidence band of 5 standard errors accepts the true scale and excludes 2/3 and 3/2 of it."""
    plan, records = NACRE.plan(make_schema(), BUDGET), make_records(2000)
    release, _ = measured(tmp_path, plan, records)
    sums = NACRE.sums(release.value)
    drawn = np.concatenate([(s.vector - s.embedding.lattice_sum(records).numpy()) / s.noise_stddev for s in sums])
    assert len(sums) == NACRE.of(plan).zooms + 2 and len(drawn) == len(release.value.vector)
    band = 5 / np.sqrt(2 * len(drawn))
    assert abs(drawn.std() - 1) < band < 1 / 3 and abs(drawn.mean()) < 5 / np.sqrt(len(drawn))


def correlation(records: Records, label: int) -> float:
    chosen = records.states[:, 4] == label
    return float(np.corrcoef(records.values[chosen, 0] > 0.6, records.states[chosen, 3])[0, 1])


def dependent_records(rows: int) -> Records:
    """Return clinic rows in which smoking follows age among the sick and opposes it among the others."""
    records, rng = make_records(rows), np.random.default_rng(1)
    old, sick = records.values[:, 0] > 0.6, records.states[:, 4] == 1
    records.states[:, 3] = np.where(rng.random(rows) < 0.9, old == sick, old != sick)
    return records


def test_with_a_large_budget_it_recovers_class_conditional_dependence_and_one_charge_is_made(tmp_path):
    plan, real = NACRE.plan(make_schema(), PrivacyBudget(epsilon=50, delta=1e-5)), dependent_records(5000)
    release, ledger = measured(tmp_path, plan, real)
    assert [entry.kind for entry in ledger.entries() if entry.kind != "open"].count("reserve") == 1
    model = NACRE.fit(release, Craft())
    assert abs(model.default_rows() - 5000) < 50
    (synthetic,) = model.sample(5000, 0)
    for label in (0, 1):
        assert correlation(synthetic, label) == pytest.approx(correlation(real, label), abs=0.12)
    for column in (1, 2, 3, 4):
        shares = [np.bincount(r.states[:, column], minlength=3) / len(r) for r in (real, synthetic)]
        assert np.abs(shares[0] - shares[1]).max() < 0.02


def test_fitting_again_from_the_same_release_gives_the_same_generator(tmp_path):
    release, _ = measured(tmp_path, NACRE.plan(make_schema(), BUDGET), make_records(300))
    models = [NACRE.fit(release, Craft(seed=3)) for _ in range(2)]
    (a,), (b,) = (model.sample(200, 1) for model in models)
    assert np.array_equal(a.states, b.states) and np.array_equal(a.values, b.values)


def synthetic_of(tmp_path, schema: Schema, records: Records) -> tuple[MixtureModel, pa.Table]:
    release, _ = measured(tmp_path, NACRE.plan(schema, BUDGET), records)
    model = NACRE.fit(release, Craft())
    (sampled,) = model.sample(100, 0)
    return model, Codec(schema).decode(sampled)


@pytest.mark.parametrize("target", [None, "age"])
def test_without_a_categorical_target_there_is_one_class(tmp_path, target):
    model, table = synthetic_of(tmp_path, make_schema(target=target), make_records(300))
    assert model.probabilities.shape[0] == 1 and table.num_rows == 100
    assert table["sick"].null_count == 0


@pytest.mark.parametrize("rows", [0, 1, 50])
@pytest.mark.parametrize(("names", "target"), [(["ward"], "ward"), (["ward"], None), (["age", "dose", "sick"], "sick")])
def test_few_rows_few_columns_and_constant_columns_give_a_table(tmp_path, rows, names, target):
    columns = {name: make_schema().columns[name] for name in names}
    constant = Records(np.zeros((rows, len(names)), dtype=np.int32), np.zeros((rows, len(names))))
    _, table = synthetic_of(tmp_path, Schema(name="clinic", target=target, columns=columns), constant)
    assert table.num_rows == 100


@pytest.mark.parametrize(("columns", "classes"), [(64, 2), (150, 2), (178, 2), (60, 26), (617, 2), (617, 26)])
def test_wide_tables_stay_within_the_public_limits(columns, classes):
    number = {"type": "number", "min": -1.0, "max": 1.0}
    letters = {"type": "categorical", "values": [f"c{i}" for i in range(classes)]}
    wide = {f"x{i}": number for i in range(columns)} | {"y": letters}
    schema = Schema.model_validate({"name": "wide", "target": "y", "columns": wide})
    spec = NacreMeasurement()
    looks = Looks(spec, schema)
    assert looks.first.dim <= max(spec.fine_limit, 16 * looks.fine.classes * columns)
    second = looks.second(seen(looks, np.full(looks.first.dim, 10**9), 0.0))
    cells, conditional = sum(second.partition.sizes), second.partition.classes == classes
    assert second.partition.classes * cells**2 <= spec.square_limit or (not conditional and cells <= 2 * (columns + 1))
    assert len(second.first) * second.partition.classes <= spec.pair_limit or not conditional
    reach = int(second.paired[0].sum())
    whole = looks.all_pairs or columns <= 64 or not conditional
    assert reach == (len(second.paired) - 1 if whole else {178: 11, 617: 3}[columns])
    assert looks.all_pairs == (columns == 150)


def test_no_more_pairs_are_measured_than_the_widest_table_that_is_wholly_paired_has():
    spec = NacreMeasurement()
    most = pairs_within(spec.paired_columns, spec.paired_columns)
    assert all(columns - 1 <= pairs_within(columns, spec.reach(columns)) <= most for columns in range(1, 2000))


def test_a_plan_of_other_cells_is_refused():
    plan = NACRE.plan(make_schema(), BUDGET)
    with pytest.raises(ArtifactError, match="other cells"):
        NACRE.of(plan.model_copy(update={"measurement": {**plan.measurement, "fine_cells": 8}}))


def test_the_registry_knows_it_and_checks_its_settings():
    assert create("nacre", {}, {}) == Nacre()
    with refused(InvalidArgument, name="fine_share", value=2.0):
        create("nacre", {"fine_share": 2.0}, {})
    with refused(InvalidArgument, name="no_such", value=1):
        create("nacre", {}, {"no_such": 1})


def test_bounds_far_too_wide_cost_a_column_its_shape_without_zooms_and_with_them_hardly_anything(tmp_path):
    """Ages lie between 0 and 99; a total variation of quarters is what the seed of no noise could move so far."""
    wide = {"age": {"type": "integer", "min": -100_000, "max": 100_000}, "sick": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "wide", "target": "sick", "columns": wide})
    rng = np.random.default_rng(0)
    age, sick = rng.integers(0, 100, 4000), rng.random(4000) < 0.4
    records = Codec(schema).encode(pa.table({"age": age, "sick": sick}))
    quarters, distances = [-200_001, 25, 50, 75, 200_001], {}
    for zooms in (0, 3):
        method = Nacre(NacreMeasurement(zooms=zooms), NACRE.training)
        release, _ = measured(tmp_path / str(zooms), method.plan(schema, BUDGET), records, method)
        made = np.concatenate([r.values[:, 0] for r in method.fit(release, Craft()).sample(4000, 0)])
        drawn = schema.columns["age"].interval.from_unit(made)
        shares = [np.histogram(x, quarters)[0] / 4000 for x in (age, drawn)]
        distances[zooms] = np.abs(shares[0] - shares[1]).sum() / 2
    assert distances[3] < 0.1 < 0.3 < distances[0], distances


def test_a_schema_without_columns_of_many_values_is_not_zoomed_into_and_pays_nothing_for_it():
    columns = {"age": {"type": "integer", "min": 0, "max": 50}, "sick": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "few", "target": "sick", "columns": columns})
    with_zooms, without = (Nacre(NacreMeasurement(zooms=zooms)).plan(schema, BUDGET) for zooms in (3, 0))
    assert with_zooms.event == without.event and len(without.event.events) == 2


def test_the_tables_of_a_release_are_the_counts_with_error_bars_that_are_true(tmp_path):
    """Of one draw: 5 standard errors accept the stated deviations and exclude 2/3 and 3/2 of them."""
    records = make_records(2000)
    release, _ = measured(tmp_path, NACRE.plan(make_schema(), BUDGET), records)
    *_, second = NACRE.sums(release.value)
    exact = moment_tables(replace(second, vector=second.embedding.lattice_sum(records).numpy()))
    one_by_one = Moments(second.embedding.partition, 1, 1, 1)
    true = moment_tables(NoisySum(one_by_one.lattice_sum(records).numpy(), 1.0, one_by_one))
    errors = []
    for released, without_noise, counts in zip(moment_tables(second), exact, true, strict=True):
        assert np.allclose(without_noise.counts, counts.counts, atol=1e-6) and released.names == counts.names
        errors.append(((released.counts - counts.counts) / released.stddev).ravel())
    band = 5 / np.sqrt(2 * len(second.vector) / 2)  # margins are in many tables, so there are fewer free numbers
    assert abs(np.concatenate(errors).std() - 1) < band < 1 / 3


@pytest.mark.parametrize("pooled_share", [None, 0.75])
def test_what_a_mixture_is_fitted_to_has_margins_that_agree_and_names_its_noise(tmp_path, pooled_share):
    records, system = make_records(2000), Nacre(NacreMeasurement(pooled_share=pooled_share), NACRE.training)
    release, _ = measured(tmp_path, system.plan(make_schema(), BUDGET), records, system)
    *_, fine, second = system.sums(release.value)
    first, moments, noise = fine.embedding, second.embedding, second.noise_stddev
    target, counts = moment_target(first, moments, np.concatenate([fine.vector, second.vector]), noise)
    exact = centered(moments.unpack(moments.lattice_sum(records).numpy())[1], moments.partition.offsets)
    noisy = centered(target.noisy.double().numpy(), moments.partition.offsets) * counts.sum() - exact
    free, sizes = 0, moments.partition.sizes
    for i, j in np.argwhere(moments.paired).tolist():
        free += (sizes[i] - 1) * (sizes[j] - 1) * len(counts)
    found = float((noisy**2).sum() / free) ** 0.5 / counts.sum()
    assert found == pytest.approx(target.noise, rel=5 / free**0.5) and 5 / free**0.5 < 1 / 3
    for each in (target.noisy, target.two_way):
        for c, one_way in enumerate(target.one_way):
            tables = [t.sum(dim=1) for t in each[c].split(sizes, dim=1)]
            for j in range(1, len(sizes)):
                assert torch.allclose(tables[j][: sizes[0]], one_way[: sizes[0]], atol=1e-5)


ASKED = {"workload": [{"by": "ward", "weight": 4}]}


@pytest.mark.parametrize("rows", [400, 2000, 200_000])
@pytest.mark.parametrize("schema", [{}, ASKED], ids=str)
def test_the_planned_noise_of_pairs_is_what_the_counts_of_pairs_have(tmp_path, schema, rows):
    """Errors of counts of pairs under noise of the release's scale, beside the plan's line and the release's."""
    line = NACRE.plan(make_schema(**schema), BUDGET)
    released, _ = measured(tmp_path, line, make_records(rows))
    *_, second = NACRE.answers(released.value)
    look, rng = second.embedding, np.random.default_rng(0)
    noise = [look.unpack(rng.normal(0, second.noise_stddev, look.dim))[1].sum(axis=0) for _ in range(50)]
    cells = np.sqrt(np.mean(np.square(noise), axis=0))
    begin, names = look.partition.offsets[:-1], look.partition.names
    tables = np.add.reduceat(np.add.reduceat(cells, begin, axis=0), begin, axis=1) / np.outer(*(look.column_sizes,) * 2)
    asked = np.triu(pair_weights(line.contract.workload, names) > 1)
    plain = np.triu(look.paired & ~(asked | asked.T))
    planned, real = NACRE.noise(line), NACRE.released_noise(released.value)
    about = f"{PAIR}, about"
    assert real.keys() < planned.keys() and real[about] == pytest.approx(tables[plain].mean(), rel=0.12)
    assert planned[about] < planned[SMALL_CLASS] and 0.5 * planned[about] < real[about] < planned[SMALL_CLASS]
    of_means, of_both = measure_of(about, planned), measure_of(f"{PAIR} and class, about", planned)
    assert of_means == f"{of_both}, and up to {planned[SMALL_CLASS]:.4g} if one is" and "mean over" in of_both
    assert rows < 10_000 or planned[about] == pytest.approx(
        real[about], rel=0.1
    )  # few records leave few cells, by chance
    for name in [name for name in real if "the workload asks for" in name]:
        assert real[name] == pytest.approx(tables[asked].mean(), rel=0.12)
        assert rows < 10_000 or planned[name] == pytest.approx(real[name], rel=0.1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "workload", [[{"by": "ward", "weight": 10}], [{"columns": ["age", "dose", "smoker"]}]], ids=str
)
def test_with_a_workload_the_second_bound_holds_whatever_the_first_look_says(seed, workload):
    schema, rng = make_schema(workload=workload), np.random.default_rng(seed)
    looks = Looks(Nacre().settled(schema), schema)  # whose columns are cut by the weights of what is asked for
    assert looks.spec.asked_cells and (max(looks.cell_weights[0]) > 1) == ("columns" in workload[0])
    first = rng.integers(-(10**9), 10**12, looks.first.dim)
    second = looks.second(seen(looks, first, float(rng.uniform(1, 1e9))))
    assert second.weights is not None and second.squared_norm <= looks.norm
    assert 0.99 * looks.second_radius < second.l2_sensitivity <= looks.second_radius
    shares = [each.columns * each.one_way**2 / each.norm for each in (looks, Looks(NacreMeasurement(), make_schema()))]
    assert shares[0] == pytest.approx(shares[1], rel=1e-4)  # pairs share their own part among themselves


def test_what_a_workload_asks_for_has_less_noise_at_the_same_price_and_the_plan_says_how_much(tmp_path):
    plain, asked = (NACRE.plan(make_schema(**more), BUDGET) for more in ({}, ASKED))
    assert spent_epsilon([asked.event], Decimal("1e-5")) <= 1 and asked.fingerprint != plain.fingerprint
    noise = [NACRE.noise(plan) for plan in (plain, asked)]
    pair = "records in a pair of merged cells of two columns, about"
    (by_ward,) = (value for name, value in noise[1].items() if "any column by ward" in name)
    assert 2 * by_ward < noise[1][pair] and by_ward < noise[0][pair] < noise[1][pair] < noise[1][SMALL_CLASS]
    released, _ = measured(tmp_path, asked, make_records(2000))
    *_, second = NACRE.answers(released.value)
    names, shared = second.embedding.partition.names, second.embedding.table_stddevs[1] * second.noise_stddev
    ward, others = names.index("ward"), [names.index(name) for name in ("age", "dose", "smoker")]
    assert shared[others[0], others[1]] == pytest.approx(4 * shared[ward, others[0]], rel=1e-3)
    model = NACRE.fit(released, Craft(seed=0))
    assert len(model.probabilities[0]) > len(
        NACRE.fit(measured_plainly(tmp_path, plain), Craft(seed=0)).probabilities[0]
    )


@pytest.mark.parametrize(
    ("named", "without"),
    [
        ([{"columns": ["age", "sick"]}, {"by": "sick"}], []),
        ([{"columns": ["age", "ward", "sick"]}], [{"columns": ["age", "ward"]}]),
        ([{"columns": ["age", "ward", "smoker", "sick"], "joint": True}], None),
    ],
    ids=str,
)
def test_a_target_that_a_workload_names_changes_no_plan_and_no_event(named, without):
    without = [{"columns": ["age", "ward", "smoker"], "joint": True}] if without is None else without
    lines = [NACRE.plan(make_schema(workload=workload), BUDGET) for workload in (named, without)]
    plans = [line.model_dump_json(exclude={"contract"}) for line in lines]
    assert plans[0] == plans[1] and lines[0].contract != lines[1].contract
    first, second = (Looks(Nacre().settled(line.contract), line.contract) for line in lines)
    assert np.array_equal(first.pair_weights, second.pair_weights) and first.cell_weights == second.cell_weights
    assert first.joint == second.joint and first.l2_sensitivity == second.l2_sensitivity
    assert NACRE.noise(lines[0]) == NACRE.noise(lines[1])


def test_a_number_is_cut_more_finely_where_a_workload_names_it_with_a_category_and_not_by_everything():
    """Of 20,000 records with about as many of each age, and noise that leaves eight ranges of a number."""
    sizes = {}
    for words, workload in {
        "none": [],
        "by": [{"by": "ward"}],
        "numbers": [{"columns": ["age", "dose"]}],
        "with ward": [{"columns": ["age", "ward"]}],
    }.items():
        looks = Looks(Nacre().settled(make_schema(workload=workload)), make_schema(workload=workload))
        first = np.repeat(20_000 // np.array(looks.first.partition.sizes), looks.first.partition.sizes)
        counts = np.tile(first // 2, looks.first.partition.classes) * looks.first.one_way
        second = looks.second(seen(looks, counts, 60.0 * looks.two_way))
        sizes[words] = dict(zip(looks.fine.names, second.partition.sizes, strict=True))
        assert second.squared_norm <= looks.norm
    assert sizes["none"] == sizes["by"] == sizes["numbers"]
    assert sizes["with ward"]["age"] > 1.5 * sizes["none"]["age"]
    assert sizes["with ward"] | {"age": 0} == sizes["none"] | {"age": 0}


JOINT = {"workload": [{"columns": ["age", "dose", "smoker"], "joint": True, "weight": 4}]}


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_joint_tables_holds_whatever_the_first_look_says(seed):
    schema, rng = make_schema(**JOINT), np.random.default_rng(seed)
    looks = Looks(Nacre().settled(schema), schema)
    once = seen(looks, rng.integers(-(10**9), 10**12, looks.first.dim), float(rng.uniform(1, 1e9)))
    third = looks.interactions(once, looks.second(once).partition)
    assert 0.99 * looks.joint_radius < third.l2_sensitivity <= looks.joint_radius
    assert looks.joint_radius == pytest.approx(4 * looks.two_way, rel=1e-6)
    squares = [radius**2 for radius in (looks.first.l2_sensitivity, looks.second_radius, looks.joint_radius)]
    assert (looks.l2_sensitivity - 1) ** 2 < sum(squares) <= looks.l2_sensitivity**2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_joint_tables_are_paid_from_the_same_budget(epsilon):
    plan = NACRE.plan(make_schema(**JOINT), PrivacyBudget(epsilon=epsilon, delta=1e-5))
    spent = spent_epsilon([plan.event], Decimal("1e-5"))
    assert Decimal(repr(0.999 * epsilon)) < spent <= Decimal(repr(epsilon))
    assert [event.mechanism for event in plan.event.events][-3:] == ["fine one-way", "joint tables", "one- and two-way"]
    pairs = NACRE.plan(make_schema(workload=[{"columns": ["age", "dose", "smoker"], "weight": 4}]), BUDGET)
    assert plan.fingerprint != pairs.fingerprint and not any("joint" in name for name in NACRE.noise(pairs))


def test_the_groups_of_a_joint_table_are_fewer_where_noise_would_hide_them():
    looks = Looks(NacreMeasurement(), make_schema(**JOINT))
    most = [looks.most_groups(3, 20_000, noise) for noise in (0, 1, 10, 100, 1e9)]
    assert most == sorted(most, reverse=True) and (most[0], most[-1]) == (16, 2)
    assert looks.most_groups(5, 20_000, 10) < looks.most_groups(3, 20_000, 10)
    assert looks.most_groups(3, -5.0, 10) == 2
    assert looks.most_groups(4, 1e9, 0) == 16 and looks.most_groups(5, 1e9, 0) == 8  # 2**16 cells at most


@pytest.mark.parametrize("sizes", [(2, 2, 2), (16, 16, 16), (16, 15, 16, 16), (8, 8, 8, 8, 8), (8, 7, 2, 5, 3)])
def test_noise_of_joint_tables_is_at_most_what_a_plan_says_whatever_their_groups_are(sizes):
    columns = {f"x{i}": {"type": "integer", "min": 0, "max": 99} for i in range(len(sizes))}
    asked = [{"columns": [*columns], "joint": True, "weight": 2}, {"columns": ["x0", "x1"], "weight": 10}]
    looks = Looks(NacreMeasurement(), make_schema(columns=columns, target=None, workload=asked))
    groups = tuple(np.arange(looks.fine.sizes[0]) % size for size in sizes)
    table = JointTable(tuple(range(len(sizes))), groups)
    real = Interactions(looks.fine, [table], looks.joint_norms, 1).stddevs
    assert real[0] <= looks.joint_stddevs[0] and (real[0] > looks.joint_stddevs[0] / 2 or min(sizes) < 8)


def exclusive(rows: int, seed: int = 0) -> tuple[Schema, pa.Table]:
    """Return three columns of which no two say anything of each other, but two say the third in nine rows of ten."""
    rng = np.random.default_rng(seed)
    one, other = rng.random((2, rows)) < 0.5
    third, sides = one ^ other ^ (rng.random(rows) < 0.1), rng.integers(0, 9, rows)
    columns = {name: {"type": "boolean"} for name in ("one", "other", "third")}
    columns["sides"] = {"type": "integer", "min": 0, "max": 8}
    workload = [{"columns": ["one", "other", "third"], "joint": True}]
    schema = Schema.model_validate({"name": "xor", "columns": columns, "workload": workload})
    return schema, pa.table({"one": one, "other": other, "third": third, "sides": sides})


def agreement(table: pa.Table) -> float:
    one, other, third = (np.array(table[name]) for name in ("one", "other", "third"))
    return float(((one ^ other) == third).mean())


def test_what_only_three_columns_show_is_kept_where_it_is_asked_for(tmp_path):
    schema, table = exclusive(20_000)
    agree = []
    for workload in ((), schema.workload):
        line = NACRE.plan(schema.model_copy(update={"workload": workload}), BUDGET)
        released, _ = measured(tmp_path / str(len(workload)), line, Codec(schema).encode(table))
        made = NACRE.fit(released, Craft(seed=0)).draw(20_000, np.random.default_rng(0))
        agree.append(agreement(Codec(schema).decode(made)))
    assert agree[0] < 0.6 and agree[1] == pytest.approx(agreement(table), abs=0.03)


def test_counts_of_joint_tables_are_unbiased_and_their_error_bars_true(tmp_path):
    """Cell by cell: groups of unequal numbers of cells differ in their noise. The bands exclude 2/3 and 3/2 of it."""
    line, records = NACRE.plan(make_schema(**JOINT), BUDGET), make_records(20_000)
    released, _ = measured(tmp_path, line, records)
    *_, joint, second = NACRE.answers(released.value)
    cells, rng, drawn = joint.embedding.partition.cells(records), np.random.default_rng(0), []
    (table,) = joint.embedding.tables
    true = np.zeros(table.sizes)
    groups = [group[cells[:, column]] for column, group in zip(table.columns, table.groups, strict=True)]
    np.add.at(true, tuple(groups), 1)
    exact = [each.embedding.lattice_sum(records).numpy() for each in (joint, second)]
    for _ in range(400):
        noisy = [total + np.rint(rng.normal(0, joint.noise_stddev, len(total))).astype(np.int64) for total in exact]
        looks = [replace(each, vector=vector) for each, vector in zip((joint, second), noisy, strict=True)]
        (counted,) = joint_counts(*looks)
        drawn.append(counted.counts - true)
    errors = np.stack(drawn)
    assert counted.names == ("age", "dose", "smoker") and counted.counts.shape == table.sizes
    relative = errors / counted.stddev
    assert relative.std() == pytest.approx(1, rel=0.02)
    assert relative.std(axis=0) == pytest.approx(np.ones(table.sizes), rel=0.2)
    assert counted.stddev.max() > 1.2 * counted.stddev.min()
    assert abs(relative.mean(axis=0)).max() < 5 / np.sqrt(len(errors))
    planned, real = NACRE.noise(line), NACRE.released_noise(released.value)
    (name,) = [name for name in real if "joint table" in name]
    assert 0 < real[name] < planned[name] and is_noise(name, ("age by dose by smoker",)) and not is_noise(name)
    assert counted.names in [each.names for each in NACRE.tables(released.value)]


def test_joint_tables_are_refused_where_all_pairs_of_a_wide_table_have_a_product():
    workload = [{"columns": ["x1", "x2", "x3"], "joint": True}]
    with refused(InvalidArgument, "paired_columns.*be 6 or more, since the workload asks for tables that are `joint`"):
        Looks(NacreMeasurement(paired_columns=3), wide_schema(6, workload=workload))
    assert Looks(NacreMeasurement(), wide_schema(6, workload=workload)).joint


def test_a_workload_that_asks_for_columns_which_are_not_paired_is_refused_before_a_plan():
    schema = make_schema(workload=[{"columns": ["age", "smoker"]}])
    with refused(InvalidArgument, "paired_columns.*be 4 or more, since the workload asks for columns"):
        Nacre(NacreMeasurement(paired_columns=2, product_share=None)).plan(schema, BUDGET)
    assert Nacre(NacreMeasurement(paired_columns=2)).plan(schema, BUDGET)  # each pair has a product
    assert Nacre(NacreMeasurement(paired_columns=4)).plan(schema, BUDGET)


def measured_plainly(tmp_path, plan: Line):
    return measured(tmp_path / "plain", plan, make_records(2000))[0]


def test_only_nacre_takes_a_workload_and_only_with_residuals():
    schema = make_schema(**ASKED)
    for method in ("privbayes", "pearl", "moments", "p3gm"):
        with refused(InvalidArgument, "must be nacre for a schema with `workload`"):
            create(method, {}, {}).plan(schema, BUDGET)
    with refused(InvalidArgument, "be a share for a schema with `workload`"):
        Nacre(NacreMeasurement(pooled_share=None)).plan(schema, BUDGET)


@pytest.mark.parametrize("workload", [(), ({"by": "a"},)], ids=str)
@pytest.mark.parametrize("target", ["t", None])
def test_of_one_column_no_noise_of_pairs_is_planned_or_said(tmp_path, target, workload):
    columns = {"a": {"type": "integer", "min": 0, "max": 9}}
    columns |= {"t": {"type": "categorical", "values": ["x", "y"]}} if target else {}
    schema = Schema.model_validate({"name": "one", "target": target, "columns": columns, "workload": list(workload)})
    line = NACRE.plan(schema, BUDGET)
    records = Codec(schema).encode(pa.table({"a": np.arange(90) % 10, "t": ["x", "y", "y"] * 30}))
    released, _ = measured(tmp_path, line, records)
    assert not NACRE.released_noise(released.value) and not any("pair" in name for name in NACRE.noise(line))


def wide_schema(columns: int, classes: int = 1, **more: object) -> Schema:
    fields = {f"x{i}": {"type": "integer", "min": 0, "max": 9} for i in range(columns)}
    label = {"y": {"type": "categorical", "values": list("abcdefgh"[:classes])}} if classes > 1 else {}
    target = {"target": "y"} if label else {}
    return Schema.model_validate({"name": "wide", "columns": fields | label, **target, **more})


@pytest.mark.parametrize(
    ("columns", "classes", "all_pairs"),
    [(64, 1, False), (65, 1, True), (159, 1, True), (160, 1, False), (159, 2, True), (178, 2, False)],
)
def test_public_numbers_decide_whether_all_pairs_of_a_wide_table_are_measured(columns, classes, all_pairs):
    looks = Looks(NacreMeasurement(), wide_schema(columns, classes))
    assert looks.all_pairs == all_pairs and looks.pairs == pairs_within(columns, looks.reach)
    assert (looks.reach >= columns - 1) == (all_pairs or columns <= 64)
    before = Looks(NacreMeasurement(product_share=None), wide_schema(columns, classes))
    assert (before.norm == looks.norm) == (not all_pairs)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.05, 0.4, 0.95])
@pytest.mark.parametrize("workload", [[], [{"by": "x3", "weight": 7}]], ids=str)
def test_the_bound_of_products_holds_whatever_the_first_look_says(seed, share, workload):
    looks = Looks(NacreMeasurement(paired_columns=3, product_share=share), wide_schema(6, 2, workload=workload))
    rng = np.random.default_rng(seed)
    first = rng.integers(-(10**9), 10**12, looks.first.dim)
    second = looks.second(seen(looks, first, float(rng.uniform(1e9, 1e12))))
    assert isinstance(second, Products) and 0.999 * looks.norm < second.squared_norm <= looks.norm
    assert second.squared_norm - looks.columns * second.one_way**2 == pytest.approx(share * looks.norm, rel=1e-3)


def test_where_a_wide_table_has_many_records_its_pairs_are_measured_in_full():
    looks = Looks(NacreMeasurement(paired_columns=3), wide_schema(6))
    fine = [np.full(looks.first.dim, rows * looks.first.one_way) for rows in (1, 10**4)]
    few, many = (looks.second(seen(looks, counts, 1e8)) for counts in fine)
    assert isinstance(few, Products) and not isinstance(many, Products)
    assert many.paired.sum() == 30 and max(few.l2_sensitivity, many.l2_sensitivity) <= looks.second_radius


def test_a_plan_of_a_wide_table_from_before_has_no_products_and_the_same_cells():
    schema = wide_schema(70)
    old, new = (Nacre(NacreMeasurement(product_share=share)).plan(schema, BUDGET) for share in (None, 0.4))
    measurement = {key: value for key, value in old.measurement.items() if key != "product_share"}
    begun = old.model_copy(update={"measurement": measurement})
    read = read_plan(Plan(lines=(begun,)).model_dump_json()).release
    assert read.measurement == old.measurement and read.fingerprint == old.fingerprint != new.fingerprint
    assert read.hash == begun.hash and NACRE.of(read).reach == 28


WIDE = Nacre(NacreMeasurement(paired_columns=8), NACRE.training)


@pytest.fixture(scope="module")
def of_one_factor(tmp_path_factory) -> tuple[Released[Release], np.ndarray]:
    """Release a table of 24 columns, every fourth of which follows one factor, and some of these the other way."""
    rng = np.random.default_rng(0)
    factor, states = rng.normal(size=8000), rng.normal(size=(8000, 24))
    states[:, ::4] = 0.6 * states[:, ::4] + 0.8 * factor[:, None] * np.array([-1, 1, 1, -1, 1, -1])
    digits = np.clip(np.floor(5 + 2 * states), 0, 9)
    schema = wide_schema(24)
    records = Codec(schema).encode(pa.table({f"x{i}": digits[:, i].astype(int) for i in range(24)}))
    released, _ = measured(tmp_path_factory.mktemp("wide"), WIDE.plan(schema, BUDGET), records, WIDE)
    return released, digits


def test_columns_far_apart_that_one_factor_moves_do_so_in_the_synthetic_rows(of_one_factor):
    released, digits = of_one_factor
    (rows,) = WIDE.fit(released, Craft(seed=0)).sample(8000, 0)
    made = Codec(wide_schema(24)).decode(rows).to_pandas().to_numpy()
    apart = np.triu_indices(24, 1)
    true, found = (np.corrcoef(each.T)[apart] for each in (digits, made))
    linked = np.abs(true) > 0.3
    assert linked.sum() == 15 and np.abs(found - true).max() < 0.2


def test_the_noise_of_halves_is_planned_and_what_the_release_has(of_one_factor):
    release = of_one_factor[0].value
    assert isinstance(WIDE.answers(release)[-1].embedding, Products)
    planned, real = WIDE.noise(release.line), WIDE.released_noise(release)
    assert real.keys() == {HALVES} and planned[HALVES] == pytest.approx(real[HALVES], rel=0.1)
    assert all(map(is_noise, planned))
    tables = [table for table in WIDE.tables(release) if len(table.names) == 2]
    assert len(tables) == 24 * 23 / 2 and WIDE.marginals(release).pair_cells == 2


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_hardly_any_records_of_a_wide_table_with_missing_values_give_a_table(tmp_path, rows):
    system = Nacre(NacreMeasurement(paired_columns=2), MixtureSpec(components=64, steps=5, label_rows=500))
    released, _ = measured(tmp_path, system.plan(make_schema(), BUDGET), make_records(30).take(slice(rows)), system)
    assert isinstance(system.answers(released.value)[-1].embedding, Products)
    (drawn,) = system.fit(released, Craft(seed=0)).sample(50, 0)
    assert len(drawn) == 50 and system.marginals(released.value).records >= 1


def test_noise_puts_no_values_beyond_the_end_of_a_short_count():
    """Fewer values than are zoomed into, few of them used: four of a hundred rows had values that no real row has."""
    rng = np.random.default_rng(0)
    columns = {"visits": {"type": "integer", "min": 0, "max": 50}, "left": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "cohort", "target": "left", "columns": columns})
    visits, far = rng.negative_binomial(2, 0.5, 5000).clip(0, 12), []
    records = Codec(schema).encode(pa.table({"visits": visits, "left": rng.random(5000) < 0.3}))
    for seed in range(3):
        model = Nacre().fit(Released(release_of(Nacre(), records, schema)), Craft(seed=seed))
        values = Codec(schema).decode(next(iter(model.sample(5000, seed))))["visits"].to_numpy()
        far.append((values > 16).mean())
        assert values.mean() == pytest.approx(visits.mean(), rel=0.12)
    assert max(far) < 0.005
