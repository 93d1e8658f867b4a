"""``import nacre``: five lines from a DataFrame to a DataFrame, on the same ledger, and nothing private on the way."""

import inspect
import re
import shutil
import traceback
from decimal import Decimal
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import get_type_hints

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.errors import ArtifactError, BudgetExhausted, DataError, InvalidArgument
from dpmodels.pages.page import unlinked
from tests.kit.errors import refused, shown
from tests.kit.support import SCHEMA_TEXT, charges, make_schema, make_table, run_cli, write_clinic, write_key

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")  # chance decides whether so few rows stand out
PLANTED = "zQ7-unmistakable-Xw9"
QUICK = {
    "method": "pearl",
    "measurement": {"frequencies": {"count": 32}},
    "training": {"steps": 6, "batch_size": 32, "frequencies_per_step": 16, "network": {"hidden_dim": 16}},
}
ASKED = {"epsilon": 1, "delta": 1e-5, **QUICK}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def frame() -> pd.DataFrame:
    return make_table(200).to_pandas()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> nacre.Result:
    """A hand-off of a table with a planted value, for the tests that change nothing."""
    columns = make_schema().model_dump()["columns"]
    columns["ward"] |= {"outside": "other", "other": "west"}
    home = tmp_path_factory.mktemp("home")
    return nacre.synthesize(planted(make_table(200).to_pandas()), make_schema(columns=columns), home=home, **ASKED)


