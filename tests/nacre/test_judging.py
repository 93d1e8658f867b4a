"""Runs, rules and comparisons in Python: what the command line says of the same, as frames."""

import base64
import re
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import nacre
from dpmodels.audit.made import firm
from dpmodels.errors import DataError, Unsuitable
from tasks.stages.draw_rows import Drawn
from tests.kit.errors import refused, shown
from tests.kit.support import SCHEMA_TEXT, make_schema, make_table, run_cli

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
QUICK = {"method": "moments", "training": {"components": 4, "steps": 3}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> nacre.Result:
    home = tmp_path_factory.mktemp("judged")
    return nacre.synthesize(
        make_table(300).to_pandas(), SCHEMA_TEXT, epsilon=1, delta=1e-5, rows=120, home=home, **QUICK
    )


def test_runs_are_listed_with_what_goes_on(made: nacre.Result, tmp_path: Path) -> None:
    listed = nacre.runs(home=made.home)
    assert nacre.runs(str(made.home)).equals(listed)
    assert listed["run"].tolist() == [made.run] and "name" not in listed and listed["state"].tolist() == ["handed over"]
    with pytest.raises(nacre.NacreError):
        nacre.runs(home=tmp_path / "nowhere")


def test_rules_hold_of_what_was_made_and_break_where_rows_break_them(made: nacre.Result) -> None:
    rules = nacre.validate(made)
    assert rules["success"].all() and {"ward", "age"} <= set(rules["column"].dropna())
    broken = nacre.validate(made.table.assign(ward="nowhere"), SCHEMA_TEXT)
    assert set(broken[~broken["success"]]["column"].dropna()) == {"ward"}
    with refused(Unsuitable, r"^rows in memory bring no schema: name theirs, as in validate\(frame, schema\)$"):
        nacre.validate(made.table)


def test_rows_are_drawn_under_conditions_in_each_of_their_forms(made: nacre.Result) -> None:
    for where in ("ward=north", ["ward=north"], {"ward": "north"}, {"ward": ["north"]}):
        assert set(nacre.sample(made, 5, where=where)["ward"]) == {"north"}
    facts = nacre.sample(made, 5, where="ward=north").attrs
    assert (facts["run"], facts["method"]) == (made.run, made.manifest.method)
    assert 0 < facts["share"] < 1 == nacre.sample(made, 5).attrs["share"]
    assert facts["records"] == facts["share"] * nacre.sample(made, 5).attrs["records"]
    drawn = Drawn("run", "release", "pearl", 0, (), rows=1, share=1e-4, records=0.4)
    with (
        patch("tasks.stages.draw_rows.draw_rows", lambda *_: iter([(pa.table({"age": [1]}), drawn)])),
        pytest.warns(nacre.ReleaseWarning, match="^fewer than one record meets this by the release") as caught,
    ):
        assert nacre.sample(made, 1, where="age>1").attrs["records"] == 0.4
    assert caught[0].filename == __file__
    with refused(
        Unsuitable, "^where must be a condition, a list of them, or a dictionary of columns and values, not int"
    ):
        nacre.sample(made, 5, where=5)
    calls = "with where={'ward': 'north'} and where={'ward': 'south'}, and put them together"
    for values in (["north", "south"], ("north", "south"), pd.Series(["north", "south"])):
        with refused(
            Unsuitable, f"^a condition has one value, and ward is given 2: draw rows for each by itself, {calls}$"
        ):
            nacre.sample(made, 5, where={"ward": values})
    with refused(Unsuitable, "^a condition has one value: where={'ward': VALUE}$"):
        nacre.sample(made, 5, where={"ward": []})


def test_a_hand_off_in_the_place_of_real_rows_is_said_to_be_one(made: nacre.Result) -> None:
    frame = make_table(300).to_pandas()
    rule = r"is a hand-off, and must be a table of real rows: write compare\(hand_off, real_rows, schema\)$"
    for real in (made, made.folder, str(made.folder)):
        with refused(Unsuitable, f"^`real` {rule}"):
            nacre.compare(frame, real, SCHEMA_TEXT, home=made.home)
    with refused(Unsuitable, f"^`test` {rule}"):
        nacre.compare(made, frame, SCHEMA_TEXT, test=made, home=made.home)


def test_a_column_that_is_the_index_of_a_frame_is_said_to_be(tmp_path: Path) -> None:
    frame, budget = make_table(30).to_pandas(), {"epsilon": 1, "delta": 1e-5, "home": tmp_path, "open": True}
    for name, given in (("ward", frame.set_index("ward")), ("ward", frame.drop(columns="age").set_index("ward"))):
        says = rf"not in the data[^;]*; {name} is the frame's index, which is left out: give frame.reset_index\(\);"
        with refused(DataError, says):
            nacre.synthesize(given, SCHEMA_TEXT, **budget)
    for other in (frame.drop(columns="ward"), frame.drop(columns="ward").rename_axis("Zebulon")):
        with refused(DataError, column="ward") as caught:
            nacre.synthesize(other, SCHEMA_TEXT, **budget)
        assert "reset_index" not in str(caught.value) and "Zebulon" not in str(caught.value)


def test_rows_that_break_a_rule_are_counted_as_on_the_terminal(made: nacre.Result, tmp_path: Path) -> None:
    table = made.table.assign(ward=["nowhere"] * 7 + made.table["ward"].tolist()[7:])
    rules = nacre.validate(table, SCHEMA_TEXT).set_index("rule")
    table.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "clinic.yaml").write_text(SCHEMA_TEXT)
    _, out, _ = run_cli("validate", tmp_path / "table.parquet", "--schema", tmp_path / "clinic.yaml")
    broken = rules[~rules["success"]]
    assert broken[["column", "failing_rows", "rows"]].values.tolist() == [["ward", 7, 120]] and "7 of 120" in out
    whole = rules.loc["the columns must be exactly those of the schema"]
    assert whole["failing_rows"] is whole["rows"] is pd.NA and str(rules["failing_rows"].dtype) == "Int64"
    others = rules[rules["success"]]["failing_rows"].dropna()
    assert (others == 0).mean() > 0.7  # nulls of a column that may hold some are counted too


