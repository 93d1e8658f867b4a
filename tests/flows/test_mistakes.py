"""Natural mistakes: what is to be mended is told first, and neither a full account nor a taken folder hides it."""

import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.errors import AccountMissing, BudgetExhausted, DataError, InvalidArgument
from dpmodels.ledger.ledger import Ledger
from flows.config import SynthesizeConfig
from flows.planning import MayOpen, make_budget
from flows.settings import placed
from flows.synthesize import carry_out, start
from tests.kit.errors import refused
from tests.kit.kills import only_run
from tests.kit.letters import embed_words, write_letters
from tests.kit.support import SCHEMA_TEXT, charges, make_schema, make_table, run_cli, synthesize_words, write_clinic

ASKED = {"epsilon": 1, "delta": 1e-5, "method": "pearl"}


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a clinic whose only run took the whole cap, and whose hand-off is taken."""
    folder = tmp_path_factory.mktemp("spent")
    write_clinic(folder, rows=60)
    code, _, err = run_cli(*synthesize_words(folder, rows=20))
    assert code == 0, err
    return folder


def payer(folder: Path) -> str:
    """Return the run that took the cap; other runs fit its release again."""
    return next(entry.run for entry in Ledger(folder / "home" / "ledger.sqlite").entries() if entry.run)


def changed(old: str, new: str) -> Callable[[Path], dict[str, object]]:
    """Return what gives a run another schema."""

    def write(folder: Path) -> dict[str, object]:
        assert old in SCHEMA_TEXT
        (folder / "other.yaml").write_text(SCHEMA_TEXT.replace(old, new))
        return {"schema": folder / "other.yaml"}

    return write


def given(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], dict[str, object]]:
    """Return what gives a run another table."""

    def write(folder: Path) -> dict[str, object]:
        pq.write_table(change(make_table(60)), folder / "other.parquet")
        return {"data": folder / "other.parquet"}

    return write


MISTAKES: dict[str, tuple[Callable[[Path], dict[str, object]], str]] = {
    "another name": (changed("ward:", "warden:"), "column warden: is in the schema but not in the data"),
    "a missing column": (given(lambda table: table.drop_columns(["ward"])), "column ward: is in the schema but not"),
    "a wrong type": (given(lambda t: t.set_column(1, "age", t["age"].cast(pa.string()))), "column age: must hold numb"),
    "bounds the wrong way round": (changed("max: 99", "max: -99"), "columns.age"),
    "no such method": (lambda _: {"method": "ctgan"}, "--method=ctgan must be one of"),
    "a negative epsilon": (lambda _: {"target-epsilon": -1}, "--epsilon=-1.0 must lie between 0.001 and 1000"),
    "epsilon and delta swapped": (
        lambda _: {"target-epsilon": 1e-5, "delta": 1},
        "--epsilon=1e-05 must lie between 0.001 and 1000; did you mean epsilon 1 and delta 1e-05?",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_full_account_hides_no_mistake(spent: Path, tmp_path: Path, case: str) -> None:
    write, says = MISTAKES[case]
    before = charges(spent / "home")
    code, _, err = run_cli(*synthesize_words(spent, **{"out": tmp_path / "new", **write(tmp_path)}))
    assert code == 1 and says in err and "refuses the charge" not in err, err
    assert "warning" not in err and charges(spent / "home") == before


@pytest.mark.parametrize("case", ["bounds the wrong way round", "no such method", "a negative epsilon"])
def test_a_folder_that_is_taken_hides_no_option_and_no_fault_of_a_schema(
    spent: Path, tmp_path: Path, case: str
) -> None:
    write, says = MISTAKES[case]
    code, _, err = run_cli(*synthesize_words(spent, **write(tmp_path)))
    assert code == 1 and says in err and "already holds files" not in err
    code, _, err = run_cli(*synthesize_words(spent))
    assert code == 1 and "already holds files" in err


def test_it_hides_no_epsilon_of_documents_either(tmp_path: Path) -> None:
    write_letters(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    code, _, err = run_cli(*embed_words(tmp_path, target_epsilon=-1))
    assert code == 1 and "--epsilon=-1.0 must lie between" in err


def test_a_full_account_still_comes_before_the_values(spent: Path, tmp_path: Path) -> None:
    write = given(lambda table: table.set_column(1, "age", pa.array([1000] * 60)))
    code, _, err = run_cli(*synthesize_words(spent, out=tmp_path / "new", **write(tmp_path)))
    assert code == 1 and "account clinic refuses the charge" in err and "must lie" not in err


def test_types_that_the_first_record_alone_tells_come_after_the_ledger(spent: Path, tmp_path: Path) -> None:
    rows = make_table(60).to_pandas().assign(shoe=1)
    (tmp_path / "other.jsonl").write_text(rows.to_json(orient="records", lines=True))
    code, _, err = run_cli(*synthesize_words(spent, out=tmp_path / "new", data=tmp_path / "other.jsonl"))
    assert code == 1 and "account clinic refuses the charge" in err and "column" not in err
    words = synthesize_words(spent, out=tmp_path / "new", data=tmp_path / "other.jsonl", home=tmp_path / "home")
    assert "the data has 1 column that the schema lacks" in run_cli(*words)[2]
    assert not (tmp_path / "home" / "control").exists() or not list((tmp_path / "home" / "control").glob("2*"))


def test_a_deployed_flow_run_without_an_account_learns_nothing_of_a_file(tmp_path: Path) -> None:
    write_clinic(tmp_path, rows=60)
    pq.write_table(make_table(60).drop_columns(["ward"]), tmp_path / "clinic.parquet")
    asked = {"data": tmp_path / "clinic.parquet", "schema": tmp_path / "clinic.yaml", "out": tmp_path / "out"}
    asked |= {"target_epsilon": 1, "delta": 1e-5, "home": tmp_path / "home"}
    config = SynthesizeConfig.build(placed(asked), tmp_path / "config.yaml")
    with refused(AccountMissing, account="clinic"):
        start(config, may_open=MayOpen.NO)
    with refused(DataError, column="ward"):
        start(config)


@pytest.mark.nightly  # its sentences are held in test_paid_twice.py, too
def test_the_same_run_again_is_told_what_is_free_and_both_commands_do_it(spent: Path, tmp_path: Path) -> None:
    home, before = spent / "home", charges(spent / "home")
    run = payer(spent)
    code, _, err = run_cli(*synthesize_words(spent, out=tmp_path / "new"))
    assert code == 1 and "account clinic refuses the charge" in err and "nacre ledger cap" in err
    commands = [one for one in err.split("`") if one.startswith(("nacre sample", "nacre fit"))]
    assert [one.split()[1] for one in commands] == ["sample", "fit"] and run in commands[0], err
    put = {"ROWS": "7", "FILE": str(tmp_path / "more.csv"), "FOLDER": str(tmp_path / "again")}
    for command in commands:
        code, _, err = run_cli(*(put.get(word, word) for word in command.split()[1:]))
        assert code == 0, err
    assert (
        len((tmp_path / "more.csv").read_text().splitlines()) == 8 and (tmp_path / "again" / "manifest.json").exists()
    )
    assert charges(home) == before


def test_a_full_account_names_no_release_that_this_home_has_no_more(spent: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(spent / "home", home)
    shutil.rmtree(home / "released")
    words = ("ledger", "moved", "--reason", "a copy, for a test", "--home", home)
    assert run_cli(*words)[0] == 0
    code, _, err = run_cli(*synthesize_words(spent, home=home, out=tmp_path / "new"))
    assert code == 1 and "refuses the charge" in err and "nacre sample" not in err


@pytest.mark.parametrize("command", ["synthesize", "plan"])
def test_an_account_that_is_not_open_is_told_how_it_opens(spent: Path, tmp_path: Path, command: str) -> None:
    words = [word for word in synthesize_words(spent, out=tmp_path / "new", account="tmp") if word != "--no-prefect"]
    opening = ["--open"] if command == "synthesize" else []
    code, _, err = run_cli(command, *words[1:], *opening)
    assert code == 1 and "account tmp is not open; `nacre ledger open tmp --schema SCHEMA --epsilon" in err
    assert "without --account the data set's own account pays, which alone --open opens" in err


@pytest.mark.parametrize("refused_for", ["values", ""])
def test_how_a_run_goes_on_is_said_once_it_has_something_to_go_on_with(tmp_path: Path, refused_for: str) -> None:
    write_clinic(tmp_path, rows=60)
    if refused_for:
        pq.write_table(make_table(60).slice(0, 0), tmp_path / "clinic.parquet")
    _, out, said = run_cli(*synthesize_words(tmp_path, rows=20))
    assert ("if it is interrupted: nacre resume" in said) == (not refused_for)
    assert ("a new ledger begins" in said) == (not refused_for)
    assert ("account: clinic was opened by this run, with its budget as the cap" in out) == (not refused_for)


def test_a_run_has_begun_before_it_is_charged_and_after_its_rows_were_read(tmp_path: Path) -> None:
    write_clinic(tmp_path, rows=60)
    asked = {"data": tmp_path / "clinic.parquet", "schema": tmp_path / "clinic.yaml", "out": tmp_path / "out"}
    asked |= {"target_epsilon": 1, "delta": 1e-5, "home": tmp_path / "home", "rows": 20}
    run, seen = start(SynthesizeConfig.build(placed(asked), tmp_path / "config.yaml"), "one"), list[object]()
    carry_out(run, False, lambda: seen.append((charges(run.home), (run.sensitive / "encoded").exists())))
    assert seen == [([], True)] and charges(run.home)
    carry_out(run, False, lambda: seen.append("again"))  # what is finished begins nothing that a refusal could end
    assert only_run(tmp_path) == "one"


@pytest.fixture
def other_account(tmp_path: Path) -> Path:
    """Return a home in which an account of other data is open, so that no run opens one by itself."""
    home = tmp_path / "home"
    write_clinic(tmp_path, rows=60, name="other")
    words = ("--schema", tmp_path / "clinic.yaml", "--epsilon", 1, "--delta", 1e-5, "--home", home)
    assert run_cli("ledger", "open", "other", *words)[0] == 0
    return home


FRAMES: dict[str, tuple[Callable[[pd.DataFrame], object], str]] = {
    "an extra column": (lambda frame: frame.assign(shoe=1), "the data has 1 column that the schema lacks"),
    "a wrong type": (lambda frame: frame.assign(age="old"), "column age: must hold numbers"),
    "mixed types": (
        lambda frame: frame.assign(age=[*frame["age"][:-1], "old"], shoe=[*frame["age"][:-1], "old"]),
        "^the data cannot be read as a table: column age mixes types; give every column one type, .*to_numeric",
    ),
    "mixed types that the schema does not name": (
        lambda frame: frame.assign(shoe=[*frame["age"][:-1], "old"]),
        "column number 7 of 7 mixes types",
    ),
    "a column twice": (
        lambda frame: pd.concat([frame, frame[["ward"]]], axis=1),
        "^the data cannot be read as a table: it has column ward more than once; .*~frame.columns.duplicated",
    ),
    "an empty frame": (lambda _: pd.DataFrame(), "^no column of this schema is in the data .is it the schema of an"),
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_are_held_to_the_schema_before_the_ledger_is_asked(other_account: Path, case: str) -> None:
    change, says = FRAMES[case]
    frame = make_table(60).to_pandas()
    with refused(DataError, says=says) as caught:
        nacre.synthesize(change(frame), SCHEMA_TEXT, home=other_account, **ASKED)
    assert "given" not in str(caught.value) and "/tmp" not in str(caught.value) and "shoe" not in str(caught.value)
    assert str(caught.value).count("nothing was charged") == 1
    assert ("set(frame.columns) - set(" in str(caught.value)) == (case == "an extra column")
    with refused(AccountMissing, account="clinic"):
        nacre.synthesize(frame, SCHEMA_TEXT, home=other_account, **ASKED)
    assert not list((other_account / "sensitive").glob("*/*"))


def database(folder: Path) -> str:
    rows = [tuple(row.values()) for row in make_table(60).to_pylist()]
    names = make_table(1).column_names
    with closing(sqlite3.connect(folder / "clinic.db")) as opened, opened:
        opened.execute(f"create table visits ({', '.join(names)})")
        opened.executemany(f"insert into visits values ({', '.join('?' * len(names))})", rows)
    return f"sqlite:///{folder / 'clinic.db'}"


def test_a_query_is_held_to_the_schema_before_the_ledger_is_asked_and_reads_no_value(
    other_account: Path, tmp_path: Path
) -> None:
    url = database(tmp_path)
    wrong = {"select * from nowhere": "refuses the query", "select age, ward from visits": "is in the schema but not"}
    for query, says in wrong.items():
        with refused(DataError, says=says):
            nacre.synthesize(url, SCHEMA_TEXT, query=query, home=other_account, **ASKED)
    overflow = "patient, abs(-9223372036854775807 - age / age) as age, ward, dose, smoker, sick"
    for columns in ("*", overflow):
        with refused(AccountMissing, account="clinic"):
            query = f"select {columns} from visits where age > 0 -- an end"
            nacre.synthesize(url, SCHEMA_TEXT, query=query, home=other_account, **ASKED)


def test_a_full_account_is_told_of_in_python_too(spent: Path, tmp_path: Path) -> None:
    with refused(BudgetExhausted, says=r"`nacre.sample\(.* draws more rows", account="clinic"):
        nacre.synthesize(
            spent / "clinic.parquet", spent / "clinic.yaml", home=spent / "home", out=tmp_path / "out", **ASKED
        )


def test_a_workbook_of_drawn_rows_is_told_what_writes_one(spent: Path, tmp_path: Path) -> None:
    run = payer(spent)
    for command in (("sample", run, "--rows", 5), ("marginals", run)):
        code, _, err = run_cli(*command, "--out", tmp_path / "rows.xlsx", "--home", spent / "home")
        assert code == 1 and "must end in .parquet, .csv, .arrow or .jsonl" in err
        assert "`nacre export HAND_OFF FILE.xlsx` writes the table of a hand-off as a workbook" in err


def test_fit_is_told_where_the_release_of_a_run_lies(spent: Path, tmp_path: Path) -> None:
    run, home = payer(spent), spent / "home"
    release = home / "released" / run / "release.parquet"
    for named, says in ((run, f"is the name of a run, whose release is {release}"), (spent / "out", "is a folder; a")):
        code, _, err = run_cli("fit", named, "--out", tmp_path / "again", "--home", home)
        assert code == 1 and says in err and "name that file" in err
    assert release.exists()


def test_a_cap_that_cannot_be_is_named_by_its_option(tmp_path: Path) -> None:
    write_clinic(tmp_path, rows=20)
    words = ("ledger", "open", "x", "--schema", tmp_path / "clinic.yaml", "--home", tmp_path / "home")
    for delta in (1, 0.5):
        code, _, err = run_cli(*words, "--epsilon", 1, "--delta", delta)
        assert code == 1 and f"--delta={float(delta)} must" in err


def test_only_a_swap_is_called_one() -> None:
    unit = make_schema().unit
    for epsilon, delta in ((1e-5, 1e-6), (-1, 0.5), (5000, 1e-5)):
        with refused(InvalidArgument, name="epsilon", rule="lie between 0.001 and 1000"):
            make_budget(epsilon, delta, unit)


@pytest.mark.parametrize(
    ("written", "means"), [("0,5", "0.5"), ("1%", "0.01"), ("10^-5", "1e-5"), ("one", ""), ("1,000", "1000, or 1.000")]
)
def test_a_number_that_is_written_otherwise_is_told_how_it_is_written(written: str, means: str) -> None:
    code, _, err = run_cli("plan", "t.csv", "--schema", "t.yaml", "--delta", "1e-5", "--epsilon", written)
    assert code == 2 and "must be a number, such as 1 or 0.5 or 1e-5" in err
    assert (f"; write {means}\n" in err) if means else ("write" not in err)


def test_a_schema_that_is_a_folder_or_has_tabs_is_told_so(tmp_path: Path) -> None:
    code, _, err = run_cli("schema", "lint", tmp_path)
    assert code == 1 and f"{tmp_path}: is a folder; name a file in it" in err
    (tmp_path / "tabs.yaml").write_text("name: a\ncolumns:\n\tage: {type: boolean}\n")
    code, _, err = run_cli("schema", "lint", tmp_path / "tabs.yaml")
    assert code == 1 and "line 3" in err and "the line begins with a tab; indent it with spaces" in err
    (tmp_path / "other.yaml").write_text("name: a\ncolumns: {age: {type: boolean}\n")
    assert "tab" not in run_cli("schema", "lint", tmp_path / "other.yaml")[2].replace(str(tmp_path), "")


def test_names_that_may_be_values_stand_below_a_warning(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("79,a,x0\n80,b,x1\n")
    (tmp_path / "n.csv").write_text("age,ward\n80,b\n")
    code, text, _ = run_cli("schema", "init", tmp_path / "t.csv", "--header")
    assert code == 0 and text.startswith("# The names below are the first line of the file")
    assert "If they are values of a person, delete this draft, add a line" in text.replace("\n# ", " ")
    text = run_cli("schema", "init", tmp_path / "t.csv", "--header", "--editor", "nacre.json")[1]
    assert text.startswith("# yaml-language-server: $schema=nacre.json\n# The names below are")
    assert "delete this draft" not in run_cli("schema", "init", tmp_path / "n.csv", "--header")[1]


def test_the_warning_stands_above_several_tables_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name, columns in (("people", "person,1999"), ("visits", "visit,person")):
        (tmp_path / "data" / f"{name}.csv").write_text(f"{columns}\n1,2\n")
    code, text, _ = run_cli("schema", "init", tmp_path / "data", "--tables", "--header")
    assert code == 0 and text.startswith("# The names below are the first line")
    assert run_cli("schema", "init", tmp_path / "data", "--tables")[0] == 1


def test_a_column_that_may_be_text_has_no_advice_for_numbers_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("income,ward\n1,b\n")
    pq.write_table(pa.table({"income": [1.5], "ward": ["b"]}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"income": ["high"], "ward": ["b"], "age": [30]}), tmp_path / "text.parquet")
    says = {"t.csv": "# suggested, as an amount; no bound is suggested", "t.parquet": "# no bound is suggested"}
    for file, words in says.items():
        assert words in run_cli("schema", "init", tmp_path / file)[1]
    assert "bound is suggested" not in run_cli("schema", "init", tmp_path / "text.parquet")[1]


def test_a_file_that_does_not_exist_is_answered_with_a_similar_name_beside_it(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("age,ward\n1,b\n")
    schema = tmp_path / "visits.yaml"
    schema.write_text("name: t\nunit: record\ncolumns:\n  age: {type: integer, min: 0, max: 9}\n")
    for words in (
        ("schema", "init", tmp_path / "vists.csv"),
        ("validate", tmp_path / "vists.csv", "--schema", schema),
        ("plan", tmp_path / "vists.csv", f"--schema={schema}", "--epsilon", 1, "--delta", 1e-5),
    ):
        code, _, err = run_cli(*words)
        assert code == 1 and "does not exist" in err and "; did you mean `visits.csv`?" in err, words
    for words in (
        ("schema", "lint", tmp_path / "visit.yaml"),
        ("ledger", "open", "t", "--schema", tmp_path / "vsits.yaml", "--epsilon", 1, "--delta", 1e-5),
    ):
        code, _, err = run_cli(*words)
        assert code == 1 and "; did you mean `visits.yaml`?" in err, words
    assert "did you mean" not in run_cli("schema", "init", tmp_path / "nothing-like-it")[2]
    (tmp_path / "orders.parquet").write_bytes(b"")
    assert "did you mean `orders.parquet`" in run_cli("schema", "init", tmp_path / "order.parquet")[2]
    (tmp_path / "staff.yaml").write_text(schema.read_text())
    for file, hinted in (("staff.parqet", False), ("staff.yml", True), ("staff.ymal", True)):  # nor is a schema one
        assert ("did you mean `staff.yaml`" in run_cli("schema", "init", tmp_path / file)[2]) == hinted, file
    plan = ("plan", tmp_path / "visits.csv", f"--schema={tmp_path / 'order.yaml'}", "--epsilon", 1, "--delta", 1e-5)
    for words in (("schema", "lint", tmp_path / "order.yaml"), plan):  # no table is a schema
        code, _, err = run_cli(*words)
        assert code == 1 and "does not exist" in err and "did you mean" not in err, words


def test_broken_rules_stand_first_by_the_share_of_rows_that_break_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"{i},{i},{i}\n" for i in range(1, 7)))
    columns = "  a: {type: integer, min: 0, max: 10}\n  b: {type: integer, min: 2, max: 10}\n"
    columns += "  c: {type: integer, min: 0, max: 3}\n"
    (tmp_path / "t.yaml").write_text(f"name: t\nunit: record\ncolumns:\n{columns}")
    _, out, _ = run_cli("validate", tmp_path / "t.csv", "--schema", tmp_path / "t.yaml")
    verdicts = re.findall(r"(?:holds|broken)", out)
    assert verdicts == sorted(verdicts) and verdicts.count("broken") == 2, out
    places = [out.index(words) for words in ("between 0 and 3", "between 2 and 10", "between 0 and 10")]
    assert places == sorted(places), out


def test_a_usage_says_nacre_however_it_was_called(monkeypatch):
    main = ModuleType("__main__")
    main.__package__, main.__file__ = "nacre", "nacre/__main__.py"
    monkeypatch.setitem(sys.modules, "__main__", main)
    code, _, err = run_cli("schema", "init")
    assert code == 2 and err.startswith("Usage: nacre schema init "), err
