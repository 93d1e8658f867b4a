"""Rows under conditions are those of a plain sample that meet them, exactly and however rare they are."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
import torch

from dpmodels.codec.contradictions import contradicted
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.rules import Conditions, RowRules
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import DataError, Unsuitable
from dpmodels.generators import conditional
from dpmodels.generators.conditional import GivenMixture, sample_where
from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.refinements.labels import LabelModel
from dpmodels.generators.sampling import Sampler
from tests.kit.errors import refused
from tests.kit.support import make_schema


def wide(**changes: object) -> Schema:
    columns = {
        "kind": {"type": "categorical", "values": ["a", "b", "c"]},
        "income": {"type": "integer", "min": 0, "max": 99_999, "scale": "log", "nullable": True},
        "dose": {"type": "number", "min": 0, "max": 10, "round": 2, "zero_inflated": True},
        "weight": {"type": "number", "min": 1, "max": 3, "dtype": "float32"},
        "level": {"type": "categorical", "values": [1, 2, 5], "nullable": True},
        "seen": {"type": "datetime", "min": date(2020, 1, 1), "max": date(2020, 12, 31)},
    }
    return Schema.model_validate({"name": "wide", "target": "kind", "columns": columns, **changes})


def mixture(schema: Schema, components: int = 7, seed: int = 0) -> MixtureModel:
    """Return a mixture of random components over a schema, whose pairs of cells are merged."""
    rng, fine = np.random.default_rng(seed), Partition.fine(schema, 6)
    merge = tuple(np.arange(size) // 2 for size in fine.sizes)
    partition = Partition(fine.codec, merge, fine.classes, fine.class_column)
    parts = [rng.dirichlet(np.full(size, 0.5), (fine.classes, components)) for size in partition.sizes]
    detail = []
    for size, place in zip(fine.sizes, merge, strict=True):
        raw = rng.random((fine.classes, size)) + 0.1
        within = np.stack([np.bincount(place, row)[place] for row in raw])
        detail.append(raw / within)
    probabilities = torch.from_numpy(np.concatenate(parts, axis=2)).float()
    counts = torch.tensor([500.0, 300.0, -20.0][: fine.classes])
    return MixtureModel(schema, 6, partition, probabilities, detail, counts, "e")


def labelled(schema: Schema) -> MixtureModel:
    """Return the mixture with a class that is drawn once the other columns are there."""
    model, rng = mixture(schema), np.random.default_rng(4)
    weights = [rng.normal(0, 1, (model.partition.classes, len(merge))) for merge in model.partition.merge]
    return replace(model, labels=LabelModel(np.array([0.5, 0.0, -np.inf]), weights))


def drawn(model: Sampler, texts: list[str], rows: int, seed: int = 3) -> tuple[Records, float]:
    batches = list(sample_where(model, Conditions(model.schema, texts), rows, seed))
    return Records.concat([records for records, _ in batches]), batches[-1][1]


def test_whoever_waits_for_rare_rows_hears_how_many_were_drawn():
    model, heard = labelled(wide()), list[tuple[int, int]]()
    conditions = Conditions(model.schema, ["kind = b", "level >= 2"])
    whole = sum(len(records) for records, _ in sample_where(model, conditions, 40, 3, tick=lambda *x: heard.append(x)))
    assert whole == 40 == heard[-1][0]
    assert [drawn for _, drawn in heard] == sorted({drawn for _, drawn in heard}) and heard[0][1] >= heard[0][0]


ASKED = [
    ["income > 17", "income <= 4000", "income != 250"],
    ["dose = 0", "kind != b"],
    ["dose != 0", "dose < 3.14", "weight >= 2.5"],
    ["income = null"],
    ["level >= 2", "seen > 2020-03-10", "seen <= 2020-03-20"],
    ["level != 2", "income = 1234"],
]


@pytest.mark.parametrize("made", [mixture, labelled], ids=["mixture", "labels drawn anew"])
@pytest.mark.parametrize("texts", ASKED, ids=" ".join)
@pytest.mark.nightly_if(
    "income > 17*-labels*", "level >= 2*-labels*", "income = null-labels*", "dose = 0*-mixture", "dose != 0*-mixture"
)  # beside each condition
def test_the_mixture_given_conditions_is_its_plain_sample_without_the_other_rows(texts, made):
    model = made(wide())
    plain = Records.concat(list(model.sample(700_000, 1)))
    met = plain.take(Conditions(model.schema, texts).hold(plain))
    records, share = drawn(model, texts, 100_000)
    assert len(records) == 100_000 and Conditions(model.schema, texts).hold(records).all()
    assert share == pytest.approx(len(met) / len(plain), rel=5 / max(len(met), 1) ** 0.5, abs=1e-6)
    if len(met) < 100:
        return
    codec, spread = model.partition.codec, 5 / len(met) ** 0.5 + 0.005
    there, here = codec.to_cells(met), codec.to_cells(records)
    for index, size in enumerate(codec.cell_sizes):
        shares = [np.bincount(cells[:, index], minlength=size) / len(cells) for cells in (there, here)]
        assert np.abs(shares[0] - shares[1]).max() < spread
        values = [part.values[:, index] for part in (met, records)]
        grid = np.linspace(0, 1, 101)
        below = [np.searchsorted(np.sort(each), grid, side="right") / len(each) for each in values]
        assert np.abs(below[0] - below[1]).max() < spread
    for first, second in ((0, 4), (1, 4), (2, 5)):  # dependence between columns
        tables = [
            np.bincount(c[:, first] * codec.cell_sizes[second] + c[:, second], minlength=200) / len(c)
            for c in (there, here)
        ]
        assert np.abs(tables[0] - tables[1]).max() < spread


def test_a_condition_of_a_hundred_millionth_is_drawn_as_fast_as_any():
    model = mixture(wide())
    records, share = drawn(model, ["income = 54321", "seen = 2020-02-29", "dose = 7.77", "weight > 2.99"], 500)
    table = Codec(model.schema).decode(records)
    assert set(table["income"].to_pylist()) == {54321} and set(table["dose"].to_pylist()) == {7.77}
    assert {str(day) for day in table["seen"].to_pylist()} == {"2020-02-29"}
    assert min(table["weight"].to_pylist()) > 2.99 and 0 < share < 1e-8


def test_the_same_seed_gives_the_same_rows():
    model = mixture(wide())
    (one, _), (two, _), (other, _) = (drawn(model, ["income < 900"], 300, seed) for seed in (5, 5, 6))
    assert np.array_equal(one.values, two.values) and not np.array_equal(one.values, other.values)


@pytest.mark.parametrize("made", [mixture, labelled], ids=["mixture", "labels drawn anew"])
def test_a_class_that_was_released_as_empty_has_no_mass(made):
    with pytest.raises(Unsuitable, match=r"no row that this generator draws meets `kind=c`"):
        drawn(made(wide()), ["kind=c"], 10)


def test_a_schema_with_constraints_is_sampled_by_rejection_of_repaired_rows():
    columns = make_schema().model_dump()["columns"]
    columns["end"] = {"type": "integer", "min": 0, "max": 99}
    schema = make_schema(columns=columns, constraints=["age <= end"])
    records, share = drawn(mixture(schema), ["age >= 50", "sick = yes"], 2000)
    table = Codec(schema).decode(records).to_pandas()
    assert len(table) == 2000 and (table.age >= 50).all() and (table.age <= table.end).all() and 0 < share < 1
    assert set(table.sick) == {"yes"}


def test_whoever_waits_for_rows_that_keep_rules_hears_of_them_within_a_batch():
    columns = make_schema().model_dump()["columns"] | {"end": {"type": "integer", "min": 0, "max": 99}}
    model, done, heard = mixture(make_schema(columns=columns, constraints=["age <= end"])), list[float](), list[int]()
    assert len(list(sample_valid(model, 5000, 1, tick=done.append))) == 1
    assert len(set(done)) > 2 and done == sorted(done) and 0 < done[0] < 3000 and done[-1] == 5000
    conditions = Conditions(model.schema, ["age >= 50"])
    batches = list(sample_where(model, conditions, 1000, 1, tick=lambda meeting, drawn: heard.append(drawn)))
    assert len(set(heard)) > len(batches) + 2 and heard == sorted(heard)


def test_rows_kept_from_small_batches_are_those_of_a_large_one_that_meet_the_conditions():
    rules = [f"when income < {limit} then weight <= {weight}" for limit, weight in ((3, 2.7), (9, 2.8), (30, 2.9))]
    schema = wide(constraints=rules)
    model, texts, drawn_by = mixture(schema, 3), ["seen < 2020-03-01", "weight > 1.2"], list[int]()
    conditions = Conditions(schema, texts)
    (whole,) = sample_valid(model, 40_000, 1)
    met, parts = whole.take(conditions.hold(whole)), list[Records]()
    for seed in (2, 3):
        batches = sample_where(model, conditions, 1500, seed, tick=lambda _, so_far: drawn_by.append(so_far))
        parts.extend(records for records, _ in batches)
    records = Records.concat(parts)
    assert len(records) == 3000 and conditions.hold(records).all() and RowRules(schema).hold(records).all()
    assert max(drawn_by) < model.batch_rows / 4 and len(met) > 3000
    there, here = (model.partition.codec.to_cells(each) for each in (met, records))
    for index, size in enumerate(model.partition.codec.cell_sizes):
        shares = [np.bincount(cells[:, index], minlength=size) / len(cells) for cells in (there, here)]
        assert np.abs(shares[0] - shares[1]).max() < 0.035


def test_rejection_stops_at_its_bound_and_says_how_many_rows_it_drew(monkeypatch):
    schema = make_schema(
        columns=make_schema().model_dump()["columns"] | {"end": {"type": "integer", "min": 0, "max": 99}}
    )
    model = mixture(schema.model_copy(update={"constraints": ("age <= end",)}))
    with refused(DataError, r"none of 100,000 rows that were drawn meets `dose=3\.33` and `age=7` and `end=91`"):
        drawn(model, ["dose=3.33", "age=7", "end=91"], 90)
    monkeypatch.setattr(conditional, "TRIES", 1)
    monkeypatch.setattr(conditional, "LEAST_TRIES", 1)
    with refused(DataError, r"rows that were drawn meet `age=7`, too few to find 60000"):
        drawn(model, ["age=7"], 60_000)


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        (["level >= 6"], "`level >= 6`: no value of column level meets this; it has 1, 2, 5"),
        (["level<1"], "`level<1`: no value of column level meets this; it has 1, 2, 5"),
        (
            ["level>2", "level<5"],
            "`level>2` and `level<5`: no value of column level meets these together; it has 1, 2, 5",
        ),
        (["kind!=a", "kind!=b", "kind!=c"], "no value of column kind meets these together; it has a, b, c"),
        (["income > 99999"], "no value of column income meets this; a value must lie between 0 and 99999"),
        (
            ["income>5", "income<6"],
            "no value of column income meets these together; a value must lie between 0 and 99999",
        ),
        (["income > 500", "income = null"], "no value of column income meets these together"),
        (["weight<1"], "no value of column weight meets this; a value must lie between 1 and 3"),
        (["seen > 2020-12-31"], "meets this; a value must lie between 2020-01-01 and 2020-12-31"),
        (["many > 20"], "it has 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 7 more and 20"),
    ],
)
def test_conditions_that_no_value_of_a_column_meets_are_refused_with_what_there_is(texts, fault) -> None:
    columns = wide().model_dump()["columns"] | {"many": {"type": "categorical", "values": list(range(1, 21))}}
    with refused(Unsuitable, fault):
        Conditions(wide(columns=columns), texts).check()
    Conditions(wide(columns=columns), ["level >= 5", "income >= 99999", "weight > 1", "seen >= 2020-12-31"]).check()


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        (["kind=a", "income>5"], "when kind = a then income = 0"),
        (["kind != b", "kind != c", "income=7"], "when kind = a then income = 0"),
        (["kind=a", "income=null"], ""),  # a null keeps it
        (["kind=b", "income=null"], "when kind = b then income != null"),
        (["kind=c", "income>5"], ""),
        (["income>5"], ""),
        (["dose>8", "weight<2"], "dose <= weight"),
        (["dose>1.5", "weight<2"], ""),
    ],
)
def test_conditions_that_a_rule_of_the_schema_forbids_are_refused_before_a_row_is_drawn(texts, rule) -> None:
    rules = ["when kind = a then income = 0", "when kind = b then income != null", "dose <= weight"]
    schema = wide(constraints=rules)
    found = contradicted(schema, Conditions(schema, texts).all)
    assert str(found or "") == rule
    if rule:
        with refused(Unsuitable, f"for the schema has the rule `{rule}`; nothing was drawn"):
            drawn(mixture(schema), texts, 10)


def test_conditioning_leaves_the_mixture_as_it_was():
    model = mixture(wide())
    before = [part.copy() for part in model.detail], model.class_counts.clone()
    GivenMixture.of_mixture(model, Conditions(model.schema, ["income > 17", "kind=a"]))
    assert all(np.array_equal(a, b) for a, b in zip(before[0], model.detail, strict=True))
    assert torch.equal(before[1], model.class_counts)


def test_rows_under_conditions_keep_the_bounds_of_a_derived_column_too() -> None:
    columns = {
        "kind": {"type": "categorical", "values": ["a", "b", "c"]},
        "left": {"type": "integer", "min": 0, "max": 99},
        "right": {"type": "integer", "min": 0, "max": 99},
        "sum": {"type": "derived", "formula": "left + right", "max": 120},
    }
    schema = Schema.model_validate({"name": "wide", "target": "kind", "columns": columns})
    (records,) = [one for one, _ in sample_where(mixture(schema), Conditions(schema, ["left >= 60"]), 200, 3)]
    table = Codec(schema).decode(records)
    assert min(table["left"].to_pylist()) >= 60 and max(table["sum"].to_pylist()) <= 120