def planted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with one that the schema does not admit."""
    return frame.assign(ward=[PLANTED, *frame["ward"][1:]])


def private_files(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.name.endswith("given.parquet"))


def test_five_lines_go_from_a_frame_to_a_frame_for_one_charge(frame, tmp_path):
    made = nacre.synthesize(frame, SCHEMA_TEXT, rows=150, **ASKED)
    assert isinstance(made.table, pd.DataFrame) and len(made.table) == 150
    assert list(made.table) == list(frame) and set(made.table["ward"]) <= {"north", "south", "west"}
    assert made.spent.delta == Decimal("1e-5") and Decimal("0.999") < made.spent.epsilon <= 1
    assert charges(tmp_path / ".nacre") == ["reserve", "draw", "seal", "commit"]
    assert made.folder == tmp_path / ".nacre" / "hand-offs" / made.run
    assert made.verify().faults == [] and made.report.facts["synthetic_rows"] == 150
    assert nacre.ledger().balance("clinic").spent_epsilon == made.spent.epsilon


def test_the_rows_lie_in_the_sensitive_zone_only_and_are_gone_at_the_end(frame, tmp_path, monkeypatch):
    seen = []
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError) as caught:
        patch.setattr("flows.synthesize.train", lambda run, *_: seen.append(private_files(run.home)) or 1 / 0)
        nacre.synthesize(frame, SCHEMA_TEXT, **ASKED)
    (name,) = (path.name for path in (tmp_path / ".nacre" / "sensitive").glob("[!.]*"))
    (file,) = seen[0]
    assert file.parent == tmp_path / ".nacre" / "sensitive" / name
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert f"nacre.resume({name!r}" in caught.value.__notes__[0]
    del frame
    made = nacre.resume(name)
    assert made.run == name and charges(tmp_path / ".nacre") == ["reserve", "draw", "seal", "commit"]
    assert private_files(tmp_path) == []
    assert nacre.resume(name).table.equals(made.table)


def test_the_command_goes_on_with_a_run_that_python_began(frame, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("flows.synthesize.ingest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        nacre.synthesize(frame, SCHEMA_TEXT, home="home", **ASKED)
    (file,) = private_files(tmp_path / "home")
    code, out, err = run_cli("resume", file.parent.name, "--home", "home", "--no-prefect")
    assert code == 0 and "synthetic table" in out, err
    assert private_files(tmp_path) == []


def test_rows_that_were_half_written_are_removed_when_the_run_is_given_up(frame, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pyarrow.parquet.ParquetWriter.write_batch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        nacre.synthesize(frame, SCHEMA_TEXT, **ASKED)
    assert private_files(tmp_path / ".nacre") == [] == list((tmp_path / ".nacre").rglob(".part-*"))
    (control,) = (tmp_path / ".nacre" / "control").glob("2*")
    with refused(DataError, "does not exist", column=""):
        nacre.resume(control.name)


@pytest.mark.parametrize("form", ["path", "text", "dictionary", "schema"])
def test_a_schema_comes_in_four_forms(tmp_path, form):
    schema = make_schema()
    path = tmp_path / "clinic.yaml"
    path.write_text(schema.to_yaml())
    given = {"path": path, "text": schema.to_yaml(), "dictionary": schema.model_dump(), "schema": schema}[form]
    assert nacre.load_schema(given) == schema


@pytest.mark.parametrize("form", ["path", "arrow"])
def test_data_may_be_a_path_or_an_arrow_table(tmp_path, form):
    data, schema, _ = write_clinic(tmp_path)
    made = nacre.synthesize(str(data) if form == "path" else pq.read_table(data), schema, out="out", **ASKED)
    assert made.folder == Path("out").absolute() and data.exists() and private_files(tmp_path) == []


def test_a_refusal_by_the_ledger_leaves_no_row_on_the_disk(frame, finished):
    home = finished.folder.parents[1]
    zone = home / "sensitive"
    before = sorted(zone.rglob("*"))
    with refused(BudgetExhausted, account="clinic"):
        nacre.synthesize(frame, SCHEMA_TEXT, home=home, **ASKED)
    assert sorted(zone.rglob("*")) == before


def test_rows_that_do_not_fit_are_refused_removed_and_never_shown(frame, tmp_path):
    with refused(DataError, "column ward", column="") as caught:
        nacre.synthesize(planted(frame), SCHEMA_TEXT, **ASKED)
    assert shown(caught.value) and PLANTED not in shown(caught.value)
    assert private_files(tmp_path) == [] and charges(tmp_path / ".nacre") == []
    assert not [path for path in (tmp_path / ".nacre" / "control").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": [1, 2]}, "the data must be a pandas DataFrame"),
        ({"data": pd.DataFrame({"age": [1, PLANTED, b"x"]})}, "column age mixes types"),
        ({"data": pd.DataFrame([[PLANTED, 1]], columns=["a", "a"])}, "column number 2 of 2 has the name of another"),
        ({"data": "absent.parquet"}, "absent.parquet does not exist"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 0.5}, "delta=0.5 must be at most 0.001"),
        ({"rows": -1}, "rows=-1 must"),
        ({"method": "magic"}, "method=magic must"),
        ({"schema": "absent.yaml"}, "schema absent.yaml does not exist"),
        (
            {"schema": {"name": "clinic", "columns": {"age": {"type": "integer", "min": "TODO", "max": 9}}}},
            "schema as given",
        ),
        ({"schema": 7}, "a schema is a path, .* not int"),
        ({"account": "absent"}, "account absent is not open"),
    ],
)
def test_what_is_wrong_is_one_sentence_without_a_value(frame, tmp_path, change, said):
    asked = {"data": frame, "schema": SCHEMA_TEXT, **ASKED, **change}
    with pytest.raises(nacre.NacreError, match=said) as caught:
        nacre.synthesize(**asked)
    assert PLANTED not in shown(caught.value) and private_files(tmp_path) == []
    assert str(tmp_path / "tmp") not in str(caught.value) and "\n" not in str(caught.value)


def test_nothing_that_shows_itself_shows_a_real_row(finished):
    made = finished
    text = repr(made) + repr(made.report) + made.report._repr_html_() + repr(made.__dict__) + made.table.to_csv()
    assert PLANTED not in text
    lines = repr(made).splitlines()
    assert len(lines) < 16 and "clinic" in lines[0] and "epsilon=1, delta=1e-5" in repr(made)


def test_a_release_that_hardly_stands_out_of_its_noise_is_warned_of_from_every_call(frame, tmp_path, monkeypatch):
    quick = {"method": "nacre", "training": {"components": 8, "steps": 5}}
    with pytest.warns(nacre.ReleaseWarning, match="hardly stands out of its noise") as caught:
        made = nacre.synthesize(frame.head(1), SCHEMA_TEXT, epsilon=0.1, delta=1e-5, **quick)
    assert [one.filename for one in caught] == [__file__]
    assert made.warnings[0] == str(caught[0].message)
    assert repr(made).splitlines()[1] == f"  WARNING {made.warnings[0]}"
    with pytest.warns(nacre.ReleaseWarning):
        assert nacre.resume(made, refit=True, out="again").warnings[0] == made.warnings[0]
    monkeypatch.setattr("flows.with_prefect.recorded.run_as_flow", None)
    code, out, err = run_cli("resume", made.run)
    assert code == 0 and "synthetic table" in out, err  # it began without Prefect, so it goes on without


class Frames(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_a_notebook_shows_the_page_in_a_frame_that_can_do_nothing(finished):
    report = finished.report
    parser = Frames()
    parser.feed(report._repr_html_())
    ((tag, attributes),) = parser.tags
    assert tag == "iframe" and attributes["sandbox"] == "" and "src" not in attributes
    assert report.path.read_text() == report.html and attributes["srcdoc"] == unlinked(report.html)
    page = Frames()
    page.feed(unlinked(report.html))
    fetched = [value for _, attrs in page.tags for key, value in attrs.items() if key in ("src", "href")]
    assert "script" not in {tag for tag, _ in page.tags}
    assert all(value is None or value.startswith(("#", "data:")) for value in fetched)


def test_a_plan_asks_what_the_lint_asks() -> None:
    columns = "columns:\n  paid: {type: number, min: 0, max: 5000}\n"
    days = "".join(f"  {name}: {{type: datetime, min: 2020-01-01, max: 2020-12-31}}\n" for name in "ab")
    planned = nacre.plan(f"name: x\nconstraints: [a <= b]\n{columns}{days}", 1, 1e-5, home="home")
    assert "paid can be 0: " in planned.facts["caution"]
    assert "`a <= b` keeps the order of two dates" in planned.facts["caution"]
    assert "caution" not in nacre.plan(make_schema(), 1, 1e-5, home="home").facts


def test_a_plan_opens_no_data_and_says_what_would_be_charged(tmp_path):
    planned = nacre.plan(make_schema(), 1, 1e-5, report_epsilon=0.1, home="home")
    assert planned.accepted is None and not list(tmp_path.iterdir())
    assert "method" in planned.text and "noise_multiplier=" in planned.text and "report: charge" in planned.text
    assert "noise_multiplier=" not in repr(planned) and "`print(plan.text)` all" in repr(planned)
    assert "noise_multiplier=" not in str(planned) and " …" not in str(planned)
    assert "in words: whoever sees this wins" in str(planned)
    assert "next: `nacre.synthesize` with the same options charges this, once" in str(planned)
    assert re.search(r"more: \d+ lines: `.text` of the plan has them$", str(planned))
    named = dict(line.split(maxsplit=1) for line in repr(planned).splitlines()[1:])
    assert named["measures"] == "5 of 6 columns; target sick"
    assert "of 10,000 rows: any column by sick: shares ±" in repr(planned)
    assert len(repr(planned).splitlines()) < 15 and max(map(len, repr(planned).splitlines())) < 180
    assert "noise_stddev" in planned._repr_html_() and "opens with this run, cap" in planned._repr_html_()
    assert "<script" not in nacre.planning.Planned({"a": "<script>"}, None)._repr_html_()


def test_a_notebook_shows_of_a_plan_what_one_decides_by_and_folds_the_rest(finished) -> None:
    short, _, rest = nacre.plan(make_schema(), 1, 1e-5, home="home")._repr_html_().partition("<details>")
    assert all(f">{name}</th>" in short for name in ("is released", "costs", "may be off by", "stands out", "next"))
    assert "<code>nacre.synthesize(data, schema, epsilon=1.0, delta=1e-05)</code>" in short and short.count("<tr>") < 10
    assert "noise_multiplier" not in short and "noise_multiplier" in rest and rest.endswith("</details>")
    assert re.search(r"count of 100 shows as -?\d+ to \d+ where noise is least, and as -?\d+ to \d+ where", short)
    alike = nacre.plan(make_schema(), 1, 1e-5, method="pearl", home="home")._repr_html_()
    assert re.search(r"count of 100 shows as -?\d+ to \d+ in 95 of 100 cases", alike)
    both = nacre.plan(make_schema(), 1, 1e-5, report_epsilon=0.1, home="home")._repr_html_().partition("<details>")[0]
    assert " together, delta=1e-05" in both
    refused = nacre.plan(SCHEMA_TEXT, 1, 1e-5, home=finished.folder.parents[1])._repr_html_().partition("<details>")[0]
    assert "REFUSED" in refused and "nacre.synthesize" not in refused


def test_a_plan_says_what_the_account_would_answer(finished):
    planned = nacre.plan(SCHEMA_TEXT, 1, 1e-5, home=finished.folder.parents[1])
    assert planned.accepted is False and "REFUSED" in repr(planned)


def test_the_ledger_is_the_real_one(tmp_path):
    from dpmodels.ledger.ledger import Ledger

    cap = nacre.PrivacyBudget(epsilon=3, delta=1e-5)
    ledger = nacre.ledger("home")
    ledger.open_account("clinic", dataset="clinic", budget_cap=cap)
    assert type(ledger) is nacre.Ledger and isinstance(ledger, Ledger)
    code, out, _ = run_cli("ledger", "show", "--home", "home")
    assert code == 0 and "clinic" in out


def test_the_environment_says_where_state_lies(frame, tmp_path, monkeypatch):
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "elsewhere"))
    assert nacre.synthesize(frame, SCHEMA_TEXT, **ASKED).folder.is_relative_to(tmp_path / "elsewhere")


def test_a_hand_off_is_verified_by_itself_and_with_a_key(frame, tmp_path):
    key, public = write_key(tmp_path / "officer.pem")
    made = nacre.synthesize(frame, SCHEMA_TEXT, signing_key=key, **ASKED)
    assert nacre.verify(made.folder, public).verdict == "VERIFIED"
    (made.folder / "report.html").write_text("another")
    with pytest.raises(ArtifactError, match=r"1 fault: report\.html was changed"):
        made.verify()


@pytest.mark.parametrize("missing", ["manifest.json", "report.json", "synthetic"])
def test_a_hand_off_that_lacks_a_file_says_so(finished, tmp_path, missing):
    shutil.copytree(finished.folder, "out")
    (tmp_path / "out" / missing).rename(tmp_path / "moved")
    with pytest.raises(ArtifactError, match=missing.split(".")[0]):
        found = nacre.Result("out")
        assert found.run == finished.run and repr(found) and found.table is not None


def test_a_draft_has_names_and_types_and_no_value(frame):
    text = nacre.draft_schema(planted(frame))
    assert "ward" in text and PLANTED not in text and "north" not in text and "TODO" in text
    assert "\nname: TODO  # of the data set, and of the account" in text
    with pytest.raises(nacre.SchemaError, match=r"\n  line [0-9]+: name: is still TODO"):
        nacre.load_schema(text)
    assert "\nname: patients_2024\n" in nacre.draft_schema(frame, name="patients_2024")
    assert "\ntarget: age  # what" in nacre.draft_schema(frame, target="age")
    for name, written in (("Telecom Churn", ", such as telecom_churn$"), ("é", "alone$")):
        with refused(InvalidArgument, f"^name={name} must have lowercase .*{written}", name="name"):
            nacre.draft_schema(frame, name=name)
    with refused(InvalidArgument, r"must be a column of the data; did you mean `age`\?$", name="target", value="aeg"):
        nacre.draft_schema(frame, target="aeg")
    tables = {"user": frame[["age", "ward"]], "visit": frame[["age", "dose"]]}
    text = nacre.draft_schema(tables, target="visit.dose")
    assert yaml.safe_load(text)["target"] == "visit.dose" and "#" in text
    with refused(InvalidArgument, "did you mean `visit.dose`"):
        nacre.draft_schema(tables, target="dose")
    doubtful = pd.DataFrame({PLANTED: [1], "7": [2]})
    with pytest.raises(nacre.NacreError, match="may be values") as caught:
        nacre.draft_schema(doubtful)
    assert PLANTED not in shown(caught.value) and "header=True" in str(caught.value)
    assert PLANTED in nacre.draft_schema(doubtful, header=True)


def test_a_draft_takes_the_types_that_a_person_knows_and_marks_what_a_discovery_fills_in() -> None:
    frame = pd.DataFrame({"age": [40], "ward": ["a"], "fee": [1.5]})
    text = nacre.draft_schema(frame, types={"age": "integer:0:120", "ward": "categorical"}, discover_all=True)
    columns = yaml.safe_load(text)["columns"]
    assert columns["age"] == {"type": "integer", "min": 0, "max": 120} and columns["ward"]["values"] == "discover"
    assert columns["fee"]["max"] == "discover" and "TODO" not in str(columns)
    with pytest.raises(nacre.NacreError, match="none of them"):
        nacre.draft_schema(frame, types={"aeg": "integer"})
    mixed = {
        "age": {"type": "derived", "formula": "2024 - born"},
        "fee": {"type": "number", "min": 0, "max": 9, "round": 1},
    }
    drawn = yaml.safe_load(nacre.draft_schema(frame, types=mixed, unit="ward", max_rows=4))
    assert drawn["columns"]["age"] == mixed["age"] and drawn["columns"]["fee"]["round"] == 1
    assert drawn["unit"] == {"user": "ward", "max_rows": 4} and drawn["columns"]["ward"] == {"type": "identifier"}
    with refused(nacre.Unsuitable, "^max_rows must be a whole number, not str: write max_rows=4, without"):
        nacre.draft_schema(frame, unit="ward", max_rows="4")
    odd = pd.DataFrame({"ratio (a = b)": [1.0], "age": [3]})
    columns = yaml.safe_load(nacre.draft_schema(odd, types={"ratio (a = b)": "number:0:1"}))["columns"]
    assert columns["ratio (a = b)"]["max"] == 1


def test_what_is_promised_is_there_and_documented():
    for name in nacre.__all__:
        found = getattr(nacre, name)
        assert inspect.getdoc(found), name
    assert set(nacre.__all__) == set(dir(nacre)) and nacre.__version__ == version("nacre")
    with pytest.raises(AttributeError, match=r"no attribute 'absent'$"):
        nacre.absent  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'synthesise'; did you mean `synthesize`\?$"):
        nacre.synthesise  # noqa: B018


def test_an_arrow_table_of_no_rows_is_refused_like_any_other(tmp_path):
    with pytest.raises(nacre.NacreError):
        nacre.synthesize(pa.table({"patient": pa.array([], pa.int64())}), SCHEMA_TEXT, **ASKED)


def test_what_editors_complete_is_what_the_configuration_says() -> None:
    from nacre.keywords import EmbeddingSettings, FitSettings, SynthesisSettings

    known = {nacre.synthesize: SynthesisSettings, nacre.embed_documents: EmbeddingSettings, nacre.fit: FitSettings}
    for function, settings in known.items():
        keywords = set(inspect.signature(function).parameters) & set(get_type_hints(settings))
        named = {"data", "schema", "documents", "candidates", "release", "epsilon", "delta", "contract", "columns"}
        assert keywords == set(get_type_hints(settings)) == set(inspect.signature(function).parameters) - named
        assert all(f"{name}: " in (function.__doc__ or "") for name in keywords)


def test_a_keyword_that_there_is_not_is_refused_and_shows_no_row() -> None:
    frame = pd.DataFrame({"name": ["Zebulon-Quillfeather-1874"]})
    with pytest.raises(
        TypeError, match=r"^synthesize\(\) got .* keyword argument 'rowz'; did you mean `rows`\?$"
    ) as fault:
        nacre.synthesize(frame, "patients.yaml", epsilon=1, delta=1e-6, rowz=3)
    inside = list(traceback.walk_tb(fault.value.__traceback__))[1:]
    assert inside and all("Zebulon" not in repr(frame.f_locals) for frame, _ in inside)


def test_arguments_that_go_by_name_alone_are_named_where_they_are_given_without() -> None:
    frame = pd.DataFrame({"name": ["Zebulon"]})
    words = "takes data and schema without a name, and whatever else by name"
    for extra in ((1,), (1, 1e-5), ("Zebulon",)):
        with pytest.raises(TypeError, match=rf"^synthesize\(\) {words}: write epsilon=1, delta=1e-5$"):
            nacre.synthesize(frame, "patients.yaml", *extra)
    with pytest.raises(TypeError, match=r"^sample\(\) takes run and rows without a name, and whatever else by name$"):
        nacre.sample("run", 3, 4)


def test_one_argument_too_many_is_answered_with_what_to_leave_out() -> None:
    of_data = r"\(\) reads no data: leave out the first argument$"
    for call, says in (
        (lambda: nacre.plan("a.csv", "a.yaml", epsilon=1, delta=1e-5), f"^plan{of_data}"),
        (lambda: nacre.plan("a.csv", "a.yaml", 1, 1e-5), f"^plan{of_data}"),
        (lambda: nacre.lint("a.csv", "a.yaml"), f"^lint{of_data}"),
        (lambda: nacre.sample("r", 3, rows=4), "sample.. takes run, rows in this order, and is given rows twice, with"),
        (lambda: nacre.fit("r", "s", release="r"), "^fit.. takes release without a name, and whatever else by name"),
    ):
        with pytest.raises(TypeError, match=says):
            call()


def test_arguments_that_are_missing_are_answered_with_what_to_write(frame) -> None:
    for call, says in (
        (lambda: nacre.synthesize(frame, "a.yaml", epsilon=1), "synthesize.. missing .*'delta': write delta=1e-5$"),
        (lambda: nacre.plan("a.yaml"), "plan.. missing .*'epsilon': write epsilon=1, delta=1e-5$"),
        (lambda: nacre.discover(frame, "a.yaml", epsilon=1), "discover.. missing .*'delta': write delta=1e-5$"),
        (lambda: nacre.synthesize(frame, epsilon=1), "'schema': write schema='schema.yaml', delta=1e-5$"),
    ):
        with pytest.raises(TypeError, match=says):
            call()


def test_several_rules_that_data_breaks_stand_in_lines_of_their_own(frame, tmp_path) -> None:
    broken = frame.assign(ward=None, age=None)
    with pytest.raises(nacre.DataError) as caught:
        nacre.synthesize(broken, SCHEMA_TEXT, **ASKED, home=tmp_path / "home", open=True)
    first, *faults = str(caught.value).splitlines()
    assert first.startswith("the data breaks 2 rules of its schema; nothing was charged") and first.endswith(":")
    assert [fault[:15] for fault in faults] == ["  column age mu", "  column ward m"]


def test_a_rule_that_rows_break_is_answered_with_the_call_that_counts_them(frame, tmp_path) -> None:
    schema = {**yaml.safe_load(SCHEMA_TEXT), "constraints": ["age >= dose"]}
    with refused(DataError, "must hold in every row", column="") as caught:
        nacre.synthesize(frame.assign(dose=frame.dose.max(), age=0), schema, **ASKED, home=tmp_path / "home", open=True)
    says = str(caught.value)
    assert says.endswith("shows every rule, and `nacre.validate(data, schema)` counts the rows that break each"), says
    code, _, err = run_cli("plan", "a.parquet", "--schema", "absent.yaml", "--epsilon", 1, "--delta", 1e-5)
    assert code == 1 and "nacre.validate" not in err


def test_an_error_that_names_a_command_or_an_option_names_what_python_has_for_it(frame, tmp_path):
    ledger, given = nacre.ledger(tmp_path / "home"), {**ASKED, "home": tmp_path / "home"}
    ledger.open_account("other", dataset="other", budget_cap=nacre.PrivacyBudget(epsilon=1, delta=1e-5))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("mine")

    def says(words: str, schema: str = SCHEMA_TEXT, **more: object) -> str:
        with pytest.raises(nacre.NacreError, match=re.escape(words)) as caught:
            nacre.synthesize(frame, schema, **{**given, **more})
        return str(caught.value)

    terms = "SCHEMA, account='clinic', epsilon=EPSILON, delta=DELTA"
    opens = f"`nacre.ledger({str(tmp_path / 'home')!r}).open_account({terms})`"
    assert "told to (`open=True`)" in says(opens)
    says("for more, give `allow_large_delta=True`", delta=0.1)
    ledger.open_account("clinic", dataset="clinic", budget_cap=nacre.PrivacyBudget(epsilon=0.5, delta=1e-5))
    says(f"`nacre.ledger({str(tmp_path / 'home')!r}).change_cap('clinic', epsilon=EPSILON, reason=REASON)`")
    says("`nacre.draft_schema(DATA)` drafts one", schema="absent.yaml")
    assert says("already holds files; name a new folder by `out`", epsilon=0.1, out="out").endswith("`out`")
    todo = SCHEMA_TEXT.replace("max: 99", "max: TODO")
    assert "in Python" not in says("columns.age.max: is still TODO: write it from public documentation", schema=todo)
    with pytest.raises(TypeError, match="missing a required argument: 'epsilon'"):
        nacre.synthesize(frame, SCHEMA_TEXT, delta=1e-5)
    code, _, err = run_cli("plan", "a.parquet", "--schema", "absent.yaml", "--epsilon", 1, "--delta", 1e-5)
    assert code == 1 and "nacre schema init" in err and "in Python" not in err


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"eps": 1}, r"got an unexpected keyword argument 'eps'; did you mean `epsilon`\?$"),
        ({"epsilon": 1, "trainin": {}}, r"got an unexpected keyword argument 'trainin'; did you mean `training`\?$"),
        ({"epsilon": 1, "zzzzz": 1}, "got an unexpected keyword argument 'zzzzz'$"),
        ({}, "missing a required argument: 'epsilon': write epsilon=1$"),
    ],
)
def test_a_keyword_that_was_misspelled_is_said_before_the_one_that_is_missing(asked, says) -> None:
    with pytest.raises(TypeError, match=says):
        nacre.synthesize(pd.DataFrame({"age": [1]}), "patients.yaml", delta=1e-6, **asked)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": "1"}, "epsilon must be a number, not str: write epsilon=1, without quotation marks"),
        ({"delta": "1e-5"}, "delta must be a number, not str: write delta=1e-5, without quotation marks"),
        ({"rows": "100"}, "rows must be a whole number, not str: write rows=100, without quotation marks"),
        ({"rows": "1.5"}, "rows must be a whole number, not str"),
        ({"epsilon": "one"}, "epsilon must be a number, not str"),
        ({"epsilon": "0,3"}, "epsilon must be a number, not str: write epsilon=0.3, without quotation marks"),
        ({"threads": True}, "threads must be a whole number, not bool"),
        ({"training": [1]}, "training must be a dictionary, not list"),
        ({"open": "yes"}, "open must be True or False, not str"),
        ({"internal_report": 2}, "internal_report must be True or False, not int"),
        ({"purpose": 5}, "purpose=5 must be text"),
        ({"device": 5}, "device=5 must be text"),
    ],
)
def test_an_argument_of_a_wrong_type_is_told_what_to_write(frame, tmp_path, wrong, says):
    with pytest.raises(nacre.NacreError) as caught:
        nacre.synthesize(frame, SCHEMA_TEXT, **{**ASKED, "home": tmp_path / "home", **wrong})
    assert str(caught.value) == says and not (tmp_path / "home").exists()


def test_a_spent_cap_says_in_short_sentences_what_is_left_and_what_helps(frame, finished):
    home = finished.folder.parents[1]
    with refused(BudgetExhausted, account="clinic") as caught:
        nacre.synthesize(frame, SCHEMA_TEXT, home=home, **ASKED)
    text = str(caught.value)
    assert len(text.split(". ")) == 6 and "in Python" not in text
    assert "would spend epsilon=1." in text and "Left is epsilon=0 of the cap of epsilon=1, at delta=1e-5." in text
    calls = re.findall(r"`(nacre\.[^`]+)`", text)
    assert [call.split("(")[0] for call in calls] == ["nacre.ledger", "nacre.sample", "nacre.fit"]
    assert calls[0].endswith(".change_cap('clinic', epsilon=EPSILON, reason=REASON)") and str(home) in calls[0]
    assert len(eval(calls[1], {"nacre": nacre, "ROWS": 7})) == 7
    assert "nothing was charged" in text and "--" not in text
