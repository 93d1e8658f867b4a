"""Each kind of public documentation, read into the same facts about the same columns."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from openpyxl import Workbook

from dpmodels.authoring.documents.ddl import checked
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.facts import Bound, Facts, typed
from dpmodels.authoring.headings import HEADINGS, LANGUAGES, MEANT, folded
from dpmodels.authoring.source import Source, read_source
from dpmodels.authoring.type_words import KIND_OF, TYPE_WORDS
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import DataError, Unsuitable
from tests.kit.errors import refused
from tests.kit.expectations import WRITTEN
from tests.kit.support import run_cli

COLUMNS = ("age", "state", "fee", "born")


AMOUNT = Facts(kind="number", money=True)
JULY = Facts(kind="date", low=Bound(date(2020, 7, 1)))
LAST = Bound(date(2023, 12, 31))
TWO_DAYS = "bound 1.2.2025, which may be two days: write 2025-02-01 or 2025-01-02, or say --text"
TWO_NUMBERS = "bound 60.000, which may be two numbers: write 60 or 60000, or say --text"
NO_DAY = "bound 31.13.2023"


def documented(folder: Path, name: str, text: str) -> Source:
    (folder / name).write_text(text)
    return read_source(folder / name)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_kind_of_document_says_the_same_of_a_column(tmp_path: Path, name: str) -> None:
    source = documented(tmp_path, name, WRITTEN[name])
    assert name in source.origin and "sha256" in source.origin
    columns = source.columns(COLUMNS)
    age, state, fee, born = (columns[column] for column in COLUMNS)
    assert age.kind == "integer" and age.low == (0, False) and age.high in ((120, False), (121, True))
    assert age.nullable in (False, None) and state.nullable in (True, None) and born.nullable is not True
    assert state.kind == "text" and state.values == ("new", "paid", "void")
    assert (fee.kind, fee.decimals, fee.low, fee.high) == ("number", 2, (0, False), (999.99, False))
    assert (born.kind, born.low, born.high) == ("date", (date(1900, 1, 1), False), (date(2020, 12, 31), False))
    assert not any(facts.unread for facts in columns.values())
    if name != "suite.json":
        assert age.description == "Age in years"
    if name in ("dictionary.csv", "schema.json", "table.sql", "pandera.yaml", "patients.odcs.yaml"):
        assert (age.nullable, state.nullable, born.nullable) == (False, True, False)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("x,int,1-7,,", Facts(kind="integer", low=Bound(1), high=Bound(7))),
        ("x,int,-5..-1,,", Facts(kind="integer", low=Bound(-5), high=Bound(-1))),
        ('x,,,"1 = male, 2 = female",', Facts(values=(1, 2))),
        ('x,text,,"1: male; 2: female",', Facts(kind="text", values=("1", "2"))),
        ("x,,,01|02,", Facts(values=("01", "02"))),
        ('x,,,"[""a"", null]",', Facts(values=("a",), nullable=True)),
        ("x,boolean,,yes/no,", Facts(kind="boolean", values=(False, True))),
        ("x,bool,,yes|no,", Facts(kind="boolean", values=(False, True))),
        ("x,,,a|b|...,", Facts(unread=("values a|b|...",))),
        (
            'x,,,"see the manual of the old system, page 3",',
            Facts(unread=("values see the manual of the old system, page 3",)),
        ),
        ("x,,about ten,,", Facts(unread=("range about ten",))),
        ('x,amount,,"EUR 0 to 80,000",', replace(AMOUNT, low=Bound(0), high=Bound(80000))),
        ('x,Betrag,"0 bis 80.000,00 €",,', replace(AMOUNT, low=Bound(0), high=Bound(80000))),
        ('x,amount,,"$0.00 - $1,000.50",', replace(AMOUNT, low=Bound(0), high=Bound(1000.5))),
        ('x,amount,,"up to 80,000 EUR",', replace(AMOUNT, high=Bound(80000))),
        ("x,int,,jusqu'à 25,", Facts(kind="integer", high=Bound(25))),
        ("x,int,bis zu 25,,", Facts(kind="integer", high=Bound(25))),
        ("x,date,,not before 1 September 2021,", Facts(kind="date", low=Bound(date(2021, 9, 1)))),
        ("x,date,du 1er juillet 2020 au 31 août 2020,,", replace(JULY, high=Bound(date(2020, 8, 31)))),
        ('x,date,,"ab dem 1. Juli 2020",', JULY),
        ("x,date,,spätestens am 3. Tag,", Facts(kind="date", unread=("values spätestens am 3. Tag",))),
        ('x,text,,"Ashfield, Brook or Greenway",', Facts(kind="text", values=("Ashfield", "Brook", "Greenway"))),
        ('x,text,,"rouge, vert ou vide",', Facts(kind="text", values=("rouge", "vert"), nullable=True)),
        ("x,,,O ou N,", Facts(values=("O", "N"))),
        ("x,text,,one of a or b,", Facts(kind="text", values=("a", "b"))),
        ("x,text,,WX1 1 to WX8 6,", Facts(kind="text", unread=("values WX1 1 to WX8 6",))),
        ("x,int,,1 (worst) to 5 (best),", Facts(kind="integer", low=Bound(1), high=Bound(5))),
        ('x,whole number,,"about 0 to 10, or more",', Facts(kind="integer", unread=("values about 0 to 10, or more",))),
        ('x,amount,,"80,000",', replace(AMOUNT, unread=("values 80,000",))),
        ('x,int,,"100, 200, 80,000",', Facts(kind="integer", values=(100, 200, 80000))),
        ('x,int,,"100,200,300",', Facts(kind="integer", values=(100, 200, 300))),
        ('x,category,,"none, 1,000, 2,000",', Facts(kind="category", values=("none", "1,000", "2,000"))),
        ('x,category,,"0-1,000|1,001-2,000",', Facts(kind="category", values=("0-1,000", "1,001-2,000"))),
        ("x,category,,EUR|USD,", Facts(kind="category", values=("EUR", "USD"))),
        ("x,CHAR(1),,Y/N,", Facts(kind="text", values=("Y", "N"))),
        ("x,CHAR(1),,Y=yes; N=no,", Facts(kind="text", values=("Y", "N"))),
        ("x,flag,,Y=yes; N=no,", Facts(kind="boolean", values=(False, True))),
        ("x,text,,A/C,", Facts(kind="text", unread=("values A/C",))),
        ("x,date,31.12.2023 - 1.2.2025,,", Facts(kind="date", low=LAST, high=Bound(date(2025, 2, 1)))),
        ("x,date,2023-12-31 to 1.2.2025,,", Facts(kind="date", low=LAST, unread=(TWO_DAYS,))),
        ("x,date,12/31/2023 to 02/02/2024,,", Facts(kind="date", low=LAST, high=Bound(date(2024, 2, 2)))),
        ("x,date,31/12/2023 to 2024-01-01,,", Facts(kind="date", low=LAST, high=Bound(date(2024, 1, 1)))),
        ("x,date,31.13.2023 to 2024-01-01,,", Facts(kind="date", high=Bound(date(2024, 1, 1)), unread=(NO_DAY,))),
        ("x,Ganzzahl,1–9,,", Facts(kind="integer", low=Bound(1), high=Bound(9))),
        ("x,int,0 bis 5,,", Facts(kind="integer", low=Bound(0), high=Bound(5))),
        ("x,int,0 to 5,,", Facts(kind="integer", low=Bound(0), high=Bound(5))),
        ("x,int,entre 0 et 5,,", Facts(kind="integer", low=Bound(0), high=Bound(5))),
        ("x,int,[1; 10],,", Facts(kind="integer", low=Bound(1), high=Bound(10))),
        ('x,number,"[0, 1)",,', Facts(kind="number", low=Bound(0), high=Bound(1, open=True))),
        ("x,Betrag,>= 0,,", replace(AMOUNT, low=Bound(0))),
        ("x,number,<= 100,,", Facts(kind="number", high=Bound(100))),
        ("x,number,> 0 and <= 100,,", Facts(kind="number", low=Bound(0, open=True), high=Bound(100))),
        ("x,number,>= 0 >= 1,,", Facts(kind="number", unread=("range >= 0 >= 1",))),
        ("x,int,,>= 3,", Facts(kind="integer", low=Bound(3))),
        ('x,Dezimal,"0-60000,5",,', Facts(kind="number", low=Bound(0), high=Bound(60000.5))),
        ('x,number,"-1.234,5 bis 1.000.000",,', Facts(kind="number", low=Bound(-1234.5), high=Bound(1000000))),
        ("x,Ganzzahl,0 bis 60.000,,", Facts(kind="integer", low=Bound(0), unread=(TWO_NUMBERS,))),
        ("x,Betrag,0 bis 60.000,,", replace(AMOUNT, low=Bound(0), unread=(TWO_NUMBERS,))),
        ("x,,0 bis 60.000,,", Facts(low=Bound(0), unread=(TWO_NUMBERS,))),
        ("x,number,1.5 to 36.525,,", Facts(kind="number", low=Bound(1.5), high=Bound(36.525))),
        ("x,number,0 to 0.125,,", Facts(kind="number", low=Bound(0), high=Bound(0.125))),
        ("x,text,,card/cash/direct_debit,", Facts(kind="text", values=("card", "cash", "direct_debit"))),
        ("x,text,,see http://a.b/c,", Facts(kind="text", unread=("values see http://a.b/c",))),
        ("x,date,,31/12/2023,", Facts(kind="date", unread=("values 31/12/2023",))),
        ("x,Geometrie,1-9,,", Facts(low=Bound(1), high=Bound(9), unread=("type Geometrie",))),
        ("x,Short Text,,,", Facts(kind="text")),
        ("x,whole number,,,", Facts(kind="integer")),
        ("x,Whole Numbers,,,", Facts(kind="integer")),
        ('x,code,,"1 = a, 2 = b",', Facts(kind="category", values=(1, 2))),
        ("x,Yes/No,,,", Facts(kind="boolean")),
        ("x,flag,,Y / N,", Facts(kind="boolean", values=(False, True))),
        ("x,decimal,,,", Facts(kind="number")),
        ("x,currency,,,", AMOUNT),
        ("x,Free text,,,", Facts(kind="identifier")),
        ("x,int,,,sometimes", Facts(kind="integer", unread=("required sometimes",))),
        ("x,geometry,,,yes", Facts(unread=("type geometry",), nullable=False)),
    ],
)
def test_a_dictionary_is_read_as_people_write_it(tmp_path: Path, row: str, expected: Facts) -> None:
    text = f"variable,type,range,values,required\n{row}\n"
    assert documented(tmp_path, "d.csv", text).columns(["x"])["x"] == expected


@pytest.mark.parametrize("words", ["Allowed,Minimum", "Allowed values,Lowest", "Codes,From", "Levels,Lower limit"])
def test_usual_headings_of_a_dictionary_are_read(tmp_path: Path, words: str) -> None:
    source = documented(tmp_path, "d.csv", f"Variable,{words},Notes\nx,a|b,,\ny,,3,Third\n")
    columns = source.columns(["x", "y"])
    assert columns["x"].values == ("a", "b") and columns["y"].low == (3, False) and not source.remarks
    assert columns["y"].description == "Third"


def test_what_a_dictionary_says_of_an_amount_is_read(tmp_path: Path) -> None:
    text = (
        "name,type,zeros,scale,decimals,unit\na,number,yes,log,2,EUR\nb,number,no,linear,0.01,\nc,number,some,3,two,\n"
    )
    source = documented(tmp_path, "d.csv", text)
    columns = source.columns(["a", "b", "c"])
    assert columns["a"] == Facts(kind="number", zeros=True, scale="log", decimals=2)
    assert columns["b"] == Facts(kind="number", zeros=False, scale="linear", decimals=2)
    unread = ("zero_inflated some", "decimals or scale two")
    assert columns["c"] == Facts(kind="number", decimals=3, unread=unread) and not source.remarks


def test_headings_that_say_nothing_to_a_draft_are_named(tmp_path: Path) -> None:
    source = documented(tmp_path, "d.csv", "name,Wording,max,Source system,Codes,values\nx,0.00,7,SAP,,a|b\n,,,,,c\n")
    (remark,) = source.remarks
    start = "read as descriptions alone in d.csv: `Wording`, `Source system`"
    assert remark.startswith(f"{start}; headings that are read: name, type,")
    assert source.columns(["x"])["x"] == Facts(
        values=("a", "b", "c"), high=Bound(7), description="SAP", unread=("Wording 0.00",)
    )  # of two headings for values the first is empty; a row without a name goes on with the one above
    (tmp_path / "data.csv").write_text("x,z\n1,2\n")
    (tmp_path / "doc").mkdir()
    (tmp_path / "d.csv").rename(tmp_path / "doc" / "d.csv")
    code, out, err = run_cli("schema", "init", tmp_path / "data.csv", "--from", tmp_path / "doc" / "d.csv")
    assert code == 0 and f"# WARNING: {start}" in out and f"\nWARNING: {start}" in err


@pytest.mark.parametrize(
    "heading",
    [
        "Feldname;Typ;von;bis;Werte;Beschreibung;Pflicht",
        "Spalte;Format;Mindestwert;Größter Wert;Ausprägungen;Bemerkung;Pflichtfeld",
        "Name der Spalte;Datentyp;von;bis;Werte;Beschreibung;Pflicht",
        "Element Name;Data Format;Lower limit;Upper limit;Codes / Allowed;Column description;Required field",
        "Nom de la colonne;Type de données;Valeur min;Valeur max;Modalités;Libellé;Obligatoire",
        "Nombre del campo;Tipo de dato;Mínimo;Máximo;Valores permitidos;Descripción;Obligatorio",
    ],
)
def test_headings_in_other_languages_are_read(tmp_path: Path, heading: str) -> None:
    source = documented(tmp_path, "d.csv", f"{heading}\nx;integer;1;9;;Alter;ja\ny;;;;a|b;;non\n")
    columns = source.columns(["x", "y"])
    assert columns["x"] == Facts("integer", Bound(1), Bound(9), description="Alter", nullable=False)
    assert columns["y"] == Facts(values=("a", "b"), nullable=True) and not source.remarks


def test_a_format_beside_a_type_is_no_type(tmp_path: Path) -> None:
    source = documented(tmp_path, "d.csv", "name,Format,Type\nx,0.00,number\n")
    assert source.columns(["x"])["x"] == Facts(kind="number", unread=("Format 0.00",)) and not source.remarks


def test_no_heading_means_two_things_and_the_page_names_each() -> None:
    words = {meaning: [folded(word) for word in listed.split()] for meaning, listed in HEADINGS.items()}
    assert sum(len(set(each)) for each in words.values()) == len(MEANT)
    page = Path("docs/draft-a-schema.md").read_text().partition("## Headings and words for types")[2]
    assert set(re.findall(r"`(\w+)`", page)) >= {*HEADINGS, *TYPE_WORDS} and LANGUAGES in " ".join(page.split())


def test_no_type_means_two_kinds_and_each_is_read_as_people_write_it() -> None:
    letters = [{folded(word).replace("_", "") for word in words.split()} for words in TYPE_WORDS.values()]
    assert sum(map(len, letters)) == len(KIND_OF)
    for kind, words in TYPE_WORDS.items():
        for word in words.split():
            for written in (word, word.replace("_", " ").upper(), word.replace("_", "/")):
                assert replace(typed(written), money=False) == Facts(kind=kind), written


@pytest.mark.parametrize(
    ("row", "decimals"),
    [
        ("EUR,0,80,", 2),
        ("US Dollars (USD),0,80,", None),  # begins with no word for money, and so is not read
        ("Dollar,,,", 2),
        ("Betrag,0,,", 2),
        ("Währung,0,80,", 2),
        ("money,0,80,4", 4),
        ("money,0,80,0", 0),
        ("money,0,1.125,", None),
        ("price(10),0,80,", None),
        ("amount (whole),0,80,", None),
        ("number,0,80,", None),
        ("percent,0,80,", None),
    ],
)
def test_money_has_cents_unless_other_decimals_are_documented(tmp_path: Path, row: str, decimals: int | None) -> None:
    (tmp_path / "d.csv").write_text(f"name,type,min,max,decimals\npaid,{row}\n")
    pq.write_table(pa.table({"paid": [1.5]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("paid\n1.5\n")
    for data in ("t.parquet", "t.csv"):
        text = draft(tmp_path / data, public_facts=PublicFacts(document=tmp_path / "d.csv"))
        assert yaml.safe_load(text)["columns"]["paid"].get("round") == decimals, text
    cents = pa.array([1.5]).cast(pa.decimal128(10, 4))  # the type of a file goes before the word
    pq.write_table(pa.table({"paid": cents}), tmp_path / "t.parquet")
    text = draft(tmp_path / "t.parquet", public_facts=PublicFacts(document=tmp_path / "d.csv"))
    assert yaml.safe_load(text)["columns"]["paid"].get("round") != 2


def test_documented_names_that_the_data_lacks_are_said_and_those_that_stand_there_twice(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("hotel,Channel,room\nA,web,1\n")
    (tmp_path / "doc").mkdir()
    rows = "chanel,,a|b\nspa_spend,number,\nhotel,,A|B\nHOTEL,,C|D\nhotel,,B|C\n"
    (tmp_path / "doc" / "d.csv").write_text("name,type,values\n" + rows)
    code, out, err = run_cli("schema", "init", tmp_path / "data.csv", "--from", tmp_path / "doc" / "d.csv")
    absent = "described in d.csv, but no column of the data: `chanel` (did you mean `Channel`?), `spa_spend`, `HOTEL`"
    twice = "described more than once in d.csv, of which the last row counts: `hotel`"
    assert code == 0 and "values: [B, C]" in out
    for words in (absent, twice):
        assert f"\n# WARNING: {words}\n" in out and f"\nWARNING: {words}\n" in err


def test_of_many_names_that_the_data_lacks_the_first_are_said() -> None:
    source = Source({"": {name: Facts() for name in "abcdefgh"}}, "", "d.csv")
    assert source.absent(["a"]) == "described in d.csv, but no column of the data: `b`, `c`, `d`, `e`, `f` and 2 more"
    assert source.absent("abcdefgh") == ""


def test_a_dictionary_is_read_from_a_sheet(tmp_path: Path) -> None:
    book = Workbook()
    rows = [("Column", "Min", "Max", "Notes"), ("x", 1, 9.5, "one; two, three"), ("y", date(2020, 1, 1), None, None)]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "d.xlsx")
    columns = read_source(tmp_path / "d.xlsx").columns(["x", "y"])
    assert columns["x"] == Facts(low=Bound(1), high=Bound(9.5), description="one; two, three")
    assert columns["y"] == Facts(low=Bound(date(2020, 1, 1)))
    book.create_sheet("other")
    book.save(tmp_path / "d.xlsx")
    assert read_source(tmp_path / "d.xlsx#Sheet").columns(["x", "y"]) == columns
    with refused(DataError, "holds several sheets"):
        read_source(tmp_path / "d.xlsx")
    book["Sheet"]["B2"] = "=1+1"
    book.save(tmp_path / "d.xlsx")
    with pytest.raises(Unsuitable, match="holds a formula"):
        read_source(tmp_path / "d.xlsx#Sheet")


NAMES = """# What was lent: a list

