"""Code books in lists, prose and tables of Markdown: what they say of bounds and values is drafted as of a CSV one."""

import time
from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.authoring.cautions import faults_and_cautions
from dpmodels.authoring.column import MAY_BE_ANSWERS
from dpmodels.authoring.documents.formulas import formula_in
from dpmodels.authoring.documents.worded import with_worded
from dpmodels.authoring.draft import PublicFacts, draft

LISTS = {
    "codes.md": """# Schools
- `grade`: integer, 5 to 13
- sex: f, m, d
- score: points, 0 to 100; two decimals
- day: 2026-03-01 to 2026-03-31
- share : between 0 and 0.5
- `ward` (text): where the school lies
    values: north | south
- kind: 1 = public, 2 = private
- paid: yes/no
- note: free text
""",
    "codes.txt": """grade: Ganzzahl von 5 bis 13
sex: Geschlecht (f, m, d)
score: Punkte, 0 bis 100, zwei Nachkommastellen
day: von 01.03.2026 bis 31.03.2026
share: Anteil, mindestens 0; höchstens 0,5
ward: eines von north, south
  Werte: north | south
kind: Art: 1 = öffentlich, 2 = privat
paid: ja/nein
note: Freitext
""",
    "table.md": """| Column | Meaning | Type | Range | Values | Decimals |
|:--|---|:-:|--|--|--|
| `grade` | the grade | int | 5 to 13 | | |
| sex | | | | f, m, d | |
| **score** | points \\| marks | number | 0 to 100 | | 2 |
| day | | date | 2026-03-01 to 2026-03-31 | | |
| share | | number | 0 to 0.5 |
| ward | | | | north \\| south | |
| kind | | | | 1 = public<br>2 = private | |
| paid | | yes/no | | | |
| note | | free text | | | |

Other lines | are prose.
""",
}
DRAFTED = {
    "grade": {"type": "integer", "min": 5, "max": 13},
    "sex": {"type": "categorical", "values": ["f", "m", "d"]},
    "score": {"type": "number", "min": 0, "max": 100, "round": 2},
    "day": {"type": "datetime", "resolution": "day"},
    "share": {"type": "number", "min": 0, "max": 0.5},
    "ward": {"type": "categorical", "values": ["north", "south"]},
    "kind": {"type": "categorical", "values": [1, 2]},
    "paid": {"type": "boolean"},
    "note": {"type": "identifier"},
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_or_a_table_is_drafted_as_a_dictionary_in_csv_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "data.csv").write_text(",".join(DRAFTED) + "\n")
    (tmp_path / name).write_text(LISTS[name])
    text = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / name))
    columns = yaml.safe_load(text)["columns"]
    if name == "codes.txt":  # words that data is read for come back as true and false; others are kept
        assert columns.pop("paid") == {"type": "categorical", "values": ["ja", "nein"]}
    for column, keys in ((column, keys) for column, keys in DRAFTED.items() if column in columns):
        assert keys.items() <= columns[column].items(), (column, columns[column])
    assert [str(columns["day"][key]) for key in ("min", "max")] == ["2026-03-01", "2026-03-31"]
    asked = {column for column, keys in columns.items() if "confirm" in keys}
    assert asked == ({"score", "share", "sex"} if name != "table.md" else set())
    accepted = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / name, accept=True))
    assert "confirm:" not in accepted.partition("columns:")[2]
    assert f"line {3 if name != 'codes.txt' else 2} of {name})" in text
    found = yaml.safe_load(draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / name, discover=True)))
    assert found["columns"]["sex"]["values"] == ("discover" if name != "table.md" else ["f", "m", "d"])


