"""What is read of a compose file by supply.compose: variables, mounts, and which service comes first."""

import errno
from pathlib import Path
from typing import Any

import pytest

from flows.with_prefect import deploy
from flows.with_prefect.operators import SHIPPED, read_deployments
from supply.image import Image
from supply.services import Mount, Project, interpolate, networks, order


def test_variables_are_filled_in_as_compose_does() -> None:
    content = {"a": ["${A:?say one}/x", "$A $$A $${A}"], "b": "${B:-else}${C}", "c": 3}
    variables = {"A": "it's $1"}
    assert interpolate(content, variables) == {"a": ["it's $1/x", "it's $1 $A ${A}"], "b": "else", "c": 3}
    with pytest.raises(SystemExit, match="say one"):
        interpolate(content, {})


def test_a_service_comes_after_those_that_it_depends_on() -> None:
    services: dict[str, Any] = {"c": {"depends_on": {"b": {}, "a": {}}}, "b": {"depends_on": {"a": {}}}, "a": {}}
    assert order(services) == ["a", "b", "c"]
    assert networks({"network_mode": "none"}) == set() and networks({}) == {"default"}


def test_each_service_mounts_what_the_file_says(tmp_path: Path) -> None:
    services: dict[str, Any] = {
        "one": {"image": "i", "volumes": ["v:/srv/v", f"{tmp_path}:/srv/t:ro"], "networks": ["n"]},
        "two": {"image": "i", "configs": [{"source": "c", "target": "/c"}], "networks": ["n"]},
        "alone": {"image": "i", "network_mode": "none"},
    }
    content = {"services": services, "volumes": {"v": {}}, "configs": {"c": {"content": "text"}}}
    project = Project(content, {"i": Image(tmp_path / "root")}, tmp_path)
    volume, data, hosts = project.mounts("one")
    assert volume == Mount(tmp_path / "volumes" / "v", "/srv/v") and data == Mount(tmp_path, "/srv/t", True)
    assert hosts.source.read_text().split()[1::2] == ["localhost", "one", "two"]
    assert project.mounts("two")[0].source.read_text() == "text"
    assert project.mounts("alone")[0].source.read_text() == "127.0.0.1 localhost\n"
    assert len(volume.lines()) == 2 and data.lines()[-1] == "mount -o remount,bind,ro srv/t"


def test_what_nobody_taught_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="cap_add"):
        Project({"services": {"one": {"cap_add": []}}}, {}, tmp_path)


@pytest.mark.parametrize(("number", "starts"), [(errno.EROFS, True), (errno.EACCES, False)])
def test_a_worker_leaves_folders_out_that_a_read_only_mount_lacks(
    number: int, starts: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def make(folder: Path) -> None:
        if "incoming" in folder.parts:
            raise OSError(number, "no")

    monkeypatch.setenv("NACRE_HOME", str(tmp_path))
    monkeypatch.setattr(deploy, "make_private", make)
    if starts:
        deploy._make_folders(read_deployments(SHIPPED))
    else:
        with pytest.raises(OSError, match="no"):
            deploy._make_folders(read_deployments(SHIPPED))
