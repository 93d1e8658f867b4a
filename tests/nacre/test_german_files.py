"""Files with semicolons, decimal commas and dates such as 31.12.2021, as the schema's `text` says, and back again."""

import gzip
import re
import sqlite3
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import nacre
from dpmodels.authoring.lint import load_schema, parse
from dpmodels.comparison.report import Options
from dpmodels.contract.text_forms.written import forms_of, with_forms
from dpmodels.errors import DataError, InvalidArgument
from dpmodels.reading.database import Query
from dpmodels.reading.load import load_parts
from tasks.run.store import Handle, Run
from tasks.stages.evaluate import Place, compare, evaluate
from tests.kit.errors import refused
from tests.kit.support import charges, run_cli

INPUTS = Path(__file__).parents[2] / "docs" / "inputs.md"
GERMAN = """visit;admitted;age;fee;ward
0012;31.12.2021;30;4.503,83;Süd
0013;01.02.2022;31;1.234.503,80;
0014;;32;;Ost
0015;05.02.2022;33;0,00;Ost
"""
SCHEMA = """name: visits
unit: record
columns:
  visit: {type: identifier, unique: true}
  admitted: {type: datetime, min: 2021-01-01, max: 2023-12-31, resolution: day, nullable: true}
  age: {type: integer, min: 0, max: 99}
  fee: {type: number, min: 0, max: 2000000, round: 2, zero_inflated: true, nullable: true}
  ward: {type: categorical, values: [Süd, Ost], nullable: true}
"""
TEXT = 'text: {decimal: ",", thousands: ".", date_format: "%d.%m.%Y"}\n'


def visits(rows: int, seed: int) -> str:
    """Make a German file of visits, whose fees need a mark of thousands."""
    generator, lines = np.random.default_rng(seed), [GERMAN.partition("\n")[0]]
    marks = str.maketrans(",.", ".,")
    for number in range(rows):
        day, fee = generator.integers(1, 29), generator.gamma(2, 3000)
        ward = ["Süd", "Ost"][generator.integers(0, 2)]
        fields = f"{day:02}.0{day % 9 + 1}.2022;{generator.integers(18, 90)};{f'{fee:,.2f}'.translate(marks)}"
        lines.append(f"{number:04};{fields};{ward}")
    return "\n".join(lines) + "\n"


def test_a_german_file_is_read_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (shown,) = re.findall(r"```yaml\n(text:.*?)```", INPUTS.read_text(), re.DOTALL)
    Path("visits.csv").write_text(GERMAN)
    Path("visits.yaml").write_text(SCHEMA + shown)
    assert nacre.validate("visits.csv", "visits.yaml")["success"].all()
    Path("packed.csv.gz").write_bytes(gzip.compress(GERMAN.replace("1.234.503,80", '"1.234.503,80"').encode()))
    assert nacre.validate("packed.csv.gz", "visits.yaml")["success"].all()
    Path("without.yaml").write_text(SCHEMA)
    code, _, err = run_cli("validate", "visits.csv", "--schema", "without.yaml")
    assert code != 0 and '`text: {decimal: ",", thousands: "."}`' in err and '{date_format: "%d.%m.%Y"}' in err
    assert "503" not in err and "31.12.2021" not in err


def test_a_synthetic_file_is_read_as_iso_or_else_as_the_schema_says(tmp_path: Path) -> None:
    (schema := tmp_path / "visits.yaml").write_text(SCHEMA + TEXT)
    lines = GERMAN.replace("visit;", "").splitlines()
    german = "\n".join([lines[0], *(line.partition(";")[2] for line in lines[1:])])
    plain = "admitted,age,fee,ward\n2021-12-31,30,4503.83,Süd\n,32,,Ost\n"
    both = "admitted,age,fee,ward\n,32,1.234,Ost\n"
    for text, form in ((german, "as 1.234,5, and dates as 31.12.2021"), (plain, ""), (both, "")):
        (file := tmp_path / "made.csv").write_text(text)
        (*_, note) = nacre.validate(file, schema, raw=False).attrs.get("notes", [""])
        assert form in note and bool(note) == bool(form)
    file.write_text(german)
    code, _, err = run_cli("validate", file, "--schema", schema, "--synthetic")
    assert code == 0 and "read with numbers as 1.234,5, and dates as 31.12.2021" in err, err
    for text, says in (
        (german.replace("4.503,83", "four"), r"^column fee: .*as 1\.234,5.* neither form$"),
        (plain.replace("4503.83", "four"), r"^column fee: .*£1,204\.50 is read with.* neither form$"),
        (plain.replace("2021-12-31", "31.12.2021"), r"^column admitted: .* neither form$"),
    ):
        file.write_text(text)
        with refused(DataError, says):
            nacre.validate(file, schema, raw=False)


