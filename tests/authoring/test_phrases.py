"""Phrases of a data dictionary's free words: what is read where they stand alone, and nothing within sentences."""

from pathlib import Path

import pytest

from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.facts import Facts
from dpmodels.authoring.phrases import with_phrases


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Preis in EUR, eine Dezimale", {"decimals": 1}),
        ("one decimal; may be missing", {"decimals": 1, "nullable": True}),
        ("Dose (rounded to two decimals).", {"decimals": 2}),
        ("mit 2 Nachkommastellen", {"decimals": 2}),
        ("Fehlt manchmal. Eine Dezimale.", {"decimals": 1, "nullable": True}),
        ("Gewicht - kann fehlen, wenn nicht gemessen", {"nullable": True}),
        ("can be empty for outpatients", {"nullable": True}),
        ("Optional", {"nullable": True}),
        ("key of the case, unique", {"unique": True}),
        ("Eindeutig; eine je Fall", {"unique": True}),
        ("number of the visit, one per case", {"unique": True}),
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
        facts = Facts(**{**vars(facts), "description": words})
        assert with_phrases(facts) == facts


def test_a_draft_has_the_keys_that_a_remarks_column_says(tmp_path: Path) -> None:
    text = "Spalte;Typ;Min;Max;Bemerkung\nfall;id;;;eindeutig\ndosis;Zahl;0;10;eine Dezimale, fehlt manchmal\n"
    (tmp_path / "words.csv").write_text(text)
    (tmp_path / "data.csv").write_text("fall,dosis\n1,2.5\n")
    schema = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "words.csv"))
    assert "fall: {type: identifier, unique: true}" in schema, schema
    assert "dosis: {type: number, min: 0.0, max: 10.0, round: 1, nullable: true" in schema
