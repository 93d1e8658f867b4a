"""A dictionary of frames in, one of frames out: trees of tables from Python, and nothing private on the way."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.audit.made import firm
from dpmodels.errors import DataError, InvalidArgument, Unsuitable
from dpmodels.hand_off.verify import verify_hand_off
from tasks.run.database_file import write_database
from tasks.stages.validate import check_hand_off
from tests.kit.errors import refused, shown
from tests.kit.manifests import forged, rewritten
from tests.kit.support import SCHEMA_TEXT, charges, make_table, run_cli
from tests.releases.make_golden import GOLDEN

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")  # chance decides whether so few rows stand out
ROOT = Path(__file__).parents[2]
PUBLIC_PART = "synthetic/branch/part-00000.parquet"
PLANTED = "zQ7-unmistakable-Xw9"
QUICK = {
    "measurement": {"fine_cells": 16},
    "training": {"components": 16, "directions": 2, "steps": 5},
}
ASKED: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, **QUICK}
TABLES = firm.make_tables(40)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def frames() -> dict[str, Any]:
    """Return the firm's tables, each from another library."""
    forms = (pa.Table.to_pandas, pl.from_arrow, lambda table: table, pa.Table.to_reader)
    return {name: form(table) for (name, table), form in zip(TABLES.items(), forms, strict=True)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> nacre.Result:
    """A hand-off of a tree, for the tests that change nothing."""
    return nacre.synthesize(frames(), firm.SCHEMA_TEXT, rows=30, home=tmp_path_factory.mktemp("home"), **ASKED)


def rows_left(home: Path) -> list[str]:
    """List what is left of rows that were given in memory."""
    return sorted(path.name for path in home.rglob("*") if "given" in str(path) or path.name.startswith(".part-"))


def joins(tables: Mapping[str, pd.DataFrame]) -> bool:
    """Tell whether every row of a firm's tables names a row of its parent's."""
    customers, numbers = tables["customer"]["customer"], tables["purchase"]["number"]
    below = [tables["address"]["customer"], tables["purchase"]["customer"]]
    is_once = customers.is_unique and numbers.is_unique
    return bool(
        is_once and all(key.isin(customers).all() for key in below) and tables["item"].purchase.isin(numbers).all()
    )


def test_a_dictionary_of_frames_becomes_another_for_one_charge(finished: nacre.Result) -> None:
    home = finished.folder.parents[1]
    assert list(finished.tables) == ["customer", "address", "purchase", "item"]
    assert {name: list(table) for name, table in finished.tables.items()} == {
        name: list(table.column_names) for name, table in TABLES.items()
    }
    assert len(finished.tables["customer"]) == 30 and joins(finished.tables)
    assert charges(home) == ["reserve", "draw", "seal", "commit"]
    assert finished.verify().faults == [] and rows_left(home) == []
    assert "30 synthetic units" in repr(finished)


def test_keys_that_a_pattern_runs_out_of_are_refused_before_the_charge(tmp_path: Path) -> None:
    short = firm.SCHEMA_TEXT.replace("P[0-9]{7}", "P[0-9]")
    with refused(InvalidArgument, "makes 10 identifiers", name="rows"):
        nacre.synthesize(TABLES, short, rows=30, **ASKED)
    assert not (tmp_path / ".nacre" / "ledger.sqlite").exists()


def test_scores_on_the_real_rows_are_a_charge_of_their_own_and_are_shown(tmp_path: Path) -> None:
    made = nacre.synthesize(TABLES, firm.SCHEMA_TEXT + "target: purchase.kind\n", report_epsilon=1, rows=30, **ASKED)
    scores = json.loads((made.folder / "report.json").read_text())["charged"]
    assert charges(tmp_path / ".nacre") == ["reserve", "reserve", "draw", "seal", "commit", "draw", "seal", "commit"]
    assert scores["status"] == "measured" and scores["target"] == "purchase.kind" and len(scores["classifiers"]) == 2
    assert "gradient-boosted trees" in (made.folder / "report.html").read_text()
    assert made.verify().faults == []
    other = forged(made.folder, tmp_path / "other", lambda _, report, __: report["charged"].update(target="item.price"))
    assert any("charged" in fault for fault in verify_hand_off(other).faults)


def test_a_tree_has_no_single_table_and_a_table_is_one_of_one(finished: nacre.Result) -> None:
    with refused(Unsuitable, r"4 tables .* `tables`"):
        _ = finished.table
    one = nacre.Result(GOLDEN / "FORMAT-1" / "hand-off")
    assert list(one.tables) == [one.manifest.data_set] and one.tables[one.manifest.data_set] is one.table


def test_what_a_hand_off_has_not_is_answered_with_what_it_has(finished: nacre.Result) -> None:
    one = nacre.Result(GOLDEN / "FORMAT-1" / "hand-off")
    given = ROOT / "tests" / "hand_off" / "golden"
    clients, embedded = (nacre.Result(given / name) for name in ("FORMAT-4/federation", "FORMAT-3/embedded"))
    users = nacre.Result(given / "FORMAT-11" / "contract-users")
    for made, names, says in (
        (one, ("parents", "classifier"), "^the hand-off is one table: read it by `table`$"),
        (finished, ("parents", "classifier"), r"4 tables .* `tables`$"),
        (embedded, ("parents", "classifier"), "embeddings of documents: read them by `table`$"),
        (clients, ("parents", "table"), "^the hand-off is a classifier: read it by `classifier`$"),
        (users, ("classifier",), "users and their rows: read them by `parents` and `table`$"),
    ):
        for name in names:
            with refused(Unsuitable, says):
                getattr(made, name)


def test_a_folder_of_files_is_a_tree_too_and_a_plan_needs_no_data(tmp_path: Path) -> None:
    (tmp_path / "firm").mkdir()
    for name, table in TABLES.items():
        pq.write_table(table, tmp_path / "firm" / f"{name}.parquet")
    planned = nacre.plan(firm.SCHEMA_TEXT, 2, 1e-5, **QUICK)
    assert planned.accepted is None and "noise_multiplier=" in planned.text
    made = nacre.synthesize("firm", firm.SCHEMA_TEXT, **ASKED)
    assert joins(made.tables) and rows_left(tmp_path) == []


def test_more_units_are_drawn_as_a_dictionary_for_nothing(finished: nacre.Result) -> None:
    home = finished.folder.parents[1]
    drawn = nacre.sample(finished, 12, home=home)
    assert isinstance(drawn, dict) and list(drawn) == list(TABLES) and len(drawn["customer"]) == 12 and joins(drawn)
    assert list(drawn["item"]) == list(finished.tables["item"])
    assert charges(home) == ["reserve", "draw", "seal", "commit"]


def test_a_database_holds_the_tables_and_their_keys(finished: nacre.Result, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs pip install duckdb")
    finished.export("firm.duckdb")
    with duckdb.connect("firm.duckdb", read_only=True) as database:
        for name, frame in finished.tables.items():
            rows = database.execute(f"SELECT * FROM {name}").fetchall()
            assert len(rows) == len(frame) and [one[0] for one in database.description] == list(frame)
        keys = database.execute("SELECT table_name, constraint_text FROM duckdb_constraints()").fetchall()
        comments = database.execute("SELECT comment FROM duckdb_tables()").fetchall()
        assert len(comments) == len(TABLES) and all('"manifestSha256"' in comment for (comment,) in comments)
        joined = database.execute(
            "SELECT count(*) FROM item JOIN purchase ON purchase = number JOIN customer USING (customer)"
        )
        assert joined.fetchone() == (len(finished.tables["item"]),)
    texts = {(name, text) for name, text in keys if "KEY" in text}
    assert texts == {
        ("customer", "PRIMARY KEY(customer)"),
        ("purchase", "PRIMARY KEY(number)"),
        ("address", "FOREIGN KEY (customer) REFERENCES customer(customer)"),
        ("purchase", "FOREIGN KEY (customer) REFERENCES customer(customer)"),
        ("item", "FOREIGN KEY (purchase) REFERENCES purchase(number)"),
    }
    assert [path.name for path in tmp_path.iterdir() if "firm" in path.name or path.name[0] == "."] == ["firm.duckdb"]


@pytest.mark.parametrize("to", ["firm.csv", "firm", "s3://bucket/firm.duckdb"])
def test_several_tables_go_to_a_database_alone(finished: nacre.Result, tmp_path: Path, to: str) -> None:
    with refused(InvalidArgument, name="to"):
        finished.export(to)
    assert not list(tmp_path.iterdir())


def test_a_database_that_breaks_its_keys_is_none_and_quotes_no_row(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="needs pip install duckdb")
    tree = firm.make_schema()
    rows = {name: pa.table({column: ["7"] * 2 for column in tree.handed_over(name).columns}) for name in tree.tables}
    with refused(DataError, "table customer cannot be written", column="") as caught:
        write_database(tree, lambda name: iter(rows[name].to_batches()), tmp_path / "firm.duckdb", {})
    assert "7" not in str(caught.value) and caught.value.__context__ is None


def test_a_run_that_was_cut_off_goes_on_without_the_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("flows.synthesize.ingest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        nacre.synthesize(frames(), firm.SCHEMA_TEXT, home="home", **ASKED)
    (folder,) = (tmp_path / "home").glob("sensitive/*/given")
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == sorted(f"{name}.parquet" for name in TABLES)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600} and folder.stat().st_mode & 0o777 == 0o700
    code, out, err = run_cli("resume", folder.parent.name, "--home", "home", "--no-prefect")
    assert code == 0 and "synthetic" in out, err
    assert rows_left(tmp_path) == []


def test_tables_that_were_half_written_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = pq.ParquetWriter.write_batch, []

    def once(writer: Any, batch: Any) -> None:
        written.append(batch)
        if len(written) > 2:
            raise KeyboardInterrupt
        write(writer, batch)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pyarrow.parquet.ParquetWriter.write_batch", once)
        nacre.synthesize(frames(), firm.SCHEMA_TEXT, **ASKED)
    assert len(written) == 3 and rows_left(tmp_path / ".nacre") == []


def test_a_table_that_fails_on_the_way_is_not_quoted_and_leaves_none_of_the_others(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield TABLES["item"].to_batches()[0]
        raise ValueError(PLANTED)

    item = pa.RecordBatchReader.from_batches(TABLES["item"].schema, batches())
    with refused(DataError, "cannot be written as Parquet", column="") as caught:
        nacre.synthesize({**frames(), "item": item}, firm.SCHEMA_TEXT, **ASKED)
    assert PLANTED not in shown(caught.value) and rows_left(tmp_path) == []
    assert charges(tmp_path / ".nacre") == []


class Hostile(Mapping[str, Any]):
    """A mapping that quotes a row when it is asked for a table."""

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError(PLANTED)

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)


def without(name: str) -> dict[str, Any]:
    return {table: frame for table, frame in frames().items() if table != name}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lambda: without("item"), "the data lacks table item of the schema; give a frame for each of its tables"),
        (lambda: {}, "the data lacks tables customer, address, purchase, item of the schema"),
        (
            lambda: {**frames(), PLANTED: 1},
            r"the data has 1 table\(s\) that the schema lacks, whose tables are customer",
        ),
        (lambda: dict[Any, Any](frames()) | {7: 1}, r"the data has 1 table\(s\) that the schema lacks"),
        (lambda: {**frames(), "item": [PLANTED]}, "table item must be a pandas DataFrame, .* none of them: list"),
        (lambda: {**frames(), "item": "item.parquet"}, "table item must be a pandas DataFrame, .*: str"),
        (
            lambda: {**frames(), "item": pd.DataFrame({"price": [1, PLANTED]})},
            "table item cannot be read as a table: column price mixes types",
        ),
        (lambda: Hostile(), "the tables cannot be read: the dictionary fails when it is asked for them"),
        (lambda: make_table(5).to_pandas(), "the schema has 4 tables: give a dictionary with a frame for each"),
        (lambda: [PLANTED], "the schema has 4 tables: give a dictionary with a frame for each"),
    ],
)
def test_what_is_wrong_with_the_tables_is_one_sentence_and_leaves_nothing(tmp_path: Path, data: Any, said: str) -> None:
    with refused(DataError, said, column="") as caught:
        nacre.synthesize(data(), firm.SCHEMA_TEXT, **ASKED)
    assert shown(caught.value) and PLANTED not in shown(caught.value) and "\n" not in str(caught.value)
    assert rows_left(tmp_path) == [] and not list(tmp_path.glob(".nacre/control/2*"))