QUICK = """model:
  method: pearl
  measurement: {frequencies: {count: 32}}
  training: {steps: 6, batch_size: 32, frequencies_per_step: 16, network: {hidden_dim: 16}}
"""


def test_what_is_made_of_a_german_file_is_handed_over_by_a_plain_schema_and_paid_once(tmp_path: Path) -> None:
    (data := tmp_path / "visits.csv").write_text(visits(400, 0))
    (held_out := tmp_path / "held.csv").write_text(visits(200, 1))
    (file := tmp_path / "visits.yaml").write_text(SCHEMA + TEXT)
    (bare := tmp_path / "bare.yaml").write_text(SCHEMA)
    (wrong := tmp_path / "wrong.yaml").write_text(SCHEMA + TEXT.replace("%d.%m.%Y", "%m.%d.%Y"))
    (tmp_path / "config.yaml").write_text(QUICK)
    home = ["--home", tmp_path / "home"]
    words = ["--config", tmp_path / "config.yaml", "--epsilon", 1, "--delta", 1e-5, "--open", "--no-prefect", *home]
    words += ["--no-internal-report", "--format", "csv"]
    out, synthesize = tmp_path / "out", ["synthesize", data, *words]
    code, _, err = run_cli(*synthesize, "--schema", wrong, "--out", tmp_path / "no")
    assert code == 1 and "written as 12.31.2021 or 2021-12-31 23:59:58, as its `text` says" in err
    assert charges(tmp_path / "home") == []
    code, _, err = run_cli(*synthesize, "--schema", file, "--out", out)
    assert code == 0, err
    code, _, err = run_cli(*synthesize, "--schema", bare, "--out", tmp_path / "other")
    assert code == 1 and "refuses the charge" in err  # it is the account of the same data set, however that is written
    contract, published = load_schema(file), load_schema(out / "schema.yaml")
    assert published.text is None and published.hash == contract.hash == load_schema(bare).hash
    assert "CONSISTENT ONLY" in run_cli("verify", out)[1]
    (table,) = out.rglob("*.csv")
    for schema in (out / "schema.yaml", file):
        code, _, err = run_cli("validate", table, "--synthetic", "--schema", schema)
        assert code == 0, err
    frame = pd.read_csv(table, parse_dates=["admitted"])
    assert frame.admitted.dtype.kind == "M" and frame.fee.dtype == float
    (run,) = (path.name for path in (tmp_path / "home" / "control").iterdir() if path.is_dir())
    made, only = Run.find(tmp_path / "home", run), Options(workers=1, only=("copied rows",))
    table_made = made.finished("sample")
    assert table_made is not None
    evaluate(made, Handle(path=made.sensitive / "encoded"), table_made, str(held_out), only)
    compare(Place(tmp_path), [str(table)], str(data), str(held_out), contract, only)
    with refused(DataError, "must hold dates"):
        compare(Place(tmp_path), [str(table)], str(data), None, published, only)


