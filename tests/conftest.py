"""Set-up for every test: one thread per process, a Prefect that never looks outside, and a place of its own."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator

import absl.logging
import pytest

from benchmarks import postgres

# Before torch and OpenBLAS are imported, whatever the shell that starts the tests asks for.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", DO_NOT_TRACK="1")
for name in [name for name in os.environ if name.startswith(("PREFECT_", "NACRE_", "PG"))]:
    if name != "NACRE_DATA":
        del os.environ[name]
# Prefect would read the profile of whoever starts the tests, and keep things beside it.
prefect_home = tempfile.TemporaryDirectory(prefix="nacre-tests-")
os.environ["PREFECT_HOME"] = prefect_home.name

# dp-accounting brings absl, whose log handler closes the stream it was made with when Prefect sets logging up anew;
# made during a test, that stream is pytest's own capture. The process's stderr it leaves alone.
absl.logging.get_absl_handler().python_handler.setStream(sys.__stderr__)

# A shell that starts the tests in the background has them ignore Ctrl-C, and every child they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROCESSES = {"subprocess", "multiprocessing", "prefect_server", "PrefectServer", "Processes", "servers_of"}
"""What a file of tests imports or defines that starts programs, or servers."""
SERVERS = {"browser", "pages", "postgres_server", "postgresql", "prefect_api"}
"""The same for a single test: its fixtures, and their parameters."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start processes, which ``make test-fast`` leaves out."""
    for item in items:
        assert isinstance(item, pytest.Function)
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        needs = {*item.fixturenames, *(one for one in parameters if isinstance(one, str))}
        if PROCESSES & set(vars(item.module)) or SERVERS & needs:
            item.add_marker("processes")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Run one PostgreSQL server for all tests that want databases."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.server() as url:
        yield url
