"""What descriptions say of other columns, and documents of the whole table, is offered in a draft, to be confirmed."""

import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.authoring.documents.forms import date_format_in, has_comma, rows_in
from dpmodels.authoring.documents.offered import _rule_lines
from dpmodels.authoring.documents.rules import Rule, rules_in
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.lint import parse
from dpmodels.authoring.tree_draft import draft_all
from tests.kit.errors import refused

BOOKINGS = """# Bookings. About 12,000 to 16,000 rows a year.
- departure: day of departure, 2025-01-01 to 2025-12-31
- booked_on: day of booking; at most 330 days before departure
- fare_class: Y (economy), W (premium), J (business)
- bags: checked bags, 0 to 4
- fare: euros, 15 to 1500, two decimals
- bag_fee: euros. 25 for each bag, 0 in business class (J)
- total: fare + bag_fee
- meal: bought, none or included. Included unless economy
- cancelled: Y/N, whether the passenger cancelled
- refund: euros, 0 to 1500, two decimals; 0 unless cancelled; half of the fare in class Y, else all of it
- delay: minutes, 0 to 480, empty if cancelled
"""
DRAFTED = {
    "booked_on": {"type": "derived", "formula": "add_days(departure, -days_before_departure)"},
    "days_before_departure": {
        "type": "integer",
        "min": 0,
        "max": 330,
        "computed": "days_between(booked_on, departure)",
    },
    "bag_fee": {"type": "derived", "formula": "bags * {'Y': 25, 'W': 25, 'J': 0}[fare_class]"},
    "total": {"type": "derived", "formula": "fare + bag_fee", "round": 2},
}
RULES = [
    "when fare_class != Y then meal = included",
    "when not cancelled then refund = 0",
    "when cancelled then delay = null",
]
CONVERSE = ["when fare_class = Y then meal != included", "when not cancelled then delay != null"]


def drafted(folder: Path, words: str, accept: bool = False) -> str:
    names = [line.removeprefix("- ").partition(":")[0] for line in words.splitlines() if line.startswith("- ")]
    (folder / "data.csv").write_text(",".join(names) + "\n")
    (folder / "codes.md").write_text(words)
    return draft(folder / "data.csv", True, PublicFacts(document=folder / "codes.md", accept=accept))


def test_rules_prices_and_days_that_a_code_book_says_are_offered_and_make_a_schema_once_taken(tmp_path: Path) -> None:
    text = drafted(tmp_path, BOOKINGS)
    columns = yaml.safe_load(text)["columns"]
    assert all(columns[name] == {**keys, "confirm": "TODO"} for name, keys in DRAFTED.items())
    assert [line for line in text.splitlines() if line.startswith("# - ") and line.endswith("meant too")] and (
        all(f"\n# - {rule}  # " in text for rule in [*RULES, *CONVERSE])
    )
    assert '\n# rows: {min: 12000, max: 16000}  # "About 12,000 to 16,000 rows a year"' in text
    assert "not read as a rule: `half of the fare in class Y`" in text and "constraints" not in yaml.safe_load(text)
    assert "# Y and N of the file come back as true and false" in text and 'values: ["Y", "N"]}`' in text
    accepted = drafted(tmp_path, BOOKINGS, accept=True)
    assert yaml.safe_load(accepted)["constraints"] == RULES
    schema, faults = parse(accepted)
    assert schema is not None and not faults


def test_a_formula_of_whole_numbers_keeps_the_type_of_its_column(tmp_path: Path) -> None:
    table = pa.table({"bags": pa.array([], pa.int64()), "fee": pa.array([], pa.float64())})
    pq.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "codes.md").write_text("- bags: 0 to 4\n- fee: 25 for each bag\n")
    text = draft(tmp_path / "data.parquet", True, PublicFacts(document=tmp_path / "codes.md", accept=True))
    expected = {"type": "derived", "formula": "bags * 25", "dtype": "float64"}
    assert yaml.safe_load(text)["columns"]["fee"] == expected


