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
from sqlalchemy import make_url
from typer.testing import CliRunner

from benchmarks import postgres
from flows.command_line.app import app
from flows.with_prefect.operators import POOL, SHIPPED, folders_of, read_deployments
from tests.kit.support import run_cli

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deployments" / "Dockerfile").read_text()


OWNER = "postgresql://nacre_owner@database/ledger"
ROLES = [
    ("prefect", "prefect", True),
    ("prefect", "ledger", False),
    ("nacre_owner", "ledger", True),
    ("nacre_owner", "prefect", False),
    ("nacre_ledger", "ledger", True),
    ("nacre_ledger", "prefect", False),
]
"""Who may connect to which database."""


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
    folders = {folder.parts[0] for folder in folders_of(read_deployments(SHIPPED))}
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
    assert len(commands) == 4
    for command in commands:
        assert CliRunner().invoke(app, [*command[1:], "--help"]).exit_code == 0
    assert services["worker"]["command"][-2:] == ["--pool", POOL]
    assert services["worker"]["environment"]["NACRE_LEDGER"] == "postgresql://nacre_ledger@database/ledger"
    assert services["grant"]["command"][1:] == ["ledger", "grant", "nacre_ledger", "--ledger", OWNER]
    started = {"server": "service_healthy", "grant": "service_completed_successfully"}
    assert {name: one["condition"] for name, one in services["worker"]["depends_on"].items()} == started


def test_the_server_asks_for_a_login_and_tells_nobody_that_it_runs(compose: dict[str, Any]) -> None:
    settings = compose["services"]["server"]["environment"]
    assert settings["PREFECT_SERVER_API_AUTH_STRING"].startswith("${PREFECT_LOGIN:?")
    assert settings["PREFECT_SERVER_CSRF_PROTECTION_ENABLED"] == "true"
    assert settings["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false" and "DO_NOT_TRACK=1" in DOCKERFILE
    home, (volume,) = settings["PREFECT_HOME"], mounted(compose["services"]["server"]).values()
    assert settings["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"].endswith("lease_storage.filesystem") and home == volume
    assert "*" not in settings["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    has_login = [name for name, one in compose["services"].items() if "PREFECT_LOGIN" in str(one)]
    assert has_login == ["server", "register", "worker"]


def test_the_server_starts_once_the_roles_are_made_and_has_a_ui(compose: dict[str, Any]) -> None:
    services = compose["services"]
    test = services["database"]["healthcheck"]["test"]
    assert test[test.index("--host") + 1] == "127.0.0.1"  # the image's first start listens on a socket alone
    settings = services["server"]["environment"]
    assert settings["PREFECT_UI_STATIC_DIRECTORY"].startswith(settings["PREFECT_HOME"])
    urls = [str(one) for each in services.values() for one in each.get("environment", {}).values() if "://" in str(one)]
    assert [url for url in urls if "PASSWORD" in url] == []  # a password may hold any character


def test_prefect_and_the_ledger_have_roles_of_their_own_and_neither_is_above_the_other(
    compose: dict[str, Any], postgres_server: str
) -> None:
    script = compose["configs"]["init"]["content"].replace("$$", "$")
    sql = ROOT / "deployments" / compose["configs"]["roles"]["file"]
    host, port = postgres_server.rpartition("@")[2].split(":")
    place = {"PGHOST": host, "PGPORT": port, "POSTGRES_USER": postgres.USER}
    place |= {"PREFECT_PASSWORD": "it's one", "OWNER_PASSWORD": 'tw"o', "LEDGER_PASSWORD": "\\three"}
    place["ROLES"] = str(sql)
    place["PATH"] = f"{postgres.programs()}{os.pathsep}{os.environ['PATH']}"
    mine = "select has_database_privilege(%s, %s, 'connect')"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        try:
            subprocess.run(["bash", "-e"], input=script, text=True, check=True, env=place, stdout=subprocess.DEVNULL)
            found = connection.execute("select rolname from pg_roles where not rolsuper and rolcanlogin order by 1")
            assert [row[0] for row in found] == ["nacre_ledger", "nacre_owner", "prefect"]
            for role, other, allowed in ROLES:
                assert connection.execute(mine, [role, other]).fetchone() == (allowed,)
            url = make_url(postgres_server)
            owner = url.set(username="nacre_owner", database="ledger").render_as_string(hide_password=False)
            assert run_cli("ledger", "grant", "nacre_ledger", "--ledger", owner)[0] == 0
            change = "select has_table_privilege('nacre_ledger', 'entries', %s)"
            with psycopg.connect(f"{postgres_server}/ledger") as ledger:
                rights = [
                    ledger.execute(change, [what]).fetchone() for what in ("insert", "select", "update", "delete")
                ]
            assert rights == [(True,), (True,), (False,), (False,)]
        finally:
            for name in ("prefect", "ledger"):
                connection.execute(f"drop database if exists {name} with (force)")  # type: ignore[arg-type]
            for name in ("prefect", "nacre_owner", "nacre_ledger"):
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
