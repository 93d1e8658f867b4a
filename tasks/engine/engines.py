"""What computes the parts of a sum: the threads of this machine, or a cluster; a few parts at a time, never all."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tasks.engine.pools import limit_pools

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Maps a function over parts."""

    def map(self, function: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield the function's value for each part, once each."""

    def everywhere(self, function: Callable[[], object]) -> None:
        """Call the function once in each process that works on parts."""


@dataclass(frozen=True)
class Threads:
    """Threads on the cores of this machine, for loops over rows that release the interpreter's lock.

    ``count`` threads work at once, and one part more is submitted, so that no thread waits.
    """

    count: int

    def map(self, function: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield the function's value for each part, in order."""
        if self.count == 1:
            yield from map(function, parts)
            return
        pending: deque[Future[R]] = deque()
        with ThreadPoolExecutor(self.count, initializer=limit_pools) as pool:
            try:
                for part in parts:
                    pending.append(pool.submit(function, part))
                    if len(pending) > self.count:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def everywhere(self, function: Callable[[], object]) -> None:
        """Call the function here, where all threads are."""
        function()


def cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_engine(threads: int, dask: str | None) -> AbstractContextManager[Engine]:
    """Open the engine that a run's settings ask for."""
    if dask is None:
        return nullcontext(Threads(threads or cores()))
    from tasks.engine.cluster import open_cluster

    return open_cluster(dask)
