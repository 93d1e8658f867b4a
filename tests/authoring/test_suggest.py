"""Suggestions by name and type: safe, written as comments, refused by the lint until somebody takes them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.authoring.column import IF_ZEROS, MAY_BE_ANSWERS, OF_DECIMALS, drafted
from dpmodels.authoring.draft import PublicFacts, comment, draft
from dpmodels.authoring.facts import Bound, Facts
from dpmodels.authoring.lint import parse
from tests.kit.every_kind import make

NUMBER, WHOLE, TEXT = pa.float64(), pa.int64(), pa.string()
CUT = {"scale": "log", "outside": "clip"}


@pytest.mark.parametrize(
    ("name", "found", "low", "high", "more"),
    [
        ("age", WHOLE, 0, 120, {}),
        ("AgeYears", WHOLE, 0, 120, {}),
        ("birth_year", WHOLE, 1900, 2100, {}),
        ("area_year", WHOLE, 1900, 2100, {}),
        ("month", NUMBER, 1, 12, {}),
        ("sched_hour", WHOLE, 0, 23, {}),
        ("pct_paid", NUMBER, 0, 100, {}),
        ("error_percent", WHOLE, 0, 100, {}),
        ("ratio", NUMBER, 0, 1, {}),
        ("start_lat", NUMBER, -90, 90, {"round": 6}),
        ("longitude", NUMBER, -180, 180, {"round": 6}),
        ("weight_kg", NUMBER, 0, 700, {}),
        ("heightCm", WHOLE, 0, 300, {}),
        ("BMI", NUMBER, 0, 300, {}),
        ("quarter", WHOLE, 1, 4, {}),
        ("whatever", pa.int8(), -128, 127, {}),
        ("los_days", WHOLE, 0, 36_525, {"scale": "log"}),
        ("days_since_last_visit", WHOLE, 0, 36_525, {"scale": "log"}),
        ("prior_admissions", WHOLE, 0, 1000, CUT),
        ("num_meds", WHOLE, 0, 1000, CUT),
        ("n_visits", WHOLE, 0, 1000, CUT),
        ("VisitCount", WHOLE, 0, 1000, CUT),
        ("late_payments", WHOLE, 0, 1000, CUT),
        ("n_children", WHOLE, 0, 50, {"outside": "clip"}),
        ("tenure_months", WHOLE, 0, 1_200, {"scale": "log"}),
        ("months_employed", WHOLE, 0, 1_200, {"scale": "log"}),
        ("employment_years", WHOLE, 0, 100, {}),
        ("interest_rate", NUMBER, 0, 100, {}),
        ("discount_pct", NUMBER, 0, 100, {}),
        ("percent_paid", NUMBER, 0, 100, {}),
        ("heart_rate", WHOLE, 0, 400, {}),
        ("age_at_admission", WHOLE, 0, 120, {}),
        ("hours_per_week", WHOLE, 0, 168, {}),
    ],
)
def test_a_name_suggests_bounds_that_are_a_column(
    name: str, found: pa.DataType, low: int, high: int, more: dict[str, Any]
) -> None:
    made = drafted(name, found, Facts())
    assert made.keys["confirm"] == "TODO" and "suggested, as " in "".join(made.remarks)
    taken = drafted(name, found, Facts(), accept=True)
    assert taken.keys.items() >= {"min": low, "max": high, **more}.items() and "accepted" in "".join(taken.remarks)
    assert {"scale", "round", "outside"} & taken.keys.keys() == set(more)
    assert made.keys == {**taken.keys, "confirm": "TODO"}


@pytest.mark.parametrize("accept", [False, True])
@pytest.mark.parametrize(
    "name",
    ["bill_eur", "fare_amount", "totalPrice", "monthly_premium", "trip_distance", "hourly_rate", "total_payments"],
)
def test_no_bound_is_suggested_of_what_is_paid_or_measured_but_how_to_choose_one(name: str, accept: bool) -> None:
    for found in (NUMBER, WHOLE, None):
        made = drafted(name, found, Facts(), accept=accept)
        assert "TODO" in made.keys.values() and not any(isinstance(value, int | float) for value in made.keys.values())
        assert "a public document allows" in made.remarks[-1]
        assert comment(made.remarks[-1]) == made.remarks[-1]  # a comment that is too long is cut off in mid-sentence
        assert IF_ZEROS not in made.remarks  # the advice speaks of zeros itself
    half = drafted(name, NUMBER, Facts(low=Bound(5)), accept=accept)
    assert half.keys == {"type": "number", "min": 5.0, "max": "TODO"}
    assert "zero_inflated" not in "".join(half.remarks)  # none of them is 0
    whole = drafted(name, NUMBER, Facts(low=Bound(5), high=Bound(10)), accept=accept)
    assert whole.remarks == (OF_DECIMALS,)


@pytest.mark.parametrize(
    ("found", "facts", "is_asked"),
    [
        (NUMBER, Facts(), True),
        (WHOLE, Facts(), True),
        (NUMBER, Facts(low=Bound(0)), True),
        (NUMBER, Facts(low=Bound(5)), False),
        (NUMBER, Facts(high=Bound(-5)), False),
        (NUMBER, Facts(low=Bound(0), high=Bound(10)), False),  # that has zero_inflated
        (NUMBER, Facts(zeros=False), False),
        (TEXT, Facts(), False),
    ],
)
def test_zeros_are_asked_for_once_where_a_bound_is_open_and_the_name_says_nothing(
    found: pa.DataType, facts: Facts, is_asked: bool
) -> None:
    assert drafted("data_gb", found, facts).remarks.count(IF_ZEROS) == is_asked


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "identifier",
            "id patient_id customer userName user email phone_number iban SSN home_address uuid passport_no",
        ),
        (
            "categorical",
            "sex gender country state ward status payment_type bloodType category marital_status education "
            "education_level occupation sales_channel product plan segment grade level home_city",
        ),
        ("boolean", "is_smoker has_id was_admitted had_children new_flag defaulted churned readmitted deceased active"),
        (
            "datetime",
            "admitted birth_date dob born created_at visit_date dateOfBirth date_added timestamp opened joined hired "
            "last_contact signup closed_on registered_on start_on",
        ),
        (
            "integer",
            "visit_count n_children quantity number_of_rooms year month hour age children household_size visits",
        ),
        ("number", "price total_amount cost bill fee_eur salary income lat lon weight_kg debt balance savings score"),
    ],
)
def test_a_usual_name_suggests_a_type_where_the_file_says_none(kind: str, names: str) -> None:
    for name in names.split():
        made = drafted(name, None, Facts())
        assert made.keys["type"] == kind and "TODO" in made.keys.values(), name
        assert ("`, confirm: TODO`" in "".join(made.remarks)) == ("confirm" in made.keys), name
        assert drafted(name, None, Facts(), accept=True).keys["type"] == kind, name


@pytest.mark.parametrize(
    "name",
    [
        *("page", "update", "statement", "average", "paid", "stage", "message", "idle", "island", "hash", "naming"),
        *("start", "end", "closed", "registered", "loan", "capital", "rating", "water_level", "floor_plan"),
        *(
            "credits_first_year",
            "first_year",
            "visits_per_year",
            "claims_last_year",
            "grade_2nd_year",
        ),
        *("drinks_a_year", "third_year", "absences_prior_year", "each_year", "NextYear"),
        *("n_stage", "prior_illness", "year_end", "growth_rate", "change_pct", "no_show", "holidays"),
    ],
)
def test_a_name_that_only_holds_such_letters_suggests_nothing(name: str) -> None:
    assert not drafted(name, None, Facts()).remarks


def test_a_name_that_may_mean_two_things_is_taken_for_neither() -> None:
    for name in ("last_payment", "next_order"):
        for accept in (False, True):
            made = drafted(name, None, Facts(), accept=accept)
            assert made.keys == {"type": "TODO"} and "may mean a day or an amount" in made.remarks[-1], name


def test_what_a_person_is_called_by_is_suggested_as_the_unit(tmp_path: Path) -> None:
    for names, unit in (
        ("age,Patient Id,user", "or {user: Patient Id}, as its name suggests"),
        ("age,customer", "or {user: customer}, as"),
        ("age,id,sex", "or {user: ID_COLUMN, max_rows: N} when one"),
    ):
        (tmp_path / "t.csv").write_text(names + "\n")
        assert f"unit: record  # {unit}" in draft(tmp_path / "t.csv"), names
    pq.write_table(pa.table({"customer": [0.5], "person": [True], "age": [1]}), tmp_path / "t.parquet")
    assert "{user: ID_COLUMN" in draft(tmp_path / "t.parquet")  # a number with a fraction names nobody


def test_nothing_is_suggested_where_the_name_and_the_type_do_not_go_together() -> None:
    for name, found in (("age", TEXT), ("message", WHOLE), ("average", NUMBER), ("stage", WHOLE)):
        expected = {TEXT: (MAY_BE_ANSWERS,), NUMBER: (IF_ZEROS, OF_DECIMALS)}.get(found, (IF_ZEROS,))
        assert drafted(name, found, Facts()).remarks == expected, name
    assert drafted("patient_id", NUMBER, Facts(), accept=True).keys["min"] == "TODO"


@pytest.mark.parametrize("options", [{}, {"accept": True}, {"discover": True}], ids=str)
def test_text_that_is_called_as_dates_are_is_drafted_as_in_a_text_file(options: dict[str, bool]) -> None:
    for name in ("admission_date", "paid_at"):
        plain = drafted(name, None, Facts(), **options)
        assert drafted(name, pa.string(), Facts(), **options) == plain
        assert drafted(name, pa.large_string(), Facts(), **options) == plain
        assert "datetime" in str(plain)
    assert drafted("ward", pa.string(), Facts(), **options).keys["type"] == "categorical"


def test_text_that_may_hold_yes_and_no_only_is_asked_for_it_until_its_values_are_known() -> None:
    assert drafted("is_smoker", TEXT, Facts()) == drafted("is_smoker", None, Facts())
    assert drafted("is_smoker", TEXT, Facts()).keys == {"type": "boolean", "confirm": "TODO"}
    assert "`type: boolean`" in drafted("consent", TEXT, Facts()).remarks[0]
    assert not drafted("consent", TEXT, Facts(values=("a", "b"))).remarks
    assert not drafted("consent", pa.bool_(), Facts()).remarks


@pytest.mark.parametrize("accept", [False, True])
def test_the_zeros_of_an_amount_have_a_value_of_their_own_unless_a_document_says_that_none_is_zero(
    accept: bool,
) -> None:
    bounds = {"low": Bound(0), "high": Bound(100_000)}
    number = drafted("x", NUMBER, Facts(**bounds), accept)
    assert number.keys["zero_inflated"] is True and "round: 2" in number.remarks[-1]
    whole = drafted("x", WHOLE, Facts(**bounds), accept)
    assert whole.keys["zero_inflated"] is True and "zero_inflated: false" in whole.remarks[-1]
    assert "scale" not in number.keys and "TODO" not in number.keys.values()
    for said, zeros in (({"zeros": False}, False), ({"zeros": True}, True), ({"low": Bound(1)}, None)):
        column = drafted("x", NUMBER, Facts(**{**bounds, **said}), accept)
        assert column.keys.get("zero_inflated") is zeros and column.remarks == (OF_DECIMALS,), said
    assert "zero_inflated" not in drafted("x", WHOLE, Facts(low=Bound(0), high=Bound(999)), accept).keys
    assert (
        drafted("x", NUMBER, Facts(**bounds, zeros=True, scale="log")).keys.items()
        >= {
            "zero_inflated": True,
            "scale": "log",
        }.items()
    )
    wide = drafted("x", pa.uint16(), Facts(), accept).keys  # bounds that its type suggests
    assert wide["zero_inflated"] is True and (wide.get("confirm") is None) == accept


def test_an_amount_without_bounds_has_the_same_questions_beside_it() -> None:
    for dtype in (NUMBER, None):
        words = drafted("bill", dtype, Facts()).remarks[-1]
        assert all(key in words for key in ("`zero_inflated: true`", "`round: DECIMALS`"))


@pytest.mark.parametrize(
    ("name", "words", "ends", "is_whole"),
    [
        ("satisfaction", "Satisfaction, 1 to 10, sometimes missing", (1, 10), True),
        ("q7", "rating, 0 to 4", (0, 4), True),
        ("score", "", (1, 10), True),
        ("score", "", (0, 1), False),
        ("score", "", (0, 100), False),
        ("q7", "1 to 10", (1, 10), False),
        ("q7", "mean satisfaction, 1 to 10", (1, 10), False),
        ("rating", "1.5 to 9", (1.5, 9), False),
        ("score_rate", "points, 0 to 10", (0, 10), False),
    ],
)
def test_the_few_steps_of_a_scale_are_suggested_as_whole_numbers(name, words, ends, is_whole) -> None:
    facts = Facts(low=Bound(ends[0]), high=Bound(ends[1]), description=words, nullable=True)
    keys = drafted(name, NUMBER, facts).keys
    whole = {"type": "integer", "min": ends[0], "max": ends[1], "nullable": True, "confirm": "TODO"}
    assert (keys == whole) == is_whole
    assert (drafted(name, None, facts).keys["type"] == "integer") >= is_whole
    for stated in (replace(facts, kind="number"), replace(facts, decimals=1)):
        assert drafted(name, NUMBER, stated).keys["type"] == "number"


def test_numbers_are_asked_for_their_decimals_unless_something_says_them() -> None:
    bounds = {"low": Bound(1), "high": Bound(9)}
    assert drafted("x", NUMBER, Facts(**bounds)).remarks == (OF_DECIMALS,)
    for dtype, facts in ((pa.decimal128(9, 2), Facts()), (pa.float32(), Facts()), (NUMBER, Facts(decimals=1))):
        assert not drafted("x", dtype, Facts(**bounds, decimals=facts.decimals)).remarks
    assert OF_DECIMALS not in drafted("x", WHOLE, Facts(**bounds)).remarks


def test_what_names_a_person_and_free_text_are_suggested_to_be_left_out() -> None:
    for name, found in (("patient_id", WHOLE), ("uuid", TEXT), ("Last Name", TEXT), ("remarks", TEXT), ("email", None)):
        assert drafted(name, found, Facts(nullable=True), accept=True).keys == {"type": "identifier"}, name


def test_a_suggestion_fills_in_what_is_open_and_overrides_nothing() -> None:
    half = drafted("latitude", NUMBER, Facts(low=Bound(5)), accept=True)
    assert half.keys == {"type": "number", "min": 5.0, "max": 90.0}  # and no rounding that nobody asked for
    whole = drafted("age", WHOLE, Facts(low=Bound(18), high=Bound(65)), accept=True)
    assert whole.keys == {"type": "integer", "min": 18, "max": 65} and not whole.remarks
    odd = drafted("age", WHOLE, Facts(low=Bound(200)), accept=True)
    assert odd.keys == {"type": "integer", "min": "TODO", "max": 120} and "reversed" in odd.remarks[-2]
    assert drafted("user_id", TEXT, Facts(values=("a", "b")), accept=True).keys["type"] == "categorical"


def test_the_lint_refuses_a_suggestion_that_nobody_took(tmp_path: Path) -> None:
    columns = {
        "user_id": pa.array(["a"]),
        "age": pa.array([1]),
        "born": pa.array([0], pa.date32()),
        "seen": pa.array([0], pa.timestamp("ms")),
        "is_new": pa.array([True]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    text = draft(tmp_path / "t.parquet")
    assert "# suggested, as an age in years; to take it, delete `, confirm: TODO`\n" in text
    make(text.replace(", confirm: TODO", ""))
    schema, faults = parse(text)
    assert schema is None and {fault.where.split(".")[1] for fault in faults} == {"user_id", "age", "born", "seen"}
    taken = make(draft(tmp_path / "t.parquet", public_facts=PublicFacts(accept=True)))
    assert [column.type for column in taken.columns.values()] == [
        "identifier",
        "integer",
        "datetime",
        "datetime",
        "boolean",
    ]
    names = "user_id,age,share,is_new\n"
    (tmp_path / "t.csv").write_text(names)
    assert "{type: boolean, confirm: TODO}" in draft(tmp_path / "t.csv")
    assert len(make(draft(tmp_path / "t.csv", public_facts=PublicFacts(accept=True))).columns) == 4