KEYS = {
    "kind": {"type": "categorical", "values": ["ordonnance", "conseil"]},
    "ald": {"type": "categorical", "values": ["oui", "non"]},
    "rate": {"type": "categorical", "values": [0, 30, 65, 100]},
    "paid": {"type": "number", "min": "TODO", "max": "TODO", "round": 2, "nullable": True},
    "shop": {"type": "categorical", "values": ["web", "conseil", "no"]},
}


@pytest.mark.parametrize(
    ("column", "words", "rules", "unread"),
    [
        ("ald", "affection (seulement sur ordonnance)", ["when ald = oui then kind = ordonnance"], []),
        (
            "rate",
            "en % : 0 sans ordonnance, 100 si ALD, sinon 30 ou 65",
            [
                "when kind != ordonnance then rate = 0",
                "when ald = oui then rate = 100",
                "when kind = ordonnance and ald != oui then rate != 0 and rate != 100",
            ],
            [],
        ),
        (
            "paid",
            "vide sans ordonnance",
            ["when kind != ordonnance then paid = null", "when kind = ordonnance then paid != null"],
            [],
        ),
        ("paid", "leer, wenn nicht ald", ["when ald != oui then paid = null", "when ald = oui then paid != null"], []),
        ("paid", "0 si conseil", [], ["0 si conseil"]),  # which is a value of two columns
        ("paid", "0 unless refused by the desk", [], ["0 unless refused by the desk"]),
        ("rate", "7 sans ordonnance", [], ["7 sans ordonnance"]),  # which is none of its values
        ("paid", "only on prescription", [], ["only on prescription"]),  # which says no value of a number
        ("paid", "in euros, with tax; 0 for no, 1 for yes", [], []),
        ("rate", "100 en cas d’ALD", ["when ald = oui then rate = 100"], []),
    ],
)
def test_a_clause_is_a_rule_where_every_word_of_it_is_understood(column, words, rules, unread) -> None:
    found, others = rules_in(KEYS, {column: words})
    assert [one.text for one in found] == rules and others.get(column, []) == unread


STAFF = """# Staff
- grade: 1 to 8
- contract: one of: permanent, fixed_term, agency
- months: months of service, 0 to 480
- company_car: yes/no, never below grade 4
- parking: yes/no; only from grade 5
- bonus: euros, 100 to 9000, two decimals, empty below grade 4
- lunch: 1 to 9, empty for grade 7 and above
- rating: 1 to 5, empty in the first half year
- pension: euros, 10 to 900; agency workers have none
- overtime: hours, 0 to 40; agency workers have none
- sick: days, 0 to 40, may be missing; agency workers have none
- phone: yes/no; agency staff have none
- car_tax: euros, 0 to 99, empty in the first half year of the lease
- level: 1 to 9, never below grade 4
"""
OF_STAFF = [
    "when grade < 4 then not company_car",
    "when parking then grade >= 5",
    "when grade < 4 then bonus = null",
    "when grade >= 7 then lunch = null",
    "when months < 6 then rating = null",
    "when contract = agency then pension = null",
    "when contract = agency then overtime = 0",
    "when contract = agency then not phone",
]
OPPOSITES = [("grade >= 4", "bonus != null"), ("grade < 7", "lunch != null"), ("months >= 6", "rating != null")]
UNREAD_OF_STAFF = (
    "agency workers have none",  # of a number that may be 0 or null
    "empty in the first half year of the lease",  # which no column counts
    "never below grade 4",  # of which it is not said whether it is 0 or null
)


