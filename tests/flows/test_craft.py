"""What makes the command line fit for daily use: help, JSON, quiet and loud, Ctrl-C, and faults that say what to do."""

import json
import logging
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
import typer.main
import yaml
from typer.main import get_command

import nacre
from dpmodels.audit.made.clinic import make_table
from dpmodels.errors import DataError
from dpmodels.gate.suite import Rule
from dpmodels.reading.ingest import check_passed
from flows.command_line import app
from flows.planning import cautions_of
from tests.kit.errors import refused
from tests.kit.imports import HEAVY
from tests.kit.imports import run as run_child
from tests.kit.support import charges, digest, run_cli, synthesize_words, write_clinic

DOCS = Path(__file__).parents[2] / "docs"
GROUPS = ("ledger", "schema")


def commands() -> list[tuple[str, ...]]:
    """List every command as the words that name it."""
    top = typer.main.get_command(app.app)
    own = [(name,) for name in top.commands if name not in GROUPS]
    return own + [(group, name) for group in GROUPS for name in top.commands[group].commands]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Run one synthesis, whose bounds of age are far too wide; return its folder, name, and what it said."""
    folder = tmp_path_factory.mktemp("craft")
    _, schema, config = write_clinic(folder)
    schema.write_text(schema.read_text().replace("max: 99", "max: 9999999"))
    config.write_text(yaml.safe_dump({"model": {"training": {"components": 8, "steps": 20}}}))
    code, out, err = run_cli("--verbose", *synthesize_words(folder), "--json")
    facts = json.loads(out)
    assert code == 0 and all(name.isidentifier() for name in facts), err
    assert 0 < facts["epsilon"] <= 1 and facts["checks"] > 0 and facts["rows"] > 0 and "within" in facts["headline"]
    assert any("age" in one for one in facts["warnings"]) and Path(facts["synthetic_table"]).exists()
    assert (facts["account"], Path(facts["ledger"]).name) == ("clinic", "ledger.sqlite")
    assert (facts["state"], facts["hand_off"]) == ("finished", str(folder / "out"))
    return folder, facts["run"], err


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_an_example_and_stands_in_the_docs(words):
    code, out, _ = run_cli(*words, "--help")
    assert code == 0 and f"nacre {' '.join(words)}" in out.split("Example: ")[1]
    assert f"`{' '.join(words)}`" in (DOCS / "commands.md").read_text(encoding="utf-8")


def test_the_help_of_no_command_imports_anything_heavy_or_takes_half_a_second():
    asked = "import sys, contextlib, io\n"
    asked += "from flows.command_line.app import app\n"
    asked += f"for words in {commands()!r}:\n"
    asked += "    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):\n"
    asked += "        app([*words, '--help'])\n"
    asked += "    assert 'Example' in out.getvalue(), words\n"
    asked += f"print(*sorted(set({HEAVY!r}.split()) & set(sys.modules)))"
    assert run_child(asked)[1] == "\n"
    libraries = min(run_child("import typer, pydantic, yaml, rich.table")[0] for _ in range(3))  # how slow a machine is
    for words in (["ledger", "open"], ["synthesize"], ["sample"]):
        seconds = [run_child("from flows.command_line.app import main; main()", *words, "--help")[0] for _ in range(3)]
        assert min(seconds) < max(0.5, 3 * libraries)


def test_the_version_and_the_completion_of_a_shell(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # no shell need be above a test
    code, out, _ = run_cli("--version")
    assert code == 0 and out.startswith("nacre ") and out.count("\n") == 1
    monkeypatch.setattr("importlib.metadata.version", Mock(side_effect=PackageNotFoundError("nacre")))
    code, out, err = run_cli("--version")
    assert code == 0 and out.startswith("nacre, from a folder that is not installed") and "Traceback" not in err
    _, out = run_child("from flows.command_line.app import main; main()", "--show-completion", "bash")
    assert "complete" in out


def test_loud_tells_the_seconds_of_each_stage_and_quiet_tells_nothing_but_results(done):
    folder, run, err = done
    for stage in ("ingest", "sanitize", "train", "sample", "validate"):
        assert f"{stage}: " in err and " s\n" in err
    assert f"if it is interrupted: nacre resume {run} --home {folder / 'home'}" in err
    code, out, err = run_cli("--quiet", "resume", run, "--home", folder / "home", "--no-prefect")
    assert code == 0 and f"run: {run}" in out and "interrupted" not in err and "sanitize: " not in err
    assert [type(one).__name__ for one in logging.getLogger("nacre").handlers] == ["Terminal"]


def test_the_runs_of_a_home_are_listed_on_one_line_each(done, tmp_path):
    folder, run, _ = done
    code, out, err = run_cli("runs", "--home", folder / "home")
    assert code == 0, err
    assert [line for line in out.splitlines() if run in line and "nacre" in line and "handed over" in line]
    assert "time (UTC)" in out and re.search(rf"{run}.*\d{{4}}-\d\d-\d\d \d\d:\d\d .*clinic", out)
    (one,) = json.loads(run_cli("runs", "--home", folder / "home", "--json")[1])
    assert (one["name"], one["data_set"], one["method"]) == (run, "clinic", "nacre")
    assert (one["stage"], one["state"]) == ("validate", "handed over") and len(one["day"]) == 10
    code, _, err = run_cli("runs", "--home", tmp_path / "nowhere")
    assert code == 1 and "there are no runs at" in err


def test_facts_come_as_json_where_they_are_asked_for(done):
    folder, run, _ = done
    home, out = ("--home", folder / "home"), folder / "out"
    asked = {
        ("resume", run, *home, "--no-prefect"): ("manifest", str(out / "manifest.json")),
        ("report", run, *home): ("figures", str(folder / "home" / "control" / run / "report" / "report.json")),
        ("ledger", "verify", *home): ("faults", []),
    }
    for words, (key, value) in asked.items():
        code, said, err = run_cli(*words, "--json")
        assert code == 0, err
        assert json.loads(said)[key] == value
    assert "epsilon" in json.loads(run_cli("verify", out, "--json")[1])["budget"]
    assert all(one["success"] for one in json.loads(run_cli("validate", out, "--json")[1]))
    assert json.loads(run_cli("schema", "lint", folder / "clinic.yaml", "--json")[1]) == []
    plan = synthesize_words(folder, out=folder / "new")
    facts = json.loads(run_cli("plan", *[word for word in plan[1:] if word != "--no-prefect"], "--json")[1])
    assert (facts["account"], facts["account_opens"], facts["epsilon"]) == ("clinic", False, 1.0)


def test_checks_decide_the_exit_code_if_that_is_asked_for(done):
    folder, run, err = done
    assert "warning: column age" in err
    words = ("report", run, "--home", folder / "home")
    assert run_cli(*words)[0] == 0
    assert run_cli(*words, "--fail-on-checks")[0] == 3
    code, out, _ = run_cli(*words, "--internal", "--json", "--fail-on-checks")
    failed = [one for one in json.loads(out)["checks"] if one["holds"] is False]
    assert code == (3 if failed else 0)


@pytest.mark.parametrize(
    ("stage", "charged"), [("ingest", "nothing"), ("train", "epsilon=1.0, delta=1e-05 (committed)")]
)
def test_a_ctrl_c_says_what_was_charged_and_how_to_go_on(tmp_path, monkeypatch, stage, charged):
    write_clinic(tmp_path)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    stop.policy = None
    with monkeypatch.context() as patch:
        patch.setattr(f"flows.synthesize.{stage}", stop)
        code, _, err = run_cli("-q", *synthesize_words(tmp_path))
    (said,) = err.splitlines()
    assert code == 130 and said.startswith("interrupted: ")
    assert f"was charged {charged}; to go on, without a second charge: nacre resume " in said
    words = said.split("nacre ")[1].split()
    (unfinished,) = json.loads(run_cli("runs", "--home", tmp_path / "home", "--json")[1])
    paid = stage != "ingest"
    assert unfinished["state"] == ("paid for, unfinished" if paid else "unfinished")
    assert unfinished["stage"] == ("sanitize" if paid else "")
    assert run_cli(*words, "--no-prefect")[0] == 0
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]


def test_faults_of_a_gate_stand_one_a_line_with_what_to_do(tmp_path):
    data, _, _ = write_clinic(tmp_path)
    table = make_table(200)
    table = table.set_column(1, "age", [[8675309, *table["age"].to_pylist()[1:]]])
    table = table.set_column(2, "ward", [["zebra", *table["ward"].to_pylist()[1:]]])
    pq.write_table(table, data)
    code, out, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and "8675309" not in out + err and "zebra" not in out + err
    lines = [line for line in err.splitlines() if line.startswith("  column ")]
    assert len(lines) == 2 and all("to fix it: " in line for line in lines)
    assert "outside: clip" in lines[0] and "add to `values` what is public" in lines[1]
    assert err.count("must lie between 0 and 99") == err.count("to `values`") == err.count("nothing was charged") == 1
    assert "error: the data breaks 2 rules of its schema; nothing was charged; " in err


def test_the_one_fault_of_a_gate_stands_in_its_sentence_with_what_to_do(tmp_path):
    data, _, _ = write_clinic(tmp_path)
    table = make_table(200)
    pq.write_table(table.set_column(1, "age", [[8675309, *table["age"].to_pylist()[1:]]]), data)
    code, _, err = run_cli("-q", *synthesize_words(tmp_path))
    assert code == 1 and err.count("age must lie between") == err.count("nothing was charged") == 1
    assert "to fix it: correct the values" in err and not [line for line in err.splitlines() if line.startswith("  ")]
    rule = Rule("ExpectColumnValuesToNotBeNull", {"column": "age"}, "must not be null")
    broken = SimpleNamespace(broken=[rule, rule])
    with refused(DataError, "age must not be null; to fix it: .*age must not be null; to fix it: "):
        check_passed(True, broken)  # which is what Python says


def test_faults_of_a_schema_stand_one_a_line(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    schema.write_text(schema.read_text().replace("max: 99", "max: -9").replace("north", "south"))
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and "has 2 faults\n" in err
    assert [line.startswith("  line ") for line in err.splitlines()][1:] == [True, True]


@pytest.mark.parametrize("name", ["out", "home"])
def test_a_place_that_cannot_be_written_is_refused_before_the_charge(tmp_path, name):
    write_clinic(tmp_path)
    code, _, err = run_cli(*synthesize_words(tmp_path, **{name: "/proc/nacre-test"}))
    assert code == 1 and err.count("error: ") == 1 and "Traceback" not in err
    assert "/proc/nacre-test cannot be written: /proc is no folder that this process may write to" in err
    assert not (tmp_path / "home" / "ledger.sqlite").exists()


def test_a_page_that_cannot_be_written_is_one_sentence(done):
    folder, run, _ = done
    before = digest(folder / "home" / "ledger.sqlite")
    code, _, err = run_cli("report", run, "--home", folder / "home", "--out", "/proc/page.html")
    assert (code, err.count("\n")) == (1, 1) and err.startswith("error: /proc/page.html: no such file")
    assert digest(folder / "home" / "ledger.sqlite") == before


def test_a_ledger_that_cannot_be_opened_is_one_sentence(tmp_path):
    (tmp_path / "ledger.sqlite").mkdir()
    code, _, err = run_cli("ledger", "show", "--home", tmp_path)
    assert (code, err.count("\n")) == (1, 1) and "ledger cannot be read" in err


def test_a_server_that_is_gone_is_one_sentence_in_deploy(monkeypatch):
    prefect = pytest.importorskip("prefect.settings")
    with prefect.temporary_settings(
        {prefect.PREFECT_API_URL: "http://127.0.0.1:9/api", prefect.PREFECT_CLIENT_MAX_RETRIES: 0}
    ):
        code, _, err = run_cli("deploy")
    assert code == 1 and "no Prefect server answers at http://127.0.0.1:9/api" in err and "Traceback" not in err


def test_budgets_that_promise_little_are_warned_of(tmp_path):
    assert list(cautions_of(10, 1e-3)) == []
    assert [said.split(":")[0] for said in cautions_of(21, 2e-3)] == [
        "epsilon=21 promises next to nothing",
        "delta=0.002 is above 0.001",
    ]
    write_clinic(tmp_path)
    words = [word for word in synthesize_words(tmp_path, target_epsilon=25)[1:] if word != "--no-prefect"]
    code, out, err = run_cli("plan", *words)
    said = "caution: epsilon=25 promises next to nothing: whoever sees what is released wins 9"
    assert code == 0 and said in out and "warning" not in err + out


@pytest.mark.parametrize("agreed", [True, False])
def test_a_budget_that_promises_little_is_asked_about_before_the_charge_and_said_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agreed: bool
) -> None:
    write_clinic(tmp_path)
    asked_of, words = list[str](), synthesize_words(tmp_path, target_epsilon=25)
    monkeypatch.setattr("flows.command_line.console.typer.confirm", lambda text, **_: asked_of.append(text) or agreed)
    monkeypatch.setattr("flows.command_line.console._is_terminal", lambda _: True)
    code, out, err = run_cli(*words)
    assert asked_of == ["Charge all the same?"] and "warning: epsilon=25 promises next to nothing" in err
    assert (code == 0) == agreed == ("caution: epsilon=25 promises next to nothing" in out)


@pytest.mark.parametrize(
    ("epsilon", "much"), [(10, ""), (12, "little: whoever sees what is released wins "), (100, "next to nothing: ")]
)
def test_a_plan_says_of_a_large_budget_what_its_own_bets_say(tmp_path: Path, epsilon: int, much: str) -> None:
    _, schema, _ = write_clinic(tmp_path)
    facts = nacre.plan(schema, epsilon, 1e-5, home=tmp_path / "home").facts
    (said,) = [one for one in facts.get("caution", "").splitlines() if one.startswith("epsilon=")] or [""]
    bets = re.compile("wins .*? of even bets")
    assert said.partition(" promises ")[2].startswith(much) and bool(said) == bool(much)
    assert not said or bets.findall(said) == bets.findall(facts["in words"])


def test_every_command_that_prints_facts_takes_json():
    """Those that serve run until they are stopped, and what the two commands of schemas print is a file."""

    def walk(command, *path):
        for name, sub in getattr(command, "commands", {}).items():
            yield from walk(sub, *path, name)
        if not hasattr(command, "commands"):
            yield " ".join(path), {flag for option in command.params for flag in option.opts}

    commands = dict(walk(get_command(app.app)))
    lacking = {name for name, flags in commands.items() if "--json" not in flags}
    assert lacking == {"serve", "worker", "train-worker", "schema init", "schema json-schema"} and len(commands) > 30
