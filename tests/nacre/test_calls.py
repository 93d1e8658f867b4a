"""Commands that messages name, as the calls that do the same."""

import re
from inspect import signature

import pytest

import nacre
from nacre.calls import CALLS, OF_ACCOUNT, call_of


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("nacre verify", "nacre.verify(FOLDER)"),
        ("nacre verify hand-off --officer-key KEY", "nacre.verify('hand-off', officer_key=KEY)"),
        ("nacre validate a.csv --schema b.yaml --raw", "nacre.validate('a.csv', 'b.yaml')"),
        ("nacre validate 'a b.csv' --schema b.yaml", "nacre.validate('a b.csv', 'b.yaml')"),
        ("nacre sample 1-a --rows ROWS --out F --home /x", "nacre.sample('1-a', ROWS, home='/x')"),
        ("nacre resume RUN --refit --out OUT", "nacre.resume(RUN, refit=True)"),
        ("nacre runs --home /x", "nacre.runs(home='/x')"),
        ("nacre ledger open", "nacre.ledger('/h').open_account(SCHEMA, epsilon=EPSILON, delta=DELTA)"),
        (
            "nacre ledger open a --schema SCHEMA --epsilon 1 --delta DELTA",
            "nacre.ledger('/h').open_account(SCHEMA, account='a', epsilon=1, delta=DELTA)",
        ),
        ("nacre ledger cap a", "nacre.ledger('/h').change_cap('a', epsilon=EPSILON, reason=REASON)"),
        ("nacre serve", ""),
        ("nacre resume it's", ""),
    ],
)
def test_a_command_is_a_call_with_what_it_fills_in(command: str, call: str) -> None:
    assert call_of(command, home="/h") == call


@pytest.mark.parametrize("call", [*CALLS.values(), OF_ACCOUNT])
def test_each_call_takes_what_is_written_there(call: str) -> None:
    name, arguments = re.findall(r"\.(\w+)\(([^()]*)\)", call)[-1]
    taken = signature(getattr(nacre.Ledger if "HOME" in call else nacre, name))
    named = dict.fromkeys(re.findall(r"(\w+)=", arguments))
    unnamed = [one for one in arguments.split(", ") if one and "=" not in one]
    taken.bind(*([None] if "HOME" in call else []), *unnamed, **named)