@pytest.mark.parametrize(
    ("words", "cells"),
    [
        ("one of: a, b, c", {"values": "a | b | c"}),
        ("valeurs : bleu, blanc ou rouge", {"values": "bleu | blanc | rouge"}),
        ("Werte: rot, grün; kann fehlen", {"values": "rot | grün"}),
        ("one of the three wards, north, south", {}),
        ("monthly rate, EUR 0 to 80,000", {"range": "0 to 80,000"}),
        ("Anteil, 0,5 – 2,5", {"range": "0,5-2,5"}),
        ("Alter in Jahren, 0 bis 104, nie leer", {"range": "0 bis 104"}),
        ("in [0, 1)", {"range": "[0, 1)"}),
        ("18 to 65 years", {"range": "18 to 65"}),
        ("âge, au moins 18, au plus 65", {"min": "18", "max": "65"}),
        ("points per visit, 0 to 100", {"range": "0 to 100"}),
        ("1 to 3 beds", {"range": "1 to 3", "unsure": "1 to 3 beds"}),
        ("0 to 100 (usually 20 to 40)", {"range": "0 to 100", "unsure": "0 to 100 (usually 20 to 40)"}),
        ("0 to 100, except in Japan", {"range": "0 to 100", "unsure": "0 to 100, except in Japan"}),
        ("1 = never, 5 = always", {"values": "1 = never | 5 = always", "unsure": "1 = never, 5 = always"}),
        ("0 to 5 (0 = none, 5 = worst)", {"range": "0 to 5", "unsure": "0 to 5 (0 = none, 5 = worst)"}),
        ("age between 0 and 104", {"range": "between 0 and 104", "unsure": "age between 0 and 104"}),
        ("pain between 0 (none) and 9", {"range": "between 0 and 9", "unsure": "pain between 0 (none) and 9"}),
        (
            "one of Harbour, Old Town, Park",
            {"values": "Harbour | Old Town | Park", "unsure": "one of Harbour, Old Town, Park"},
        ),
        ("one of the wards, day, night", {}),
        (
            "subscriber, day pass or single",
            {"values": "subscriber | day pass | single", "unsure": "subscriber, day pass or single"},
        ),
        ("subscriber, day pass, single", {}),
        ("subscriber, the pass or single", {}),
        (
            "0, or 20 for members; never at night",
            {"values": "0 | 20", "unsure": "0, or 20 for members; never at night"},
        ),
        ("Tarif: Tag, Nacht, Misch", {"values": "Tag | Nacht | Misch", "unsure": "Tarif: Tag, Nacht, Misch"}),
        ("1 = tief, 2 = mittel", {"values": "1 = tief | 2 = mittel"}),
        ("5 to 13; 6 to 12", {}),
        ("street, house, number", {}),
        ("net, rounded", {}),
        ("in km/h", {}),
        ("yes or no within a year", {}),
        ("from the hospital, to the ward", {}),
        ("time, 08:00 to 17:00", {}),
    ],
)
def test_a_phrase_is_a_cell_and_what_may_be_meant_otherwise_is_unsure(words: str, cells: dict[str, str]) -> None:
    assert with_worded({"description": words}) == {"description": words, **cells}
    headed = {"description": words, "max": "7"}
    assert with_worded(headed) == headed


def test_a_list_below_prose_is_read_with_its_types_in_brackets_and_its_values_beneath(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("age,ward,paid\n")
    (tmp_path / "b.md").write_text(
        "Written by: us\n\nColumns:\n\n  * `age` (integer, optional) – 18 – 99\n  * `ward`:\n    Werte:\n"
        "      - north: the north\n      - south: the south\n  * `paid` (boolean): by card\n"
    )
    columns = yaml.safe_load(draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "b.md")))["columns"]
    assert columns == {
        "age": {"type": "integer", "min": 18, "max": 99, "nullable": True},
        "ward": {"type": "categorical", "values": ["north", "south"]},
        "paid": {"type": "boolean"},
    }


CELLS = {
    "du 02/01/2025 au 31/12/2025": {"type": "datetime", "min": date(2025, 1, 2), "max": date(2025, 12, 31)},
    "1,00 à 1 200,00": {"type": "number", "min": 1, "max": 1200, "round": 2},
    "1,00 à 1200,00": {"type": "number", "min": 1, "max": 1200, "round": 2},
    "von 1,50 bis 1\u202f200,75": {"type": "number", "min": 1.5, "max": 1200.75},
    "from 5 to 10": {"type": "integer", "min": 5, "max": 10},
    "de 1,00 euro à 1 200,00 euros TTC": {"type": "TODO"},
    "du 02/01/2025 au 31/12/2025, sauf dimanche": {"type": "TODO"},
    "JJ/MM/AAAA": {"type": "TODO"},
    "0,5/1,5": {"type": "TODO"},
    "08:00 à 20:00": {"type": "integer", "min": 28800, "max": 72000, "dtype": "time32[s]", "resolution": "minute"},
    "HH:MM:SS": {"type": "integer", "min": 0, "max": 86399, "dtype": "time32[s]"},
    "13,33,59": {"type": "categorical", "values": [13, 33, 59]},
    "18 to 24,25 to 64": {"type": "categorical", "values": ["18 to 24", "25 to 64"]},
    "a / b / c": {"type": "categorical", "values": ["a", "b", "c"]},
}


def test_two_ends_are_bounds_and_no_date_or_decimal_number_is_cut_into_values(tmp_path: Path) -> None:
    names = [f"k{place}" for place, _ in enumerate(CELLS)]
    (tmp_path / "data.csv").write_text(",".join(names) + "\n")
    rows = [f"| {name} | {cell} |\n" for name, cell in zip(names, CELLS, strict=True)]
    (tmp_path / "codes.md").write_text("| name | values |\n| --- | --- |\n" + "".join(rows))
    text = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md"))
    columns = yaml.safe_load(text)["columns"]
    for name, (cell, keys) in zip(names, CELLS.items(), strict=True):
        assert {key: columns[name].get(key) for key in keys} == keys, (cell, columns[name])
        assert (f"# not read: values {cell}\n" in text) == (keys == {"type": "TODO"}), cell


