"""A Dask cluster inside the sensitive zone as the engine of partial sums.

What travels: to a worker, where a part of the encoded table lies and the public parameters of what is summed; back, the
sum of that part, which is as sensitive as the rows. A worker reads the rows itself, from storage it shares with us. No
error is raised on a worker, for Dask would log it, and third parties quote the values they choke on.

A part whose worker is lost is summed again elsewhere. That costs nothing: the sum is a function of the part alone, and
the noise is drawn once, here, when every part has come.
"""

import pickle
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from secrets import token_hex
from typing import Any, TypeVar

from dpmodels.errors import InvalidArgument, NacreError, Unsuitable

T = TypeVar("T")
R = TypeVar("R")

CONNECT_SECONDS = 20.0
PATIENCE_SECONDS = 60.0
"""How long a cluster without workers is waited for."""
TICK_SECONDS = 1.0
ALIKE = ("nacre", "numpy", "pyarrow", "torch", "numba", "pydantic")
"""What must be of one version everywhere: the sum is promised to the bit."""


class Cluster:
    """The workers of a scheduler. Memory here: two partial sums a worker thread."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address

    def map(self, function: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield the function's value for each part, once each, as they come.

        Raises:
            NacreError: the cluster is gone, or a part failed there.
        """
        waiting, run, pending = iter(parts), token_hex(4), set[Any]()
        packed = pickle.dumps(
            function
        )  # goes with every part: were it a result of the cluster, work would crowd round it
        number, last_seen = 0, time.monotonic()
        while True:
            room = 2 * max(1, self._threads()) - len(pending)
            for part in (part for _, part in zip(range(room), waiting, strict=False)):
                key = f"nacre-sum-{run}-{number}"  # keys are shown and logged: nothing but a number
                pending.add(self._client.submit(_shielded, packed, part, key=key, pure=False))
                number += 1
            if not pending:
                return
            done = self._done(pending)
            if done or self._threads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > PATIENCE_SECONDS:
                raise _lost(self._address)
            for future in done:
                pending.discard(future)
                yield self._result(future)

    def _threads(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["nthreads"]) for worker in workers)

    def _done(self, pending: set[Any]) -> set[Any]:
        from distributed import TimeoutError, wait

        look: Any = wait
        if self._client.status != "running":
            raise _lost(self._address)
        try:
            with self._client.as_current():
                return set(look(pending, timeout=TICK_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return set()

    def _result(self, future: Any) -> Any:
        """Return what came of a part; the worker forgets it."""
        from distributed import CancelledError, TimeoutError

        if future.status != "finished":  # the scheduler lost it, with every worker it was tried on
            raise _lost(self._address)
        try:
            value, fault = future.result(timeout=PATIENCE_SECONDS)
        except (TimeoutError, OSError, CancelledError):
            raise _lost(self._address) from None
        future.release()
        if fault:
            raise NacreError(f"a worker of {self._address} failed: {fault}; {CHARGED}")
        return value


CHARGED = "mend the cluster and resume the run: what it was charged stands, and is not charged again"


def _lost(address: str) -> NacreError:
    return NacreError(f"the Dask cluster at {address} is gone or lost every worker it tried; {CHARGED}")


def _shielded(packed: bytes, part: Any) -> tuple[Any, str]:
    """Run on a worker: return the value, or what may be said of the error."""
    try:
        return _unpacked(packed)(part), ""
    except NacreError as error:
        return None, str(error)
    except Exception as error:
        return None, type(error).__name__


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Callable[[Any], Any]:
    """Return the function, the same one for every part, with the tables it has made for itself."""
    function: Callable[[Any], Any] = pickle.loads(packed)
    return function


def versions() -> dict[str, str]:
    """Return what must be alike here and on every worker."""
    found = {"python": platform.python_version()}
    for name in ALIKE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@contextmanager
def open_cluster(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, before anything is charged.

    Raises:
        InvalidArgument: no address, nobody there, no workers, or workers that are not like us.
    """
    if not address.startswith(("tcp://", "tls://")):
        raise InvalidArgument("dask", address, "be the address of a scheduler, such as tcp://host:8786")
    try:
        from distributed import Client, TimeoutError
    except ModuleNotFoundError:
        raise Unsuitable("Dask is not installed here: pip install 'nacre[dask]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions that differ: we look ourselves
        try:
            connect: Any = Client
            client = connect(address, timeout=CONNECT_SECONDS, set_as_default=False, name="nacre")
        except (OSError, TimeoutError, ValueError):
            client = None
    if client is None:
        raise InvalidArgument("dask", address, "be reachable: no scheduler answered, so nothing was drawn")
    with client:
        _check_workers(client, address)
        yield Cluster(client, address)


def _check_workers(client: Any, address: str) -> None:
    from distributed import TimeoutError

    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise InvalidArgument("dask", address, "have workers: none came, so nothing was drawn") from None
    ours, found = versions(), {}
    try:
        found = client.run(versions)
    except Exception:  # most often that nacre cannot be imported there
        raise InvalidArgument("dask", address, "have workers on which nacre is installed; nothing was drawn") from None
    for theirs in found.values():
        differ = [
            f"{name} {theirs.get(name)} there, {own} here" for name, own in ours.items() if theirs.get(name) != own
        ]
        if differ:
            raise InvalidArgument("dask", address, f"have workers like us; {', '.join(differ)}; nothing was drawn")
