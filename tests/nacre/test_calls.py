"""Commands that messages name, as the calls that do the same."""

import re
from inspect import signature
from pathlib import Path

import pytest

import nacre
from dpmodels.errors import in_words
from dpmodels.groups_in_words import EDGES, grouped
from nacre.calls import CALLS, OF_ACCOUNT, call_of
from tasks.run import runs
from tasks.run.runs import AGAIN, Listed
from tasks.run.store import Run


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("nacre verify", "nacre.verify(FOLDER)"),
        ("nacre verify hand-off --officer-key KEY", "nacre.verify('hand-off', officer_key=KEY)"),
        ("nacre validate a.csv --schema b.yaml --raw", "nacre.validate('a.csv', 'b.yaml', raw=True)"),
        ("nacre validate 'a b.csv' --schema b.yaml", "nacre.validate('a b.csv', 'b.yaml')"),
        ("nacre sample 1-a --rows ROWS --out F --home /x", "nacre.sample('1-a', ROWS, home='/x')"),
        ("nacre resume RUN --refit --out OUT", "nacre.resume(RUN, refit=True, out=OUT)"),
        ("nacre runs --home /x", "nacre.runs(home='/x')"),
        ("nacre ledger open", "nacre.ledger('/h').open_account(SCHEMA, epsilon=EPSILON, delta=DELTA)"),
        (
            "nacre ledger open a --schema SCHEMA --epsilon 1 --delta DELTA",
            "nacre.ledger('/h').open_account(SCHEMA, account='a', epsilon=1, delta=DELTA)",
        ),
        ("nacre ledger cap a", "nacre.ledger('/h').change_cap('a', epsilon=EPSILON, reason=REASON)"),
        ("nacre marginals RUN ward 'the age'", "nacre.marginals(RUN, 'ward', 'the age')"),
        ("nacre serve", ""),
        ("nacre resume it's", ""),
    ],
)
def test_a_command_is_a_call_with_what_it_fills_in(command: str, call: str) -> None:
    assert call_of(command, home="/h") == call


@pytest.mark.parametrize(
    ("group", "argument"),
    [
        (grouped("age", EDGES), "`by={'age': [0, 18, 65]}`"),
        (grouped("the age", "10"), "`by={'the age': 10}`"),
        (grouped("ward", "north+south,west+east"), "`by={'ward': [['north', 'south'], ['west', 'east']]}`"),
        (grouped("ward"), "`by={'ward': None}`"),
    ],
)
def test_groups_are_typed_on_the_command_line_and_a_dictionary_in_python(group: str, argument: str) -> None:
    assert group.startswith("`--by ") and in_words(f"as in {group}.", str) == f"as in {argument}."


def test_no_default_of_a_call_is_shown_by_its_class() -> None:
    functions = (nacre.synthesize, nacre.plan, nacre.fit, nacre.embed_documents, nacre.discover, nacre.means)
    assert not any("Path(" in str(signature(one)) for one in functions)
    assert signature(nacre.plan).parameters["home"].default == ".nacre"


@pytest.mark.parametrize("call", [*CALLS.values(), OF_ACCOUNT])
def test_each_call_takes_what_is_written_there(call: str) -> None:
    name, arguments = re.findall(r"\.(\w+)\(([^()]*)\)", call)[-1]
    taken = signature(getattr(nacre.Ledger if "HOME" in call else nacre, name))
    named = dict.fromkeys(re.findall(r"(\w+)=", arguments))
    unnamed = [one for one in arguments.split(", ") if one and "=" not in one]
    taken.bind(*([None] if "HOME" in call else []), *unnamed, **named)


def test_a_list_of_runs_names_calls_and_the_command_of_what_no_call_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_no_call = "nacre remove 1-c --home /h"
    commands = ["nacre resume 1-a --out OUT --home /h", AGAIN, of_no_call, ""]
    listed = [Listed("1", "", "", "", "", "", "stopped; `nacre resume 1-a` says --out", one) for one in commands]
    monkeypatch.setattr(runs, "list_runs", lambda home: iter(listed))
    shown = nacre.runs(tmp_path)
    discovers = "nacre.discover(DATA, SCHEMA, epsilon=EPSILON, delta=DELTA), with the same draft, epsilon and delta"
    assert list(shown["next"]) == ["nacre.resume('1-a', home='/h', out=OUT)", discovers, of_no_call, ""]
    assert set(shown["why"]) == {"stopped; `nacre.resume('1-a')` says `out`"}


def test_a_notebook_shows_the_frames_of_whoever_called_and_all_of_a_fault_of_the_product(tmp_path: Path) -> None:
    for home, says in ((tmp_path / "none", "there are no runs at"), (3, "home must be a path")):
        with pytest.raises(nacre.NacreError) as refusal:
            nacre.runs(home)  # type: ignore[arg-type]
        shown = "\n".join(refusal.value._render_traceback_())
        assert says in shown.splitlines()[-1] and "nacre.runs(home)" in shown and "words.py" not in shown
    with pytest.raises(nacre.NacreError) as fault:  # of a method that no call of the interface leads to
        Run.find(tmp_path / "none", "20990101-abc")
    assert "in find\n" in "\n".join(fault.value._render_traceback_())


def test_a_notebook_shows_the_fault_of_a_library_beneath_a_refusal_and_no_other_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def render(cause: Exception) -> str:
        def fail(home: object) -> None:
            try:
                raise cause
            except type(cause) as fault:
                raise nacre.ArtifactError("the file is damaged") from fault

        monkeypatch.setattr(runs, "list_runs", fail)
        with pytest.raises(nacre.ArtifactError) as refusal:
            nacre.runs(tmp_path)
        return "\n".join(refusal.value._render_traceback_())

    shown = render(KeyError("no such tensor"))
    assert "raise cause\n" in shown and "KeyError: 'no such tensor'\n" in shown and "words.py" not in shown
    assert shown.splitlines()[-1] == "nacre.ArtifactError: the file is damaged"
    for cause in (nacre.NacreError("one more sentence"), OSError("no such file")):
        assert "raise cause" not in (shown := render(cause)) and str(cause) not in shown
