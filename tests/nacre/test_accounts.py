"""In Python an account is opened by its schema, as on the command line, or by its name and terms."""

from pathlib import Path

import pytest

import nacre
from dpmodels.errors import InvalidArgument, SchemaError, Unsuitable
from tests.kit.errors import refused
from tests.kit.support import run_cli

VISITS = """name: visits
unit: {user: patient, max_rows: 3}
columns: {patient: {type: identifier}, sick: {type: boolean}}
"""
TREE = """name: shop
tables:
  customer: {key: id, columns: {id: {type: identifier, keep: regenerate}, old: {type: boolean}}}
  order: {parent: customer, most: 3, columns: {id: {type: identifier}, late: {type: boolean}}}
"""


@pytest.mark.parametrize("form", ["path", "text", "schema"])
def test_a_schema_opens_the_account_that_the_command_opens(form: str, tmp_path: Path) -> None:
    (path := tmp_path / "visits.yaml").write_text(VISITS)
    schema = {"path": path, "text": VISITS, "schema": nacre.load_schema(path)}[form]
    account = nacre.ledger(tmp_path / "home").open_account(schema, epsilon=3, delta=1e-5)
    words = ["ledger", "open", "visits", "--schema", path, "--epsilon", 3, "--delta", 1e-5]
    assert run_cli(*words, "--home", tmp_path / "other")[0] == 0
    (other,) = nacre.ledger(tmp_path / "other").accounts()
    assert account == other.model_copy(update={"created": account.created})
    assert account.cap.unit == nacre.PrivacyUnit(user="patient", max_rows=3)


def test_further_terms_and_another_name_are_taken(tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    account = ledger.open_account(VISITS, epsilon=3, delta=1e-5, account="pilot", owner="Dana", run_cap=1)
    assert (account.name, account.dataset, account.owner, float(account.run_cap or 0)) == ("pilot", "visits", "Dana", 1)


def test_a_tree_that_was_loaded_opens_one_too(tmp_path: Path) -> None:
    tree = nacre.load_schema(TREE)
    account = nacre.ledger(tmp_path).open_account(tree, epsilon=3, delta=1e-5)
    assert (account.dataset, account.cap.unit) == ("shop", tree.unit)


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"epsilon": 3},
        {"dataset": "visits"},
        {"dataset": "visits", "epsilon": 3, "delta": 1e-5},
        {"dataset": "visits", "budget_cap": nacre.PrivacyBudget(epsilon=3, delta=1e-5), "epsilon": 3, "delta": 1e-5},
    ],
)
def test_terms_of_both_ways_or_of_neither_are_answered_with_both(terms: dict[str, object], tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    with pytest.raises(Unsuitable, match=r"open_account\(SCHEMA, epsilon=3, delta=1e-5\).*open_account\(NAME, dataset"):
        ledger.open_account(VISITS, **terms)
    assert ledger.accounts() == []


def test_faults_are_said_in_words_of_python(tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    with pytest.raises(SchemaError, match="schema visits does not exist"):
        ledger.open_account("visits", epsilon=3, delta=1e-5)
    with refused(InvalidArgument, "allow_large_delta=True", name="delta"):
        ledger.open_account(VISITS, epsilon=3, delta=0.1)
    assert ledger.open_account(VISITS, epsilon=3, delta=0.1, allow_large_delta=True).cap.delta == 0.1