def test_a_dictionary_is_no_single_table(tmp_path: Path) -> None:
    with refused(DataError, "the schema has one table: give one frame, and no dictionary", column=""):
        nacre.synthesize({"clinic": make_table(5).to_pandas()}, SCHEMA_TEXT, epsilon=1, delta=1e-5)
    assert rows_left(tmp_path) == []


def test_a_refusal_by_the_ledger_leaves_no_table_on_the_disk(finished: nacre.Result) -> None:
    home = finished.folder.parents[1]
    before = sorted(home.glob("sensitive/**/*"))
    with pytest.raises(nacre.NacreError, match="account firm"):
        nacre.synthesize(frames(), firm.SCHEMA_TEXT, home=home, **{**ASKED, "epsilon": 3})
    assert sorted(home.glob("sensitive/**/*")) == before


def called_by_text(rows: pa.Table) -> pd.DataFrame:
    """Return a table in which customers are called by text."""
    frame: pd.DataFrame = rows.to_pandas()
    return frame.assign(customer=frame["customer"].astype(str)) if "customer" in frame else frame


@pytest.mark.parametrize(
    ("column", "names", "said"),
    [
        ("kind", "", "column kind"),
        ("customer", "purchase.customer", "of table purchase names a row that its parent's table lacks"),
    ],
)
def test_rows_that_do_not_fit_are_refused_removed_and_never_shown(
    tmp_path: Path, column: str, names: str, said: str
) -> None:
    given = MappingProxyType({name: called_by_text(rows) for name, rows in TABLES.items()})
    given["purchase"].loc[0, column] = PLANTED
    with refused(DataError, said, column=names) as caught:
        nacre.synthesize(given, firm.SCHEMA_TEXT, **ASKED)
    assert PLANTED not in shown(caught.value) and charges(tmp_path / ".nacre") == []
    assert rows_left(tmp_path) == []
    assert not [path for path in (tmp_path / ".nacre" / "control").iterdir() if path.is_dir()]


