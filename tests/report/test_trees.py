"""What a report says of a tree: every table's columns, in units, and whether the units stand out of the noise."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.audit.desks import measured
from dpmodels.audit.made import firm
from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.methods.quick import QUICK
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from dpmodels.report.derived.shares import derived_facts
from dpmodels.report.fidelity import Measured
from dpmodels.report.report import summarise
from dpmodels.report.trees import TreeTally, facts_of_tables

TREE = firm.make_schema()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the facts of a report on units of which none has an item, so that all said of items is noise."""
    real = firm.make_records(600)
    empty = {name: codes if name != "item" else [each[:0] for each in codes] for name, codes in real.codes.items()}
    records = type(real)(TREE, empty, {**real.parents, "item": real.parents["item"][:0]})
    system = create("nacre-tree", QUICK["nacre-tree"].measurement, QUICK["nacre-tree"].training)
    line = system.plan(TREE, PrivacyBudget(epsilon=30, delta=1e-5, unit=TREE.unit))
    release, _ = measured(system, tmp_path_factory.mktemp("report") / "run", line, records)
    drawn = list(system.fit(release, Craft(seed=0)).sample(600, seed=0))
    of_release = Measured.of(release.value)
    tally = TreeTally.of(of_release)
    for each in drawn:
        tally.add_units(each)
    facts = summarise(of_release, tally, drawn, [], "0" * 64)
    return facts | facts_of_tables(of_release, drawn, tally), drawn, of_release


def test_the_columns_of_all_tables_are_described_and_their_shares_add_up(report):
    facts, *_ = report
    assert [one["name"] for one in facts["columns"]] == list(TREE.overview.modelled)
    for one in facts["columns"]:
        assert one["name"].startswith("item.") or sum(one["synthetic"]) == pytest.approx(1, abs=1e-6), one["name"]


def test_shares_of_rows_far_below_add_up_whatever_a_batch_of_them_weighs(report):
    tally, real = TreeTally.of(report[2]), firm.make_records(20)
    for unit in range(len(real)):  # items of one purchase of three weigh a third together
        tally.add_units(real.take([unit]))
    for one in facts_of_tables(report[2], [], tally)["columns"]:
        assert sum(one["synthetic"]) == pytest.approx(1, abs=1e-6), one["name"]


def test_numbers_are_those_of_units_whatever_rows_they_have(report):
    facts, drawn, _ = report
    (purchases,) = [one for one in facts["columns"] if one["name"] == "purchase.rows"]
    counts = drawn[0].counts("purchase")
    assert facts["synthetic_rows"] == 600 == len(counts)
    assert purchases["synthetic"][0] == pytest.approx((counts == 0).mean(), abs=1e-6)


def test_a_table_of_mere_noise_does_not_drown_the_units(report):
    facts, *_ = report
    signals = {one["look"]: one["signal"] for one in facts["fit"]}
    assert signals["item: one- and two-way"] < 1.2 < signals["customer: one- and two-way"]
    assert "drowned" not in facts


def test_derived_columns_of_a_tree_are_described_by_the_columns_of_their_table():
    schema, faults = parse(
        "name: clinic\ntables:\n  person:\n    key: id\n    columns:\n      id: {type: identifier, keep: regenerate}\n"
        "      age: {type: integer, min: 18, max: 90}\n      born: {type: derived, formula: 2024 - age}\n"
        "  visit:\n    parent: person\n    parent_key: id\n    most: 3\n    columns:\n"
        "      id: {type: identifier, keep: regenerate}\n      age: {type: integer, min: 0, max: 300}\n"
        "      tens: {type: derived, formula: age // 100}\n"
    )
    assert schema is not None, faults
    for table, name, of, labels in (("person", "born", "person.age", "19"), ("visit", "tens", "visit.age", "0")):
        codec = Codec(schema.flat_of(table))
        records = codec.encode(
            pa.table(
                {
                    key: np.arange(int(one.low), int(one.low) + 50).clip(max=int(one.high))
                    for key, one in codec.columns.items()
                }
            )
        )
        derived = schema.schema_of(table).derived
        (facts,) = derived_facts(derived, codec, records, [], np.ones(50), prefix=f"{table}.")
        assert facts["name"] == f"{table}.{name}" and facts["follows"] == [of]
        assert facts["labels"][0].startswith(labels) and sum(facts["synthetic"]) == pytest.approx(1)
