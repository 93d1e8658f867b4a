"""The shipped containers, as far as their files tell: who mounts what, and that what they copy and run is there.

No image is built here: that needs a container runtime.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from typer.testing import CliRunner

from benchmarks import postgres
from flows.command_line.app import app
from flows.with_prefect.operators import POOL, SHIPPED, folders_of, read_deployments

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deployments" / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "deployments" / "compose.yaml").read_text())
    return read


def mounted(service: dict[str, Any]) -> dict[str, str]:
    """Return the volumes of a service with the places and modes they are mounted at."""
    return dict(one.split(":", 1) for one in service.get("volumes", ()) if not one.startswith("$"))


def test_every_folder_that_a_flow_run_may_name_is_mounted_read_only_or_is_for_hand_offs(
    compose: dict[str, Any],
) -> None:
    given = [one.rpartition("nacre/") for one in compose["services"]["worker"]["volumes"] if one.startswith("$")]
    folders = {str(folder) for folder in folders_of(read_deployments(SHIPPED))}
    assert {f"{folder}:ro" for folder in folders - {"hand-offs"}} | {"mine.yaml:ro"} == {one[2] for one in given}


def test_one_service_alone_mounts_what_is_sensitive(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, one in services.items() if "sensitive" in mounted(one)] == ["worker"]
    assert [name for name, one in services.items() if "NACRE_DATA" in str(one)] == ["register", "worker"]
    assert services["register"]["volumes"] == ["${NACRE_DATA}/mine.yaml:/srv/nacre/mine.yaml:ro"]
    blind = services["train-worker"]
    assert mounted(blind) == {"released": "/mnt/nacre/released", "control": "/mnt/nacre/control:ro"}
    assert blind["environment"]["NACRE_HOME"] == "/mnt/nacre" and "/mnt/nacre/sensitive" not in DOCKERFILE
    assert blind["network_mode"] == "none" and set(blind["environment"]) == {"NACRE_HOME"}
    assert {volume for one in services.values() for volume in mounted(one)} == set(compose["volumes"])


def test_what_the_services_run_are_commands_of_ours(compose: dict[str, Any]) -> None:
    services = compose["services"]
    commands = [one["command"] for one in services.values() if one.get("command", [""])[0] == "nacre"]
    assert len(commands) == 3
    for command in commands:
        assert CliRunner().invoke(app, [*command[1:], "--help"]).exit_code == 0
    assert services["worker"]["command"][-2:] == ["--pool", POOL]
    assert services["worker"]["environment"]["NACRE_LEDGER"] == "postgresql://ledger@database/ledger"


def test_the_server_asks_for_a_login_and_tells_nobody_that_it_runs(compose: dict[str, Any]) -> None:
    settings = compose["services"]["server"]["environment"]
    assert settings["PREFECT_SERVER_API_AUTH_STRING"].startswith("${PREFECT_LOGIN:?")
    assert settings["PREFECT_SERVER_CSRF_PROTECTION_ENABLED"] == "true"
    assert settings["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false" and "DO_NOT_TRACK=1" in DOCKERFILE
    assert "*" not in settings["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    has_login = [name for name, one in compose["services"].items() if "PREFECT_LOGIN" in str(one)]
    assert has_login == ["server", "register", "worker"]


def test_prefect_and_the_ledger_have_roles_of_their_own_and_neither_is_above_the_other(
    compose: dict[str, Any], postgres_server: str
) -> None:
    script = compose["configs"]["roles"]["content"].replace("$$", "$")
    host, port = postgres_server.rpartition("@")[2].split(":")
    place = {"PGHOST": host, "PGPORT": port, "POSTGRES_USER": postgres.USER}
    place |= {"PREFECT_PASSWORD": "it's one", "LEDGER_PASSWORD": "\\two"}
    place["PATH"] = f"{postgres.programs()}{os.pathsep}{os.environ['PATH']}"
    mine = "select has_database_privilege(%s, %s, 'connect')"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        try:
            subprocess.run(["bash", "-e"], input=script, text=True, check=True, env=place, stdout=subprocess.DEVNULL)
            found = connection.execute("select rolname from pg_roles where not rolsuper and rolcanlogin order by 1")
            assert [row[0] for row in found] == ["ledger", "prefect"]
            for role, other in (("prefect", "ledger"), ("ledger", "prefect")):
                assert connection.execute(mine, [role, role]).fetchone() == (True,)
                assert connection.execute(mine, [role, other]).fetchone() == (False,)
        finally:
            for name in ("prefect", "ledger"):
                connection.execute(f"drop database if exists {name}")  # type: ignore[arg-type]
                connection.execute(f"drop role if exists {name}")  # type: ignore[arg-type]


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
