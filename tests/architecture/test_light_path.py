"""``nacre --help`` and ``import nacre`` answer at once, because what is slow to import is imported where it is used."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = "torch prefect pandas scipy sklearn great_expectations opendp dp_accounting numba distributed"


def run(code: str, *arguments: str) -> tuple[float, str]:
    """Run code in a child; return the processor time it took, which other work on the machine leaves alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def test_help_takes_less_than_half_a_second() -> None:
    runs = [run("from flows.command_line.app import main; main()", "--help") for _ in range(3)]
    assert "synthesize" in runs[0][1]
    assert min(seconds for seconds, _ in runs) < 0.5


def test_importing_the_package_takes_less_than_half_a_second() -> None:
    runs = [run("import nacre; dir(nacre)") for _ in range(3)]
    assert min(seconds for seconds, _ in runs) < 0.5


@pytest.mark.parametrize("module", ["flows.command_line.app", "nacre"])
def test_the_way_in_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set({HEAVY!r}.split()) & set(sys.modules)))"
    assert run(code)[1] == "\n"
