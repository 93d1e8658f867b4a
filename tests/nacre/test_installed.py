"""An installed nacre beside a Prefect project that has ``flows`` and ``tasks`` of its own."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.support import write_clinic
from tests.kit.wheels import ROOT, unpacked_wheel, write_project

pytestmark = pytest.mark.processes

MINE = "import flows, tasks; assert (flows.MINE, tasks.MINE) == ('flows', 'tasks')"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")


def run(installed: Path, project: Path, *words: object) -> str:
    """Run Python in the project's folder, which comes before what is installed, as it does for scripts and workers."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=project, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_installs_one_package(installed: Path) -> None:
    (metadata,) = installed.glob("*.dist-info")
    assert {path.name for path in installed.iterdir()} == {"nacre", metadata.name}
    assert (metadata / "top_level.txt").read_text() == "nacre\n"
    assert "nacre = nacre.__main__:main" in (metadata / "entry_points.txt").read_text()
    assert (installed / "nacre" / "py.typed").exists() and (installed / "nacre/deployments/prefect.yaml").exists()
    assert (installed / "nacre/flower/app/pyproject.toml").exists()


@pytest.mark.nightly  # beside the command, from the same installation
def test_python_makes_a_table_beside_the_projects_own_packages(installed: Path, project: Path) -> None:
    data, schema, _ = write_clinic(project)
    training = {"steps": 6, "batch_size": 32, "frequencies_per_step": 16, "network": {"hidden_dim": 16}}
    code = (
        f"{MINE}\nimport nacre, sys\nassert nacre.__file__.startswith({str(installed)!r})\n"
        f"made = nacre.synthesize({str(data)!r}, {str(schema)!r}, epsilon=1, delta=1e-5, method='pearl', "
        f"training={training}, measurement={{'frequencies': {{'count': 32}}}})\n"
        "assert made.verify().faults == [] and len(made.table)\n"
        f"{MINE}\nprint(*sorted(name for name in sys.modules if name.split('.')[0] in ('flows', 'tasks', 'dpmodels')))"
    )
    assert run(installed, project, "-c", code) == "flows tasks\n"


@pytest.mark.nightly  # half a minute
def test_the_command_runs_in_the_projects_folder(installed: Path, project: Path) -> None:
    data, schema, config = write_clinic(project)
    words = [data, "--schema", schema, "--config", config, "--target-epsilon", 1, "--delta", 1e-5, "--out", "out"]
    assert "noise_multiplier" in run(installed, project, "-m", "nacre", "plan", "--details", *words)
    assert "next: nacre verify" in run(installed, project, "-m", "nacre", "synthesize", *words, "--no-prefect")
    assert "entrypoint: nacre.flows.night." in run(installed, project, "-m", "nacre", "deploy", "--show")


@pytest.mark.nightly
def test_a_worker_finds_every_flow_that_is_deployed(installed: Path, project: Path) -> None:
    code = (
        f"{MINE}\nimport json\nfrom nacre.flows.with_prefect.operators import SHIPPED, read_deployments\n"
        "print(json.dumps([one.flow.fn.__module__ for one in read_deployments(SHIPPED).values()]))"
    )
    assert json.loads(run(installed, project, "-c", code)) == [
        f"nacre.flows.{name}" for name in ("night", "resample", "table", "documents", "federation", "validate")
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from flows.config import X\n", "from nacre.flows.config import X\n"),
        (
            "def f():\n    from tasks import (\n        a,\n    )\n",
            "def f():\n    from nacre.tasks import (\n        a,\n    )\n",
        ),
        ("import tasks  # first\n", "import nacre.tasks as tasks  # first\n"),
        ("import os, tasks.run.store as s\n", "import os, nacre.tasks.run.store as s\n"),
        ('"""from flows import x"""\nfrom flowsheet import tasks\nfrom . import flows\n', None),
    ],
)
def test_only_imports_of_ours_are_renamed(source: str, expected: str | None) -> None:
    assert renamed(source) == (expected or source)


def test_an_import_that_binds_the_old_name_stops_the_build() -> None:
    with pytest.raises(ValueError, match=r"line 2: import tasks\.run\.store binds tasks"):
        renamed("\nimport tasks.run.store\n")


def renamed(source: str) -> str:
    """Return what the build makes of a module."""
    return str(runpy.run_path(str(ROOT / "setup.py"), run_name="build")["renamed"](source))
