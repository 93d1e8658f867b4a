"""From a draft to a synthetic table in one account; refused before a row is read; killed anywhere, charged once."""

import json
import signal
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.audit.made import firm
from dpmodels.authoring.lint import parse
from dpmodels.errors import ContentCharged
from dpmodels.ledger.ledger import Ledger
from tests.kit.children import ends_at
from tests.kit.drafts import MARKS, PLANTED, open_account, words, write_draft
from tests.kit.support import charges, run_cli, synthesize_words

pytestmark = pytest.mark.processes


def test_from_a_draft_to_a_synthetic_table_in_one_account(tmp_path):
    asked = write_draft(tmp_path)
    open_account(tmp_path)
    code, out, err = run_cli(*asked, "--out", tmp_path / "clinic.yaml.new")
    assert code == 0 and out == "" and "charged once" in err, err
    assert "column age: beyond min and max may lie 0.05% of the rows at each end" in err
    written = (tmp_path / "clinic.yaml.new").read_text()
    schema, faults = parse(written)
    assert schema is not None, faults
    assert set(schema.columns["ward"].values) == {"north", "south", "west", "other"}
    assert PLANTED not in written + err and "epsilon=1.0, delta=1e-06" in schema.sources[0]
    again = run_cli(*asked)
    assert again[1] == written and "for nothing" in again[2]
    (tmp_path / "clinic.yaml").write_text(written)
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 0, err
    code, out, _ = run_cli("ledger", "show", "clinic", "--home", tmp_path / "home", "--json")
    both = json.loads(out)["charged"]
    assert code == 0 and [one["mechanism"] for one in both] == ["discovery", "pearl"]
    assert "by a threshold, delta=5e-07" in both[0]["charged"]
    assert [one["state"] for one in both] == ["committed", "committed"]
    assert run_cli("ledger", "verify", "--home", tmp_path / "home")[0] == 0
    code, out, _ = run_cli("runs", "--home", tmp_path / "home", "--json")
    assert sorted(run["state"] for run in json.loads(out)) == ["discovered", "handed over"]
    more = yaml.safe_load(written)
    more["columns"]["age"] |= MARKS["age"]
    (tmp_path / "draft.yaml").write_text(yaml.safe_dump(more, sort_keys=False))
    code, out, err = run_cli(*asked)
    assert code == 0 and "was also discovered" not in " ".join(err.split()), err
    assert len(parse(out)[0].discovered) == 2


def test_it_needs_an_account_with_room_and_reads_nothing_before(tmp_path):
    asked = write_draft(tmp_path, rows=60)
    (tmp_path / "clinic.parquet").write_bytes(b"no table at all")
    assert "nacre ledger open clinic --schema" in run_cli(*asked)[2]
    open_account(tmp_path, epsilon=0.5)
    code, _, err = run_cli(*asked)
    assert code == 1 and "refuses the charge: requested epsilon=1" in err
    code, _, err = run_cli(*asked, "--epsilon", 0.1)
    assert code == 1 and "is damaged or not what its name says" in err  # only now was the file looked at
    assert charges(tmp_path / "home") == []


def test_files_of_which_one_writes_numbers_as_text_are_refused_before_the_charge(tmp_path):
    asked = write_draft(tmp_path, rows=60)
    open_account(tmp_path)
    (whole := tmp_path / "clinic.parquet").rename(moved := tmp_path / "moved.parquet")
    table = pq.read_table(moved)
    whole.mkdir()
    pq.write_table(table, whole / "a.parquet")
    ages = table["age"].cast(pa.string())
    pq.write_table(table.set_column(table.column_names.index("age"), "age", ages), whole / "b.parquet")
    code, _, err = run_cli(*asked)
    assert code == 1 and "numbers in some files and text in others" in " ".join(err.split()), err
    assert charges(tmp_path / "home") == []


def test_a_delta_that_thresholds_used_up_is_named_as_the_cause(tmp_path):
    asked = write_draft(tmp_path, rows=60)
    open_account(tmp_path, delta=1e-6)
    for epsilon in (0.1, 0.11):
        assert run_cli(*asked, "--epsilon", epsilon)[0] == 0
    code, _, err = run_cli(*asked, "--epsilon", 0.12)
    assert code == 1 and "its delta is the cause" in err


COUNTING = ("dpmodels.methods.tables.thresholded_counts", "transform_key_counts")


def test_a_charge_that_was_given_back_is_made_anew_by_another_run(tmp_path):
    asked = write_draft(tmp_path, rows=400)
    open_account(tmp_path)
    assert ends_at(*COUNTING, True, *asked) == -signal.SIGKILL
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    (entry,) = [entry for entry in ledger.entries() if entry.kind == "reserve"]
    (run,) = (tmp_path / "home" / "released").iterdir()
    assert "nacre schema discover" in run_cli("resume", run.name, "--home", tmp_path / "home")[2]
    ledger.void(entry.charge, "the machine went down")
    code, _, err = run_cli(*asked)
    assert code == 0 and "-2, epsilon=1.0" in err, err


