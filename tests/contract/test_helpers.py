"""A computed column with ``keep: drop`` is modeled and checked, and in nothing that is handed over."""

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.authoring.lint import parse
from dpmodels.contract.helpers import without_helpers
from dpmodels.contract.remarks import NOT_HANDED_OVER, as_asked, before_a_charge, is_declared
from dpmodels.gate.suite import suite_for
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.reading.ingest import faults_in
from flows.description import describe
from tasks.run.table_inputs import as_parquet, is_raw
from tests.kit.support import run_cli

REFUNDS = """
name: refunds
constraints: [when amount = 0 then share < 0.5]
columns:
  amount: {type: integer, min: 0, max: 200}
  share: {type: number, min: 0, max: 1, computed: "refunded / max(amount, 1)", keep: drop}
  refunded: {type: derived, formula: "share * amount", round: 2, max: 150}
"""
QUICK = {"steps": 6, "batch_size": 32, "frequencies_per_step": 16, "network": {"hidden_dim": 16}}


@pytest.mark.parametrize(
    ("wrong", "where", "says"),
    [
        (REFUNDS.replace('computed: "refunded / max(amount, 1)", ', ""), "columns.share.keep", "goes with `computed`"),
        (REFUNDS.replace("keep: drop", "keep: regenerate"), "columns.share.keep", "must be 'drop'"),
        (REFUNDS.replace("constraints", "target: share\nconstraints"), "target", "is not handed over"),
    ],
)
def test_only_what_is_computed_and_no_target_is_left_out(wrong: str, where: str, says: str) -> None:
    schema, faults = parse(wrong)
    assert schema is None and [(one.where, says in one.message) for one in faults] == [(where, True)], faults


def test_one_that_nothing_follows_from_is_counted_for_figures_alone_and_said_to_be() -> None:
    schema, faults = parse(REFUNDS.replace("share * amount", "amount - 1"))
    assert schema is not None and not faults
    (remark,) = [one for one in before_a_charge(schema) if "figures alone" in one]
    assert remark.startswith("share, with `keep: drop`")


def test_one_that_a_workload_asks_for_is_said_to_be_counted_for_figures_and_is_no_mistake() -> None:
    text = REFUNDS.replace("share * amount", "amount - 1") + "workload: [{columns: [amount, share]}]\n"
    schema, _ = parse(text)
    assert schema is not None and not any("figures alone" in one for one in before_a_charge(schema))
    (said,) = as_asked(schema.remarks, schema)
    assert said.startswith("column share: counted for figures alone, as the workload asks") and is_declared(said)
    facts = describe([create("nacre", {}, {}).plan(schema, PrivacyBudget(epsilon=1, delta=1e-5))], None)
    assert facts["note"] == said and "caution" not in facts


def test_a_schema_says_it_and_no_other_changes() -> None:
    schema, _ = parse(REFUNDS)
    plain, _ = parse(REFUNDS.replace(", keep: drop", ""))
    assert schema is not None and plain is not None and schema.hash != plain.hash
    assert "keep" not in json.dumps(plain.model_dump(mode="json")) and without_helpers(plain) is plain
    assert parse(schema.to_yaml())[0] == schema
    (said,) = [one for one in schema.remarks if one == NOT_HANDED_OVER.format(name="share")]
    assert is_declared(said) and not any("share" in str(rule) for rule in suite_for(plain, raw=False)[:1])
    assert [str(one) for one in suite_for(without_helpers(schema), raw=False)][:1] == [
        "the columns must be exactly those of the schema, without share"
    ]


def test_a_comparison_computes_it_anew_within_its_bounds(tmp_path: Path) -> None:
    loans = """
name: loans
columns:
  loan: {type: number, min: 0, max: 9, round: 2}
  ratio: {type: number, min: 0.5, max: 1.2, computed: collateral / loan, keep: drop}
  collateral: {type: derived, formula: ratio * loan, round: 2}
"""
    made = pa.table({"loan": [0.33, 0.0, 5.0], "collateral": [0.4, 0.0, 5.0]})  # 0.4 is 1.2 * 0.33, rounded
    pq.write_table(made, tmp_path / "made.parquet")
    schema, _ = parse(loans)
    with as_parquet(tmp_path / "made.parquet", schema, tmp_path) as path:
        assert pq.read_table(path)["ratio"].to_pylist() == [1.2, 0.5, 1.0]
    assert not is_raw(str(tmp_path / "made.parquet"), schema)  # its names do not tell, and nothing says that it is raw