def test_a_contract_keeps_its_hash_and_its_form_through_its_file() -> None:
    contract, faults = parse(SCHEMA + TEXT)
    assert contract is not None and not faults
    assert parse(contract.to_yaml())[0] == contract and "text" not in contract.model_dump_json()
    bare = with_forms(contract, {})
    assert bare == parse(SCHEMA)[0] and bare.hash == contract.hash and "text" not in bare.to_yaml()
    assert with_forms(bare, forms_of(contract)) == contract
    tree, faults = parse(TREE)
    assert tree is not None and not faults
    assert [forms_of(tree)[name].decimal for name in ("customer", "loan")] == [",", "."]
    again = parse(tree.to_yaml())[0]
    assert (
        again == tree and with_forms(with_forms(tree, {}), forms_of(tree)).to_yaml() != with_forms(tree, {}).to_yaml()
    )
    assert forms_of(with_forms(with_forms(tree, {}), forms_of(tree))) == forms_of(tree)
    assert with_forms(tree, {}).hash == tree.hash == again.hash
    for place in ("", "tables.loan."):
        kept = TREE.replace('decimal: "."', "decimals: x") if place else TREE.replace("date_format", "day_format")
        (fault,) = parse(kept)[1]
        assert fault.where.startswith(f"{place}text.") and "is no key here" in fault.message


TREE = """name: bank
text: {decimal: ",", thousands: ".", date_format: "%d.%m.%Y"}
tables:
  customer:
    key: id
    columns:
      id: {type: identifier, keep: regenerate}
      born: {type: datetime, min: 1900-01-01, max: 2020-12-31, resolution: day}
  loan:
    parent: customer
    parent_key: customer
    most: 3
    text: {decimal: "."}
    columns:
      customer: {type: identifier}
      amount: {type: number, min: 0, max: 9000000, round: 2}
"""


def test_tables_of_a_tree_are_each_read_in_their_form(tmp_path: Path) -> None:
    (tmp_path / "customer.csv").write_text("id;born\n1.000;31.12.1980\n1.001;1.2.1990\n")
    (tmp_path / "loan.csv").write_text("customer;amount\n1.000;1.500\n1.000;2.250\n1.001;3.125\n")
    assert nacre.validate(tmp_path, TREE)["success"].all()
    with refused(DataError, "written as 1.234,5, as its `text` says", column="loan.amount"):
        (tmp_path / "loan.csv").write_text("customer;amount\n1.000;1.5\n")
        nacre.validate(tmp_path, TREE.replace('    text: {decimal: "."}\n', ""))


def test_whatever_is_text_is_read_in_the_form_and_what_has_a_type_as_it_is(tmp_path: Path) -> None:
    frame = pd.DataFrame({"admitted": ["31.12.2021", None], "fee": [4503.83, 0], "ward": ["Ost", None]})
    frame = frame.assign(visit=["1.234", "2"], age=[3, 4])
    frame.to_parquet(tmp_path / "t.parquet")
    lines = '{"visit": "1.234", "admitted": "31.12.2021", "age": 3, "fee": "4.503,83", "ward": "Ost"}\n'
    (tmp_path / "t.jsonl").write_text(lines)
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        base.execute("create table t (visit text, admitted text, age integer, fee text, ward text)")
        base.execute("insert into t values ('1.234', '31.12.2021', 3, '4.503,83', 'Ost')")
    base.close()
    for data in (frame, tmp_path / "t.parquet", tmp_path / "t.jsonl"):
        assert nacre.validate(data, SCHEMA + TEXT)["success"].all(), data
        with refused(DataError, "must hold (dates|numbers)"):
            nacre.validate(data, SCHEMA)
    contract = parse(SCHEMA + TEXT)[0]
    assert contract is not None and contract.kind == "table"
    rows = load_parts(Query(f"sqlite:///{tmp_path}/t.sqlite", "select * from t"), contract, 10)
    assert [row["fee"] for part in rows for batch in part.reveal() for row in batch.to_pylist()] == [4503.83]


