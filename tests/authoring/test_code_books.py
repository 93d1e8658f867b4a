"""Code books as people write them: rows for several columns, prose around them, unknown headings, and nothing lost."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

import nacre
from dpmodels.authoring.documents.joint_rows import columns_of
from dpmodels.authoring.draft import PublicFacts, draft

PUPILS = "pupil_id,school,postcode,maths,english,science,joined_on,absences,fees"
CSV = """\
Field,What it holds,Allowed
pupil_id,number of the pupil,P and six digits
school,,"Ashfield, Brook or Greenway"
postcode,home,WX1 1 to WX8 6
"maths, english, science",marks,0 to 100
joined_on,,not before 1 September 2021
absences,days of the year,up to 25
fees,in pounds,0.00 to 50.00
"""
MARKDOWN = """\
# Pupils

Note: marks of pupils who left are missing.
Please see: the data office.

| Column | Content |
|---|---|
| pupil_id | P and six digits |
| school | Ashfield, Brook or Greenway |
| postcode | WX1 1 to WX8 6 |
| maths, english and science | 0 to 100 |
| joined_on | not before 1 September 2021 |
| absences | up to 25 |
| fees | 0.00 to 50.00 |

All marks are whole: see the appendix.
"""
TEXT = """\
Codebook of the school year 2023
Note: marks of pupils who left are missing.
One row is one pupil: nobody is there twice.

pupil_id   P and six digits
school     Ashfield, Brook or Greenway
postcode   WX1 1 to WX8 6
maths / english / science   0 to 100
joined_on  not before 1 September 2021
absences   up to 25
fees       0.00 to 50.00
"""


def drafted(folder: Path, book: str, text: str, names: str = PUPILS) -> tuple[str, dict[str, Any]]:
    """Return the draft of a table of these names by a code book, and its columns."""
    (folder / "doc").mkdir(exist_ok=True)
    (folder / "doc" / book).write_text(text, encoding="utf-8")
    (folder / "data.csv").write_text(names + "\n", encoding="utf-8")
    text = draft(folder / "data.csv", public_facts=PublicFacts(folder / "doc" / book, accept=True))
    return text, yaml.safe_load(text)["columns"]


@pytest.mark.parametrize(("book", "text"), [("c.csv", CSV), ("c.md", MARKDOWN), ("c.txt", TEXT)])
def test_a_code_book_of_any_form_says_the_same_and_loses_no_word(tmp_path: Path, book: str, text: str) -> None:
    made, columns = drafted(tmp_path, book, text)
    assert all(columns[name] == {"type": "integer", "min": 0, "max": 100} for name in ("maths", "english", "science"))
    assert columns["school"]["values"] == ["Ashfield", "Brook", "Greenway"]
    assert str(columns["joined_on"]["min"]) == "2021-09-01" and columns["absences"]["max"] == 25
    assert columns["fees"]["round"] == 2 and columns["fees"]["max"] == 50
    assert "WX1 1 to WX8 6" in made and "pattern:X[0-9]{6}" in made
    assert "no column of the data" not in made  # neither prose nor a row for several columns


def test_lines_that_may_name_a_column_are_still_warned_of(tmp_path: Path) -> None:
    made, _ = drafted(tmp_path, "c.txt", TEXT.replace("absences ", "absence: ").replace("fees   ", "shoe_size:"))
    assert "no column of the data: `absence` (did you mean `absences`?), `shoe_size`" in made


@pytest.mark.parametrize(
    ("name", "several"),
    [
        ("q1 to q3", ["q1", "q2", "q3"]),
        ("q1-q2, age", ["q1", "q2", "age"]),
        ("q1 bis 3", ["q1", "q2", "q3"]),
        ("Q1 / AGE", ["Q1", "AGE"]),
        ("age, kg", ["age", "kg"]),
        ("pay, net", ["pay, net"]),
        ("a, b, age", ["a, b, age"]),
        ("q7 to q9", ["q7 to q9"]),
    ],
)
def test_a_row_is_of_several_columns_where_most_of_them_are_in_the_data(name: str, several: list[str]) -> None:
    assert columns_of(name, ["q1", "q2", "q3", "age", "pay, net"]) == several
    assert columns_of(name, []) == [name]


def test_formulas_of_money_are_rounded_to_cents_and_others_are_not(tmp_path: Path) -> None:
    text = (
        "name,min,max,decimals,formula\nnet,1.00,9.99,2,\nrate,0.07,0.2,,\nunits,0,9,0,\ngross,,,,net * (1 + rate)\n"
        'boxes,,,,units * 12\nis_dear,,,,net > 5\nwhole,,,,floor(net)\nlarger,,,,"max(net, 2 * net)"\n'
    )
    _, columns = drafted(tmp_path, "c.csv", text, "net,rate,units,gross,boxes,is_dear,whole,larger")
    assert {name for name, one in columns.items() if one["type"] == "derived" and "round" in one} == {"gross", "larger"}
    _, columns = drafted(
        tmp_path, "c.csv", "name;Inhalt\nnetto;10,00 bis 90,00\nbrutto;= netto * 1,19\n", "netto,brutto"
    )
    assert columns["brutto"] == {"type": "derived", "formula": "netto * 1.19", "round": 2}


def test_moments_of_a_year_signs_in_words_and_numbers_by_category_are_read_beneath_headings(tmp_path: Path) -> None:
    book = """# Visits