def test_tables_stand_side_by_side_and_the_page_stays_inside(made: nacre.Result) -> None:
    real, worse = make_table(300).to_pandas(), made.table.assign(age=made.table["age"].iloc[0])
    scores = nacre.compare([made, worse], real, make_schema(), test=make_table(80))  # beside the run of the first
    page = Path(scores.attrs["page"])
    assert page.is_relative_to(made.home / "sensitive") and page.exists()
    assert list(scores)[:3] == ["score", "better", "real rows"] and list(scores)[5:] == ["best"] and len(scores) > 3
    assert isinstance(scores, pd.DataFrame) and scores.iloc[:, 3:].notna().any().all()
    first, second = list(scores)[3:5]
    one_way = scores.set_index("score").loc["total variation, 1-way"]
    assert one_way[first] < one_way[second] and one_way["best"] == first and 0 < one_way["real rows"] < 1
    verdicts = scores.attrs["verdicts"]
    assert list(verdicts) == [first, second] and "fails one-way marginals" in verdicts[second]
    assert all(f"{name}: {said}" in repr(scores).splitlines() for name, said in verdicts.items())
    assert "compare({'mine': frame, ...}" in repr(scores).splitlines()[-1] and "compare({" in scores._repr_html_()
    checks = scores.attrs["checks"]
    failing = {one["name"] for one in checks if one["table"] == second and one["holds"] is False}
    assert "one-way marginals" in failing and all(name in verdicts[second] for name in failing)
    assert {one["table"] for one in checks} == {first, second} and all(one["finding"] for one in checks)