def test_a_hand_off_has_none_in_any_file_and_holds(tmp_path: Path) -> None:
    amount = np.arange(200) % 150
    table = pa.table({"amount": amount, "refunded": np.round(amount * (np.arange(200) % 5) / 4, 2)})
    pq.write_table(table, data := tmp_path / "refunds.parquet")
    (schema := tmp_path / "refunds.yaml").write_text(REFUNDS)
    model = {"method": "pearl", "measurement": {"frequencies": {"count": 32}}, "training": QUICK}
    (config := tmp_path / "config.yaml").write_text(yaml.safe_dump({"model": model}))
    out, home, made = tmp_path / "out", ["--home", tmp_path / "home"], tmp_path / "more.csv"
    words = ["synthesize", data, "--schema", schema, "--config", config, "--epsilon", 1, "--delta", 1e-5, "--open"]
    assert run_cli(*words, *home, "--rows", 100, "--out", out, "--format", "csv", "--no-prefect")[0] == 0
    rows = pq.read_table(out / "synthetic")
    assert rows.column_names == ["amount", "refunded"] and len(set(rows["refunded"].to_pylist())) > 1
    assert (out / "synthetic.csv").read_text().startswith('"amount","refunded"\n')
    contract = yaml.safe_load((out / "contract.odcs.yaml").read_text())["schema"][0]
    assert contract["properties"][1]["logicalTypeOptions"] == {"maximum": 150.0} and "quality" not in contract
    assert "share" not in json.dumps(contract) and verify_hand_off(out).faults == []
    report = json.loads((out / "report.json").read_text())
    assert [one["name"] for one in report["columns"]] == ["amount", "share"]
    note, result = NOT_HANDED_OVER.format(name="share"), nacre.Result(out)
    assert "share" not in report["headline"].split()
    assert "<strong>Note:</strong> Column share: not handed over" in (out / "report.html").read_text()
    assert note in report["cautions"] and note in result.notes and note not in result.warnings
    assert f"notes    {note[:60]}" in repr(result) and "of the rows before it was left out" in result._repr_html_()
    assert f"note: {note}" in " ".join(run_cli("report", result.run, *home)[2].split())
    assert any("then share < 0.5" in one["rule"] for one in report["gate"])  # it held before share was left out
    run = json.loads((out / "manifest.json").read_text())["run"]
    assert run_cli("sample", run, "--rows", 50, "--out", made, *home)[0] == 0
    assert made.read_text().startswith('"amount","refunded"\n')
    assert run_cli("validate", out)[0] == 0
    assert run_cli("validate", made, "--schema", schema, "--synthetic")[0] == 0
    pq.write_table(rows.append_column("share", rows["refunded"]), out / "synthetic" / "part-00000.parquet")
    assert any("share" not in one and "part-00000" in one for one in verify_hand_off(out).faults)


def test_a_table_whose_amount_is_text_is_refused_by_that_column(tmp_path: Path) -> None:
    schema, _ = parse(REFUNDS)
    assert schema is not None
    pq.write_table(pa.table({"amount": ["1", "2"], "refunded": [0.5, 0.0]}), tmp_path / "t.parquet")
    (fault,) = faults_in(str(tmp_path / "t.parquet"), schema, 10)
    assert fault.startswith("column amount: must hold numbers") and "holds text" in fault


def test_a_draft_takes_a_share_that_is_dropped_beside_what_follows_from_it_in_any_order() -> None:
    share = {"type": "number", "min": 0, "max": 1, "round": 4, "computed": "b / max(a, 0.01)", "keep": "drop"}
    given = {"a": "number:0:10", "b": {"type": "derived", "formula": "s * a", "round": 2}, "s": share}
    names = pa.table({"a": [1.0], "b": [1.0]})
    for order in permutations(given):
        text = nacre.draft_schema(names, name="x", types={name: given[name] for name in order})
        columns = yaml.safe_load(text)["columns"]
        assert columns["s"]["keep"] == "drop" and columns["b"]["formula"] == "s * a"
    alone = nacre.draft_schema(names, name="x", types={"a": "number:0:10", "b": "number:0:9", "s": share})
    assert not parse(str(alone))[1]
