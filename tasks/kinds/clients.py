"""Run the clients of a federation: each in a process of its own, a Dask worker on this machine, or one after another.

A process is sent the name of a client's run and nothing else. It opens that client's data, and no other client's; what
it sends back is one of the reasons below, or nothing. No error is raised in it, because Dask would log the error.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpmodels.contract.dropped import ABSENT, CHARGED, FAILED, LATE, LOST, REFUSED, UNFIT
from dpmodels.errors import (
    BudgetExhausted,
    ContentCharged,
    DataError,
    InvalidArgument,
    LedgerError,
    NacreError,
    Unsuitable,
)
from tasks.engine.engines import cores
from tasks.engine.silence import silenced
from tasks.run.store import Run

WORKERS = ("auto", "dask", "here")
START_SECONDS = 120.0

Work = Callable[[Run], object]
Reasons = dict[str, str]
"""By the name of a client's run why it is dropped, or an empty text."""


def run_clients(runs: Sequence[Run], work: Work, workers: str, patience: float) -> Reasons:
    """Have every client do its work, and say why each that did not is dropped.

    Args:
        runs: of the clients.
        work: a function of a module, which can be sent by its name.
        workers: dask, which gives each client a process that is started for it; here; or auto, which is dask where Dask
            is installed. A client's result has the same bits in both.
        patience: seconds after which a process is late, counted from its start; work that is done here is waited for.

    Raises:
        InvalidArgument: there are no such workers here.
    """
    installed = find_spec("distributed") is not None
    if workers not in WORKERS or (workers == "dask" and not installed):
        raise InvalidArgument(
            "workers", workers, f"be one of {', '.join(WORKERS)}; dask needs pip install 'nacre[dask]'"
        )
    if workers == "here" or not installed:
        return {run.name: shielded(work, run) for run in runs}
    reasons, at_once = Reasons(), cores()
    for begin in range(0, len(runs), at_once):
        reasons |= _side_by_side(runs[begin : begin + at_once], work, patience)
    return reasons


def shielded(work: Work, run: Run) -> str:
    """Do a client's work; return why it is dropped, in words that say nothing of its records."""
    try:
        if not run.settings.source.is_there:
            return ABSENT
        with silenced():
            work(run)
    except ContentCharged:
        return CHARGED
    except (BudgetExhausted, LedgerError):
        return REFUSED
    except (DataError, Unsuitable):
        return UNFIT
    except Exception:
        return FAILED
    return ""


def _side_by_side(runs: Sequence[Run], work: Work, patience: float) -> Reasons:
    """Give each of some clients a fresh worker process, and end all of them at the end."""
    from distributed import TimeoutError, wait

    look: Any = wait
    reasons = {run.name: LATE for run in runs}
    with _workers([run.name for run in runs]) as client:
        futures = {}
        for run in runs:  # keys are shown and logged, so they hold nothing private
            key = f"nacre-client-{run.name}"
            futures[client.submit(shielded, work, run, key=key, pure=False, retries=0, workers=[run.name])] = run.name
        end, waiting = time.monotonic() + patience, set(futures)
        while waiting and (left := end - time.monotonic()) > 0:
            try:
                with client.as_current():
                    batch = set(look(waiting, timeout=left, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                break
            for future in batch:
                reasons[futures[future]] = future.result() if future.status == "finished" else LOST
            waiting -= batch
    return reasons


@contextmanager
def _workers(names: Sequence[str]) -> Iterator[Any]:
    """Start a worker process for each name; a process that dies is not replaced, nor its work done by another.

    Raises:
        NacreError: they do not start.
    """
    import dask
    from distributed import Client, LocalCluster, TimeoutError
    from distributed.security import Security

    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.work-stealing": False,
        "distributed.scheduler.http.routes": [],  # nothing is shown of who takes part
    }
    started: Any = LocalCluster
    connected: Any = Client
    temporary: Any = Security.temporary
    secret = temporary()  # without it everybody on this machine could send the workers code to run
    anywhere = {"dashboard_address": "127.0.0.1:0"}  # the usual port may be another cluster's
    options = {"host": "127.0.0.1", "protocol": "tls://", "dashboard_address": None, "security": secret}
    with (
        _dask_silent(),
        TemporaryDirectory(prefix="nacre-workers-") as folder,
        dask.config.set(settings),
        started(n_workers=0, processes=False, silence_logs=False, scheduler_kwargs=anywhere, **options) as cluster,
        connected(cluster, set_as_default=False) as client,
    ):
        environment = os.environ | _keys(secret, Path(folder))
        processes = [_started(name, cluster.scheduler_address, folder, environment) for name in names]
        try:
            client.wait_for_workers(len(names), timeout=START_SECONDS)
            yield client
        except TimeoutError:
            raise NacreError("the clients' processes did not start; give `workers: here`, or more memory") from None
        finally:
            for process in processes:
                process.kill()
                process.wait()


@contextmanager
def _dask_silent() -> Iterator[None]:
    """Keep Dask's own log lines from the terminal: which client was lost we say, and nobody can act on the rest."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _keys(secret: Any, folder: Path) -> dict[str, str]:
    """Write the workers' certificate and key where only we can read; return the environment that names them."""
    parts = {"CA_FILE": "tls_ca_file", "WORKER__CERT": "tls_worker_cert", "WORKER__KEY": "tls_worker_key"}
    for name in parts.values():
        (folder / name).write_text(getattr(secret, name), encoding="utf-8")
    files = {f"DASK_DISTRIBUTED__COMM__TLS__{key}": str(folder / name) for key, name in parts.items()}
    unseen = {"DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]"}  # how much memory a client needs grows with its records
    return files | unseen | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}


def _started(name: str, scheduler: str, folder: str, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    options = {"name": name, "nthreads": 1, "host": "127.0.0.1", "dashboard": False, "memory_limit": 0}
    options |= {"death_timeout": START_SECONDS}  # a worker whose server was killed ends by itself
    spec = json.dumps({"cls": "distributed.Worker", "opts": {**options, "local_directory": folder}})
    words = [sys.executable, "-m", "dask", "spec", scheduler, "--spec", spec]
    silent: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    return subprocess.Popen(words, env=environment, **silent)