def test_a_discovery_counts_what_the_form_writes(tmp_path: Path) -> None:
    (data := tmp_path / "visits.csv").write_text(visits(3000, 2))
    draft = SCHEMA.replace("min: 2021-01-01, max: 2023-12-31", "min: discover, max: discover") + TEXT
    draft = draft.replace("min: 0, max: 2000000", "min: discover, max: discover").replace(", zero_inflated: true", "")
    nacre.ledger(tmp_path / "home").open_account(draft, epsilon=9, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nacre.ReleaseWarning)
        made = str(nacre.discover(data, draft, epsilon=8, delta=1e-6, home=tmp_path / "home"))
    assert "min: 2022-01-01, max: 2022-12-31" in made and "text: {decimal" in made
    (high,) = re.findall(r"fee: .*max: (\d+)", made)
    assert int(high) > 10_000 and nacre.validate(data, made)["success"].all()


DISCOVERED = """name: {}
unit: record
columns:
  admitted: {{type: datetime, min: 2021-01-01, max: 2023-12-31, nullable: true}}
  fee: {{type: number, min: discover, max: discover, nullable: true}}
"""


def test_a_discovery_of_one_form_is_none_of_another_and_the_same_rows_are_no_second_data_set(tmp_path: Path) -> None:
    first, again = tmp_path / "a.csv", tmp_path / "b.csv"
    lines = ["admitted;fee", *(f"31.12.2022;{n % 900 + 100},5" for n in range(2000))]
    first.write_text("\n".join(lines) + "\n")
    again.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    home, terms = tmp_path / "home", {"epsilon": 4, "delta": 1e-6, "home": tmp_path / "home"}
    for name in ("one", "two"):
        nacre.ledger(home).open_account(DISCOVERED.format(name), epsilon=9, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nacre.ReleaseWarning)
        nacre.discover(first, DISCOVERED.format("one"), **terms)
        paid = charges(home)
        with pytest.raises(nacre.NacreError, match="counted them by another `text`"):
            nacre.discover(first, DISCOVERED.format("one") + TEXT, **terms)
        with pytest.raises(nacre.NacreError, match="has the content of"):
            nacre.discover(again, DISCOVERED.format("two") + TEXT, **terms)
    assert charges(home) == paid and "commit" in paid


def test_a_draft_takes_the_form_and_reads_a_public_sample_by_it(tmp_path: Path) -> None:
    (data := tmp_path / "visits.csv").write_text(visits(50, 3))
    (tmp_path / "public").mkdir()
    rows = 'visit;admitted;age;fee;ward\n7;1.2.2022;30;"1.234,5";Süd\n8;31.12.2022;31;;1.5\n9;02.02.2022;32;NA;Süd\n'
    (sample := tmp_path / "public" / "sample.csv").write_text(rows)
    form = {"decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y"}
    drafted = nacre.draft_schema(data, sample=sample, text=form)
    assert yaml.safe_load(drafted)["text"] == form
    columns = yaml.safe_load(drafted)["columns"]
    assert columns["fee"]["max"] == 1234.5 and columns["fee"]["round"] == 1 and columns["fee"]["nullable"]
    assert columns["admitted"]["min"] == date(2022, 2, 1) and columns["admitted"]["max"] == date(2022, 12, 31)
    assert columns["ward"]["type"] == "categorical" and columns["age"]["type"] == "integer"
    code, out, _ = run_cli("schema", "init", data, "--text", "{decimal: ',', date_format: '%d.%m.%Y'}")
    assert code == 0 and yaml.safe_load(out)["text"] == {"decimal": ",", "date_format": "%d.%m.%Y"}
    for wrong, why in (
        ("{decimal: x", "it has 1 of `{` and 0 of `}`"),
        ("{decimal:','}", "a colon and a blank stand between a key and its value"),
        ("{decimal: ,}", "decimal is empty; put its value in quotes"),
        ("german", "it has no key, such as decimal, with a colon behind it"),
        ("{date_format: '%d.%m.%y'}", "must not have %y"),
        ("{dateformat: '%d.%m.%Y'}", "dateformat is no key here; did you mean `date_format`?"),
        ("{zone: UTC}", "the keys are decimal, thousands, currency, date_format, datetime_format"),
        ("{decimal: ';'}", "decimal must be '.' or ','"),
    ):
        code, _, err = run_cli("schema", "init", data, "--text", wrong)
        assert code == 1 and why in err


