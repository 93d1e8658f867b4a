"""Plain words of a code book say values, sums, products and numbers of persons; what a person states is settled."""

from pathlib import Path

import pytest
import yaml

from dpmodels.authoring.documents.formulas import with_formulas
from dpmodels.authoring.documents.rules import rules_in
from dpmodels.authoring.documents.worded import with_worded
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.facts import Bound, Facts
from dpmodels.authoring.lint import parse

STAFF = """# Staff
- staff_no: payroll number
- site: Leeds, Bristol, Cardiff, Glasgow or Norwich
- weekly_hours: one of 15, 18.75, 37.5
- hourly_rate: pounds, from 9 to 60, two decimals
- base_pay: 52 weeks of weekly hours at the hourly rate, to the penny
- overtime_hours: at most 240
- overtime_pay: overtime hours at one and a half times the hourly rate
- bonus: whole pounds, 0 to 9000
- gross: base pay, overtime pay and bonus
- performance: 1 (poor) to 5 (excellent); empty in the first half year
- left: Y if they left in the year, else N
- reason: resigned, retired, dismissed or end of contract; empty unless left
"""
BASE, OVERTIME = "52 * weekly_hours * hourly_rate", "1.5 * overtime_hours * hourly_rate"
OFFERED = {
    "staff_no": {"type": "identifier"},
    "base_pay": {"type": "derived", "formula": BASE, "round": 2},
    "overtime_pay": {"type": "derived", "formula": OVERTIME, "round": 2},
    "gross": {
        "type": "derived",
        "formula": "base_pay + overtime_pay + bonus",
        "round": 2,
    },
    "left": {"type": "categorical", "values": ["Y", "N"]},
    "reason": {
        "type": "categorical",
        "values": ["resigned", "retired", "dismissed", "end of contract"],
        "nullable": True,
    },
}
SETTLED = {
    "site": {"type": "categorical", "values": ["Leeds", "Bristol", "York"]},
    "performance": {"type": "integer", "min": 1, "max": 5, "nullable": True},
}
TYPES = "site=categorical:Leeds|Bristol|York performance=integer:1:5?"


def drafted(folder: Path, **options: object) -> str:
    names = [line.removeprefix("- ").partition(":")[0] for line in STAFF.splitlines() if line.startswith("- ")]
    (folder / "staff.csv").write_text(",".join(names) + "\n")
    (folder / "codes.md").write_text(STAFF)
    return draft(folder / "staff.csv", True, PublicFacts(document=folder / "codes.md", **options))


def test_plain_words_are_offered_and_what_a_person_states_needs_no_confirmation(tmp_path: Path) -> None:
    text = drafted(tmp_path, types=TYPES)
    columns = yaml.safe_load(text)["columns"]
    for name, keys in OFFERED.items():
        assert columns[name] == {**keys, "confirm": "TODO"}, name
    assert {name: columns[name] for name in SETTLED} == SETTLED
    assert text.count("not read as a rule") == text.count("not read as a rule: `empty in the first half year`") == 1
    assert "# - when left != Y then reason = null" in text
    accepted = drafted(tmp_path, accept=True, types=TYPES)
    assert yaml.safe_load(accepted)["constraints"] == ["when left != Y then reason = null"]
    assert parse(accepted)[1] == []
    unsettled = yaml.safe_load(drafted(tmp_path, types="site=categorical performance=integer?"))["columns"]
    assert unsettled["site"]["confirm"] == unsettled["performance"]["confirm"] == "TODO"


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("1 if the claim was paid, 0 otherwise", "1 | 0"),
        ("oui si le client revient, sinon non", "oui | non"),
        ("J wenn gekündigt, sonst N", "J | N"),
        ("0 if cancelled, else 100", None),  # which are amounts
        ("Y if they left, else Y", None),
        ("Y if they left in the year, else the old code", None),
        ("resigned, retired, dismissed or the end of contract", None),
        ("resigned, long retired, soon dismissed or end of contract", None),
        ("resigned, retired, dismissed or end of contract", "resigned | retired | dismissed | end of contract"),
    ],
)
def test_two_answers_and_names_of_several_words_are_values_to_be_confirmed(words: str, values: str | None) -> None:
    row = with_worded({"description": words})
    assert (row.get("values"), row.get("unsure")) == (values, values and words)


NUMBERS = {
    "visits": Facts(kind="integer"),
    "fee": Facts(description="euros"),
    "rate": Facts(low=Bound(0), high=Bound(9)),
    "ward": Facts(values=("north", "south")),
    "note": Facts(description="a remark"),
}


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("the visits and the fee", {"formula": "visits + fee", "round": 2}),
        ("sum of visits, rate and fee", {"formula": "visits + rate + fee", "round": 2}),
        ("visits at the rate", {"formula": "visits * rate"}),
        ("visits at twice the rate", {"formula": "2 * visits * rate"}),
        ("12 months of visits at the fee (net)", {"formula": "12 * visits * fee", "round": 2}),
        ("visits and ward", None),  # whose values are no numbers
        ("visits and note", None),  # of which nothing says that it holds numbers
        ("visits, fee", None),  # which may be a list
        ("visits and visits", None),
        ("visits and fee of the year", None),
        ("visits at the ward", None),
    ],
)
def test_a_sum_or_product_in_words_is_one_of_columns_of_numbers(words: str, keys: dict[str, object] | None) -> None:
    offered = with_formulas({**NUMBERS, "total": Facts(description=words)})["total"].offered
    assert offered == (keys and {"type": "derived", **keys})


def test_an_else_is_named_where_its_condition_is_not_about_the_column_itself() -> None:
    keys = {"late": {"type": "categorical", "values": ["Y", "N"]}}
    assert rules_in(keys, {"late": "Y if they came late, else N"})[1] == {}
    assert rules_in(keys, {"late": "Y if above 30 minutes, else N"})[1] == {"late": ["else N"]}
