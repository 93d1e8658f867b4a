"""The shipped containers, as far as their files tell: who mounts what, and that what they copy and run is there.

No image is built here: that needs a container runtime.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from flows.command_line.app import app
from flows.with_prefect.deploy import POOLS

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deployments" / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "deployments" / "compose.yaml").read_text())
    return read


def mounted(service: dict[str, Any]) -> dict[str, str]:
    """Return the volumes of a service with the places and modes they are mounted at."""
    return dict(one.split(":", 1) for one in service.get("volumes", ()) if not one.startswith("$"))


def test_one_service_alone_mounts_what_is_sensitive(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, one in services.items() if "sensitive" in mounted(one)] == ["worker-cpu"]
    assert [name for name, one in services.items() if "NACRE_DATA" in str(one)] == ["worker-cpu"]
    blind = services["worker-gpu"]
    assert mounted(blind) == {"released": "/mnt/nacre/released", "control": "/mnt/nacre/control:ro"}
    assert blind["environment"]["NACRE_HOME"] == "/mnt/nacre" and "/mnt/nacre/sensitive" not in DOCKERFILE
    assert blind["networks"] == ["work"] and "PASSWORD" not in str(blind)
    assert {volume for one in services.values() for volume in mounted(one)} == set(compose["volumes"])


def test_the_workers_ask_the_pools_that_deploy_makes(compose: dict[str, Any]) -> None:
    commands = [one["command"] for one in compose["services"].values() if "worker" in one.get("command", ())]
    assert [command[command.index("--pool") + 1] for command in commands] == list(POOLS)
    register = compose["services"]["register"]["command"]
    assert register[0] == "nacre" and CliRunner().invoke(app, [*register[1:], "--help"]).exit_code == 0
    assert "@database/ledger" in compose["services"]["worker-cpu"]["environment"]["NACRE_LEDGER"]


def test_what_the_image_copies_is_there_and_is_what_the_wheel_is_made_of(compose: dict[str, Any]) -> None:
    copied = [path for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M) for path in shlex.split(line)[:-1]]
    assert all((ROOT / path).exists() for path in copied)
    project = (ROOT / "pyproject.toml").read_text()
    found = re.search(r"\[tool\.setuptools\.packages\.find\]\ninclude = (\[.*\])", project)
    assert found and {name.strip("*") for name in yaml.safe_load(found[1])} <= set(copied)
    extras = re.search(r"/src\[(.+?)\]", DOCKERFILE)
    assert extras and all(f"\n{name} = [" in project for name in extras[1].split(","))
    places = {place.split(":")[0] for one in compose["services"].values() for place in mounted(one).values()}
    owned = set(re.findall(r"/(?:srv|mnt)/nacre/[a-z-]+", DOCKERFILE))
    assert {place for place in places if "nacre" in place} == owned
