"""What a check says beside an officer's signature: columns without use, limits without a number, and who may decide."""

import json
from typing import Any

import pytest

from dpmodels.hand_off.manifest import CARD
from dpmodels.pages.asked.adviser import says_adviser
from dpmodels.pages.asked.limits import hard_limits, without_use
from dpmodels.pages.asked.signed import limits_left_out, not_for_columns
from tests.hand_off.make_golden import GOLDEN

FOLDER = GOLDEN / "LAYOUT-26" / "laid-out"


def card(**marks: Any) -> dict[str, Any]:
    """Return the facts of a golden card, with such marks of its columns."""
    facts: dict[str, Any] = json.loads((FOLDER / CARD).read_text())
    facts["quality"] = facts["quality"] | {"group_means": {}} | ({"marked": marks} if marks else {})
    return facts


def test_a_column_has_no_use_where_all_that_is_marked_of_it_is_bad_and_no_mean_by_group_holds() -> None:
    facts = card()
    first, other, third, *_ = (one["name"] for one in facts["content"]["columns"])
    bad = {first: "not known", other: "not known", third: "not known"}
    facts = card(**{"by itself": {"bad": bad}, "means": {"care": {other: "9 %"}, "bad": {first: "not known"}}})
    assert without_use(facts) == [first, third]
    facts["quality"]["group_means"] = {"hold": [f"{third} by {other}"]}
    assert without_use(facts) == [first] and not_for_columns(facts).startswith(
        f"{first} is handed over and has no use that"
    )
    del facts["quality"]["marked"]
    assert without_use(facts) == [] and not_for_columns(facts) == ""


def test_no_more_than_three_columns_are_named_beside_a_verdict() -> None:
    facts = card()
    names = [f"c{number}" for number in range(5)]
    facts["content"]["columns"] = [{"name": name, "type": "integer"} for name in names]
    facts["quality"]["marked"] = {"by itself": {"bad": dict.fromkeys(names, "not known")}}
    assert not_for_columns(facts) == (
        "c0, c1, c2 and 2 more are handed over and have no use that holds: does the purpose need them?"
    )


def test_limits_that_a_reason_does_not_name_by_number_are_said() -> None:
    facts = card()
    every = len(hard_limits(facts))
    assert every > 3
    none = f"none of the {every} limits of statement.html is named in it by its number"
    for reason in ("means only", "", "Art. 6(1)(f), 2026-11-30, 3 % of rows, 1.5"):
        assert limits_left_out(facts, reason) == none, reason
    rest = ", ".join(map(str, range(4, every))) + f" and {every}" if every > 4 else "4"
    assert limits_left_out(facts, "limits 1, 2 and 3: none needed").endswith(
        f" {rest} {'are' if every > 4 else 'is'} not named in it"
    )
    assert limits_left_out(facts, f"limits 1 to {every}") == limits_left_out(facts, f"1-{every}") == ""
    one_short = limits_left_out(facts, f"1 to {every - 1}")
    assert one_short == f"limit {every} is not named in it"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("C. Martin, DPO", "DPO"),
        ("Data protection officer", "Data protection"),
        ("Datenschutzbeauftragte", "Datenschutz"),
        ("Déléguée à la protection des données", "Délégué"),
        ("Dana", ""),
        ("Dpologos", ""),
    ],
)
def test_a_name_of_whoever_may_only_advise_is_known(name: str, words: str) -> None:
    assert says_adviser(name) == words
