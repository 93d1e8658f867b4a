"""Whoever calls is spoken to in the words of the call: options, keyword arguments, or keys of a file."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import nacre
from dpmodels.errors import NacreError
from flows.config import SynthesizeConfig
from flows.settings import placed
from flows.table import synthesize_table
from tests.kit.every_kind import make
from tests.kit.support import run_cli, synthesize_words, write_clinic
from tests.kit.wards import write_wards
from tests.releases.make_golden import GOLDEN


def refused(folder: Path, **options: object) -> str:
    code, _, err = run_cli(*synthesize_words(folder, **options))
    assert code == 1
    return err


def test_options_are_named_as_they_are_typed(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    assert "error: --epsilon is missing (privacy.target_epsilon in a " in refused(tmp_path, target_epsilon=None)
    assert "error: --epsilon=0.0 must lie between" in refused(tmp_path, target_epsilon=0)
    assert "error: --epsilon=nan must" in refused(tmp_path, target_epsilon="nan")
    assert "error: --seed=-1 must" in refused(tmp_path, seed=-1)
    assert f"error: --signing-key={tmp_path}/none must be" in refused(tmp_path, signing_key=tmp_path / "none")
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text() + "runtime: {seed: -1}\n")
    assert "error: runtime.seed=-1 must" in refused(tmp_path)  # the file says it, so its key is named


def test_python_is_spoken_to_in_keyword_arguments(tmp_path: Path) -> None:
    data, schema, _ = write_clinic(tmp_path)
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "home": tmp_path / "home", "out": tmp_path / "out"}
    for changes, said in (
        ({"delta": 0.5}, "for more, give `allow_large_delta=True`"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"rows": 0}, "rows=0 must"),
        ({"out": tmp_path}, f"{tmp_path} already holds files"),
    ):
        with pytest.raises(NacreError) as caught:
            nacre.synthesize(data, schema, **{**asked, **changes})
        assert said in str(caught.value) and "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nacre.sample("run", "10"), "rows must be a whole number, not str"),
        (lambda: nacre.sample(3, 10), "run must be the name of a run, or its result, not int"),
        (lambda: nacre.sample(None, 10), "run must be the name of a run, or its result, not NoneType"),
        (lambda: nacre.resume(None), "run must be the name of a run, or its result, not NoneType"),
        (lambda: nacre.verify(None), "folder must be a path, not NoneType"),
        (lambda: nacre.plan("name: x", "1", 1e-5), "epsilon must be a number, not str"),
        (lambda: nacre.plan("name: x", True, 1e-5), "epsilon must be a number, not bool"),
        (lambda: nacre.plan("name: x", 1, "1e-5"), "delta must be a number, not str"),
        (lambda: nacre.synthesize("x.csv", "x.yaml", epsilon="1", delta=1e-5), "epsilon must be a number, not str"),
        (lambda: nacre.sample("run", True), "rows must be a whole number, not bool"),
        (
            lambda: nacre.sample("run", 10, where=7),
            "where must be a condition, a list of them, or a dictionary of columns and values, not int",
        ),
        (lambda: nacre.synthesize("x.csv", "x.yaml", epsilon=1, delta=1e-5, home=3), "home must be a path, not int"),
        (lambda: nacre.synthesize("x.csv", "x.yaml", epsilon=1, delta=1e-5, seed="a"), "seed must be a whole number"),
        (lambda: nacre.synthesize("x.csv", "x.yaml", epsilon=1, delta=1e-5, signing_key=3), "signing_key must be a pa"),
        (
            lambda: nacre.plan("x.yaml", 1, 1e-5, out=pd.DataFrame({"name": ["Zebulon"]})),
            "out must be a path, not Data",
        ),
        (lambda: nacre.verify(3), "folder must be a path, not int"),
        (lambda: nacre.ledger(url=3), "url must be a URL, not int"),
        (lambda: nacre.Result(3), "folder must be a path, not int"),
        (lambda: nacre.Result(GOLDEN / "FORMAT-1" / "hand-off").export(GOLDEN), "already"),
        (lambda: nacre.Result(GOLDEN / "FORMAT-1" / "hand-off").export("x", by="age"), "by=age must be a column"),
        (lambda: nacre.verify("nowhere"), "nowhere does not exist"),
        (lambda: nacre.load_schema("churn: bool"), r"^schema as given has \d+ faults:\n  line 1: [^\n]*(\n  [^\n]+)+$"),
        (lambda: nacre.load_schema("name: [\n"), "^schema as given: [^\n]*$"),
        (
            lambda: nacre.fit(pd.DataFrame({"name": ["Zebulon"]})),
            r"not DataFrame: to copy a frame, write `nacre\.synthesize\(frame, schema, epsilon=EPSILON, delta=D",
        ),
    ],
)
def test_an_argument_of_a_wrong_kind_is_refused_in_a_sentence(call, said: str) -> None:
    with pytest.raises(NacreError, match=said) as caught:
        call()
    assert "Zebulon" not in str(caught.value) and "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verify", "nowhere"), "nowhere does not exist"),
        (("verify", "clinic.yaml"), "clinic.yaml is a file; name the folder of the hand-off"),
        (
            ("verify", GOLDEN / "FORMAT-1" / "hand-off", "--public-key", "none.pub"),
            "--public-key=none.pub must be an ed",
        ),
        (("verify", GOLDEN / "FORMAT-1" / "hand-off", "--public-key", "none.pub"), "PEM file: it does not exist"),
        (("validate", "nowhere"), "nowhere does not exist"),
        (("export", GOLDEN / "FORMAT-1" / "hand-off", "out.orc"), "to=out.orc must end in"),
        (("export", GOLDEN / "FORMAT-1" / "hand-off", "out", "--by", "age"), "--by=age must be a column"),
        (("export", GOLDEN / "FORMAT-1" / "hand-off", "out.png", "--png"), "holds no images"),
        (("schema", "init", "excel.csv"), "excel.csv begins with a line for Excel, sep=, which holds no names"),
    ],
)
def test_a_command_names_what_is_missing_as_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_clinic(tmp_path)
    (tmp_path / "excel.csv").write_text("sep=,\nage,ward\n1,north\n")
    code, _, err = run_cli(*words)
    assert code == 1 and said in err and err.count("\n") == 1, err


def test_a_deployment_is_spoken_to_in_the_keys_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_clinic(tmp_path)
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "home"))
    given = {"data": tmp_path / "clinic.parquet", "schema": tmp_path / "clinic.yaml", "out": tmp_path / "out"}
    for changes, said in (
        ({"delta": 0.5}, "for more, give `privacy.allow_large_delta`"),
        ({"target_epsilon": 0.0}, "privacy.target_epsilon=0.0 must lie between"),
    ):
        config = SynthesizeConfig.build(placed({**given, "target_epsilon": 1, "delta": 1e-5, **changes}))
        with pytest.raises(NacreError) as caught:
            synthesize_table.fn(config)
        assert said in str(caught.value) and "--" not in str(caught.value)


def test_what_only_a_file_can_say_is_named_by_its_key(tmp_path: Path) -> None:
    file = write_wards(tmp_path)
    content = yaml.safe_load(file.read_text())
    del content["privacy"]["target_epsilon"]
    file.write_text(yaml.safe_dump(content))
    err = run_cli("plan-federation", file, "--home", tmp_path / "home")[2]
    assert err == f"error: privacy.target_epsilon is missing in {file}; there is no default\n"


def test_who_names_no_schema_is_told_what_drafts_one(tmp_path: Path) -> None:
    err = run_cli("plan", write_clinic(tmp_path)[0], "--epsilon", 1, "--delta", 1e-5)[2]
    assert "--schema is missing" in err and "`nacre schema init DATA` drafts a schema" in err and err.count("\n") == 1


def test_a_plan_says_that_it_reads_no_value_and_which_command_does(tmp_path: Path) -> None:
    data, schema, _ = write_clinic(tmp_path)
    words = ("plan", data, "--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    err = run_cli(*words)[2]
    assert (
        f"values are not read by a plan: `nacre validate {data} --schema {schema} --raw` holds them against" in err
    ), err
    assert run_cli("validate", data, "--schema", schema, "--raw")[0] == 0
    assert "values are not read" not in "".join(map(str, run_cli(*words, "--json")))


def test_a_plan_warns_of_columns_that_a_run_would_refuse_and_opens_no_file_elsewhere(tmp_path: Path) -> None:
    data, schema, _ = write_clinic(tmp_path)
    schema.write_text(schema.read_text().replace("ward:", "wadr:"))
    words = ("--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    code, out, err = run_cli("plan", data, *words)
    assert code == 1 and "target: epsilon=1.0" in out and "values are not read" not in err
    assert err.startswith("warning: a run would refuse the data: column wadr: is in the schema but not in the data")
    code, out, err = run_cli("plan", data, *words, "--json")
    assert code == 1 and json.loads(out) and "warning: a run would refuse the data" in err
    assert "would refuse" not in run_cli("plan", "s3://nowhere/t.parquet", *words)[2]


def test_a_plan_says_what_refuses_it_before_what_it_warns_of(tmp_path: Path) -> None:
    data, schema, _ = write_clinic(tmp_path)
    table, large = ("--schema", schema, "--delta", 1e-5, "--epsilon"), "caution: epsilon=30 promises next to nothing: "
    home, other = (("--home", tmp_path / name) for name in ("home", "other"))
    assert run_cli("plan", data, *table, 30, *home)[1].count(large) == 1
    _, out, err = run_cli("plan", tmp_path / "none.parquet", *table, 30, *home)
    assert err.startswith("error: ") and large not in out + err
    assert run_cli("ledger", "open", make(schema.read_text()).name, *table, 1, *home)[0] == 0
    code, out, err = run_cli("plan", data, *table, 30, *home)
    assert code == 1 and "REFUSED" in out and large in out and "refuses the charge" in err, err
    schema.write_text(schema.read_text().replace("ward:", "wadr:"))
    _, out, err = run_cli("plan", data, *table, 30, *other)
    assert "would refuse the data" in err and large in out, err


def test_json_is_heard_between_two_words_of_a_command(tmp_path: Path) -> None:
    _, schema, _ = write_clinic(tmp_path)
    for words in (("--json", "schema", "lint"), ("schema", "--json", "lint"), ("schema", "lint", "--json")):
        assert run_cli(*words, schema)[:2] == (0, "[]\n")
