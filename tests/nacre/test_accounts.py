"""In Python an account is opened by its schema, as on the command line, or by its name and terms."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import nacre
from dpmodels.errors import InvalidArgument, LedgerError, SchemaError, Unsuitable
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


@pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
def test_that_a_ledger_is_new_is_said_before_the_charge_as_on_the_command_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schema = "name: visits\ncolumns: {sick: {type: boolean}, old: {type: boolean}}\n"
    rows = pd.DataFrame({"sick": [True, False] * 40, "old": [False] * 80})
    terms = dict(delta=1e-5, home=tmp_path / "home", rows=20, internal_report=False)
    nacre.ledger(tmp_path / "other").open_account(schema, epsilon=3, delta=1e-5)
    nacre.synthesize(rows, schema, epsilon=1, delta=1e-5, home=tmp_path / "other", rows=20, internal_report=False)
    assert "a new ledger begins" not in caplog.text
    made = nacre.synthesize(rows, schema, epsilon=1, **terms)
    assert f"a new ledger begins in {tmp_path / 'home' / 'ledger.sqlite'}: it knows nothing of" in caplog.text
    assert "opened with this budget as its cap" in made.opened


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"dataset": "visits"},
        {"dataset": "visits", "epsilon": 3, "delta": 1e-5},
        {"dataset": "visits", "budget_cap": nacre.PrivacyBudget(epsilon=3, delta=1e-5), "epsilon": 3, "delta": 1e-5},
    ],
)
def test_terms_of_both_ways_or_of_neither_are_answered_with_both(terms: dict[str, object], tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    with pytest.raises(Unsuitable, match=r"open_account\(SCHEMA, epsilon=3, delta=1e-5\).*open_account\(NAME, dataset"):
        ledger.open_account(VISITS, **terms)
    assert not list(tmp_path.iterdir())


def test_a_look_makes_no_ledger_and_an_account_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = nacre.ledger(tmp_path / "hom")
    looks = (
        lambda: ledger.balance("visits"),
        lambda: ledger.account("visits"),
        lambda: ledger.plan("visits", epsilon=1, delta=1e-5),
        lambda: ledger.change_cap("visits", epsilon=5, reason="a typing error"),
        *(ledger.accounts, ledger.entries, ledger.verify, ledger.head),
        *(nacre.ledger().accounts, lambda: nacre.Ledger(tmp_path / "ledger.sqlite").accounts()),
    )
    for look in looks:
        with refused(LedgerError, "there is no ledger at .*name its home"):
            look()
    assert "there is no ledger at" in repr(ledger) and "there is no ledger at" in ledger._repr_html_()
    assert not list(tmp_path.iterdir())
    ledger.open_account(VISITS, epsilon=3, delta=1e-5)
    assert stat.S_IMODE((tmp_path / "hom").stat().st_mode) == 0o700
    assert [one.name for one in ledger.accounts()] == [one.name for one in nacre.ledger("hom").accounts()] == ["visits"]
    assert not (tmp_path / ".nacre").exists()


def test_releases_to_come_are_foreseen_as_on_the_command_line(tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    ledger.open_account(VISITS, epsilon=3, delta=1e-5)
    for times, fits in ((2, True), (9, False)):
        foreseen = ledger.plan("visits", epsilon=1, delta=1e-5, times=times)
        words = ["ledger", "plan", "visits", "--epsilon", 1, "--delta", 1e-5, "--times", times, "--json"]
        code, out, _ = run_cli(*words, "--home", tmp_path)
        assert {key: str(value) for key, value in json.loads(out).items()} == {
            key: str(value) for key, value in foreseen.items()
        }
        assert (code == 0) == foreseen["fits"] == fits
    with refused(InvalidArgument, name="times"):
        ledger.plan("visits", epsilon=1, delta=1e-5, times=0)
    assert len(ledger.entries()) == 1


def test_faults_are_said_in_words_of_python(tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    with pytest.raises(SchemaError, match="schema visits does not exist"):
        ledger.open_account("visits", epsilon=3, delta=1e-5)
    with refused(InvalidArgument, "allow_large_delta=True", name="delta"):
        ledger.open_account(VISITS, epsilon=3, delta=0.1)
    assert ledger.open_account(VISITS, epsilon=3, delta=0.1, allow_large_delta=True).cap.delta == 0.1


@pytest.mark.parametrize(
    ("terms", "error", "says"),
    [
        ({"epsilon": 4}, Unsuitable, r"^delta is missing: write `open_account\(SCHEMA, epsilon=4, delta=1e-5\)`$"),
        ({"delta": 1e-6}, Unsuitable, r"^epsilon is missing: write `open_account\(SCHEMA, epsilon=3, delta=1e-06\)`$"),
        ({"eps": 3, "delta": 1e-5}, TypeError, r"^open_account\(\) got .* argument 'eps'; did you mean `epsilon`\?$"),
        ({"epsilon": "3", "delta": 1e-5}, Unsuitable, "^epsilon must be a number, not str: write epsilon=3, without"),
        ({"epsilon": "four", "delta": 1e-5}, Unsuitable, "^epsilon must be a number, not str$"),
        ({"epsilon": 3, "delta": "1e-5"}, Unsuitable, "^delta must be a number, not str: write delta=1e-5, without"),
        ({"epsilon": 3, "delta": 1e-5, "run_cap": "1"}, Unsuitable, "^run_cap must be a number, not str"),
    ],
)
def test_a_term_that_is_missing_or_no_number_is_named(
    terms: dict[str, object], error: type[Exception], says: str, tmp_path: Path
) -> None:
    ledger = nacre.ledger(tmp_path)
    with pytest.raises(error, match=says):
        ledger.open_account(VISITS, **terms)
    assert not list(tmp_path.iterdir())


def test_a_cap_is_changed_by_numbers_for_a_reason(tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    ledger.open_account(VISITS, epsilon=3, delta=1e-5)
    with refused(Unsuitable, "^epsilon must be a number, not str: write epsilon=5, without"):
        ledger.change_cap("visits", epsilon="5", reason="a second year")
    with pytest.raises(TypeError, match=r"^change_cap\(\) missing a required argument: 'reason': write reason='WHY'$"):
        ledger.change_cap("visits", epsilon=5)
    with pytest.raises(TypeError, match="'eps'; did you mean `epsilon`"):
        ledger.change_cap("visits", eps=5, reason="a second year")
    assert float(ledger.change_cap("visits", epsilon=5, reason="a second year").epsilon_cap) == 5


def test_sentences_of_the_ledger_name_the_call_that_does_the_same(tmp_path: Path) -> None:
    ledger = nacre.ledger(tmp_path)
    opened = rf"`nacre.ledger\('{tmp_path}'\).open_account\(SCHEMA, account='NAME', epsilon=EPSILON, delta=DELTA\)`"
    ledger.open_account(VISITS, epsilon=3, delta=1e-5)
    for call in (ledger.balance, ledger.account, lambda name: ledger.change_cap(name, epsilon=1, reason="x")):
        with refused(LedgerError, f"account absent is not open; {opened.replace('NAME', 'absent')} opens it$"):
            call("absent")
        with refused(LedgerError, "account visit is not open; did you mean `visits`. Otherwise " + opened[:30]):
            call("visit")
    with refused(
        LedgerError,
        rf"`nacre.ledger\('{tmp_path}'\).change_cap\('visits', epsilon=EPSILON, reason=REASON\)` changes a cap$",
    ):
        ledger.open_account(VISITS, epsilon=4, delta=1e-5)


def test_an_account_by_another_unit_is_answered_with_the_whole_way(tmp_path: Path) -> None:
    ledger, record = nacre.ledger(tmp_path / "home"), VISITS.replace("{user: patient, max_rows: 3}", "record")
    ledger.open_account(record, epsilon=3, delta=1e-5)
    way = r"\).open_account\(SCHEMA, account=NAME, epsilon=EPSILON, delta=DELTA\)`.*`account=NAME`"
    with refused(LedgerError, rf"unit=record, and unit=user .*`nacre.ledger\('.*/home'{way}.*`again=REASON`"):
        ledger.open_account(VISITS, epsilon=3, delta=1e-5)
    answer = nacre.plan(VISITS, 1, 1e-5, home=tmp_path / "home").facts["answer"]
    assert re.search(
        rf"account visits is for another unit than user .*, namely record; .*`nacre.ledger\('.*home'{way}", answer
    ), answer
    (path := tmp_path / "visits.yaml").write_text(VISITS)
    words = ["ledger", "open", "visits", "--schema", path, "--epsilon", 3, "--delta", 1e-5, "--home", tmp_path / "home"]
    code, _, err = run_cli(*words)
    assert code == 1 and "--account NAME and, if their rows were charged to this one, --again REASON" in " ".join(
        err.split()
    )


def test_a_plan_says_before_a_run_that_rows_charged_by_another_unit_need_a_reason(tmp_path: Path) -> None:
    frame = pd.DataFrame({"patient": [str(at // 2) for at in range(2000)], "sick": [True, False] * 1000})
    record, home = VISITS.replace("{user: patient, max_rows: 3}", "record"), {"home": tmp_path / "home"}
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-5, **home}
    nacre.ledger(home["home"]).open_account(record, epsilon=3, delta=1e-5)
    nacre.synthesize(frame, record, rows=10, **asked)
    assert "give `again=REASON`" in nacre.plan(VISITS, **asked).facts["answer"]
    nacre.ledger(home["home"]).open_account(VISITS, epsilon=3, delta=1e-5, account="x")
    planned = nacre.plan(VISITS, account="x", **asked)
    assert planned.accepted and "will need a reason (`again=REASON`)" in planned.facts["caution"]
    assert "again=REASON" not in nacre.plan(VISITS, account="x", again="a study", **asked).facts["caution"]
    with refused(nacre.ContentCharged, "Go on by that unit, or give `again=REASON`"):
        nacre.synthesize(frame, VISITS, account="x", **asked)
    assert nacre.synthesize(frame, VISITS, account="x", again="a study", rows=10, **asked).spent.epsilon <= 1
