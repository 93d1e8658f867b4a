"""Set-up for every test: one thread per process, a Prefect that never looks outside, and a place of its own.

Which tests share a worker of ``make test``, and which of them begin, is said here and nowhere else.
"""

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from secrets import token_hex

import absl.logging
import pytest
from hypothesis import settings

from benchmarks import postgres
from dpmodels.late import EXTRAS
from dpmodels.mechanisms import gaussian
from tests.kit.buckets import ENVIRONMENT, Bucket
from tests.kit.noise import repeated_noise

# Before torch and OpenBLAS are imported, whatever the shell that starts the tests asks for; workers of xdist too.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", DO_NOT_TRACK="1")
# Hundreds of tests start a process that imports us, which takes half as long again without what the first one compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
for name in [name for name in os.environ if name.startswith(("PREFECT_", "NACRE_", "OPENLINEAGE_", "PG"))]:
    if name != "NACRE_DATA":
        del os.environ[name]
# A ledger waits for the disk after each of its steps. Where there is room, the tests' disk is memory.
MEMORY, ROOM = "/dev/shm", 4 * 2**30
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY
# Prefect would read the profile of whoever starts the tests, and keep things beside it.
prefect_home = tempfile.TemporaryDirectory(prefix="nacre-tests-")
os.environ["PREFECT_HOME"] = prefect_home.name

# dp-accounting brings absl, whose log handler closes the stream it was made with when Prefect sets logging up anew;
# made during a test, that stream is pytest's own capture. The process's stderr it leaves alone.
absl.logging.get_absl_handler().python_handler.setStream(sys.__stderr__)

# The collector of garbage would walk through all modules and tests again and again while these are loaded.
gc.disable()

# How long one example takes says nothing on cores that are shared.
settings.register_profile("shared-cores", deadline=None)
settings.load_profile("shared-cores")
settings.register_profile("thorough", deadline=None, max_examples=2000)

# A shell that starts the tests in the background has them ignore Ctrl-C, and every child they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

SERVERS = {"browser", "object_store", "pages", "postgres_server", "postgresql", "prefect_api"}
"""Fixtures, and parameters of them, that start servers; the tests that need them are marked."""


LONGEST = [
    f"tests/{name}.py"
    for name in [
        "flows/test_deployments",
        "flows/test_server",
        "privacy/test_two_pools",
        "methods/test_contract",
        "kinds/test_contract",
        "flows/test_automations",
        "flows/test_ledger_commands",
        "flows/test_federate",
        "tasks/test_cluster",
        "audit/test_faults",
        "browser/test_pages",
        "methods/test_private_training",
        "flows/test_server_killed",
        "browser/test_doors",
        "flows/test_remote_inputs",
        "flows/test_federate_central",
        "flows/test_federate_rounds",
        "flows/test_crash",
        "nacre/test_base_install",
        "nacre/test_installed",
        "flows/test_embed_documents",
        "flows/test_every_method",
        "privacy/test_contents",
        "audit/test_audit",
        "flows/test_bad_input",
        "flows/test_cli",
        "flows/test_fit",
        "flows/test_production",
        "privacy/test_replay",
        "privacy/test_partitions",
        "report/test_report",
        "ledger/test_machine",
        "flows/test_report_line",
        "mechanisms/test_dp_sgd_adaptive",
        "comparison/test_internal",
        "comparison/test_images",
        "comparison/test_commands",
        "generators/test_gan",
        "privacy/test_hostile",
        "nacre/test_pages",
        "accounting/test_parallel",
        "generators/test_operator_networks",
        "report/test_largest",
        "methods/federations/test_rounds",
        "privacy/test_control",
        "privacy/test_dp_sgd_neighbours",
        "flows/test_operator_networks",
        "flows/test_craft",
        "methods/test_pearl_images",
        "methods/test_photos",
        "releases/test_driver",
        "flows/test_drowned",
        "privacy/test_links",
        "nacre/test_python",
        "flows/test_gates",
        "flows/test_free",
        "hand_off/test_lies",
        "flows/test_inputs",
        "flows/test_sizes",
        "embeddings/test_contract",
        "crash/test_damage",
        "flows/test_price_of_discovery",
        "generators/test_trees",
        "embeddings/test_branch",
        "text/test_candidates",
        "mechanisms/test_exponential",
        "mechanisms/test_dp_sgd_formed",
        "benchmarks/test_images",
        "methods/test_nacre",
        "accounting/test_events",
        "methods/test_users",
        "flows/test_lineage",
        "flows/test_open_tables",
    ]
]
"""Files that take five seconds of a processor or more, the longest first: one that comes last leaves workers idle.

``make test-fast`` leaves them out.
"""
APART = {
    "tests/kinds/test_contract.py": "kind",
    "tests/methods/test_contract.py": "method",
    "tests/flows/test_deployments.py": "site",
}
"""Files whose tests need not share a worker, and the parameter by which they are told apart."""

