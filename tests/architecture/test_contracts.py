"""Who may import whom: the contracts of pyproject.toml hold, and they would notice if they did not."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", "from importlinter.cli import lint_imports_command as c; c(['--no-cache'])"]
    return subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


def test_the_contracts_hold() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


TOGETHER: list[list[tuple[str, str, str]]] = [
    [
        ("dpmodels/errors.py", "import tasks.stages.stage", "deployments > flows > tasks > dpmodels"),
        ("flows/synthesize.py", "import flows.command_line.show", "the rooms of flows"),
        ("flows/night.py", "import prefect", "Prefect is imported in one room of the flows"),
        ("flows/planning.py", "import rich", "the terminal is of the command line alone"),
        ("dpmodels/methods/parts/marginals.py", "import dpmodels.methods.tables.nacre", "the rooms of the methods"),
        (
            "dpmodels/report/bins.py",
            "import dpmodels.comparison.frame",
            "what is published is never made of what stays inside",
        ),
        ("tasks/kinds/clients.py", "import flwr.app", "Flower is imported in one room"),
        ("tasks/stages/stage.py", "import dpmodels.audit.tap", "what replaces noise is within reach of no run"),
        ("tasks/stages/stage.py", "import benchmarks.common", "the product does not know its tests and benchmarks"),
    ],
    [
        ("dpmodels/errors.py", "import prefect", "dpmodels is a pure library"),
        ("flows/show.py", "import nacre.running", "nacre, deployments > flows > tasks > dpmodels"),
        ("flows/command_line/runs.py", "import prefect", "Prefect is imported in one room of the flows"),
        ("dpmodels/errors.py", "import dpmodels.privacy", "the rooms of dpmodels"),
        ("tasks/run/store.py", "import tasks.kinds.tables", "the rooms of the tasks"),
    ],
    [
        ("tasks/stages/stage.py", "import flows.with_prefect.server", "deployments > flows > tasks > dpmodels"),
        ("nacre/running.py", "import prefect", "Prefect is imported in one room of the flows"),
        ("dpmodels/contract/schema.py", "import dpmodels.codec.encode", "the rooms of dpmodels"),
    ],
    [
        ("flows/with_prefect/budget.py", "import flows.synthesize", "the rooms of flows"),
        ("dpmodels/accounting/events.py", "import sqlalchemy", "what a release costs is reckoned without a database"),
        ("dpmodels/pages/plots.py", "import dpmodels.releases.plan", "pages draw facts and compute none"),
    ],
]
"""Imports, and the contracts that they break; none breaks a contract of the others beside it."""


def plant(folder: Path, planted: Iterable[tuple[str, str]]) -> str:
    """Copy the product, add imports to its modules, and return what is said of the contracts."""
    for package in ("dpmodels", "tasks", "flows", "nacre"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for module, line in planted:
        with open(folder / module, "a") as file:
            file.write(f"\n{line}\n")
    result = lint_imports(folder)
    assert result.returncode == 1
    return result.stdout


@pytest.mark.parametrize("planted", TOGETHER)
def test_planted_imports_break_their_contracts(tmp_path: Path, planted: list[tuple[str, str, str]]) -> None:
    said = plant(tmp_path, [(module, line) for module, line, _ in planted])
    assert [contract for *_, contract in planted if f"{contract} BROKEN" not in said] == []
