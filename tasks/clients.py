"""Run the clients of a federation: each in a process of its own, a Dask worker on this machine, or one after another.

A process is sent the name of a client's run and nothing else. It opens that client's data, and no other client's; what
it sends back is one of the reasons below, or nothing. No error is raised in it, because Dask would log the error.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from dpmodels.errors import BudgetExhausted, DataError, InvalidArgument, LedgerError, NacreError, Unsuitable
from tasks.engine import cores
from tasks.store import Run

LOST = "its process ended before it had released anything"
LATE = "it did not release anything in time"
REFUSED = "its account refused the charge"
UNFIT = "its records are not what the contract says of them"
FAILED = "its process failed"
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
    found, at_once = Reasons(), cores()
    for begin in range(0, len(runs), at_once):
        found |= _side_by_side(runs[begin : begin + at_once], work, patience)
    return found


def shielded(work: Work, run: Run) -> str:
    """Do a client's work; return why it is dropped, in words that say nothing of its records."""
    try:
        work(run)
    except (BudgetExhausted, LedgerError):
        return REFUSED
    except (DataError, Unsuitable):
        return UNFIT
    except Exception:
        return FAILED
    return ""


def _side_by_side(runs: Sequence[Run], work: Work, patience: float) -> Reasons:
    """Give each of some clients a fresh worker process, and end all of them at the end."""
    from distributed import wait

    found = {run.name: LATE for run in runs}
    with _workers(len(runs)) as client:
        places = [str(address) for address in client.scheduler_info(n_workers=-1)["workers"]]
        futures = {
            client.submit(
                shielded, work, run, key=f"nacre-client-{run.name}", pure=False, workers=[place], retries=0
            ): run.name
            for run, place in zip(runs, places, strict=True)
        }
        end, waiting = time.monotonic() + patience, set(futures)
        while waiting and (left := end - time.monotonic()) > 0:
            look: Any = wait
            try:
                with client.as_current():
                    done = set(look(waiting, timeout=left, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                break
            for future in done:
                found[futures[future]] = future.result() if future.status == "finished" else LOST
            waiting -= done
    return found


@contextmanager
def _workers(number: int) -> Iterator[Any]:
    """Start as many worker processes, each of which takes one piece of work; work of one that dies is not repeated.

    Raises:
        NacreError: they do not start.
    """
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.work-stealing": False,
        "distributed.worker.memory.terminate": False,
        "distributed.admin.log-format": "",
    }
    with TemporaryDirectory(prefix="nacre-workers-") as folder, dask.config.set(settings):
        try:
            start: Any = LocalCluster
            cluster = start(
                n_workers=number,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                worker_dashboard_address=None,
                memory_limit=0,
                local_directory=folder,
                silence_logs=50,
            )
            connect: Any = Client
            client = connect(cluster, set_as_default=False, timeout=START_SECONDS)
            client.wait_for_workers(number, timeout=START_SECONDS)
        except (OSError, RuntimeError, TimeoutError):
            raise NacreError("the clients' processes did not start; give `workers: here`, or more memory") from None
        with cluster, client:
            yield client