def test_a_notebook_shows_a_comparison_with_bars_and_nothing_that_was_given_unescaped() -> None:
    from nacre.compared import scores_of

    planted = "<b>other</b>"
    figures = {"ours": 0.8, planted: 0.7}
    lines = [
        {"score": "TSTR", "better": "higher", "real": 0.9, "tables": figures, "best": ["ours"]},
        {"score": "pMSE ratio", "better": "near 1", "real": 1.0, "tables": {**figures, planted: None}, "best": []},
    ]
    facts = {"scores": lines, "verdicts": dict.fromkeys(figures, "says <i>this</i>"), "tables": {}}
    page = scores_of(facts, "page.html")._repr_html_()
    assert "<b>0.8000 (best)</b>" in page and page.count("(best)") == 1 and "SENSITIVE" in page
    assert planted not in page and "<i>" not in page and "page.html" in page
    pictures = [base64.b64decode(one).decode() for one in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page)]
    assert len(pictures) == 2 and all(one.count('class="bar"') == 2 and 'class="mark"' in one for one in pictures)
    assert all(planted not in one for one in pictures)


def test_a_table_that_lacks_a_column_is_told_by_which_it_is_and_not_where_it_lay(made: nacre.Result) -> None:
    real, short = make_table(300), made.table.drop(columns="sick")
    for tables, rows, test, which in (
        ([made.table, short], real, None, "table 2"),
        ({"Zebulon": short}, real, None, "table 1"),
        (made, real.drop_columns("sick"), None, "the real rows"),
        (made, real, real.drop_columns("sick"), "the test rows"),
    ):
        with refused(DataError, column="sick", rule=f"is in the schema but not in {which}"):
            nacre.compare(tables, rows, SCHEMA_TEXT, test=test, home=made.home)


def test_of_several_tables_a_fault_names_the_one_that_has_it(made: nacre.Result, tmp_path: Path) -> None:
    real, words, none = make_table(300), made.table.assign(age="old"), made.table[:0]
    for tables, rows, test, which in (
        ([made.table, words], real, None, "table 2: column age"),
        ([made.table, none], real, None, "table 2: a table without rows"),
        (made, real.to_pandas().assign(age="old"), None, "the real rows: column age"),
        (made, real, real.to_pandas().assign(age="old"), "the test rows: column age"),
    ):
        with refused(DataError, f"^{which}", column="age" if "column" in which else ""):
            nacre.compare(tables, rows, SCHEMA_TEXT, test=test, home=made.home)
    made.table.to_csv(tmp_path / "first.csv", index=False)
    words.to_csv(tmp_path / "second.csv", index=False)
    both = [str(tmp_path / "first.csv"), str(tmp_path / "second.csv")]
    with refused(DataError, f"^{re.escape(both[1])}: column age: must hold numbers", column="age"):
        nacre.compare(both, real, SCHEMA_TEXT, home=made.home)


def test_rows_in_memory_with_every_column_are_held_to_the_rules_for_raw_tables(made: nacre.Result) -> None:
    schema = SCHEMA_TEXT.replace(", keep: regenerate", "")
    raw = nacre.validate(make_table(50).to_pandas(), schema)
    assert raw["success"].all() and "the columns must be exactly those of the schema" in set(raw["rule"])
    assert nacre.validate(made.table.drop(columns="patient"), schema)["success"].all()


def test_dates_as_text_are_validated_as_a_run_reads_them(tmp_path: Path) -> None:
    """A schema that drops no column cannot tell raw rows from made ones, and text was refused there alone."""
    schema = "name: stays\ncolumns:\n  day: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: day}\n"
    days = pd.DataFrame({"day": [f"2020-{month:02}-01" for month in range(1, 13)]})
    days.to_parquet(tmp_path / "days.parquet")
    for given in (days, days.astype("category"), days.astype("datetime64[us]"), tmp_path / "days.parquet"):
        rules = nacre.validate(given, schema)
        assert rules.success.all() and rules.rows.max() == 12
    rules = nacre.validate(days.replace("2020-03-01", "2019-03-01"), schema)
    assert rules[~rules.success].failing_rows.tolist() == [1]
    with refused(DataError, "must hold dates in every row"):
        nacre.validate(days.replace("2020-03-01", "1.3.2020"), schema)


