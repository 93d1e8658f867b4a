"""What a code book of an energy supplier says beneath `Values` in words is no list, and is read as what it says."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import nacre

BOOK = """\
# Code book: annual bills of household customers 2023

One line per contract and annual bill. File: semicolon, decimal comma, UTF-8.

| Field | Meaning | Values |
|---|---|---|
| VERTRAG_NR | contract number | 6 digits, internal, not for passing on |
| RE_DATUM | date of the bill, day.month.year | 02.01.2023 to 01.01.2024 |
| PERSONEN | persons in household as told by the customer | 1 to 6 (6 = six or more) |
| VERBRAUCH_KWH | consumption billed, kWh, whole | 0 to about 60000; gas mostly 5000 to 25000 |
| ARBEITSPREIS_CT | price per kWh in cents, net | 5 to 45 |
| GRUNDPREIS | base price for the days billed, EUR net | 0 to 160 |
| ARBEITSBETRAG | consumption times price per kWh, EUR net | VERBRAUCH_KWH x ARBEITSPREIS_CT / 100, 0 to about 8000 |
| NETTO | GRUNDPREIS + ARBEITSBETRAG | EUR |
| UST | VAT, 19 % of NETTO | EUR |
| ABSCHLAEGE | monthly advances paid in total | EUR, rounded to 5 |
| VERZUG_TAGE | days paid late; empty = not paid yet | 0 to 240 |
| MAHNUNG | was a reminder sent | J / N |
| MAHNSTUFE | highest reminder level | 0 none, 1, 2, 3; 0 exactly when MAHNUNG = N |
| ONLINE | bill by online portal | J / N |
"""


def text_of(folder: Path, book: str) -> str:
    """Draft a schema of a CSV file whose columns are those of a code book."""
    names = [line.split("|")[1].strip() for line in book.splitlines() if line.startswith("| ")][1:]
    (folder / "bills.csv").write_text(";".join(names) + "\n")
    (folder / "book.md").write_text(book)
    return nacre.draft_schema(folder / "bills.csv", document=folder / "book.md")


def columns_of(folder: Path, *rows: str) -> dict[str, Any]:
    book = "\n".join(["| Field | Meaning | Values |", "|---|---|---|", *rows, "| OTHER | a word | a, b |"])
    content = yaml.safe_load(text_of(folder, f"# Book\n\n{book}\n"))
    return dict(content["columns"])


def test_a_code_book_in_plain_words_is_read_without_a_list_made_of_sentences(tmp_path: Path) -> None:
    text = text_of(tmp_path, BOOK)
    content = yaml.safe_load(text)
    columns, confirm = content["columns"], {"confirm": "TODO"}
    assert content["text"] == {"decimal": ",", "date_format": "%d.%m.%Y"}
    assert columns["VERTRAG_NR"] == {"type": "identifier", **confirm}
    assert str(columns["RE_DATUM"]["min"]) == "2023-01-02"
    assert columns["PERSONEN"] == {"type": "integer", "min": 1, "max": 6, **confirm}
    assert columns["VERBRAUCH_KWH"].items() >= {"type": "integer", "min": 0, "max": 60000, **confirm}.items()
    assert columns["ARBEITSPREIS_CT"] == {"type": "number", "min": 5, "max": 45, "round": 2, **confirm}
    assert columns["GRUNDPREIS"].items() >= {"type": "number", "max": 160, "round": 2, **confirm}.items()
    assert columns["ARBEITSBETRAG"]["formula"] == "VERBRAUCH_KWH * ARBEITSPREIS_CT / 100"
    assert columns["UST"] == {"type": "derived", "formula": "0.19 * NETTO", "round": 2, **confirm}
    assert columns["ABSCHLAEGE"] == {"type": "number", "min": "TODO", "max": "TODO", "round": 2}
    assert columns["VERZUG_TAGE"]["nullable"] is True
    assert columns["MAHNSTUFE"] == {"type": "categorical", "values": [0, 1, 2, 3], **confirm}
    assert "# - when MAHNUNG = N then MAHNSTUFE = 0" in text
    assert "# - when MAHNUNG != N then MAHNSTUFE != 0" in text
    assert text.count("not read: values as a list") == 3


@pytest.mark.parametrize(
    "values",
    ["private, public, not for profit", "internal, external", "EUR, USD, GBP", "under 18, 18 to 64, 65 and over"],
)
def test_a_list_of_categories_stays_one(tmp_path: Path, values: str) -> None:
    assert columns_of(tmp_path, f"| KIND | its kind | {values} |")["KIND"]["values"] == values.split(", ")


def test_codes_of_letters_before_what_they_stand_for_are_to_be_confirmed(tmp_path: Path) -> None:
    kinds = columns_of(tmp_path, "| KIND | its kind | ABD Aberdeen, BHM Birmingham, 24H next day |")["KIND"]
    assert kinds == {"type": "categorical", "values": ["ABD", "BHM", "24H"], "confirm": "TODO"}
    plain = columns_of(tmp_path, "| KIND | its kind | Aberdeen, New York, York |")["KIND"]
    assert plain == {"type": "categorical", "values": ["Aberdeen", "New York", "York"]}


def test_what_labels_say_is_no_word_about_the_column(tmp_path: Path) -> None:
    said = "P = public, N = not for publication, R = rounded up, D = 6 digits, L = as NETTO"
    assert columns_of(tmp_path, f"| KIND | its kind | {said} |")["KIND"]["values"] == ["P", "N", "R", "D", "L"]


@pytest.mark.parametrize(
    ("said", "decimal"),
    [
        ("Datei mit Semikolon und Dezimalkomma.", ","),
        ("The decimal separator is a comma.", ","),
        ("Decimal separator: comma.", ","),
        ("There is no decimal comma in it.", None),
    ],
)
def test_a_comma_before_decimals_is_read_of_words(tmp_path: Path, said: str, decimal: str | None) -> None:
    content = yaml.safe_load(text_of(tmp_path, BOOK.replace("File: semicolon, decimal comma, UTF-8.", said)))
    assert content["text"].get("decimal") == decimal


@pytest.mark.parametrize("form", ["dd.mm.yyyy", "TT.MM.JJJJ", "DD.MM.YYYY", "Tag.Monat.Jahr"])
def test_the_form_of_dates_is_read_of_words_and_letters(tmp_path: Path, form: str) -> None:
    content = yaml.safe_load(text_of(tmp_path, BOOK.replace("day.month.year", form)))
    assert content["text"]["date_format"] == "%d.%m.%Y"


def test_a_product_names_columns_by_how_their_descriptions_begin(tmp_path: Path) -> None:
    text = BOOK.replace("VERBRAUCH_KWH x ARBEITSPREIS_CT / 100, 0 to about 8000", "EUR")
    column = yaml.safe_load(text_of(tmp_path, text))["columns"]["ARBEITSBETRAG"]
    assert column["formula"] == "round(VERBRAUCH_KWH * ARBEITSPREIS_CT) / 100"
    assert column["confirm"] == "TODO"


@pytest.mark.parametrize(("meaning", "kind"), [("fee in whole euros", "integer"), ("price level", "integer")])
def test_bounds_beside_a_word_of_whole_numbers_stay_whole(tmp_path: Path, meaning: str, kind: str) -> None:
    assert columns_of(tmp_path, f"| X1 | {meaning} | 0 to 160 |")["X1"]["type"] == kind