def test_rules_that_compare_or_name_who_has_none_are_read_where_they_can_be_meant_in_one_way(tmp_path: Path) -> None:
    content = yaml.safe_load(text := drafted(tmp_path, STAFF, accept=True))
    assert content["constraints"] == OF_STAFF and '# rating: "empty in the first half year"' in text
    assert [text.count(f"not read as a rule: `{one}`") for one in UNREAD_OF_STAFF] == [1, 1, 1]
    assert content["columns"]["pension"]["nullable"] and "who has none: `agency workers have none`" in text
    assert parse(text)[0] is not None and "nullable" not in content["columns"]["overtime"]
    two = drafted(tmp_path, f"{STAFF}- tenure: years of service, 0 to 40\n", accept=True)
    assert "months < 6" not in two  # either may be meant


BESIDE = {
    "rows": {"min": 10, "max": 90},
    "constraints": ["fare <= refund", "when cancelled then fare > 20"],
    "workload": [{"by": "fare_class"}, {"columns": ["fare", "delay"], "weight": 4}],
}


def test_rows_constraints_and_a_workload_are_written_and_held_to_the_columns_of_a_draft(tmp_path: Path) -> None:
    drafted(tmp_path, BOOKINGS)
    frame = pd.read_csv(tmp_path / "data.csv").astype({"fare": float, "refund": float})
    for given in ({"document": tmp_path / "codes.md"}, {"document": tmp_path / "codes.md", "accept_suggestions": True}):
        text = nacre.draft_schema(frame, name="a", header=True, **given, **BESIDE)
        content = yaml.safe_load(text)
        said = RULES if "accept_suggestions" in given else []
        assert content["columns"]["departure"]["type"] == "datetime"  # an empty column, whose type says nothing
        assert content == content | BESIDE | {"constraints": [*BESIDE["constraints"], *said]}
        assert f"- {BESIDE['constraints'][1]}\n{'' if said else '# '}- {RULES[0]}  # " in text
    alone = yaml.safe_load(nacre.draft_schema(frame, name="a", header=True, constraints="fare <= refund"))
    assert alone["constraints"] == ["fare <= refund"] and not {"rows", "workload"} & alone.keys()
    for wrong, says in (
        ({"workload": [{"by": "fair"}]}, "^workload.0 `fair` is no column of this schema; did you mean `fare`"),
        ({"workload": {"by": "fare"}}, "^workload must be a list of dictionaries such as"),
        ({"rows": 90}, "^rows must be a dictionary such as .*, not int$"),
        ({"workload": [{"colums": ["fare", "delay"]}]}, "^workload.0.colums is no key here; did you mean `columns`"),
        ({"constraints": ["fare <= refnd"]}, "^constraints.0 .*refnd.*did you mean `refund`"),
        ({"rows": {"min": 9, "max": 3}}, "^rows.min 9 is above max 3"),
        ({"rows": {"min": object()}}, "^rows: YAML cannot write rows.min; use"),
    ):
        with refused(nacre.NacreError, says):
            nacre.draft_schema(frame, name="a", header=True, **wrong)
    with refused(nacre.NacreError, "must be left out of a draft of several tables", name="workload"):
        nacre.draft_schema({"a": frame, "b": frame}, name="a", header=True, workload=BESIDE["workload"])


@pytest.mark.parametrize("accept", [False, True])
def test_a_rule_of_a_person_stands_in_place_of_one_of_a_code_book_that_says_the_same(
    tmp_path: Path, accept: bool
) -> None:
    (tmp_path / "codes.md").write_text(STAFF)
    frame = pd.DataFrame(columns=[line[2:].partition(":")[0] for line in STAFF.splitlines() if line.startswith("- ")])
    given = ["when grade <= 3 then company_car = false and bonus = null", "when months < 6 then  rating = null"]

    def constraints(rules: list[str]) -> tuple[list[str], str]:
        text = nacre.draft_schema(
            frame, name="a", header=True, document=tmp_path / "codes.md", accept_suggestions=accept, constraints=rules
        )
        return yaml.safe_load(text)["constraints"], text

    others = [one for one in OF_STAFF if "grade < 4" not in one and "months < 6" not in one]
    read, text = constraints(given)
    assert read == [*given, *(others if accept else [])]
    assert "# - when months < 6 then rating = null" not in text and f"{'' if accept else '# '}- {others[0]}" in text
    read, text = constraints([*OF_STAFF, *(f"when {one} then {two}" for one, two in OPPOSITES)])
    assert len(read) == len(OF_STAFF) + len(OPPOSITES) and "Rules that descriptions say" not in text
    assert "\n\n" not in text.partition("columns:")[0]


