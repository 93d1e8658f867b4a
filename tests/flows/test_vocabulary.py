"""Whoever calls is spoken to in the words of the call: options, keyword arguments, or keys of a file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import nacre
from dpmodels.errors import NacreError
from flows.config import SynthesizeConfig
from flows.settings import placed
from flows.table import synthesize_table
from tests.kit.support import run_cli, synthesize_words, write_clinic
from tests.kit.wards import write_wards


def refused(folder: Path, **options: object) -> str:
    code, _, err = run_cli(*synthesize_words(folder, **options))
    assert code == 1
    return err


def test_options_are_named_as_they_are_typed(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    assert "error: --epsilon is missing (privacy.target_epsilon in a " in refused(tmp_path, target_epsilon=None)
    assert "error: epsilon=0.0 must lie between" in refused(tmp_path, target_epsilon=0)
    assert "error: epsilon=nan must" in refused(tmp_path, target_epsilon="nan")
    assert "error: seed=-1 must" in refused(tmp_path, seed=-1)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text() + "runtime: {seed: -1}\n")
    assert "error: runtime.seed=-1 must" in refused(tmp_path)  # the file says it, so its key is named


def test_python_is_spoken_to_in_keyword_arguments(tmp_path: Path) -> None:
    data, schema, _ = write_clinic(tmp_path)
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "home": tmp_path / "home", "out": tmp_path / "out"}
    for changes, said in (
        ({"delta": 0.5}, "for more, give `allow_large_delta`"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"rows": 0}, "rows=0 must"),
        ({"out": tmp_path}, f"`out` {tmp_path} already holds files"),
    ):
        with pytest.raises(NacreError) as caught:
            nacre.synthesize(data, schema, **{**asked, **changes})
        assert said in str(caught.value) and "--" not in str(caught.value)


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


def test_json_is_heard_between_two_words_of_a_command(tmp_path: Path) -> None:
    _, schema, _ = write_clinic(tmp_path)
    for words in (("--json", "schema", "lint"), ("schema", "--json", "lint"), ("schema", "lint", "--json")):
        assert run_cli(*words, schema)[:2] == (0, "[]\n")
