"""One thread for each thread pool of a library, since our own threads work on files, parts of a sum and metrics.

BLAS, OpenMP (scikit-learn, XGBoost) and torch each start one thread for each core, and these threads wait for one
another. On a machine with other work that costs up to a hundred times what it gains. If ``OMP_NUM_THREADS`` is set to a
number, each pool has that many threads instead.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tasks.engine.silence import silence_thread

VARIABLE = "OMP_NUM_THREADS"


def pool_threads() -> int:
    """Return how many threads a pool may have: what the environment asks for, otherwise one."""
    setting = os.environ.get(VARIABLE, "").split(",")[0].strip()  # OpenMP takes a list, one number for each level
    return int(setting) if setting.isdecimal() and int(setting) else 1


def preset_pools() -> None:
    """Limit the pools of every library that this process, or a child of it, loads from now on.

    OpenBLAS, MKL, OpenMP and torch all read ``OMP_NUM_THREADS``, and only while they are loaded.
    """
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = "1"


def limit_pools() -> None:
    """Limit the pools of all libraries that are loaded, for a thread of ours that ends with its work.

    OpenMP keeps a number for each thread that calls it, so a limit that another thread has set does not hold here. What
    the thread computes is silent: it may be about private rows.
    """
    from threadpoolctl import threadpool_limits

    silence_thread()
    threadpool_limits(pool_threads())
    _limit_torch()


@contextmanager
def limited_pools() -> Iterator[None]:
    """Limit the pools of all libraries that are loaded, and afterwards leave them as they were."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(pool_threads()):
        before = _limit_torch()
        try:
            yield
        finally:
            if before:
                sys.modules["torch"].set_num_threads(before)


def _limit_torch() -> int:
    """Limit torch, also for threads to come, if it is loaded; return its number of threads before, or 0."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    before: int = torch.get_num_threads()
    torch.set_num_threads(pool_threads())
    return before
