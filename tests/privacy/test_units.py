"""The unit of privacy: what it says in words, and that what older versions hashed is written as they wrote it."""

import pytest
from pydantic import ValidationError

from dpmodels.contract.schema import Schema
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit, exact_decimal
from tests.kit.support import make_schema

USER = PrivacyUnit(user="patient", max_rows=4)


@pytest.mark.parametrize(
    ("unit", "written", "code", "words"),
    [
        (PrivacyUnit(), '{"user":null,"max_rows":1}', "record", "record"),
        (USER, '{"user":"patient","max_rows":4}', "user:patient:4", "user (patient, at most 4 rows)"),
        (PrivacyUnit(user="a"), '{"user":"a","max_rows":1}', "user:a:1", "user (a, at most 1 row)"),
        (PrivacyUnit(kind="sentence"), '{"kind":"sentence"}', "sentence", "sentence of a document"),
        (PrivacyUnit(kind="document"), '{"kind":"document"}', "document", "document"),
    ],
)
def test_a_unit_is_written_as_ever_and_read_back(unit: PrivacyUnit, written: str, code: str, words: str) -> None:
    assert unit.model_dump_json() == written and PrivacyUnit.model_validate_json(written) == unit
    assert (unit.code, str(unit)) == (code, words)
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, unit=unit)
    assert PrivacyBudget.model_validate_json(budget.model_dump_json()) == budget
    assert budget.model_dump_json().endswith(f',"adjacency":"add_or_remove_one","unit":{written}}}')


@pytest.mark.parametrize(
    "words",
    [
        {"max_rows": 2},
        {"kind": "sentence", "max_rows": 2},
        {"kind": "user"},
        {"kind": "document", "user": "patient"},
        {"kind": "record", "user": "patient"},
        {"kind": "word"},
    ],
)
def test_a_unit_that_contradicts_itself_is_refused(words: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PrivacyUnit.model_validate(words)


def test_a_table_hides_records_or_users_and_no_parts_of_documents() -> None:
    content = make_schema().model_dump()
    for kind in ("sentence", "document"):
        with pytest.raises(ValidationError, match="the unit of a table"):
            Schema.model_validate({**content, "unit": {"kind": kind}})


def test_budgets_know_both_adjacencies_and_a_delta_of_0_and_amounts_are_the_decimals_that_were_written() -> None:
    budget = PrivacyBudget(epsilon=0.1, delta=0, adjacency=Adjacency.REPLACE_ONE)
    assert PrivacyBudget.model_validate_json(budget.model_dump_json()) == budget
    assert (str(budget.epsilon_exact), budget.delta_exact, exact_decimal(1e-5)) == ("0.1", 0, exact_decimal(0.00001))
    for delta in (-1e-9, 1.0, float("nan")):
        with pytest.raises(ValidationError):
            PrivacyBudget(epsilon=1.0, delta=delta)