SALES = """| name | meaning | values |
| --- | --- | --- |
| ticket | number, unique. Not to be handed over | T et six chiffres |
| montant | montant en euros, deux décimales | 1 à 1200 |
| taux_remb | taux en % | 0, 30, 65 |
| rembourse | part remboursée = montant × taux / 100 | |
| reste | montant − rembourse | |
| quantity | pieces | 1 to 9 |
| total | total: price * quantity | |
| ticks | quantity + montant | |
| side | ticket/reste | |
| meal | bought, none or included. Included unless economy | |
| note | générique accepté ; vide sans ordonnance | oui / non |
| late | minutes, 0 to 480, empty for flights that were cancelled | |
"""


def test_formulas_keys_and_lists_in_words_are_offered_to_be_confirmed(tmp_path: Path) -> None:
    names = [line.split("|")[1].strip() for line in SALES.splitlines()[2:]]
    (tmp_path / "data.csv").write_text(",".join(names) + "\n")
    (tmp_path / "codes.md").write_text(SALES)
    text = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md"))
    columns = yaml.safe_load(text)["columns"]
    part = "round(montant * taux_remb) / 100"
    confirmed = {"confirm": "TODO"}
    assert columns["rembourse"] == {"type": "derived", "formula": part, "round": 2, **confirmed}
    assert columns["reste"] == {"type": "derived", "formula": "montant - rembourse", "round": 2, **confirmed}
    assert columns["ticks"] == {"type": "derived", "formula": "quantity + montant", "round": 2, **confirmed}
    assert columns["total"]["type"] == columns["side"]["type"] == "TODO"  # the table has no price, and a / b is no sum
    assert columns["ticket"] == {"type": "identifier", "unique": True, **confirmed}
    assert '`keep: "pattern:X[0-9]{6}"`' in text and "not read: values T et" not in text
    assert columns["meal"] == {"type": "categorical", "values": ["bought", "none", "included"], **confirmed}
    assert columns["note"]["nullable"] and columns["late"]["nullable"]
    accepted = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md", accept=True))
    assert yaml.safe_load(accepted)["columns"]["reste"] == {
        "type": "derived",
        "formula": "montant - rembourse",
        "round": 2,
    }
    found = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md", discover=True))
    assert yaml.safe_load(found)["columns"]["reste"] == {"type": "TODO"} and f"formula: {part}" in found


PIECES = """name: v
unit: record
columns:
  bags: {type: integer, min: 0, max: 4}
  fee: {type: derived, formula: bags * 25, round: 2}
  paid: {type: derived, formula: bags * 25, round: 2, dtype: float64}
  day: {type: categorical, values: [du 02, '01', 2025 au 31, '12', '2025']}
  amount: {type: categorical, values: ['1', 00 à 1 200, '00']}
  age: {type: categorical, values: [18 to 24, 25 to 64, '65']}
  group: {type: categorical, values: ['17', 18 to 64, 65 or more]}
"""


def test_a_lint_names_lists_that_were_cut_and_whole_numbers_with_decimals(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(PIECES)
    faults, cautions = faults_and_cautions(tmp_path / "v.yaml")
    said = "\n".join(cautions)
    assert not faults and "values of day look like pieces" in said and "values of amount look like pieces" in said
    assert "values of age" not in said and "values of group" not in said
    assert "fee: its formula gives whole numbers" in said and "paid: its" not in said


def test_a_unique_text_of_a_typed_file_is_offered_as_a_key(tmp_path: Path) -> None:
    table = pa.table({"booking_ref": pa.array([], pa.string()), "fare": pa.array([], pa.float64())})
    pq.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "codes.md").write_text(
        "- booking_ref: B and seven digits, unique. Not to be handed over; made-up ones are fine.\n"
        "- fare: fare of tax, tax * 2\n"
    )
    text = draft(tmp_path / "data.parquet", True, PublicFacts(document=tmp_path / "codes.md"))
    columns = yaml.safe_load(text)["columns"]
    assert columns["booking_ref"] == {"type": "identifier", "unique": True, "confirm": "TODO"}
    assert '`keep: "pattern:X[0-9]{7}"`' in text and MAY_BE_ANSWERS not in text
    assert columns["fare"]["type"] == "number"  # the file has no tax