def test_public_frames_are_part_of_the_schema_and_lie_beside_the_synthetic_tables(tmp_path: Path) -> None:
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    content["public"] = {
        "branch": {"key": "code", "columns": {"code": {"type": "identifier"}, "big": {"type": "boolean"}}}
    }
    content["tables"]["customer"]["columns"]["branch"] = {"type": "identifier"}
    content["tables"]["customer"]["refers"] = [{"to": "branch", "by": "branch"}]
    branch = pd.DataFrame({"code": ["b", "a"], "big": [True, False]})
    customers = TABLES["customer"].to_pandas().assign(branch="a")
    given = {**frames(), "customer": customers, "branch": branch}
    made = nacre.synthesize(given, content, rows=20, **ASKED)
    assert list(made.tables) == ["branch", *TABLES] and made.tables["branch"].equals(branch)
    assert made.tables["customer"]["branch"].isin(["a", "b"]).all() and joins(made.tables)
    assert made.verify().faults == [] and rows_left(tmp_path) == []
    more = nacre.sample(made, 5)
    assert isinstance(more, dict) and more["branch"].equals(branch) and len(more["customer"]) == 5
    for rows, fault in ((branch.head(1), "public table branch has not the 2 rows"), (branch.assign(big=False), "")):
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), changed := tmp_path / "changed.parquet")
        other = rewritten(made.folder, tmp_path / f"other-{len(rows)}", PUBLIC_PART, lambda _: changed.read_bytes())
        faults = verify_hand_off(other).faults
        assert [one.startswith(fault) for one in faults] == [True] * bool(fault)
        with refused(DataError, "table branch is public, and has not the rows that the schema says"):
            check_hand_off(other, None)
    customers.loc[0, "branch"] = PLANTED
    with refused(DataError, "names a row that public table branch lacks", column="customer.branch") as caught:
        nacre.synthesize({**given, "customer": customers}, content, home="other", **ASKED)
    assert PLANTED not in shown(caught.value) and charges(tmp_path / "other") == []