OPEN_AMOUNT = {"type": "number", "min": "TODO", "max": "TODO", "zero_inflated": True}


@pytest.mark.parametrize("dtype", [None, pa.float64()])
def test_an_amount_without_bounds_that_is_0_unless_something_holds_is_drafted_with_its_zeros_and_rule(
    tmp_path: Path, dtype: pa.DataType | None
) -> None:
    lines = {"complaint": "yes or no", "back": "amount in euros, 0 unless complaint is yes", "odd": "0 if complaint"}
    lines |= {"least": "at least 15, 0 unless complaint"}
    lines |= {"kind": "included unless complaint is yes"}
    words = "".join(f"- {name}: {said}\n" for name, said in lines.items())
    (tmp_path / "codes.md").write_text(words)
    (data := tmp_path / "data.csv").write_text(",".join(lines) + "\n")
    if dtype is not None:
        columns = {name: pa.array([], pa.bool_() if name == "complaint" else dtype) for name in lines}
        pq.write_table(pa.table(columns), data := tmp_path / "data.parquet")
    text = draft(data, True, PublicFacts(document=tmp_path / "codes.md"))
    drafted_columns = yaml.safe_load(text)["columns"]
    assert drafted_columns["back"] == OPEN_AMOUNT
    assert drafted_columns["odd"] == (OPEN_AMOUNT if dtype else {"type": "TODO"})
    assert "\n# - when not complaint then back = 0  # " in text and "\n# - when complaint then odd = 0  # " in text
    assert "zero_inflated" not in drafted_columns["least"]  # a schema takes no zeros beyond the bounds
    clauses = ("included unless complaint is yes", "0 unless complaint")
    assert all(f"not read as a rule: `{clause}`;" in text for clause in clauses)


DATES = "| name | meaning | range |\n| --- | --- | --- |\n| day | jour, JJ/MM/AAAA | 02/01/2025 au 05/06/2025 |\n"