## arrived
date and time, MM/DD/YYYY HH:MM, in 2025

## complaint
chest pain, injury, fever, breathing, back pain, headache or other

## cover
Medicare, private or Medicaid

## percent
80 for Medicare, 70 for private, 95 for Medicaid

## charge
from $100.00 to $60,000.00

## paid
charge times percent / 100, to the cent

## balance
charge minus paid

## tests
number of tests, at most 25

What it is for: a study of charges between 1 and 9 by complaint.
"""
    text, columns = drafted(tmp_path, "b.md", book, "arrived,complaint,cover,percent,charge,paid,balance,tests")
    assert "datetime_format: '%m/%d/%Y %H:%M'" in text and "study of charges" not in text
    assert columns["arrived"] | {"confirm": 0} == {
        "type": "datetime",
        "min": date(2025, 1, 1),
        "max": date(2025, 12, 31),
        "resolution": "minute",
        "confirm": 0,
    }
    assert columns["complaint"]["values"][0] == "chest pain" and len(columns["complaint"]["values"]) == 7
    prices = "{'Medicare': 80, 'private': 70, 'Medicaid': 95}[cover]"
    assert columns["percent"]["formula"] == prices
    assert columns["paid"]["formula"] == "round(charge * percent) / 100"
    assert columns["balance"]["formula"] == "charge - paid" and columns["balance"]["round"] == 2
    assert (columns["tests"]["type"], columns["tests"]["min"], columns["tests"]["max"]) == ("integer", 0, 25)


def test_numbers_of_descriptions_tell_how_bounds_are_written(tmp_path: Path) -> None:
    book = "Feld;Bedeutung;Typ;von;bis\npreis;0,342 oder 11,90 Euro;Zahl;0;25.000\nkwh;im Jahr;Ganzzahl;1;25.000\n"
    book += "grund;Umzug, Preis, Service oder sonstiges, leer ohne Angabe;Text;;\n"
    _, columns = drafted(tmp_path, "b.csv", book, "preis,kwh,grund")
    assert columns["grund"]["values"] == ["Umzug", "Preis", "Service", "sonstiges"] and columns["grund"]["nullable"]
    assert (columns["preis"]["max"], columns["kwh"]["max"]) == (25000, 25000)


STAYS = """| Spalte | Typ | Werte / Wertebereich | Bemerkung |
|---|---|---|---|
| NR | | A + 7 Ziffern, eindeutig | Schlüssel, keine Auswertung |
| TAGE | ganze Zahl | ganze Tage, 1 bis 180 | |
| INT_TAGE | ganze Zahl | ganze Tage, 0 bis 60 | meist 0; nie mehr als TAGE |
| WARTE | ganze Zahl | ganze Tage, 0 bis 60 | höchstens TAGE |
| BIS | Datum | 02.01.2024 bis 30.06.2026 | Aufnahmedatum + Tage |
| MAT | Betrag | EUR, 0 bis 30.000,00 | schief |
| PERS | Betrag | EUR, 0 bis 100.000,00 | schief |
| GES | Betrag | EUR, 0 bis 130.000,00 | MAT + PERS |
| WIEDER | | J = ja; N = nein | Wiederaufnahme binnen 30 Tagen |
"""


def test_a_code_book_with_types_says_what_one_without_does(tmp_path: Path) -> None:
    book = tmp_path / "stays.md"
    book.write_text(STAYS)
    drafted = _draft_of(tmp_path, book)
    columns = yaml.safe_load(drafted)["columns"]
    assert columns["GES"] == {"type": "derived", "formula": "MAT + PERS", "round": 2, "confirm": "TODO"}
    assert columns["NR"] == {"type": "identifier", "unique": True, "confirm": "TODO"}
    assert 'keep: "pattern:X[0-9]{7}"' in drafted
    assert columns["INT_TAGE"]["zero_inflated"] is True and "confirm" not in columns["WIEDER"]
    assert "read as descriptions alone" not in drafted
    for clause in ("nie mehr als TAGE", "höchstens TAGE", "Aufnahmedatum + Tage"):
        assert f"not read as a rule: `{clause}`" in drafted
    book.write_text(STAYS.replace("Werte / Wertebereich", "Werte / Sonstiges"))
    assert "read as descriptions alone in stays.md: `Werte / Sonstiges`" in _draft_of(tmp_path, book)


def _draft_of(folder: Path, book: Path) -> str:
    (folder / "stays.csv").write_text("NR;TAGE;INT_TAGE;WARTE;BIS;MAT;PERS;GES;WIEDER\n")
    return nacre.draft_schema(folder / "stays.csv", name="stays", document=book)