LEAF = """
  visit:
    parent: account
    most: 3
    refers: [{to: district, by: district_id, nullable: true}]
    columns: {account_id: {type: identifier}, district_id: {type: identifier}}
"""


@pytest.mark.parametrize("below", ["", LEAF], ids=["as on the page", "with a table below"])
def test_the_example_of_public_tables_is_made_though_all_its_columns_are_keys(tmp_path: Path, below: str) -> None:
    (example,) = re.findall(r"```yaml\n(public:.*?)```", (ROOT / "docs" / "tables.md").read_text(), re.DOTALL)
    (tmp_path / "bank.yaml").write_text(f"name: bank\n{example}{below}")
    assert run_cli("schema", "lint", "bank.yaml")[0] == 0
    names, numbers = ["d0", "d1", "d2", "d3"], list(range(60))
    bank = {
        "district": pd.DataFrame({"region": ["north", "south"] * 2, "district_id": names, "inhabitants": [9] * 4}),
        "account": pd.DataFrame({"account_id": numbers, "district_id": names * 15}),
        "visit": pd.DataFrame({"account_id": numbers, "district_id": [None, *names, "d0"] * 10}),
    }
    given = {name: bank[name] for name in bank if below or name != "visit"}
    made = nacre.synthesize(given, tmp_path / "bank.yaml", rows=20, **ASKED)
    assert list(made.tables) == list(given) and made.verify().faults == []
    assert len(made.tables["account"]) == 20 and made.tables["account"]["district_id"].isin(names).all()
    if below:
        assert made.tables["visit"]["account_id"].isin(made.tables["account"]["account_id"]).all()
    assert isinstance(more := nacre.sample(made, 5, home=made.folder.parents[1]), dict) and len(more["account"]) == 5


def test_units_are_drawn_until_so_many_meet_conditions(finished: nacre.Result) -> None:
    home = finished.folder.parents[1]
    drawn = nacre.sample(finished, 7, where=["customer.age >= 30", "customer.age < 80"], home=home)
    assert isinstance(drawn, dict) and len(drawn["customer"]) == 7 and joins(drawn)
    assert drawn["customer"]["age"].between(30, 79).all()
    assert charges(home) == ["reserve", "draw", "seal", "commit"]


@pytest.mark.parametrize("where", ["age > 30", "customer.age > 200", "item.purchase = 3", "customer.age"])
def test_a_condition_that_no_unit_can_meet_is_one_sentence(finished: nacre.Result, where: str) -> None:
    with refused(Unsuitable, where.partition(" ")[0]):
        nacre.sample(finished, 5, where=where, home=finished.folder.parents[1])
