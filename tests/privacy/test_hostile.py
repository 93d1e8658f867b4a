"""What somebody else wrote costs whoever reads it seconds and little memory, and moves no cursor."""

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmodels.evaluation.pages.page import render_page
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.plain_yaml import YamlFault, read_yaml
from dpmodels.schema.lint import MOST_FAULTS, lint, parse
from dpmodels.schema.schema import Schema
from flows.command_line.console import console, print_facts
from flows.description import as_markdown
from flows.with_prefect.artifacts import report_in_short
from tasks.progress import LOG
from tests.hand_off.test_manifest import CHARGED
from tests.hostile import contracts, events
from tests.support import run_cli

CONTRACTS, EVENTS = dict(contracts()), dict(events())
SECONDS, MEBIBYTES = 8, 256


def costs(read: Callable[[], object]) -> tuple[float, float]:
    """Read something; return its processor seconds, and the mebibytes by which the process became larger than ever."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    read()
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, (after.ru_maxrss - before.ru_maxrss) / 1024


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_hostile_contract_costs_seconds(name: str) -> None:
    seconds, mebibytes = costs(lambda: parse(CONTRACTS[name]))
    assert seconds < SECONDS and mebibytes < MEBIBYTES
    found, faults = parse(CONTRACTS[name]) if len(CONTRACTS[name]) < 10_000 else (None, [])
    assert found is None and len(faults) <= MOST_FAULTS + 1


@pytest.mark.parametrize("name", EVENTS)
def test_events_of_a_stranger_cost_seconds(tmp_path: Path, name: str) -> None:
    own = tmp_path / "own"
    shutil.copytree(CHARGED, own, ignore=shutil.ignore_patterns("*.sig"))
    whole = json.loads((own / MANIFEST).read_text())
    whole["events"], whole["asked"]["epsilon"] = EVENTS[name], 1000.0
    (own / MANIFEST).write_text(json.dumps(whole))
    verify_hand_off(CHARGED)  # what is imported late is not the stranger's
    seconds, mebibytes = costs(lambda: verify_hand_off(own))
    assert seconds < SECONDS and mebibytes < MEBIBYTES
    assert any("cost" in fault or "time to price" in fault for fault in verify_hand_off(own).faults)


def test_numbers_are_those_that_both_versions_of_yaml_read_alike() -> None:
    words = {"1": 1, "-7": -7, "+5": 5, "0": 0, "1.5": 1.5, ".5": 0.5, "1.0e+3": 1000.0}
    texts = ["012", "08", "1_000", "0x1F", "0o17", "0b1", "1:30", "1:30:00.5", "1e5", "-.5", "1.0e5"]
    assert read_yaml("\n".join(f"k{n}: {word}" for n, word in enumerate(words))) == {
        f"k{n}": value for n, value in enumerate(words.values())
    }
    assert read_yaml(json.dumps(texts).replace('"', "")) == texts
    assert read_yaml("[yes, No, on, true, ~, null]") == [True, False, True, True, None, None]
    assert read_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: *a") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"x": 1}}
    for bad in ("a: 1\na: 2", "!!python/name:os.system x", "a: &a [*a]", "? [1]\n: 2", "a: 1\n---\nb: 2", "[" * 99):
        with pytest.raises(YamlFault):
            read_yaml(bad)


def test_texts_that_look_like_numbers_elsewhere_keep_a_schemas_hash() -> None:
    """An earlier version wrote them without quotes where YAML 1.1 takes them for text."""
    values = ["08", "1e5", "0o17", "-.5", "2e10", "a"]
    text = f"name: a\nunit: record\ncolumns:\n  x: {{type: categorical, values: {json.dumps(values)}}}\n"
    schema, faults = parse(text)
    assert isinstance(schema, Schema) and not faults
    again, faults = parse(schema.to_yaml())
    assert isinstance(again, Schema) and not faults and again.hash == schema.hash


HOSTILE = "x\x1b[2J\x9b\u202eevil\u2066\u200b\x07"


def test_a_name_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f'name: a\ncolumns:\n  {json.dumps(HOSTILE)}: {{type: {json.dumps(HOSTILE)}}}\n  "a\\nb": {{}}\n')
    assert lint(file)
    code, out, err = run_cli("schema", "lint", file)
    assert code == 1 and r"\x1b[2J" in err and r"\u202e" in err
    print_facts("title", {HOSTILE: HOSTILE})
    with console.capture() as kept:
        console.print(HOSTILE, markup=False)
    shown = out + err + capsys.readouterr().out + kept.get()
    assert not set(HOSTILE) - set("x[2Jevil") & set(shown)


def test_a_page_runs_no_script_and_holds_no_sign_that_a_browser_obeys() -> None:
    class Gate:
        raw, broken, outcomes = False, (), ()
        contract = type("Contract", (), {"name": HOSTILE + "<script>"})

    page = render_page("checks.html", gate=Gate)
    assert "default-src 'none'" in page and "<script" not in page and "STYLE-HASH" not in page
    assert not set(HOSTILE) - set("x[2Jevil") & set(page) and r"\u202e" in page


def test_a_name_is_shown_to_prefect_and_in_the_log_as_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = as_markdown({HOSTILE: HOSTILE + "<b>"})
    report = {"data_set": HOSTILE, "cautions": [HOSTILE], "unprotected": HOSTILE, "privacy": {}}
    shown += report_in_short(report, Path(HOSTILE))
    run_cli("-v", "schema", "lint", tmp_path)  # as a terminal shows the log from then on
    LOG.warning("column %s", HOSTILE)
    shown += capsys.readouterr().err
    assert "column x" in shown and r"\u202e" in shown and not set(HOSTILE) - set("x[2Jevil") & set(shown)
