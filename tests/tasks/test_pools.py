"""No library starts a thread a core inside a stage, whoever runs the stages and whatever was imported before them."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_info, threadpool_limits

from tasks.engine.engines import cores
from tasks.engine.pools import limit_pools, limited_pools, pool_threads
from tests.kit.support import synthesize_words, write_clinic

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
WATCHED = """
import importlib, json, sys
for name in sys.argv[2].split():
    importlib.import_module(name)
from flows.command_line import app
from dpmodels.comparison import report as internal
from tasks.stages import sample
from tasks.run import store
import threadpoolctl, torch

def watch(owner, name):
    plain = getattr(owner, name)
    def watched(*args, **kwargs):
        result = plain(*args, **kwargs)
        pools = {one["filepath"].split("/")[-1]: one["num_threads"] for one in threadpoolctl.threadpool_info()}
        with open(told, "a") as file:
            print(json.dumps([name, pools | {"torch": torch.get_num_threads()}]), file=file)
        return result
    setattr(owner, name, watched)

watch(store.Run, "finish")            # at the end of the stages, where they run
watch(sample.FileSampler, "_groups")  # on a thread of the engine
watch(internal, "_attempt")           # on a thread of the evaluation
told, sys.argv[1:] = sys.argv[1], sys.argv[3:]
app.main()
"""


def environment(**asked: str) -> dict[str, str]:
    """Return the environment of somebody who never heard of thread pools."""
    return {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name} | asked


def pools_of_a_synthesis(folder: Path, imported: str, **asked: str) -> dict[str, dict[str, int]]:
    """Run a synthesis in a process of its own; return the most threads that each pool had, for each place inside."""
    write_clinic(folder)
    words = [sys.executable, "-c", WATCHED, folder / "told", imported, *synthesize_words(folder)]
    done = subprocess.run(list(map(str, words)), cwd=ROOT, env=environment(**asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    most: dict[str, dict[str, int]] = {}
    for place, pools in map(json.loads, (folder / "told").read_text().splitlines()):
        for pool, threads in pools.items():
            most.setdefault(place, {}).setdefault(pool, 0)
            most[place][pool] = max(most[place][pool], threads)
    assert set(most) == {"finish", "_groups", "_attempt"}
    assert any("openblas" in pool for pool in most["_attempt"]) and any("gomp" in pool for pool in most["_attempt"])
    return most


@pytest.mark.skipif(cores() < 2, reason="on one core no pool has more than one thread")
@pytest.mark.parametrize("imported", ["", "torch sklearn.ensemble scipy.linalg"], ids=["ours first", "others first"])
@pytest.mark.nightly
def test_inside_the_stages_every_pool_has_one_thread(tmp_path: Path, imported: str) -> None:
    most = pools_of_a_synthesis(tmp_path, imported)
    assert {threads for pools in most.values() for threads in pools.values()} == {1}, most


@pytest.mark.nightly
@pytest.mark.skipif(cores() < 2, reason="torch takes no more threads than there are cores")
def test_who_asks_for_more_threads_has_them(tmp_path: Path) -> None:
    most = pools_of_a_synthesis(tmp_path, "", OMP_NUM_THREADS="2")
    assert set(most["finish"].values()) == set(most["_attempt"].values()) == {2}, most
    assert most["_groups"]["torch"] == 1  # files are promised to the bit


@pytest.mark.parametrize("package", ["tasks", "flows", "flows.command_line.app"])
@pytest.mark.nightly_if("flows")  # beside the package below it and a module in it
def test_importing_us_limits_what_is_imported_later(package: str) -> None:
    code = f"import {package}, torch; print(torch.get_num_threads())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(OMP_NUM_THREADS=""), capture_output=True, text=True
    )
    assert done.stdout == "1\n", done.stderr


def counts() -> set[int]:
    """Return the threads of all pools as seen from this thread; OpenMP has a number for each that asks."""
    return {torch.get_num_threads(), _openmp_effective_n_threads(), *(one["num_threads"] for one in threadpool_info())}


def test_pools_are_given_back_as_they_were_even_after_an_error() -> None:
    before = torch.get_num_threads()
    with threadpool_limits(2):
        torch.set_num_threads(2)
        try:
            with pytest.raises(KeyError), limited_pools():
                assert counts() == {1}
                raise KeyError
            assert counts() == {2}
        finally:
            torch.set_num_threads(before)


def test_a_thread_of_ours_is_limited_by_itself() -> None:
    def raise_and_limit() -> tuple[set[int], set[int]]:
        with threadpool_limits(2):
            raised = counts()
            limit_pools()
            return raised, counts()

    with ThreadPoolExecutor(1) as pool:
        raised, limited = pool.submit(raise_and_limit).result()
    assert 2 in raised and limited == {1}


@pytest.mark.parametrize(("asked", "threads"), [("", 1), ("3", 3), ("4,2", 4), ("many", 1), ("0", 1)])
def test_openmps_own_variable_says_how_many(monkeypatch: pytest.MonkeyPatch, asked: str, threads: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert pool_threads() == threads