AFTER_THE_NOISE = ("tests/comparison/", "tests/generators/", "tests/pages/", "tests/report/")
"""Folders whose tests judge what is made of a release."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--light", action="store_true", help="skip what needs more than a base installation")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[pytest.CollectReport]:
    """Leave out a file that imports what an extra brings, if the tests are of a base installation."""
    report = yield
    if collector.config.getoption("light") and (said := _lacks(str(report.longrepr))):
        report.outcome, report.longrepr, report.result = "skipped", (str(collector.path), 0, said), []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    """Leave out a test that came upon a lacking extra, if the tests are of a base installation."""
    report = yield
    if item.config.getoption("light") and report.failed and call.excinfo and (said := _lacks(repr(call.excinfo.value))):
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, said)
    return report


def _lacks(failure: str) -> str:
    """Return what is missing if a failure is that an extra of nacre is not installed, or nothing."""
    named = re.search(r"No module named '(\w+)|this needs (\w+), which a base installation lacks", failure)
    package = next(filter(None, named.groups())) if named else ""
    return f"needs {package}" if package in EXTRAS else ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ``make test-fast`` leaves out, since they need a server or minutes; lay out ``make test``.

    A file's tests share a worker, since they share what was slow to make, as do all that talk to one Prefect server.
    """
    for item in items:
        assert isinstance(item, pytest.Function)
        parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        needs = {*item.fixturenames, *(one for one in parameters.values() if isinstance(one, str))}
        if SERVERS & needs:
            item.add_marker("processes")
        file = item.nodeid.split("::")[0]
        longer = item.get_closest_marker("nightly_if")
        if longer and any(fnmatchcase(item.callspec.id, pattern) for pattern in longer.args):
            item.add_marker("nightly")
        part = parameters.get(APART.get(file, ""), "")
        shared = "prefect_api" if "prefect_api" in needs else f"{file} {part}"
        item.add_marker(pytest.mark.xdist_group(shared.strip()))
        if file in LONGEST:
            item.add_marker("slow")
    if hasattr(config, "workerinput"):
        first = {file: place for place, file in enumerate(LONGEST)}
        items.sort(key=lambda item: first.get(item.nodeid.split("::")[0], len(first)))


@pytest.fixture(scope="module", autouse=True)
def noise_of_releases(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw the same noise in every run, where the subject is what is made of a release and not the noise in it.

    A bound that holds for 999 releases in a thousand fails some test in every tenth run of them all.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.node.nodeid.startswith(AFTER_THE_NOISE):
            patch.setattr(gaussian, "_sampler", repeated_noise())
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Run one PostgreSQL server for all tests that want databases."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.server() as url:
        yield url


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """Run one object store that speaks S3 for all tests that want buckets; yield its address."""
    server = pytest.importorskip("moto.server", reason="needs pip install 'moto[server]'")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield "{}:{}".format(*running.get_host_and_port())
    running.stop()


@pytest.fixture
def bucket(object_store: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Return a new bucket; credentials lie in the environment, as those of a worker do."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{object_store}")
    return Bucket(object_store, f"made-{token_hex(4)}")


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the modules and the thousands of tests, which stay to the end.

    What tests import later it would still walk through again and again: it begins less often than it does by itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
