"""What a notebook and a terminal show of results and ledgers, and in which forms the rows come."""

import datetime
import json
import math
import pickle
import pydoc
import re
import shutil
import sys
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import NoReturn

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.errors import LedgerError, Unsuitable
from flows.command_line.show import warned
from flows.with_prefect.artifacts import report_in_short
from nacre.listing import Listing, to_pandas
from nacre.notebook import CELL, TABLE, facts_as_html, first_rows_as_html, rows_as_html
from nacre.verified import Verified
from tests.kit.errors import refused
from tests.kit.support import SCHEMA_TEXT, make_table
from tests.releases.make_golden import GOLDEN

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
QUICK = {"method": "moments", "training": {"components": 4, "steps": 3}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> nacre.Result:
    home = tmp_path_factory.mktemp("shown")
    return nacre.synthesize(
        make_table(300).to_pandas(), SCHEMA_TEXT, epsilon=1, delta=1e-5, rows=120, home=home, **QUICK
    )


def test_epsilon_is_written_as_the_command_line_writes_it_and_kept_exactly(made: nacre.Result) -> None:
    assert Decimal("0.99") < made.spent.epsilon < 1
    for shown in (repr(made), made._repr_html_()):
        assert "epsilon=1, delta=1e-5, account clinic" in shown and str(made.spent.epsilon) not in shown


def test_a_notebook_shows_headline_price_checks_places_and_the_first_rows(made: nacre.Result) -> None:
    page = made._repr_html_()
    assert made.report.facts["headline"].split()[0] in page and "expectations of the schema hold" in page
    assert str(made.folder) in page and str(made.report.path) in page and "120 synthetic rows" in page
    for name in ("age", "ward", "dose"):
        values = made.table[name].head().astype(object).tolist()
        assert all(f'">{value}</td>' in page for value in values if isinstance(value, str | int)), name
    assert page.count("<tr") < 20


def test_warnings_are_shown_in_full_and_the_report_is_a_link(
    made: nacre.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["read `made.report` <b>first</b>", "another"]
    monkeypatch.setattr(nacre.Result, "warnings", property(lambda self: [self.drowned, *said]))
    page = made._repr_html_()
    assert "read <code>made.report</code> &lt;b&gt;first&lt;/b&gt;\nanother</td>" in page and "`" not in page
    assert f'<a href="{made.report.path.as_uri()}">{made.report.path}</a>' in page
    assert not made.drowned or page.count(made.drowned) == 1


def test_a_large_delta_is_warned_of_in_python_on_the_terminal_and_for_a_program(
    made: nacre.Result, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_delta() -> list[str]:
        (tmp_path / "report.json").write_text(json.dumps(made.report.facts))
        with warned(tmp_path / "report.json"):
            pass
        said = [line for line in capsys.readouterr().err.splitlines() if "is large for" in line]
        said_in_python = [one for one in made.warnings if "is large for" in one]
        assert said == [f"warning: {one}" for one in said_in_python]
        return said_in_python

    assert of_delta() == []
    monkeypatch.setitem(made.report.facts, "released_records", 15_066.2)
    (sentence,) = of_delta()
    assert sentence.startswith("δ = 1e-5 is large for about 15,066 records: their product is 0.1507, and a rule of")
    assert "is large for" in report_in_short(made.report.facts, tmp_path).replace("\N{NO-BREAK SPACE}", " ")
    monkeypatch.setitem(made.report.facts["privacy"], "unit", "user (patient)")
    assert of_delta() == []  # rows are no count of users


def test_a_terminal_shows_how_many_warnings_there_are_and_the_first(
    made: nacre.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(*said: str) -> list[str]:
        monkeypatch.setattr(nacre.Result, "warnings", property(lambda self: [self.drowned, *said]))
        return [line for line in repr(made).splitlines() if line.startswith("  warnings")]

    assert lines("one\nmore", "another") == ["  warnings 2; `warnings` has all; the first: one"]
    assert lines("one") == ["  warnings 1; the first: one"] and lines() == []
    (cut,) = lines("a long word " * 60)
    assert len(cut) < 300 and "`warnings` has all" in cut and cut.endswith(" …")
    with pytest.raises(AttributeError, match="no attribute 'tabel'; did you mean `table`"):
        made.tabel  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'qqqqqq'$"):
        made.qqqqqq  # noqa: B018


def test_what_a_result_says_in_short_is_a_sentence_a_line() -> None:
    made = nacre.Result("docs/example")
    lines = repr(made).partition("  in short ")[2].partition("\n  made ")[0].splitlines()
    assert len(lines) > 2 and all(line.strip()[0].isupper() or line.strip()[0].isdigit() for line in lines)
    assert lines[0] + "." not in made.report.facts["headline"] and lines[0].rstrip(".") in made.report.facts["headline"]


def test_a_run_that_opened_its_account_says_how_more_is_allowed(made: nacre.Result) -> None:
    first = f"the first of the ledger in {made.home}, which knows nothing of what another home has spent"
    said = f"clinic was opened with this budget as its cap, {first}; that leaves nothing for a second run: for more, "
    call = f"nacre.ledger({str(made.home)!r}).change_cap('clinic', epsilon=EPSILON, reason=REASON)"
    assert f"{said}`{call}`" in repr(made) and escape(call) in made._repr_html_()
    again = nacre.resume(made.run, home=made.home)
    assert isinstance(again, nacre.Result) and again.opened == made.opened
    exec(f"import nacre\n{call}", {"EPSILON": 2, "REASON": "a second release"})
    try:
        raised = nacre.resume(made.run, home=made.home)
        assert isinstance(raised, nacre.Result) and raised.opened == "" and "as its cap" not in repr(raised)
    finally:
        nacre.ledger(made.home).change_cap("clinic", epsilon=1, reason="as it was")
    assert nacre.Result(made.folder).opened == ""


def test_a_check_shows_its_verdict_first_then_faults_and_notes(made: nacre.Result) -> None:
    checked = nacre.verify(made.folder)
    lines = repr(checked).splitlines()
    assert lines[0].startswith("<nacre hand-off: CONSISTENT ONLY: it is not signed, so nobody vouches for it")
    assert any("epsilon" in line for line in lines[1:])
    signed = repr(Verified(**{**vars(checked), "signature": "ed25519, key 12"})).splitlines()[0]
    assert "nobody whom you named" in signed and "name it with `public_key`" in signed
    assert not any(line.startswith("  faults") for line in lines) and "[]" not in repr(checked)
    checked.faults, checked.notes = ["a <b> was changed", "c is missing"], ["d was not checked"]
    lines = [line.split(maxsplit=1) for line in repr(checked).splitlines()]
    assert lines[0][-1] == "hand-off: FAULTY: 2 faults" and [line[0] for line in lines[1:3]] == ["faults", "faults"]
    assert ["notes", "d was not checked"] in lines
    page = checked._repr_html_()
    assert "FAULTY" in page and "a &lt;b&gt; was changed\nc is missing" in page and "<b>" not in page


def test_what_is_hidden_is_said_in_words_with_its_name_once(made: nacre.Result) -> None:
    checked, planned = nacre.verify(made.folder), nacre.plan(SCHEMA_TEXT, 1, 1e-5, home=made.home)
    for shown in (repr(made), made._repr_html_(), repr(checked), checked._repr_html_(), repr(planned)):
        assert "one record added or removed (add_or_remove_one)" in shown and shown.count("add_or_remove_one") == 1


def test_help_and_completion_show_what_is_ours_and_no_machinery_of_models() -> None:
    for shown in (dir(nacre.Schema), dir(nacre.PrivacyBudget), dir(nacre.load_schema(SCHEMA_TEXT))):
        assert not any(
            name.startswith(("model_", "__pydantic", "parse_")) or name in ("json", "copy") for name in shown
        )
    assert {"modelled", "to_yaml"} <= {*dir(nacre.Schema)} and "columns" in dir(nacre.load_schema(SCHEMA_TEXT))
    text = pydoc.render_doc(nacre.PrivacyBudget, renderer=pydoc.plaintext)
    assert "epsilon_exact" in text and "model_validate" not in text and len(text.splitlines()) < 80


def test_errors_name_themselves_as_they_are_caught_and_travel() -> None:
    with pytest.raises(nacre.NacreError) as caught:
        nacre.Result("nowhere")
    kinds = [kind for kind in type(caught.value).__mro__ if issubclass(kind, nacre.NacreError)]
    assert len(kinds) > 1 and all(f"{kind.__module__}.{kind.__name__}".startswith("nacre.") for kind in kinds)
    assert all(getattr(nacre, kind.__name__) is kind for kind in kinds)
    again = pickle.loads(pickle.dumps(Unsuitable("as it is")))
    assert type(again) is Unsuitable and str(again) == "as it is"


def test_no_more_than_the_first_rows_is_read(made: nacre.Result, tmp_path: Path) -> None:
    shutil.copytree(made.folder, tmp_path / "out")
    (tmp_path / "out" / "synthetic" / "part-00009.parquet").write_text("damaged")
    page = nacre.Result(tmp_path / "out")._repr_html_()
    assert "the first rows" in page and page.count("<tbody") == 2
    shutil.rmtree(tmp_path / "out" / "synthetic")
    page = nacre.Result(tmp_path / "out")._repr_html_()  # as of a hand-off that lies in an object store
    assert "the first rows" not in page and "120 synthetic rows" in page


def test_tables_are_styled_in_one_way_that_light_and_dark_notebooks_show(made: nacre.Result) -> None:
    planned = nacre.plan(SCHEMA_TEXT, epsilon=1, delta=1e-5)
    for shown in (made, nacre.verify(made.folder), nacre.ledger(made.home), planned):
        page = shown._repr_html_()
        assert page.count("<table") == page.count(f'<table style="{TABLE}"') > 0
        assert page.count("<td") + page.count("<th ") == page.count(f'style="{CELL}') and "<style" not in page
    for color in re.findall(r"(?:color|background|border[a-z-]*):([^;]*)", TABLE + CELL):
        assert color in ("inherit", "none", "0", "collapse", "1px solid #8884"), color  # nothing that one of them hides


def test_every_kind_of_hand_off_of_every_format_shows_itself() -> None:
    manifests = GOLDEN.parents[1].glob("hand_off/golden/*/*/manifest.json")
    folders = [manifest.parent for manifest in manifests if manifest.parent.name != "uncharged"]  # has no price
    assert len(folders) > 20
    for folder in folders:
        made = nacre.Result(folder)
        assert made._repr_html_().startswith(f'<table style="{TABLE}">') and "epsilon=" in repr(made), folder


def test_what_was_given_is_escaped(tmp_path: Path) -> None:
    planted = "<script>x</script>"
    pq.write_table(pa.table({planted: [planted]}), tmp_path / "part.parquet")
    pages = [
        first_rows_as_html(planted, tmp_path),
        facts_as_html(planted, {planted: planted}),
        rows_as_html(planted, [planted], [[planted]]),
    ]
    for page in pages:
        assert page.count("&lt;script&gt;") == 3 and "<script" not in page


def test_rows_come_in_the_form_of_three_libraries(made: nacre.Result) -> None:
    assert isinstance(made.table, pd.DataFrame) and isinstance(made.arrow, pa.Table)
    assert isinstance(made.polars, pl.DataFrame)
    assert made.arrow.to_pandas().equals(made.table) and made.polars.to_arrow().to_pydict() == made.arrow.to_pydict()


def test_without_polars_it_says_what_to_do(made: nacre.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with refused(Unsuitable, "pip install polars"):
        _ = nacre.Result(made.folder).polars


def test_a_result_travels_to_another_process(made: nacre.Result) -> None:
    _ = made.table, made.polars
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made) and again.table.equals(made.table) and again.spent == made.spent


def test_a_ledger_shows_accounts_and_what_each_has_left(made: nacre.Result) -> None:
    ledger = nacre.ledger(made.home)
    headings, row = (line.split() for line in repr(ledger).rstrip(">").splitlines()[1:])
    assert headings == ["account", "data", "set", "unit", "delta", "cap", "spent", "remaining", "charges"]
    assert row == ["clinic", "clinic", "record", "1e-5", "1", "1", "0", "1"]
    assert repr(ledger.balance("clinic")) == (
        "<balance of clinic: epsilon 1 spent, 0 remaining, cap 1, at delta=1e-5; 1 charge>"
    )
    opened = ledger.account("clinic")
    assert repr(opened) == str(opened) and len(repr(opened)) < 120 and opened in ledger.accounts()
    assert repr(opened).startswith("<account clinic: data set clinic, unit record, cap epsilon=")
    assert repr(opened.cap) == f"<budget: epsilon={opened.cap.epsilon:g} at delta=1e-5, unit record, add_or_remove_one>"
    assert str(made.manifest).startswith("<manifest of clinic: ") and f"run {made.run}" in repr(made.manifest)
    assert repr(ledger.entries()[0]).startswith("<entry 1 (open): account clinic, ")
    page = ledger._repr_html_()
    assert "clinic" in page and "remaining" in page and str(made.home) in page and "0x" not in repr(ledger)


def test_of_many_accounts_the_first_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.ledgers.MOST_SHOWN", 2)
    ledger = nacre.ledger(tmp_path)
    for name in ("one", "two", "three"):
        ledger.open_account(name, dataset=name, budget_cap=nacre.PrivacyBudget(epsilon=3, delta=1e-5))
    shown = repr(ledger)
    assert "3 accounts" in shown and "the first 2 are shown" in shown and "three" not in shown and "two" in shown


def test_a_ledger_that_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def accounts(_: nacre.Ledger) -> NoReturn:
        raise LedgerError("the ledger is damaged")

    monkeypatch.setattr(nacre.Ledger, "accounts", accounts)
    ledger = nacre.ledger(tmp_path)
    for shown in (repr(ledger), ledger._repr_html_()):
        assert f"nacre ledger at {tmp_path / 'ledger.sqlite'}: the ledger is damaged" in shown


def test_a_schema_is_shown_by_its_columns_and_its_unit() -> None:
    schema = nacre.load_schema(SCHEMA_TEXT)
    assert repr(schema).startswith("<schema clinic, unit ") and "age (integer), ward (categorical)" in repr(schema)
    assert (
        str(schema) == repr(schema) and len(repr(schema)) < 200 and f"{len(schema.columns)} columns: " in repr(schema)
    )
    tree = nacre.load_schema(TREE)
    assert repr(tree).splitlines()[1:] == [f"  {name}: {shown}" for name, shown in TREE_SHOWN.items()]


TREE = """
name: clinic
tables:
  patients: {key: id, columns: {id: {type: identifier, keep: regenerate}, sick: {type: boolean}}}
  visits: {parent: patients, most: 3, columns: {id: {type: identifier}, day: {type: boolean}}}
"""
TREE_SHOWN = {"patients": "id (identifier), sick (boolean)", "visits": "id (identifier), day (boolean)>"}


def test_listings_are_shown_whole_at_80_columns(made: nacre.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rules = nacre.validate(made.folder)[:]
    runs, cells = nacre.runs(home=made.home), nacre.marginals(made, "age", "ward")
    for frame in (rules, runs, cells, rules[rules["success"]].sort_values("rule")):
        assert all(name in repr(frame).splitlines()[0] for name in frame.columns) and "..." not in repr(frame)
    assert max(map(len, repr(rules).splitlines())) <= 80 and made.run in repr(runs)
    words = set(" ".join(rules["rule"].astype(str)).split())
    assert words <= set(repr(rules).split())
    assert "(no rows)" in repr(rules[rules["rows"] < 0]) and "row between" not in repr(rules)
    many = pd.concat([rules] * 20, ignore_index=True)
    assert f"({len(many) - 20} rows between the first 10 and the last)" in repr(many)
    assert "age" in repr(rules.set_index("column")[["rows"]])  # what rows are called by stays


def test_a_validation_is_shown_with_what_fails_and_with_the_number_of_rules_that_hold(made: nacre.Result) -> None:
    rules = nacre.validate(made.folder)
    assert rules["success"].all() and repr(rules) == f"note: {len(rules)} rules hold; the frame has all"
    frame = made.table.copy()
    frame.loc[:2, "age"] = 10_000
    rules = nacre.validate(frame, made.folder / "schema.yaml", raw=True)
    (broken,), (_, shown, *notes) = rules[~rules["success"]]["rule"], repr(rules).splitlines()
    assert broken in shown and notes[-1] == f"note: {len(rules) - 1} rules hold; the frame has all" and len(notes) == 1
    assert len(repr(rules[:]).splitlines()) > len(rules) and "advice" in repr(rules.drop(columns="rows"))


def test_lines_are_as_wide_as_the_terminal_or_as_pandas_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Listing({"ward": ["north"], "reason": ["a word " * 40]})

    def widest() -> int:
        return max(map(len, repr(frame).splitlines()))

    for columns, most in (("40", 80), ("150", 150)):
        monkeypatch.setenv("COLUMNS", columns)
        assert most - 8 < widest() <= most
    with pd.option_context("display.width", 200):
        assert 192 < widest() <= 200
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("sys.__stdout__", None)
    assert 112 < widest() <= 120


def test_a_mean_has_as_many_digits_as_its_error_has_to_two_of_them() -> None:
    figures = {"mean": [0.34712, 20_639.5, math.nan], "within": [0.0206395, 123.4, math.nan], "count": [1.5, 2.25, 3.0]}
    rows = [line.split() for line in repr(Listing({"ward": ["a", "b", "c"]} | figures)).splitlines()]
    assert rows[1:] == [["a", "0.347", "0.021", "1.5"], ["b", "20640", "120", "2.25"], ["c", "–", "–", "3"]]


def test_frames_keep_days_as_days_and_whole_numbers_and_booleans_with_nulls_as_what_they_are() -> None:
    day = datetime.date(2024, 5, 17)
    table = pa.table({"n": [1, None], "m": [1, 2], "b": [True, None], "day": [day, None], "x": [0.5, None]})
    frame = to_pandas(table)
    assert [str(each) for each in frame.dtypes] == ["Int64", "int64", "boolean", "datetime64[ms]", "float64"]
    assert frame["n"][0] == 1 and frame["n"].isna()[1] and frame["day"][0] == pd.Timestamp(day)


def test_a_draft_is_a_text_that_is_shown_in_its_lines() -> None:
    text = nacre.draft_schema(pd.DataFrame({"age": [1], "a<b": [2]}), name="visits", header=True)
    assert isinstance(text, str) and repr(text) == str(text) and type(str(text)) is type(text.lower()) is str
    assert text._repr_html_() == f"<pre {text._repr_html_().split(' ', 1)[1].partition('>')[0]}>{escape(text)}</pre>"
    assert "\n  age: " in text._repr_html_() and "a<b" not in text._repr_html_()
    assert pickle.loads(pickle.dumps(text)) == text and nacre.lint(text.replace("TODO", "2")).faults
