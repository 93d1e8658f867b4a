"""Trees of tables beside real ones: every flat table, and how many rows a parent has."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpmodels.audit.made import firm
from dpmodels.codec.flat import split
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.comparison.report import Options, write_report
from dpmodels.comparison.trees import compare_trees, evaluate_tree
from dpmodels.errors import DataError
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.privacy import Sensitive
from tests.kit.errors import refused
from tests.kit.support import run_cli

TREE = firm.make_schema()
REAL = [firm.make_records(150), firm.make_records(150, seed=1)]
ONLY = Options(only=("marginals", "columns", "sample rows"))


def fewer(records: TreeRecords) -> TreeRecords:
    """Return units whose purchases have one item at most."""
    first = records.positions("item") == 1
    items = [codes[first] for codes in records.codes["item"]]
    return TreeRecords(
        TREE, {**records.codes, "item": items}, {**records.parents, "item": records.parents["item"][first]}
    )


@pytest.fixture(scope="module")
def facts():
    return evaluate_tree(TREE, Sensitive(REAL), [fewer(each) for each in REAL], ONLY).reveal()


def test_every_flat_table_is_compared_and_the_edges_say_how_many_rows_a_parent_has(facts):
    assert list(facts["tables"]) == ["customer", "purchase", "item"] and facts["rows"]["real"] == 300
    edges = {one["table"]: one for one in facts["edges"]}
    assert edges["address"]["total_variation"] == edges["purchase"]["total_variation"] == 0
    counts = np.concatenate([each.counts("item") for each in REAL])
    assert edges["item"]["mean_real"] == pytest.approx(counts.mean(), abs=1e-5)
    assert edges["item"]["mean_synthetic"] == 1 and edges["item"]["total_variation"] == pytest.approx(
        (counts > 1).mean()
    )
    marginals = {name: one["metrics"]["marginals"]["result"] for name, one in facts["tables"].items()}
    assert marginals["customer"]["mean_total_variation_1_way"] == 0
    assert marginals["purchase"]["total_variation_1_way"]["item.rows"] == pytest.approx((counts > 1).mean(), abs=1e-3)
    assert facts["tables"]["item"]["rows"]["synthetic"] == len(counts)


def test_a_table_without_rows_is_skipped_and_costs_no_other(tmp_path):
    empty = [each.take(np.flatnonzero(each.counts("purchase") == 0)) for each in REAL]
    report = evaluate_tree(TREE, Sensitive(REAL), empty, ONLY)
    facts = report.reveal()
    assert list(facts["tables"]) == ["customer"] and facts["metrics"]["item"]["status"] == "skipped"
    target = write_report(report, tmp_path)
    assert json.loads(target.read_text()) == json.loads(json.dumps(facts))
    page = (tmp_path / "internal-report.html").read_text()
    assert "item per purchase" in page and 'href="internal-report-customer.html"' in page
    assert "customer.age" in (tmp_path / "internal-report-customer.html").read_text()


def test_units_that_were_held_out_say_what_is_memorized_table_by_table():
    only = Options(only=("overfitting", "copied rows", "membership inference"))
    fresh, copied = [firm.make_records(150, seed=2)], [firm.make_records(150, seed=3)]
    sides = [
        evaluate_tree(TREE, Sensitive(REAL), made, only, held_out=Sensitive(fresh)).reveal()
        for made in (copied, [REAL[0]])
    ]
    assert [one["rows"]["held_out"] for one in sides] == [150, 150]
    honest, stolen = (one["tables"]["item"]["metrics"]["overfitting"]["result"] for one in sides)
    assert honest["closer_to_training_rows"] < 0.75 < stolen["closer_to_training_rows"]
    assert {name: one["status"] for name, one in sides[0]["tables"]["customer"]["metrics"].items()} == dict.fromkeys(
        only.only, "done"
    )
    with refused(DataError, "rows that were kept from it"):
        evaluate_tree(TREE, Sensitive(REAL), copied, only, held_out=Sensitive([REAL[1]]))


def test_trees_side_by_side_have_a_line_for_each_edge_and_score(facts):
    sides = {"same": Sensitive(REAL), "fewer": Sensitive([fewer(each) for each in REAL])}
    scores = compare_trees(TREE, Sensitive(REAL), sides, ONLY, map).reveal()["scores"]
    lines = {one["score"]: one["tables"] for one in scores}
    assert lines["item per purchase"]["same"] == 0 < lines["item per purchase"]["fewer"]
    assert lines["purchase: total variation, 1-way"]["same"] == 0


def test_compare_reads_folders_of_tables_and_removes_what_it_encoded(tmp_path: Path) -> None:
    made = split(TREE, TreeCodec(TREE).decode(fewer(REAL[0].take(slice(0, 40)))))
    (tmp_path / "hand-off").mkdir()
    (tmp_path / "hand-off" / MANIFEST).write_text("{}")
    real, fresh = firm.make_tables(40), firm.make_tables(40, seed=5)
    for name, tables in (("made", made), ("hand-off/synthetic", made), ("real", real), ("fresh", fresh)):
        (tmp_path / name).mkdir()
        for table, rows in tables.items():
            pq.write_table(rows, tmp_path / name / f"{table}.parquet")
    (tmp_path / "firm.yaml").write_text(firm.SCHEMA_TEXT)
    words = ["--schema", str(tmp_path / "firm.yaml"), "--out", str(tmp_path / "out"), "--real", str(tmp_path / "real")]
    words += ["--test", str(tmp_path / "fresh")]
    code, out, err = run_cli("compare", str(tmp_path / "made"), str(tmp_path / "hand-off"), *words)
    assert code == 0, err
    scores = json.loads((tmp_path / "out" / "comparison.json").read_text())["scores"]
    assert all(one["tables"]["made"] == one["tables"]["hand-off"] for one in scores) and scores
    assert any(one["score"] == "item: closer to training rows" for one in scores)
    assert "item per purchase" in out and "purchase: total variation" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comparison.html",
        "comparison.json",
        "seconds.json",
    ]