def test_tables_are_one_several_or_named(made: nacre.Result) -> None:
    real = make_table(300)

    def names(tables: object) -> list[str]:
        listed = list(nacre.compare(tables, real, SCHEMA_TEXT, home=made.home))[3:]
        return listed if len(listed) == 1 else listed[:-1]

    assert names(made.table) == names(pl.DataFrame(made.arrow)) == ["table-1"]
    assert names(made) == names(made.folder) == [made.run]
    assert names((made.table, made)) == ["table-1", made.run]
    assert names({"nacre": made.table, "again": made, "file": str(made.folder)}) == ["nacre", "again", "file"]
    assert names({"nacre": made.table}.values()) == ["table-1"]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({}, "no table to compare"),
        ([], "no table to compare"),
        ({1874: pd.DataFrame({"name": ["Zebulon"]})}, "must be text"),
        ({"score": pd.DataFrame({"name": ["Zebulon"]})}, "use others than score, better, real rows, best"),
    ],
)
def test_keys_that_name_no_table_are_refused_and_not_quoted(tables: object, says: str, tmp_path: Path) -> None:
    with refused(Unsuitable, says) as fault:
        nacre.compare(tables, pd.DataFrame({"name": ["Zebulon"]}), SCHEMA_TEXT, home=tmp_path)
    assert "Zebulon" not in shown(fault.value) and "1874" not in str(fault.value)


def test_several_tables_in_memory_are_judged_as_one_tree(tmp_path: Path) -> None:
    tables = firm.make_tables(60)
    frames = {name: table.to_pandas() for name, table in tables.items()}
    assert nacre.validate(frames, firm.SCHEMA_TEXT)["success"].all()
    alone = nacre.compare(frames, tables, firm.SCHEMA_TEXT, home=tmp_path)
    named = nacre.compare({"same": tables}, frames, firm.SCHEMA_TEXT, home=tmp_path)
    assert list(alone)[3:] == ["table-1"] and list(named)[3:] == ["same"]
    distance = named.set_index("score")["same"].filter(like="total variation")
    assert len(distance) and (distance == 0).all() and not list(tmp_path.rglob("*.parquet"))
    with refused(DataError, "lacks table item"):
        nacre.validate({name: frame for name, frame in frames.items() if name != "item"}, firm.SCHEMA_TEXT)


def test_columns_that_do_not_match_are_named_by_the_schema_and_hinted_at(made: nacre.Result) -> None:
    table = made.table.drop(columns=["patient", "dose"], errors="ignore")
    rules = nacre.validate(table, SCHEMA_TEXT, raw=False)
    (said,) = rules[~rules["success"] & rules["column"].isna()]["rule"]
    assert said.startswith("the columns must be exactly those of the schema") and "; missing: " in said
    assert said.rsplit("; missing: ", 1)[1].split(", ")[-1] == "dose"
    other = made.table.rename(columns={"ward": " Ward", "dose": "Zebulon"})
    with refused(
        DataError, r"`set\(frame.columns\) - set\(nacre.load_schema\(schema\).columns\)`", column="dose"
    ) as told:
        nacre.validate(other, SCHEMA_TEXT)
    text = str(told.value)
    assert "ward is there in other letters" in text and "the data has 1 column that the schema lacks" in text
    assert "Zebulon" not in text and "nacre schema init" not in text
    with refused(DataError, "is in table 1 in other letters", column="ward"):
        nacre.compare(made.table.rename(columns={"ward": "WARD"}), make_table(50), SCHEMA_TEXT, home=made.home)