def test_a_form_of_dates_in_words_settles_days_and_months_and_is_written_for_text(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("day;paid\n")
    (tmp_path / "codes.md").write_text(f"{DATES}| paid | montant | 1,00 à 1 200,00 |\n")
    content = yaml.safe_load(draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md")))
    assert content["text"] == {"decimal": ",", "thousands": " ", "date_format": "%d/%m/%Y"}
    assert [str(content["columns"]["day"][key]) for key in ("min", "max")] == ["2025-01-02", "2025-06-05"]
    (tmp_path / "commas.csv").write_text("day,paid\n")
    content = yaml.safe_load(draft(tmp_path / "commas.csv", True, PublicFacts(document=tmp_path / "codes.md")))
    assert content["text"] == {"date_format": "%d/%m/%Y"}  # no comma stands before decimals where it parts fields
    (tmp_path / "codes.md").write_text(DATES.replace("JJ/MM/AAAA", "MM/DD/YYYY"))
    content = yaml.safe_load(draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md")))
    assert str(content["columns"]["day"]["max"]) == "2025-05-06"
    given = PublicFacts(document=tmp_path / "codes.md", text={"decimal": ","})
    stated = yaml.safe_load(draft_all(tmp_path / "data.csv", True, given))["text"]
    assert stated == {"date_format": "%m/%d/%Y", "decimal": ","}  # a person's own, and what the code book says beside


def test_years_beside_a_form_of_dates_are_bounds_of_dates(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("born,joined,year\n")
    (tmp_path / "codes.md").write_text(
        "| field | meaning |\n| --- | --- |\n| born | date of birth, dd/mm/yyyy, 2010 to 2015 |\n"
        "| joined | joining the school, dd/mm/yyyy |\n| year | year of birth, 2010 to 2015 |\n"
    )
    columns = yaml.safe_load(draft(tmp_path / "data.csv", True, PublicFacts(document=tmp_path / "codes.md")))["columns"]
    assert columns["born"]["type"] == columns["joined"]["type"] == "datetime" and columns["year"]["type"] == "integer"
    assert [str(columns["born"][key]) for key in ("min", "max")] == ["2010-01-01", "2015-12-31"]


def test_words_that_say_two_things_or_none_set_no_form_and_no_number_of_rows() -> None:
    assert date_format_in("DD.MM.YYYY or MM/DD/YYYY") == date_format_in("a day or a month") == ""
    assert not has_comma("1,2 or 0, 30, 65") and not has_comma("1,00 and 1.25") and has_comma("0,5 bis 1,5")
    assert rows_in("between 10 and 20 rows, or 30 to 40 rows") is None and rows_in("20 to 10 rows") is None
    assert rows_in("Entre 15 000 et 20 000 lignes. Une ligne = une vente") == (
        15000,
        20000,
        "Entre 15 000 et 20 000 lignes",
    )


STAYS = """# Stays. One row is one stay; between 12,000 and 16,000 stays a year.
- arrival: day of arrival, 2025-01-01 to 2025-12-31
- departure: day of departure, 1 to 21 days after arrival
- room: single, double or suite
- guests: 1 to 4
- rate: euros a night, 45 to 600, two decimals
- discount_pct: 0, 5, 10 or 20
- breakfast: Y/N
- breakfast_amount: euros: 14 for each guest and night with breakfast, else 0
- total: nights x rate x (1 - discount / 100) + breakfast_amount, rounded to cents
- complaint: yes/no
"""


def test_nights_between_two_dates_stand_in_the_formulas_of_a_code_book(tmp_path: Path) -> None:
    text = drafted(tmp_path, STAYS, accept=True)
    columns = yaml.safe_load(text)["columns"]
    nights = {"type": "integer", "min": 1, "max": 21, "computed": "days_between(arrival, departure)"}
    breakfast = "guests * days_after_arrival * {'true': 14, 'false': 0}[breakfast]"
    assert columns["days_after_arrival"] == nights and columns["room"]["values"] == ["single", "double", "suite"]
    assert columns["breakfast_amount"] == {"type": "derived", "formula": breakfast}
    total = "days_after_arrival * rate * (1 - discount_pct / 100) + breakfast_amount"
    assert columns["total"] == {"type": "derived", "formula": total, "round": 2}
    assert '\nrows: {min: 12000, max: 16000}  # "between 12,000 and 16,000 stays a year"' in text
    assert '\n# rows: {min: 12000, max: 16000}  # "between 12,000' in drafted(tmp_path, STAYS)
    frame, given = pd.read_csv(tmp_path / "data.csv"), {"rows": {"min": 9}, "document": tmp_path / "codes.md"}
    stated = nacre.draft_schema(frame, name="a", header=True, accept_suggestions=True, **given)
    assert yaml.safe_load(stated)["rows"] == {"min": 9} and stated.count("\nrows:") == 1
    offered = nacre.draft_schema(frame, name="a", header=True, **given)
    assert yaml.safe_load(offered)["rows"] == {"min": 9} and "# rows: {" not in offered
    assert 'write `{type: categorical, values: ["yes", "no"]}`' in text and "a rate in percent" not in text
    schema, faults = parse(text)
    assert schema is not None and not faults
    for unsure in ("14 for each guest and night with breakfast", "14 for each guest and pillow with breakfast, else 0"):
        words = STAYS.replace("14 for each guest and night with breakfast, else 0", unsure)
        assert yaml.safe_load(drafted(tmp_path, words, accept=True))["columns"]["breakfast_amount"]["type"] != "derived"
    several = STAYS.replace("- room", "- billed: day of the bill, 0 to 9 days after arrival\n- room")
    no_nights = yaml.safe_load(drafted(tmp_path, several, accept=True))["columns"]
    assert no_nights["total"]["type"] == "TODO"  # nights may be either


def test_text_of_a_typed_table_is_drafted_as_dates_and_times_of_a_code_book(tmp_path: Path) -> None:
    words = f"{STAYS}- check_in: time of check-in, 14:00 to 23:30\n- refund: 0 to 90, 0 unless complaint is yes\n"
    words += "- gift: 0 to 9, 0 if complaint is no\n"
    names = [line.removeprefix("- ").partition(":")[0] for line in words.splitlines() if line.startswith("- ")]
    numbers = ("guests", "rate", "discount_pct", "breakfast_amount", "total", "refund", "gift")
    types = {name: pa.float64() if name in numbers else pa.string() for name in names}
    pq.write_table(pa.schema(types.items()).empty_table(), tmp_path / "data.parquet")
    (tmp_path / "codes.md").write_text(words)
    text = draft(tmp_path / "data.parquet", True, PublicFacts(document=tmp_path / "codes.md", accept=True))
    columns = yaml.safe_load(text)["columns"]
    assert columns["departure"] == {"type": "derived", "formula": "add_days(arrival, days_after_arrival)"}
    assert columns["check_in"]["dtype"] == "time32[s]" and "days_after_arrival" in columns["total"]["formula"]
    assert yaml.safe_load(text)["constraints"] == [
        "when not complaint then refund = 0",
        "when not complaint then gift = 0",
    ]
    schema, faults = parse(text)
    assert schema is not None and not faults and "boolean` alone" not in text


@pytest.mark.parametrize(
    ("words", "least"),
    [
        ("One row is one stay. 12,000 to 16,000 stays", 12000),
        ("Une ligne = une vente. Entre 15 000 et 20 000 ventes", 15000),
        ("about 12,000 to 16,000 rows", 12000),
        ("One row is one stay. 100 to 200 guests", None),
    ],
)
def test_rows_are_counted_by_what_one_row_is(words: str, least: int | None) -> None:
    counted = rows_in(words)
    assert (counted and counted[0]) == least


def test_what_a_document_denies_says_no_form_and_a_list_of_codes_no_decimal_comma() -> None:
    assert date_format_in("jour, JJ/MM/AAAA") == "%d/%m/%Y" and not date_format_in("never written as DD/MM/YYYY.")
    assert has_comma("1,00 à 1 200,00") and has_comma("12,35 et 7,12") and not has_comma("Codes 1,2 or 3,4 or 1,3")
    begun = time.perf_counter()
    assert rows_in(" ".join(f"{100 + i % 800}" for i in range(40_000))) is None and not has_comma("1" * 40_000 + "/1")
    assert time.perf_counter() - begun < 2, "a long list of codes takes no time that grows with its square"


def test_a_value_with_a_line_end_in_it_ends_no_comment() -> None:
    (line,) = [*_rule_lines([Rule("fee", "when c = A\nb then fee = 0", "0 if A b")], accept=False)][2:]
    assert len(line.splitlines()) > 1 and all(one.startswith("# ") for one in line.splitlines())


@pytest.mark.parametrize(
    ("extra", "gross", "decimals"),
    [
        ("euros, 0 to 800", "base + extra", 2),
        ("hours, 0 to 800", "base + extra", 2),  # which are no money; the base is, and has cents
        ("euros, 0 to 800, one decimal", "base + extra", 1),
        ("euros, 0 to 800", "base / extra", None),  # a share
    ],
)
def test_a_sum_of_money_is_drafted_to_the_cent_as_files_write_it(
    tmp_path: Path, extra: str, gross: str, decimals: int | None
) -> None:
    text = drafted(tmp_path, f"- base: euros, 1000 to 5000\n- extra: {extra}\n- gross: {gross}\n", accept=True)
    assert yaml.safe_load(text)["columns"]["gross"].get("round") == decimals