def test_a_draft_is_refused_by_every_other_command(tmp_path):
    write_draft(tmp_path, rows=60)
    asked = synthesize_words(tmp_path, schema=tmp_path / "draft.yaml")
    lint = ["schema", "lint", tmp_path / "draft.yaml"]
    for command in (asked, ["plan", *asked[1:]], lint):
        code, _, err = run_cli(*command)
        assert code == 1 and "waits for a charged release: nacre schema discover" in err, command


def test_a_file_that_cannot_be_written_is_found_before_the_charge(tmp_path):
    asked = write_draft(tmp_path, rows=60)
    open_account(tmp_path)
    assert "not overwritten" in run_cli(*asked, "--out", tmp_path / "draft.yaml")[2]
    assert charges(tmp_path / "home") == []


def test_values_that_cannot_be_read_are_in_no_message(tmp_path):
    asked = write_draft(tmp_path, rows=400)
    table = pq.read_table(tmp_path / "clinic.parquet")
    ages = pa.array([f"{PLANTED} {row}" for row in range(table.num_rows)])
    pq.write_table(table.set_column(table.schema.get_field_index("age"), "age", ages), tmp_path / "clinic.parquet")
    open_account(tmp_path)
    code, out, err = run_cli(*asked)
    assert code == 0 and "hold what its type does not" in err
    is_found = "was found, and cells of" in err  # in one of 1,000 noise alone makes a cell seem to hold rows
    assert ("TODO" in out) != is_found
    assert PLANTED not in out + err


def test_python_takes_rows_in_memory_and_leaves_none(tmp_path):
    write_draft(tmp_path)
    open_account(tmp_path)
    frame, draft = pq.read_table(tmp_path / "clinic.parquet").to_pandas(), (tmp_path / "draft.yaml").read_text()
    home = tmp_path / "home"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = nacre.discover(frame, draft, epsilon=1, delta=1e-6, home=home)
    assert {one.category for one in caught} == {nacre.ReleaseWarning} and {one.filename for one in caught} == {__file__}
    least, lost = (str(one.message) for one in caught)
    terminal = " ".join(run_cli(*words(tmp_path))[2].split())
    assert least.startswith("stands out: only with more than about") and least in terminal
    assert "column age: beyond min and max may lie" in lost
    assert all(line in terminal for line in lost.split("\n"))
    assert set(nacre.load_schema(text).columns["ward"].values) == {"north", "south", "west", "other"}
    with pytest.warns(nacre.ReleaseWarning):
        assert text == nacre.discover(frame[:10], draft, epsilon=1, delta=1e-6, home=home)
    assert [path for path in home.rglob("*given*")] == []


def test_a_filter_that_makes_the_first_warning_an_error_stops_python_before_the_charge(tmp_path):
    write_draft(tmp_path, rows=60)
    open_account(tmp_path)
    frame, draft = pq.read_table(tmp_path / "clinic.parquet").to_pandas(), (tmp_path / "draft.yaml").read_text()
    with pytest.raises(nacre.ReleaseWarning, match=r"^stands out: "):
        nacre.discover(frame, draft, epsilon=1, delta=1e-6, home=tmp_path / "home")
    assert charges(tmp_path / "home") == []


def test_of_a_user_no_more_rows_are_counted_than_the_schema_says(tmp_path):
    rows = pa.table(
        {"who": ["a"] * 5000 + [f"u{row}" for row in range(5000)], "ward": ["only"] * 5000 + ["all"] * 5000}
    )
    pq.write_table(rows, tmp_path / "clinic.parquet")
    draft = "name: clinic\nunit: {user: who, max_rows: 2}\ncolumns:\n  who: {type: identifier}\n"
    (tmp_path / "draft.yaml").write_text(draft + "  ward: {type: categorical, values: discover}\n")
    open_account(tmp_path)
    code, out, err = run_cli(*words(tmp_path))
    assert code == 0, err
    assert parse(out)[0].columns["ward"].values == ("all", "other")


