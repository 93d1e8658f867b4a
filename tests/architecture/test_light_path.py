"""``nacre --help`` and ``import nacre`` answer at once, because what is slow to import is imported where it is used."""

import pytest

from tests.kit.imports import HEAVY, run

pytestmark = pytest.mark.processes


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
