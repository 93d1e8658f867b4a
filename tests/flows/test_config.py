"""The configuration is written once: options, file, form and Python's defaults are what its models say."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import Field, TypeAdapter
from typer.testing import CliRunner

import nacre
from dpmodels.errors import InvalidArgument
from flows.command_line.app import app
from flows.command_line.options import takes_settings
from flows.config import EmbedConfig, FederateConfig, HandOverConfig, SynthesizeConfig
from flows.sections import RuntimeConfig
from flows.settings import placed, settings_of, values_of
from flows.table import synthesize_table
from flows.with_prefect.operators import SHIPPED
from tests.kit.errors import refused

GIVEN = {"data": "a.csv", "schema": "a.yaml", "out": "out", "target_epsilon": 1, "delta": 1e-5}
WORDS = [word for name, value in GIVEN.items() if name != "data" for word in (f"--{name.replace('_', '-')}", value)]
PYTHON = {"target_epsilon": "epsilon"}  # what Python calls otherwise


class Runtime(RuntimeConfig):
    shards: int = Field(default=3, ge=1, description="Parts of a sum.")


class Configuration(SynthesizeConfig):
    runtime: Runtime = Runtime()


def form_of(flow: Any) -> dict[str, Any]:
    """Return the settings in the form of a flow's configuration, by their bare names."""
    from prefect.utilities.callables import parameter_schema

    parts = parameter_schema(flow).definitions
    return {name: found for part in parts.values() for name, found in part["properties"].items() if "$ref" not in found}


def test_a_field_is_an_option_a_key_and_a_parameter_without_another_line(tmp_path) -> None:
    seen: list[SynthesizeConfig] = []
    more = typer.Typer()
    more.command()(takes_settings(seen.append, Configuration))
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"runtime": {"shards": 7}}))

    def asked(*words: str) -> int:
        done = CliRunner().invoke(more, [*map(str, ("a.csv", *WORDS)), *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return seen.pop().runtime.shards  # type: ignore[attr-defined, no-any-return]

    assert [asked(), asked("--shards", "5"), asked("--config", str(file))] == [3, 5, 7]
    assert asked("--config", str(file), "--shards", "5") == 5
    assert "Parts of a sum. (default: 3)" in CliRunner().invoke(more, ["--help"], env={"COLUMNS": "200"}).output
    with refused(InvalidArgument, name="shards", value=0):
        asked("--shards", "0")

    def flow(config: Configuration) -> None: ...

    said = {"type": "integer", "default": 3, "minimum": 1, "description": "Parts of a sum."}
    assert form_of(flow)["shards"] == {"title": "Shards", **said}


def in_help(default: object) -> object:
    """Return a default as help shows it: of a path its text, and no class."""
    return str(default) if isinstance(default, Path) else default


def test_every_setting_says_the_same_everywhere() -> None:
    from typer.main import get_command

    command = get_command(app).commands["synthesize"]  # type: ignore[attr-defined]
    options = {one.name: one for one in command.params}
    form, python = form_of(synthesize_table), inspect.signature(nacre.synthesize).parameters
    for one in settings_of():
        shown = form[one.name]
        assert one.field.description and shown["description"] == one.field.description
        if not one.field.is_required():
            assert shown["default"] in (one.field.default, str(one.field.default))
        if one.name in python and not one.field.is_required():
            assert python[one.name].default == in_help(one.field.default), one.name
        if one.field.annotation == dict[str, Any]:
            assert one.name not in options  # a file's
            continue
        option = options.pop(one.name)
        assert (option.help or "").startswith(one.field.description) and option.envvar == one.variable
        assert option.default is None
    assert set(options) == {"config", "as_json", "fail_on_checks", "open_account"}
    called = {PYTHON.get(one.name, one.name) for one in settings_of()}
    unasked = {"prefect", "approval_hours"}
    assert set(python) - {"open"} == called - unasked and set(inspect.signature(nacre.plan).parameters) == set(
        python
    ) - {"data"}


def test_names_are_of_one_setting_each_and_find_their_sections() -> None:
    names = [one.name for one in settings_of()]
    assert len(names) == len(set(names))
    config = SynthesizeConfig.build(placed(GIVEN | {"seed": 7, "dask": "none"}))
    assert config.runtime.seed == 7 and config.runtime.dask is None and config.privacy.target_epsilon == 1
    assert values_of(config)["seed"] == 7 and set(names) - {"schema"} <= set(values_of(config))


@pytest.mark.parametrize(("written", "advice"), [("1e6", "1.0e+6"), ("1E-3", "1.0e-3"), ("2.5e3", "2.5e+3")])
def test_a_number_that_yaml_takes_for_text_is_refused_with_the_way_to_write_it(tmp_path, written, advice) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"rows: {written}\n")
    with refused(InvalidArgument, re.escape(f"YAML takes {written} for text: write {advice}"), name="rows"):
        SynthesizeConfig.build(placed(GIVEN), file)
    assert float(written) == yaml.safe_load(advice)


def test_a_setting_that_is_named_twice_is_refused_and_not_lost_without_a_word(tmp_path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("rows: 10\nclients:\n  north: a\n  south: b\n  north: c\n")
    with refused(InvalidArgument, "name north once; it is there again in line 5", name="config"):
        SynthesizeConfig.build(placed(GIVEN), file)


def test_the_form_of_every_deployment_describes_every_field_and_shows_what_to_write() -> None:
    from prefect.flows import load_flow_from_entrypoint
    from prefect.utilities.callables import parameter_schema

    for spec in yaml.safe_load(SHIPPED.read_text())["deployments"]:
        form = parameter_schema(load_flow_from_entrypoint(spec["entrypoint"])).model_dump()
        for name, field in form["properties"].items():
            assert field.get("description"), (spec["name"], name)
            shown = field.get("default") is not None or "such as" in field["description"]
            assert shown or "$ref" in field or "enum" in field, (spec["name"], name)
        for part, section in form.get("definitions", {}).items():
            assert section["description"], part
            for name, field in section["properties"].items():
                shown = field.get("default") not in (None, "", {}, []) or "enum" in field or field.get("examples")
                assert "$ref" in field or (field["description"] and shown), (part, name)


@pytest.mark.parametrize("model", [SynthesizeConfig, EmbedConfig, FederateConfig])
def test_every_example_is_one_that_its_field_takes(model: type[HandOverConfig]) -> None:
    for one in settings_of(model):
        for example in one.field.examples or ():
            TypeAdapter(one.field.annotation).validate_python(example)


def test_classes_may_be_whole_numbers_and_are_names_all_the_same() -> None:
    given = {"name": "wards", "clients": {"a": "a.csv", "b": "b.csv"}, "public": "p.csv", "records": {}, "out": "out"}
    privacy = {"target_epsilon": 1.0, "delta": 1e-6}
    assert FederateConfig.build({**given, "privacy": privacy, "classes": [0, 1]}).classes == ["0", "1"]
    with pytest.raises(InvalidArgument):
        FederateConfig.build({**given, "privacy": privacy, "classes": [True, False]})