def test_rows_that_were_discovered_are_no_second_budget_in_another_order_format_or_column(tmp_path):
    asked = write_draft(tmp_path)
    open_account(tmp_path)
    assert run_cli(*asked)[0] == 0
    text = (tmp_path / "draft.yaml").read_text().replace('"name": "clinic"', '"name": "visits"')
    (tmp_path / "draft.yaml").write_text(text)
    cap = ["--epsilon", 5, "--delta", 1e-5, "--home", tmp_path / "home"]
    assert run_cli("ledger", "open", "visits", "--schema", tmp_path / "draft.yaml", *cap)[0] == 0
    rows = pq.read_table(tmp_path / "clinic.parquet")
    backwards = rows.take(pa.array(range(len(rows) - 1, -1, -1))).select(rows.column_names[::-1])
    pq.write_table(backwards, tmp_path / "clinic.parquet")
    code, _, err = run_cli(*asked)
    assert code == 1 and "has the content of clinic" in " ".join(err.split()), err
    frame = backwards.to_pandas()
    with pytest.warns(nacre.ReleaseWarning), pytest.raises(ContentCharged):
        nacre.discover(frame, tmp_path / "draft.yaml", epsilon=1, delta=1e-6, home=tmp_path / "home")
    frame.to_csv(tmp_path / "clinic.csv", index=False)
    assert run_cli("schema", "discover", tmp_path / "clinic.csv", *asked[3:])[0] == 1
    assert len(charges(tmp_path / "home")) == 4  # of the one charge
    pq.write_table(backwards.slice(1), tmp_path / "clinic.parquet")  # other rows are another table
    assert run_cli(*asked)[0] == 0


def write_firm(folder):
    """Write the firm's tables and a draft; return the words of a discovery."""
    (folder / "firm").mkdir()
    for name, table in firm.make_tables(2000).items():
        pq.write_table(table, folder / "firm" / f"{name}.parquet")
    draft = firm.SCHEMA_TEXT.replace("values: [books, games, tools]", "values: discover").replace("89", "discover")
    (folder / "draft.yaml").write_text(draft)
    asked = words(folder)
    opened = ["--schema", folder / "draft.yaml", "--epsilon", 5, "--delta", 1e-4, "--home", folder / "home"]
    assert run_cli("ledger", "open", "firm", *opened)[0] == 0
    return [*asked[:2], folder / "firm", *asked[3:]]


def test_a_tree_is_completed_by_one_charge_and_its_hand_off_has_the_price_of_both(tmp_path):
    asked = write_firm(tmp_path)
    code, _, err = run_cli(*asked, "--out", tmp_path / "firm.yaml")
    assert code == 0 and "charged once" in err, err
    tree, faults = parse((tmp_path / "firm.yaml").read_text())
    assert tree is not None and tree.kind == "tree", faults
    assert set(tree.tables["purchase"].columns["kind"].values) == {"books", "games", "tools", "other"}
    with pytest.warns(nacre.ReleaseWarning):  # the same plan, for nothing
        text = nacre.discover(
            firm.make_tables(2000), tmp_path / "draft.yaml", epsilon=1, delta=1e-6, home=tmp_path / "home"
        )
    assert text == (tmp_path / "firm.yaml").read_text()
    quick = {"measurement": {"fine_cells": 16}, "training": {"components": 16, "directions": 2, "steps": 5}}
    made = nacre.synthesize(
        tmp_path / "firm", tmp_path / "firm.yaml", epsilon=2, delta=1e-5, rows=300, home=tmp_path / "home", **quick
    )
    assert made.verify().faults == []
    manifest = json.loads((made.folder / "manifest.json").read_text())
    (line,) = manifest["discoveries"]
    assert line["ledger"]["account"] == "firm" and float(manifest["total_spent"]["epsilon"]) > 2
    (age,) = [one for one in json.loads((made.folder / "report.json").read_text())["columns"] if "age" in one["name"]]
    assert age["discovered_bounds"] == ["max"] and "discovered" in age["warning"]


def test_a_tree_that_does_not_join_is_refused_before_the_charge(tmp_path):
    asked = write_firm(tmp_path)
    items = pq.read_table(place := tmp_path / "firm" / "item.parquet")
    lost = pa.table({"purchase": [PLANTED], "price": [1.0]}).cast(items.schema)
    pq.write_table(pa.concat_tables([items, lost]), place)
    code, _, err = run_cli(*asked)
    assert code == 1 and "column item.purchase: names a row that its parent's table lacks" in " ".join(err.split())
    assert PLANTED not in err and charges(tmp_path / "home") == []
    code, _, err = run_cli(*asked[:2], "sqlite:///firm.db", *asked[3:], "--query", "select 1")
    assert code == 1 and "a tree of tables is read from files" in " ".join(err.split()), err


def test_a_tree_whose_discovery_was_killed_is_charged_once(tmp_path):
    asked = write_firm(tmp_path)
    assert (
        ends_at("dpmodels.methods.tables.thresholded_counts", "transform_key_counts", False, *asked) == -signal.SIGKILL
    )
    code, _, err = run_cli(*asked)
    assert code == 0 and [one for one in charges(tmp_path / "home")].count("reserve") == 1, err