COMPUTED = """name: stays
unit: {user: born, max_rows: 2}
columns:
  born: {type: identifier}
  start: {type: datetime, min: 2021-01-01, max: 2023-12-31, resolution: day}
  days: {type: integer, min: 0, max: 60, computed: "days_between(start, end)"}
  end: {type: derived, formula: "add_days(start, days)"}
  net: {type: number, min: -5000, max: 5000, round: 2, zero_inflated: true}
  gross: {type: derived, formula: "1.19 * net", round: 2}
  grade: {type: categorical, values: [1.3, 1.7, 2.0], nullable: true}
text: {decimal: ",", thousands: " ", date_format: "%d.%m.%Y"}
"""


def test_users_computed_columns_and_categories_of_numbers_are_read_in_the_form(tmp_path: Path) -> None:
    rows = ["born;start;end;net;gross;grade", "1.2.80;31.12.2021;05.01.2022;-1\u202f000,50;-1190,60;1,3"]
    rows += [
        "1.2.80;1.1.2022;1.1.2022;0;0,00;",
        "1.2.80;1.1.2022;1.1.2022;9;9;2",
        "3.4.81;1.2.2022;2.2.2022;+5,5;6,55;2",
    ]
    (tmp_path / "stays.csv").write_text("\n".join(rows))
    contract = parse(COMPUTED)[0]
    assert contract is not None and contract.kind == "table"
    read = [
        row for part in load_parts(tmp_path / "stays.csv", contract, 2) for b in part.reveal() for row in b.to_pylist()
    ]
    assert [row["days"] for row in read] == [5, 0, 1] and [row["net"] for row in read] == [-1000.5, 0, 5.5]
    assert [row["grade"] for row in read] == [1.3, None, 2] and [row["born"] for row in read] == ["1.2.80"] * 2 + [
        "3.4.81"
    ]
    daily = parse(SCHEMA + TEXT + "partition: admitted\n")[0]
    assert daily is not None and daily.kind == "table"
    (tmp_path / "visits.csv").write_text(GERMAN)
    (part,) = load_parts(tmp_path / "visits.csv", daily.of_partition("2022-02-05"), 2)
    assert [row["visit"] for batch in part.reveal() for row in batch.to_pylist()] == ["0015"]


def test_a_frame_of_text_is_drafted_and_read_as_the_file_that_it_was_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame([line.split(";") for line in GERMAN.split()], dtype=object)
    frame = frame.rename(columns=frame.iloc[0]).iloc[1:].replace("", None)
    form = {"decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y"}
    types = {"visit": "identifier", "admitted": "date:2021-01-01:2023-12-31?", "age": "integer:0:99"}
    types |= {"fee": "number:0:2000000?", "ward": "categorical:Süd|Ost?"}
    draft = nacre.draft_schema(frame, name="visits", types=types, text=form)
    assert nacre.lint(draft).faults == [] and nacre.validate(frame, draft, raw=True)["success"].all()
    Path("visits.csv").write_text(GERMAN)
    of_file = yaml.safe_load(nacre.draft_schema("visits.csv"))
    assert of_file == yaml.safe_load(nacre.draft_schema(frame, name="visits"))
    assert of_file["columns"]["fee"] == {"type": "number", "min": "TODO", "max": "TODO"}
    assert "all columns are text" in nacre.draft_schema(frame, name="visits")
    one_number = frame.assign(age=pd.to_numeric(frame["age"]))
    assert "all columns are text" not in nacre.draft_schema(one_number, name="visits")
    way = r"`frame\['fee'\] = pandas.to_numeric\(frame\['fee'\]\)` does, or say how it is written by `text`"
    with refused(InvalidArgument, way):
        nacre.draft_schema(frame, types={"fee": "number:0:2000000?"})
    with refused(DataError, r'say above `columns` how the text writes them, as `text: {decimal: ","'):
        nacre.validate(frame, SCHEMA, raw=True)
    with refused(DataError, "must hold numbers in every row, as the schema says, written as 1.234,5, as its `text`"):
        nacre.validate(frame.assign(fee="1,234.5"), SCHEMA + TEXT, raw=True)
