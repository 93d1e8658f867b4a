"""Sentences as code books have them, in tables and lists."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import yaml

import nacre
from dpmodels.authoring.documents.formulas import with_formulas
from dpmodels.authoring.documents.tariffs import states_of, tariff_in
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.facts import Facts
from dpmodels.authoring.file_types import opened


def test_what_a_person_says_of_text_stands_beside_what_a_code_book_says(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("day;price\n01.02.2025;€3,00\n")
    (tmp_path / "b.md").write_text("Dates are written DD.MM.YYYY.\n\n- day: day of sale\n- price: 1,00 to 900,00\n")
    given = {"decimal": ",", "currency": "€"}
    text = nacre.draft_schema(tmp_path / "d.csv", document=tmp_path / "b.md", header=True, text=given)
    assert text.count("\ntext: {") == 1 and yaml.safe_load(text)["text"] == {**given, "date_format": "%d.%m.%Y"}
    given |= {"date_format": "%d/%m/%Y"}
    text = nacre.draft_schema(tmp_path / "d.csv", document=tmp_path / "b.md", header=True, text=given)
    assert text.count("\ntext: {") == 1 and yaml.safe_load(text)["text"] == given


def test_a_dictionary_between_semicolons_says_how_decimals_and_thousands_are_written(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("montant;part\n1 200,50;3\n")
    lines = ["colonne;type;valeurs;description", "montant;montant;2,00 à 15 000,00;frais"]
    lines += ["part;montant;;50, 80 ou 100 % selon la formule (essentielle, confort, premium)"]
    (tmp_path / "b.csv").write_text("\n".join(lines))
    content = yaml.safe_load(draft(tmp_path / "d.csv", True, PublicFacts(document=tmp_path / "b.csv")))
    assert content["text"] == {"decimal": ",", "thousands": " "}
    assert content["columns"]["montant"]["max"] == 15000 and content["columns"]["part"]["type"] == "number"
    (tmp_path / "b.csv").write_text("\n".join(lines).replace(" 000,00", "000,00"))
    assert yaml.safe_load(draft(tmp_path / "d.csv", True, PublicFacts(document=tmp_path / "b.csv")))["text"] == {
        "decimal": ","
    }


def test_a_key_no_two_of_which_are_alike_is_unique(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("trip_id,bike\n")
    book = (
        "| column | what it is |\n| --- | --- |\n| trip_id | T and seven digits, no two alike |\n| bike | a, b or c |\n"
    )
    (tmp_path / "b.md").write_text(book)
    text = draft(tmp_path / "d.csv", True, PublicFacts(document=tmp_path / "b.md"))
    assert yaml.safe_load(text)["columns"]["trip_id"]["unique"] is True and "WARNING" not in text


def test_a_column_that_is_as_another_has_its_values_and_no_list_of_words_names_a_person(tmp_path: Path) -> None:
    book = "| column | meaning |\n| --- | --- |\n| a | one of Old Town, Park, Harbour |\n| b | as a; locked there |\n"
    book += (
        "| c | same as d |\n| d | 1 to 5 stars |\n| customer | subscriber, day pass or single |\n| e | as absent |\n"
    )
    frame = pd.DataFrame({name: ["x"] for name in ("a", "b", "customer", "e")} | {"c": [1.0], "d": [float("nan")]})
    (tmp_path / "b.md").write_text(book)
    text = nacre.draft_schema(frame, name="a", document=tmp_path / "b.md", accept_suggestions=True)
    columns = yaml.safe_load(text)["columns"]
    assert columns["b"] == columns["a"] == {"type": "categorical", "values": ["Old Town", "Park", "Harbour"]}
    assert columns["c"]["max"] == 5 and columns["d"] == {"type": "integer", "min": 1, "max": 5}
    assert columns["e"]["values"] == "TODO" and "or {user: customer}" not in text


def test_amounts_that_are_text_in_a_frame_are_numbers_whose_form_is_asked_for(tmp_path: Path) -> None:
    book = "| column | meaning |\n| --- | --- |\n| fee | pounds, 0 to 20 |\n| bike | a, b or c |\n"
    (tmp_path / "b.md").write_text(book)
    frame = pd.DataFrame({"fee": ["£3.00"], "bike": ["a"], "age": [3]})
    text = nacre.draft_schema(frame, name="a", document=tmp_path / "b.md")
    assert "WARNING: fee are text" not in text and "fee: {type: number, min: 0.0, max: 20.0" in text
    assert "is text in the data, and an amount by its description" in text
    again = nacre.draft_schema(frame, name="a", document=tmp_path / "b.md", text={"currency": "£", "decimal": "."})
    assert "is text in the data" not in again


@pytest.mark.parametrize(("words", "sign"), [("pounds", "£"), ("in US dollars", "$"), ("euros", "€"), ("price", "£")])
def test_the_form_of_amounts_that_are_text_has_the_sign_of_the_currency_in_words(words: str, sign: str) -> None:
    paid = {"fee": Facts(description=f"{words}, 0 to 20", money=True, kind="number")}
    (remark,) = opened({"fee": pa.string(), "age": pa.int64()}, None, paid)[1]
    assert f"text: {{decimal: '.', thousands: ',', currency: {sign}}}" in remark


@pytest.mark.parametrize(
    ("words", "formula"),
    [
        ("0.15 a minute, the first 30 free", "max(minutes - 30, 0) * 0.15"),
        ("pounds; 0.15 per minute, first 30 minutes are free", "max(minutes - 30, 0) * 0.15"),
        ("0,15 je Minute, die ersten 30 frei", "max(minutes - 30, 0) * 0.15"),
        ("0.15 par minute, les 30 premières gratuites", "max(minutes - 30, 0) * 0.15"),
        ("0.15 a minute, the first 30 free, the first 10 free", ""),
        ("0.15 a minute, the first 30 cost 2", ""),
        ("2 a minute", "minutes * 2"),
        ("0.15 a mile, the first 30 free", ""),
    ],
)
def test_a_price_by_the_piece_may_leave_the_first_ones_free(words: str, formula: str) -> None:
    columns = {"ride_fee": Facts(description=words), "minutes": Facts(kind="integer")}
    assert tariff_in("ride_fee", columns, states_of(columns)) == formula


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (
            "pounds; 1.50 for single trips, 0 for subscribers and day passes",
            {"subscriber": 0, "day pass": 0, "single": 1.5},
        ),
        ("1.50 for singles, 0 for others", {"subscriber": 0, "day pass": 0, "single": 1.5}),
        ("2 pour un subscriber, 1 sinon", {"subscriber": 2, "day pass": 1, "single": 1}),
        ("1.50 for single trips, 0 for subscribers", None),
        ("1.50 for single trips, 3 for doubles, 0 for others", None),
        ("between 1 and 2 for members", None),
    ],
)
def test_a_number_for_values_in_the_plural_or_for_all_others_is_a_table(
    words: str, table: dict[str, float] | None
) -> None:
    columns = {"fee": Facts(description=words), "kind": Facts(values=("subscriber", "day pass", "single"))}
    assert tariff_in("fee", columns, states_of(columns)) == (f"{table}[kind]" if table else "")


@pytest.mark.parametrize(
    ("words", "formula"),
    [
        ("fee plus ride, less the discount; in pounds", "fee + ride - round((fee + ride) * discount_pct) / 100"),
        ("fee + ride, minus refund", "fee + ride - refund"),
        ("fee plus ride, less the vat", None),
        ("fee plus ride, less the discount of members", None),
    ],
)
def test_a_sum_less_a_discount_is_a_formula(words: str, formula: str | None) -> None:
    numbers = dict.fromkeys(("fee", "ride", "refund"), Facts(kind="number"))
    columns = {**numbers, "discount_pct": Facts(values=(0, 20)), "total": Facts(description=words)}
    assert (with_formulas(columns)["total"].offered or {}).get("formula") == formula