- `amount`: what was lent, in cents;
  empty if not approved
- **late:** one of
  - 0: no
  - 1: yes
* state : of the person, optional
1. born: a day
Written by: us
"""


@pytest.mark.parametrize("name", ["d.md", "d.txt", "d.markdown"])
def test_a_list_of_names_is_a_dictionary_of_two_columns(tmp_path: Path, name: str) -> None:
    source = documented(tmp_path, name, NAMES)
    columns = source.columns(["amount", "late", "state", "born"])
    words = "what was lent, in cents; empty if not approved"
    assert columns["amount"] == Facts(description=words, money=True, nullable=True, place=f"line 3 of {name}")
    assert columns["late"].description == "one of; 0: no; 1: yes" and columns["born"].description == "a day"
    assert columns["state"].nullable and source.absent(columns).endswith("no column of the data: `Written by`")
    plain = documented(tmp_path, name, "amount: what was lent\nlate: yes or no\n").columns(["late", "amount"])
    assert [one.description for one in plain.values()] == ["yes or no", "what was lent"]
    with pytest.raises(Unsuitable, match=r"`- name: what it is`.*\.csv or \.xlsx" if name != "d.txt" else "headings"):
        documented(tmp_path, name, "What is lent\n\nis in euros.")
    for hostile in ("`*" * 200_000, "- " * 200_000 + "x", ("a" * 90 + " ") * 10_000 + ": b", "- x: " + "y" * 2**20):
        with suppress(Unsuitable):
            documented(tmp_path, name, hostile)
    (tmp_path / name).write_text("- x: y\n" * 2**19)
    with pytest.raises(Unsuitable, match="at most 2 MiB"):
        read_source(tmp_path / name)


def test_a_text_with_headings_is_no_list(tmp_path: Path) -> None:
    text = "name;note\nx;limits: 3 and 4\ny;as y: above\n"
    assert documented(tmp_path, "d.txt", text).columns(["x"])["x"].description == "limits: 3 and 4"


@pytest.mark.parametrize("name", ["d.xls", "d.docx", "d.csv"])
def test_a_document_that_is_no_text_is_to_be_saved_as_csv(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0" * 9)
    with pytest.raises(Unsuitable, match=r"in UTF-8 of at most 2 MiB: save it as UTF-8 \(in Excel as CSV UTF-8\)"):
        read_source(tmp_path / name)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("x,timestamp,,Minute,,", Facts(kind="moment", resolution="minute")),
        ("x,timestamp,,fortnight,,", Facts(kind="moment", unread=("resolution fortnight",))),
        ("x,free text,,,,", Facts(kind="identifier")),
        ("x,int,,,y // 100,", Facts(kind="integer", derived={"formula": "y // 100"})),
        ("x,int,,,MAX(0; y - ABS(y)),", Facts(kind="integer", derived={"formula": "max(0, y - abs(y))"})),
        ('x,int,,,"=Min(0,5; y)",', Facts(kind="integer", derived={"formula": "min(0.5, y)"})),
        ("x,int,,,JAHR(y),", Facts(kind="integer", unread=("formula",))),
        ("x,int,,,n/a,", Facts(kind="integer", unread=("formula",))),
        ("x,int,,,as in chapter 3,", Facts(kind="integer", unread=("formula",))),
        ('x,,"a = Ash | b = Elm",,,y', Facts(derived={"of": "y", "values": {"a": "Ash", "b": "Elm"}})),
        ('x,,"a = Ash | b",,,y', Facts(unread=("the names of y",))),
        ("x,text,a|b,,,z", Facts(kind="text", values=("a", "b"))),
    ],
)
def test_a_dictionary_says_what_a_column_follows_from(tmp_path: Path, row: str, expected: Facts) -> None:
    text = f"name,type,values,granularity,formula,lookup\n{row}\ny,text,a|b,,,\n"
    assert documented(tmp_path, "d.csv", text).columns(["x"])["x"] == expected


UNREAD = {"x": Facts(unread=("a CHECK",))}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x IN (1, -2, 3)", {"x": Facts(values=(1, -2, 3))}),
        (
            "((x)::text = ANY ((ARRAY['a'::character varying, 'it''s'::text])::text[]))",
            {"x": Facts(values=("a", "it's"))},
        ),
        ("x > 0 AND y IS NOT NULL", {"x": Facts(low=Bound(0, True)), "y": Facts(nullable=False)}),
        ("10 >= x", {"x": Facts(high=Bound(10))}),
        ("x BETWEEN 1 AND 5 AND x BETWEEN 3 AND 9", {"x": Facts(low=Bound(3), high=Bound(5))}),
        ("(x >= 1 AND (x < 9 AND x <= 9))", {"x": Facts(low=Bound(1), high=Bound(9, True))}),
        ("x = 'a'", {"x": Facts(values=("a",))}),
        ("x > 0 OR x < -5", UNREAD),
        ("(x > 0) OR (x < -5)", UNREAD),
        ("NOT (x > 0)", UNREAD),
        ("NOT x IN (1, 2)", UNREAD),
        ("x NOT IN (1, 2)", UNREAD),
        ("x NOT BETWEEN 1 AND 2", UNREAD),
        ("(x > 0) IS FALSE", UNREAD),
        ("lower(x) IN ('a')", UNREAD),
        ("x + 1 > 0", UNREAD),
        ("x * 2 <= 10", UNREAD),
        ("x > y", UNREAD),
        ("x <> 3", UNREAD),
        ("x > 1 - 5", UNREAD),
        ("date >= DATE '2020-01-01'", {"date": Facts(low=Bound(date(2020, 1, 1)))}),
        ("x IN (1 - 5, 3)", UNREAD),
        ("x > (3) - 5", UNREAD),
        ("x > - (5)", UNREAD),
        ("CASE WHEN x > 1 THEN y > 2 END", UNREAD),
        ("x IN (1, y)", UNREAD),
        ("x > 1 AND (y > 1 OR y < 0)", {"x": Facts(low=Bound(1, True)), "y": Facts(unread=("a CHECK",))}),
    ],
)
def test_a_check_is_read_only_where_it_bounds_a_column_by_itself(condition: str, expected: Mapping[str, Facts]) -> None:
    found = checked(condition)
    assert {name: facts for name, facts in found.items() if name in ("x", "y", "date")} == (
        {name: UNREAD["x"] for name in found if name in ("x", "y")} if expected is UNREAD else expected
    )
    assert found.keys() >= expected.keys()


def test_ddl_of_several_dialects(tmp_path: Path) -> None:
    mysql = (
        "CREATE TABLE `t` (`id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,"
        " `kind` enum('a','b') NOT NULL COMMENT 'a; b',"
        " `on` tinyint(1), PRIMARY KEY (`id`), KEY `k` (`kind`)) ENGINE=InnoDB;"
    )
    columns = documented(tmp_path, "m.sql", mysql).columns(["id", "kind", "on"])
    assert columns["id"] == Facts(kind="identifier", nullable=False, unique=True)
    assert columns["kind"].values == ("a", "b") and columns["kind"].description == "a; b"
    server = "CREATE TABLE [dbo].[t] ([Amount] [decimal](10, 2) NOT NULL, [At] datetime2(7) NULL, who uniqueidentifier)"
    columns = documented(tmp_path, "s.sql", server).columns(["amount", "At", "who"])
    assert (columns["amount"].kind, columns["amount"].decimals) == ("number", 2)
    assert (columns["At"].kind, columns["who"].kind) == ("moment", "identifier")
    dump = "CREATE TABLE public.t (id int NOT NULL); ALTER TABLE ONLY t ADD CONSTRAINT p PRIMARY KEY (id);"
    many = "CREATE TABLE t (x int CHECK (x > 0 AND x % 2 = 0), y int, z int, CHECK (z < 9), CHECK (x > y));"
    columns = documented(tmp_path, "c.sql", many).columns(["x", "y", "z"])
    assert columns["x"].low == (0, True) and columns["x"].unread == ("a CHECK", "a CHECK")
    assert columns["y"].unread and columns["z"].high == (9, True)
    assert documented(tmp_path, "p.sql", dump).columns(["id"])["id"].kind == "identifier"


def test_a_check_of_dbt_says_nothing_of_another_column(tmp_path: Path) -> None:
    column = {"name": "x", "constraints": [{"type": "check", "expression": "y > 0 and X < 5"}]}
    text = yaml.safe_dump({"models": [{"name": "t", "columns": [column]}]})
    assert documented(tmp_path, "c.yml", text).columns(["x"])["x"] == Facts(high=Bound(5, True))


def test_the_table_that_is_meant_is_found_or_asked_for(tmp_path: Path) -> None:
    source = documented(tmp_path, "t.sql", "CREATE TABLE a (x int, y int); CREATE TABLE b (X date, z int, y text);")
    assert source.columns(["x", "y", "z"])["x"].kind == "date"  # b has more of the names
    assert source.columns(["x", "y"], "a")["x"].kind == "integer"
    with pytest.raises(Unsuitable, match=r"choose one by --table: a, b"):
        source.columns(["x"])
    with pytest.raises(Unsuitable, match="has no table c"):
        source.columns(["x"], "c")
    with pytest.raises(Unsuitable, match=r"none of the columns: the names in it are x, y, X, z$"):
        source.columns(["other"])


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        (
            "a.csv",
            "age,min\n3,4\n",
            "such as `type`, .*; its first line is `age`, `min`, of which is known: `min`. Write",
        ),
        (
            "a.csv",
            "Nummer;Sorte\n3,4\n",
            "for the names of columns, .*is `Nummer`, `Sorte`, of which is known: none. W",
        ),
        ("a.csv", "", "headings.* its first line is empty"),
        (
            "a.txt",
            "Codebook\n\nThe age lies between 16 and 55.\n",
            r"its first line has none. Write .*demo/codebook.csv is, or .*--types$",
        ),
        ("a.txt", "Ward survey, of spring 2020, and so on\n", r"its first line has none. Write [^[]*--types$"),
        ("a.csv", "name,max,notes\nx,3,one, two\n", "line 2 of the data dictionary, which begins with `x`, has more"),
        ("a.sql", "SELECT 1", "no CREATE TABLE"),
        ("a.sql", "CREATE TABLE a (x int", "not closed"),
        ("a.sql", "CREATE TABLE a (x int DEFAULT 'x)", "not closed"),
        ("a.sql", "CREATE TABLE (", "not closed"),
        ("a.sql", "CREATE TABLE", "no CREATE TABLE"),
        ("a.sql", "ALTER TABLE ADD; COMMENT ON COLUMN IS;", "CREATE TABLE"),
        ("a.json", "{", "not written as"),
        ("a.json", "[" * 100_000, "not written as"),
        ("a.json", "3", "none of the documents"),
        ("a.yml", "a: [", "not written as"),
        ("a.yml", "models: 3", "none of the documents"),
        ("a.yml", "columns: [a]", "none of the documents"),
        ("a.json", '{"expectations": [3, {"kwargs": {"column": "x"}}], "x": 1}', None),
        ("a.yml", "models: [3, {columns: {a: b}}, {columns: [1, {name: x, data_tests: 3, constraints: [1]}]}]", None),
        ("a.json", '{"properties": {"x": 3, "y": {"$ref": "#/properties/y"}, "z": {"anyOf": [{"$ref": "#"}]}}}', None),
        ("a.yml", "columns: {x: 3, y: {checks: {isin: 3, ge: [1]}}}", None),
    ],
)
def test_a_document_that_cannot_be_read_is_refused_in_a_sentence(
    tmp_path: Path, name: str, text: str, match: str | None
) -> None:
    if match is None:
        assert documented(tmp_path, name, text).columns(["x"])["x"].kind is None
        return
    with pytest.raises(Unsuitable, match=match) as caught:
        documented(tmp_path, name, text)
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)


def test_a_public_sample_gives_types_extremes_and_categories(tmp_path: Path) -> None:
    text = "age,state,fee,born,word,on\n" + "".join(
        f"{17 + i},{'new' if i % 2 else 'paid'},{i}.25,2020-01-{1 + i % 9:02},w{i},{'true' if i % 3 else ''}\n"
        for i in range(40)
    )
    (tmp_path / "s.csv").write_text(text)
    source = read_source(tmp_path / "s.csv", sample=True)
    assert source.origin.startswith("derived from a public sample: s.csv, sha256 ")
    columns = source.columns(["age", "state", "fee", "born", "word", "on"])
    assert columns["age"] == Facts(kind="integer", low=Bound(17), high=Bound(56), nullable=False)
    assert columns["state"].values == ("new", "paid") and columns["word"].values is None and columns["word"].unread
    assert (columns["fee"].decimals, columns["fee"].high) == (2, Bound(39.25))
    assert columns["born"].high == Bound(date(2020, 1, 9)) and columns["on"].nullable
    pq.write_table(pa.table({"x": pa.array([None, float("nan")])}), tmp_path / "s.parquet")
    assert read_source(tmp_path / "s.parquet", sample=True).columns(["x"])["x"].low is None
    (tmp_path / "e.csv").write_text("a,b\n")
    with pytest.raises(Unsuitable, match="public sample"):
        read_source(tmp_path / "e.csv", sample=True)


KEY = {"name": "who", "logicalType": "string", "primaryKey": True}
VISIT = {"name": "visit", "logicalType": "integer"}


def odcs_of(*columns: Mapping[str, object]) -> str:
    return yaml.safe_dump({"kind": "DataContract", "schema": [{"name": "t", "properties": list(columns)}]})


def dbt_of(*columns: Mapping[str, object]) -> str:
    return yaml.safe_dump({"models": [{"name": "t", "columns": list(columns)}]})


def suite_of(**more: object) -> str:
    settings = {"column": "who", **more}
    return json.dumps({"expectations": [{"type": "expect_column_values_to_be_unique", "kwargs": settings}]})


DBT_KEY = [{"type": "primary_key"}]
ONE_KEY = [
    ("a.odcs.yaml", odcs_of(KEY, VISIT)),
    ("b.odcs.yaml", odcs_of({**VISIT, "name": "who", "unique": True}, VISIT)),
    ("c.yml", dbt_of({"name": "who", "tests": ["unique"]}, VISIT)),
    ("d.yml", dbt_of({"name": "who", "data_tests": ["dbt_expectations.expect_column_values_to_be_unique"]}, VISIT)),
    ("e.yml", dbt_of({"name": "who", "constraints": DBT_KEY}, VISIT)),
    ("f.yaml", "columns: {who: {dtype: int64, unique: true}, visit: {dtype: int64}}"),
    ("g.json", suite_of()),
    ("h.csv", "name,type\nwho,primary key\nvisit,int\n"),
    ("i.csv", "name,type,eindeutig\nwho,id,ja\nvisit,int,nein\n"),
    ("j.csv", "name,type\nwho,Primärschlüssel\nvisit,id\n"),
    ("o.csv", "name,type,note\nwho,text,eindeutig\nvisit,int,\n"),
    ("k.sql", "CREATE TABLE t (who text PRIMARY KEY, visit int)"),
    ("l.sql", "CREATE TABLE t (who text, visit int, PRIMARY KEY (who))"),
    ("m.sql", "CREATE TABLE t (who uuid UNIQUE, visit int)"),
    ("n.sql", "CREATE TABLE t (who uuid, visit int, CONSTRAINT u UNIQUE (who))"),
]
NO_KEY_OF_ONE = [
    ("a.odcs.yaml", odcs_of(KEY, {**VISIT, "primaryKey": True})),
    ("b.odcs.yaml", odcs_of({"name": "who", "customProperties": [{"property": "identifier", "value": True}]}, VISIT)),
    ("c.yml", dbt_of({"name": "who", "tests": [{"unique": {"where": "visit > 1"}}]}, VISIT)),
    ("e.yml", dbt_of({"name": "who", "constraints": DBT_KEY}, {**VISIT, "constraints": DBT_KEY})),
    ("f.yaml", "columns: {who: {dtype: int64, unique: false}, visit: {dtype: int64}}\nunique: [who, visit]"),
    ("g.json", suite_of(mostly=0.99)),
    ("h.csv", "name,type\nwho,primary key\nvisit,primary key\n"),
    ("i.csv", "name,type,unique\nwho,id,no\nvisit,int,yes\n"),
    ("j.csv", "name,type\nwho,foreign key\nvisit,int\n"),
    ("l.sql", "CREATE TABLE t (who text, visit int, PRIMARY KEY (who, visit))"),
    ("n.sql", "CREATE TABLE t (who uuid, visit int, UNIQUE (who, visit))"),
]


@pytest.mark.parametrize(("name", "text"), ONE_KEY)
def test_a_key_of_one_column_is_drafted_as_unique(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "data.csv").write_text("who,visit\na,1\n")
    written = draft(tmp_path / "data.csv", True, PublicFacts(tmp_path / name))
    assert "  who: {type: identifier, unique: true}" in written and written.count("unique: true}") == 1
    assert "unit: record  # or {user: ID_COLUMN" in written


@pytest.mark.parametrize(("name", "text"), NO_KEY_OF_ONE)
def test_a_column_is_not_unique_for_being_part_of_a_key(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "data.csv").write_text("who,visit\na,1\n")
    assert "unique: true}" not in draft(tmp_path / "data.csv", True, PublicFacts(tmp_path / name))


@pytest.mark.parametrize("kind", ["int64", "str", "float64", "datetime64[ns]", "bool"])
def test_what_is_unique_names_rows_if_it_is_of_whole_numbers_or_text(tmp_path: Path, kind: str) -> None:
    facts = documented(tmp_path, "p.yaml", f"columns: {{x: {{dtype: '{kind}', unique: true}}}}").columns(["x"])["x"]
    assert (facts.kind == "identifier") == (kind in ("int64", "str")) and facts.unique


def test_values_that_differ_say_nothing_of_whether_they_are_unique(tmp_path: Path) -> None:
    table = pa.table({"patient_id": ["a", "b", "c"], "age": [1, 2, 3]})
    pq.write_table(table, tmp_path / "sample.parquet")
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "a.parquet")
    for facts in (PublicFacts(accept=True), PublicFacts(sample=tmp_path / "sample.parquet", accept=True)):
        assert "unique: true}" not in draft(tmp_path / "data", True, facts)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("x,number,0;1,500", None),  # either mark may be meant
        ("x,number,0;1.525", None),
        ("x,number,0,5;1,500", 1.5),
        ("x,number,0,5;1.525", 1525),
        ("x,number,0,500;60.000", 60000),
        ("x,number,0.5;1,500", 1500),
        ("x,number,0.25;1.525", 1.525),
        ("x,number,0.25;60.000", 60),
        ("x,integer,0;1,500", 1500),  # nobody writes decimals of whole numbers behind a comma
        ("x,integer,0;60.000", None),
        ("x,number,0,5;1.234,5", 1234.5),
        ("x,number,0;1,234,500", 1234500),
    ],
)
def test_the_other_numbers_of_a_document_say_what_stands_before_its_decimals(
    tmp_path: Path, cells: str, expected: float | None
) -> None:
    name, kind, ends = cells.split(",", 2)
    text = f"name;type;min;max\n{name};{kind};{ends}\n"
    high = documented(tmp_path, "d.csv", text).columns(["x"])["x"]
    assert high.high == (None if expected is None else Bound(expected))
    assert ("may be two numbers: write 1.5 or 1500" in "".join(high.unread)) == (expected is None and ends == "0;1,500")
    other = f"name;type;min;max\nx;{kind};0;{ends.split(';')[1]}\ny;number;{ends.split(';')[0]};9\n"
    assert documented(tmp_path, "e.csv", other).columns(["x"])["x"].high == high.high  # another row says it


def test_where_two_ways_to_write_numbers_stand_in_one_document_none_is_believed(tmp_path: Path) -> None:
    text = "name;type;range\nx;number;0 bis 1,500\ny;number;0,5 bis 9\nz;number;0.5 - 9\n"
    assert documented(tmp_path, "d.csv", text).columns(["x"])["x"].high is None
    text = 'name,type,range\nx,number,"0 to 1,500"\n'  # cells that commas part are of people who write 1,500
    assert documented(tmp_path, "e.csv", text).columns(["x"])["x"].high == Bound(1500)
    text = 'name,type,range\nx,number,"0,500 bis 0,750"\n'  # nobody parts thousands behind a 0
    assert documented(tmp_path, "f.csv", text).columns(["x"])["x"].low == Bound(0.5)


def test_what_several_columns_of_a_dictionary_say_stands_in_the_comment(tmp_path: Path) -> None:
    text = "Name,Type,Description,Note,Remark\nage,integer,Age,at admission,Age\nfee,number,,billed,\n"
    columns = documented(tmp_path, "d.csv", text).columns(("age", "fee"))
    assert [columns[name].description for name in ("age", "fee")] == ["Age; at admission", "billed"]


@pytest.mark.parametrize("words", ["ja/nein", "Ja / Nein", "Wahr/Falsch", "oui/non", "S/N", "Sí / No"])
def test_answers_that_data_is_not_read_for_are_values(tmp_path: Path, words: str) -> None:
    (tmp_path / "d.csv").write_text(f"name,type\nsick,{words}\nfee,number\n")
    (tmp_path / "data.csv").write_text("sick,fee\nja,1\n")
    text = draft(tmp_path / "data.csv", public_facts=PublicFacts(document=tmp_path / "d.csv"))
    values = [word.strip() for word in words.split("/")]
    assert yaml.safe_load(text)["columns"]["sick"] == {"type": "categorical", "values": values}


@pytest.mark.parametrize("words", ["yes/no", "Y / N", "true/false", "boolean"])
def test_answers_that_data_is_read_for_are_booleans(tmp_path: Path, words: str) -> None:
    columns = documented(tmp_path, "d.csv", f"name,type\nsick,{words}\nfee,number\n").columns(("sick", "fee"))
    assert (columns["sick"].kind, columns["sick"].values) == ("boolean", None)


@pytest.mark.parametrize("rest", ["fee,number,billed\nborn,date,\n", 'fee,number,"billed, at last"\nborn,date,\n'])
def test_a_quotation_mark_that_swallows_rows_is_refused_with_its_line(tmp_path: Path, rest: str) -> None:
    text = 'name,type,description\nsick,yes/no,"Sick\nor not"\nage,integer,"Age in years\n' + rest
    with refused(Unsuitable, "begins in line 4 has a quotation mark that is not closed"):
        documented(tmp_path, "d.csv", text).columns(("age", "fee"))
    whole = text.replace("Age in years", 'Age in years"')
    columns = documented(tmp_path, "d.csv", whole).columns(("sick", "age", "fee"))
    assert set(columns) >= {"sick", "age", "fee"} and columns["sick"].description == "Sick\nor not"
    sloppy = documented(tmp_path, "d.csv", 'name,type,description\nage,integer,"Age" in years\nfee,number,x\n')
    assert set(sloppy.columns(("age", "fee"))) == {"age", "fee"}


@pytest.mark.parametrize(
    ("kind", "cell", "values"),
    [
        ("number", "0 / 2,5 / 5 / 10", (0, 2.5, 5, 10)),
        ("category", "new / paid", ("new", "paid")),
        ("category", "1 = new / 2 = paid", (1, 2)),
        ("category", "a / b, c / d", ("a / b", "c / d")),
        ("category", "N/A", None),
    ],
)
def test_slashes_between_blanks_part_values(tmp_path: Path, kind: str, cell: str, values: tuple[object] | None) -> None:
    text = f"name;type;values\nstate;{kind};{cell}\nfee;number;\n"
    assert documented(tmp_path, "d.csv", text).columns(("state", "fee"))["state"].values == values


HALF_PAST, NINE = datetime(2021, 1, 2, 8, 30), datetime(2021, 1, 3, 9)
GERMAN = {"decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y", "datetime_format": "%d.%m.%Y %H:%M"}


@pytest.mark.parametrize(
    ("kind", "low", "high", "form", "ends"),
    [
        ("number", "0", "200.000", GERMAN, (0, 200_000)),
        ("number", "-1.234,5", "1.234.567", GERMAN, (-1234.5, 1_234_567)),
        ("number", "0,125", "1,500", GERMAN, (0.125, 1.5)),
        ("EUR", "0", "1,500", {"decimal": "."}, (0, 1500)),
        ("number", "0", "200 000,5", {"decimal": ",", "thousands": " "}, (0, 200_000.5)),
        ("integer", "0", "200.000", GERMAN, (0, 200_000)),
        ("date", "02.01.2021", "03.04.2021", GERMAN, (date(2021, 1, 2), date(2021, 4, 3))),
        ("date", "02/01/2021", "03/04/2021", {"date_format": "%m/%d/%Y"}, (date(2021, 2, 1), date(2021, 3, 4))),
        ("date", "2021-01-02", "2021-04-03", GERMAN, (date(2021, 1, 2), date(2021, 4, 3))),
        ("datetime", "02.01.2021 08:30", "03.01.2021 09:00", GERMAN, (HALF_PAST, NINE)),
    ],
)
def test_a_dictionary_is_read_by_the_marks_that_a_person_says(
    tmp_path: Path, kind: str, low: str, high: str, form: dict[str, str], ends: tuple[object, object]
) -> None:
    ways = (f"name;type;min;max\nx;{kind};{low};{high}\n", f"name;type;range\nx;{kind};{low} bis {high}\n")
    for text in ways[: 1 if ":" in low else 2]:
        (path := tmp_path / "d.csv").write_text(text)
        facts = read_source(path, form=TextForm.model_validate(form)).columns(["x"])["x"]
        assert (facts.low and facts.low.value, facts.high and facts.high.value) == ends and not facts.unread, text


@pytest.mark.parametrize(
    ("row", "form", "low"),
    [
        ("EUR;25,000 to 250,000;", GERMAN, None),
        ("number;EUR 25,000 to 250,000;", {"decimal": ","}, None),
        ("number;25,000 to 250,000;2", GERMAN, None),
        ("decimal(10,2);25,000 to 250,000;", GERMAN, None),
        ("integer;25,000 to 250,000;", GERMAN, None),
        ("EUR;25.000 to 250.000;", {"decimal": "."}, None),
        ("EUR;25.000 to 250.000;", GERMAN, 25_000),
        ("EUR;25,00 to 250,00;", GERMAN, 25),
        ("number;25,000 to 250,000;3", GERMAN, 25),
    ],
)
def test_money_has_no_three_decimals_where_a_form_is_that_of_the_table(
    tmp_path: Path, row: str, form: dict[str, str], low: float | None
) -> None:
    (path := tmp_path / "d.csv").write_text(f"name;type;range;decimals\nx;{row}\n")
    facts = read_source(path, form=TextForm.model_validate(form)).columns(["x"])["x"]
    assert (facts.low and facts.low.value) == low
    mark = row[row.index("25") + 2]
    said = [f"bound 25{mark}000, which may be two numbers: write 25 or 25000, or say --text"] * (low is None)
    assert [one for one in facts.unread if one.startswith(f"bound 25{mark}")] == said


def test_a_dictionary_of_another_encoding_and_a_row_that_is_too_long_say_where_and_what_to_do(tmp_path: Path) -> None:
    (path := tmp_path / "d.csv").write_bytes("name;type\nGröße;Zahl\n".encode("latin-1"))
    with pytest.raises(Unsuitable, match=r"save it as UTF-8 \(in Excel as CSV UTF-8\)"):
        read_source(path)
    path.write_text('name;type;notes\n\na;Zahl;"two\nlines"\nb;Zahl;one;two\n')
    with pytest.raises(Unsuitable, match=r"line 5 of .* begins with `b`, has more cells \(4\) than headings \(3\)"):
        read_source(path)
