"""Phrases of a data dictionary's free words: what is read where they stand alone, and nothing within sentences."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpmodels.authoring.documents.phrases import OF_HUNDREDS, with_phrases
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.facts import Facts


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Preis in EUR, eine Dezimale", {"decimals": 1}),
        ("one decimal; may be missing", {"decimals": 1, "nullable": True}),
        ("Cent je kWh, zwei Nachkommastellen", {"decimals": 2}),
        ("rounded per site, one decimal", {}),
        ("Dose (rounded to two decimals).", {"decimals": 2}),
        ("mit 2 Nachkommastellen", {"decimals": 2}),
        ("Fehlt manchmal. Eine Dezimale.", {"decimals": 1, "nullable": True}),
        ("Gewicht - kann fehlen, wenn nicht gemessen", {"nullable": True}),
        ("can be empty for outpatients", {"nullable": True}),
        ("Optional", {"nullable": True}),
        ("key of the case, unique", {"unique": True}),
        ("Eindeutig; eine je Fall", {"unique": True}),
        ("number of the visit, one per case", {"unique": True}),
        ("yes or no within a year; empty if not approved", {"nullable": True}),
        ("Left blank when not measured, per visit", {"nullable": True}),
        ("monthly rate, null where the loan was not paid out", {"nullable": True}),
        ("ja oder nein; leer, wenn nicht bewilligt", {"nullable": True}),
        ("monthly payment, in cents; empty if not approved", {"money": True, "nullable": True}),
        ("auf den Cent genau", {"money": True}),
        ("loan amount (full hundreds)", {"unread": (OF_HUNDREDS,), "decimals": 0}),
        ("in hundreds; optional", {"unread": (OF_HUNDREDS,), "decimals": 0, "nullable": True}),
        ("Betrag, auf volle Hunderter gerundet", {"unread": (OF_HUNDREDS,), "decimals": 0}),
        ("Kann fehlen, wenn nicht gemessen. In Cent.", {"nullable": True, "money": True}),
        ("Unique. Never empty.", {"unique": True}),
        ("Punkte, 0 bis 100, zwei Nachkommastellen", {"decimals": 2}),
        ("in cents. empty if unknown.", {"money": True, "nullable": True}),
        ("never empty; may be missing", {}),
        ("never empty if approved", {}),
        ("must not be empty; empty if not approved", {}),
        ("empty if not approved, but required", {}),
        ("empty if not approved, since 2010 only", {}),
        ("unique within a year; empty if not approved, one decimal", {"nullable": True}),
        ("in cents until 2001", {}),
        ("in cents, except in Japan", {}),
        ("number of cents", {}),
        ("in hundreds, not before 2010", {}),
        ("yes or no; unique within a year", {}),
        ("unique patients seen per day", {}),
        ("may not be missing", {}),
        ("kann nicht fehlen", {}),
        ("not unique", {}),
        ("whether the optional module was taken", {}),
        ("share of rows with two decimals that may be missing elsewhere", {}),
        ("one decimal classification code", {}),
        ("one per case and day", {}),
        ("optional extras, in EUR", {}),
        ("Unique, within one hospital", {}),
        ("unique - per hospital only", {}),
        ("eindeutig (nur innerhalb der Klinik)", {}),
        ("Not (necessarily) unique", {}),
        ("is unique (no)", {}),
        ("required, optional", {}),
        ("muss nicht; kann fehlen", {}),
        ("before 2010: two decimals; since then, one decimal", {}),
        ("one decimal (internally two decimals)", {}),
        ("one decimal; two decimals", {}),
    ],
)
def test_a_phrase_that_stands_alone_is_read_and_no_sentence(words: str, said: dict[str, object]) -> None:
    assert with_phrases(Facts(description=words)) == Facts(description=words, **said)  # type: ignore[arg-type]


def test_a_heading_goes_before_a_phrase_and_whole_numbers_have_no_decimals() -> None:
    words = "optional, one decimal"
    for facts in (Facts(kind="number", decimals=2, nullable=False), Facts(kind="integer", nullable=True)):
        assert with_phrases(replace(facts, description="in cents")).money == (facts.kind == "number")
        facts = Facts(**{**vars(facts), "description": words})
        assert with_phrases(facts) == facts


def test_a_draft_has_the_keys_that_a_remarks_column_says(tmp_path: Path) -> None:
    text = "Spalte;Typ;Min;Max;Bemerkung\nfall;id;;;eindeutig\ndosis;Zahl;0;10;eine Dezimale, fehlt manchmal\n"
    text += "preis;Zahl;0;90;in Cent\nkredit;Zahl;100;900;in vollen Hundertern\n"
    (tmp_path / "words.csv").write_text(text)
    (tmp_path / "data.csv").write_text("fall,dosis,preis,kredit\n1,2.5,3.25,300\n")
    schema = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "words.csv"))
    assert "fall: {type: identifier, unique: true}" in schema, schema
    assert "dosis: {type: number, min: 0.0, max: 10.0, round: 1, nullable: true" in schema
    assert "preis: {type: number, min: 0.0, max: 90.0, round: 2" in schema
    assert f"# not read: {OF_HUNDREDS}\n" in schema.partition("kredit: {")[0].partition("preis: {")[2]