NOT_THE_SCALE = (
    "0 to 100, min 5, max 50",
    "count 200; min 5; max 10; 3 missing",
    "in the data, 5 to 10",
    "observed, 5 to 10",
    "SD 1.2, min 5, max 10",
    "median 7, min 5, max 10",
    "beobachtet, 5 bis 10",
    "5 to 10, as seen in the file",
    "values 1, 2 and 3",
    "p. 3-5",
    "vgl. 3-5",
    "question 12, 1-5",
    "cited in [1, 5]",
    "max 5 items, at least 3",
    "GDPR, Art. 6, 1-3",
    "varchar, up to 255",
    "observed values: a, b, c",
    "values: a, b, and others",
    "codes: 1 to 5, 9",
    "missing = 99, 1 = yes, 2 = no",
)


@pytest.mark.parametrize("kind", ["int64", "str"])
def test_what_somebody_saw_or_cites_is_no_scale_until_a_person_says_so(tmp_path: Path, kind: str) -> None:
    names = [f"c{place}" for place in range(len(NOT_THE_SCALE))]
    frame = pd.DataFrame({name: [1, 2] for name in names}).astype(kind)
    listed = "\n".join(f"- {name}: {said}" for name, said in zip(names, NOT_THE_SCALE, strict=True))
    (tmp_path / "codes.md").write_text(f"# Codes\n\n{listed}\n")
    columns = yaml.safe_load(nacre.draft_schema(frame, document=tmp_path / "codes.md"))["columns"]
    for name, said in zip(names, NOT_THE_SCALE, strict=True):
        assert "TODO" in str(columns[name]), said


def test_a_long_line_of_blanks_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "codes.md").write_text(f"| a | b |\n| - {' ' * 60_000}x\n{' ' * 60_000}-\n- grade: 5 to 13\n")
    (tmp_path / "data.csv").write_text("grade,b\n")
    began = time.monotonic()
    text = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md"))
    assert "min: 5" in text and time.monotonic() - began < 5


def test_moments_of_a_file_that_a_code_book_calls_days_are_drafted_as_days(tmp_path: Path) -> None:
    frame = pd.DataFrame({name: pd.to_datetime(["2025-03-01"] * 2) for name in ("left", "booked", "seen")})
    said = (
        "left: 2025-01-01 to 2025-12-31",
        "booked: day of booking; at most 330 days before",
        "seen: when it was seen",
    )
    (tmp_path / "codes.md").write_text("".join(f"- {one}\n" for one in said))
    columns = yaml.safe_load(nacre.draft_schema(frame, document=tmp_path / "codes.md"))["columns"]
    assert [columns[name]["resolution"] for name in frame] == ["day", "day", "second"]


HEADINGS = """# Bookings
About the table.

## departure
Day of departure, 2025-01-01 to 2025-12-31

## `destination`
The airport. One of:
- OSL
- CPH

### fare (number)
15 to 1500, two decimals.

## meal
- type: category
- values: bought | none

## bags
checked bags
- min: 0
- max: 4

## Contact and license
Somebody: no column
"""


def test_a_heading_of_one_word_names_a_column_unless_a_list_beneath_does(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("departure,destination,fare,meal,bags\n")
    (tmp_path / "codes.md").write_text(HEADINGS)
    text = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md", accept=True))
    columns = yaml.safe_load(text)["columns"]
    assert columns["departure"]["min"] == date(2025, 1, 1) and columns["bags"] == {
        "type": "integer",
        "min": 0,
        "max": 4,
    }
    assert columns["destination"] == {"type": "categorical", "values": ["OSL", "CPH"]}
    assert columns["fare"] == {"type": "number", "min": 15.0, "max": 1500.0, "round": 2}
    assert columns["meal"]["values"] == ["bought", "none"] and "Somebody" not in text
    (tmp_path / "codes.md").write_text("## fare\n- departure: 2025-01-01 to 2025-12-31\n## meal\n- bags: 0 to 4\n")
    listed = draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md", accept=True))
    assert yaml.safe_load(listed)["columns"]["bags"]["max"] == 4 and "(line 1 of" not in listed


@pytest.mark.parametrize(
    ("words", "range_of"),
    [
        ("from 1 January to 31 December 2025", "from 2025-01-01 to 2025-12-31"),
        ("1. Januar bis 31. Dezember 2025", "2025-01-01 bis 2025-12-31"),
        ("du 1er janvier au 31 décembre 2025", "du 2025-01-01 au 2025-12-31"),
        ("March 1 to April 30, 2024", "2024-03-01 to 2024-04-30"),
    ],
)
def test_a_first_day_without_a_year_has_that_of_the_last(words: str, range_of: str) -> None:
    assert with_worded({"description": words})["range"] == range_of


@pytest.mark.parametrize("tail", ["less the discount", "reduced by 20 % for members", "abzüglich Rabatt", "before tax"])
def test_a_formula_that_goes_on_in_words_is_not_cut_short(tail: str) -> None:
    names = ["fee", "fare", "total"]
    assert formula_in("fee plus fare", "total", names) == "fee + fare"
    assert formula_in(f"fee plus fare, {tail}; in pounds", "total", names) == ""
