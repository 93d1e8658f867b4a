"""A Dask cluster inside the sensitive zone as the engine of partial sums.

A worker is sent the path of a part of the encoded table and the public parameters of the sum. It sends back the sum of
that part, which is as sensitive as the rows. It reads the rows itself, from storage that it shares with us. No error is
raised on a worker, since Dask would log it, and errors of third-party libraries quote the values that they fail on.

A part whose worker is lost is summed again elsewhere. This costs no budget: the sum is a function of the part alone,
and the noise is drawn once, here, when all sums have arrived.
"""

import pickle
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from secrets import token_hex
from typing import Any, TypeVar

from dpmodels.errors import InvalidArgument, NacreError, Unsuitable
from tasks.engine.silence import silenced

T = TypeVar("T")
R = TypeVar("R")

CONNECT_SECONDS = 20.0
PATIENCE_SECONDS = 60.0
"""How long we wait for a cluster that has no workers."""
TICK_SECONDS = 1.0
ALIKE = ("nacre", "numpy", "pyarrow", "torch", "numba", "pydantic")
"""Packages that must have one version here and on every worker, because the sum must be the same to the last bit."""


class Cluster:
    """The workers of a scheduler. This process holds at most two partial sums for each worker thread."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address

    def map(self, function: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield the function's value for each part, once each, as they come.

        Raises:
            NacreError: the cluster is gone, or a worker failed at a part.
        """
        waiting, run, pending = iter(parts), token_hex(4), set[Any]()
        # The function is sent with every part: as a result of the cluster it would draw all work to one worker.
        packed = pickle.dumps(function)
        number, last_seen = 0, time.monotonic()
        while True:
            room = 2 * max(1, self._threads()) - len(pending)
            for part in (part for _, part in zip(range(room), waiting, strict=False)):
                key = f"nacre-sum-{run}-{number}"  # keys are shown and logged, so they hold nothing private
                pending.add(self._client.submit(_shielded, packed, part, key=key, pure=False))
                number += 1
            if not pending:
                return
            batch = self._done(pending)
            if batch or self._threads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > PATIENCE_SECONDS:
                raise _lost(self._address)
            for future in batch:
                pending.discard(future)
                yield self._result(future)

    def everywhere(self, function: Callable[[], object]) -> None:
        """Call the function on every worker, before anything is charged.

        Raises:
            NacreError: it failed on one.
        """
        try:
            answers = self._client.run(_shielded, pickle.dumps(Once(function)), None)
        except OSError:
            raise _lost(self._address) from None
        if faults := sorted({fault for _, fault in answers.values() if fault}):
            raise NacreError(f"a worker of {self._address} cannot do its part, so nothing was drawn: {faults[0]}")

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
        """Return the result of a part, which the worker then forgets."""
        from distributed import CancelledError, TimeoutError

        if future.status != "finished":  # the scheduler lost every worker that tried this part
            raise _lost(self._address)
        try:
            value, fault = future.result(timeout=PATIENCE_SECONDS)
        except (TimeoutError, OSError, CancelledError):
            raise _lost(self._address) from None
        future.release()
        if fault:
            raise NacreError(f"a worker of {self._address} failed: {fault}; {CHARGED}")
        return value


@dataclass(frozen=True)
class Once:
    """A function of nothing as the function of a part."""

    function: Callable[[], object]

    def __call__(self, _: object) -> None:
        """Call it; what it returns stays where it is."""
        self.function()


CHARGED = "mend the cluster and resume the run: what it was charged stands, and is not charged again"


def _lost(address: str) -> NacreError:
    return NacreError(f"the Dask cluster at {address} is gone or lost every worker it tried; {CHARGED}")


def _shielded(packed: bytes, part: Any) -> tuple[Any, str]:
    """Run on a worker: return the value, or the publishable words about an error."""
    try:
        with silenced():
            return _unpacked(packed)(part), ""
    except NacreError as error:
        return None, str(error)
    except Exception as error:
        return None, type(error).__name__


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Callable[[Any], Any]:
    """Return the function, the same object for every part, so that the tables it has computed are kept."""
    function: Callable[[Any], Any] = pickle.loads(packed)
    return function


def versions() -> dict[str, str]:
    """Return the versions that must be the same here and on every worker."""
    numbers = {"python": platform.python_version()}
    for name in ALIKE:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            numbers[name] = "not installed"
    return numbers


@contextmanager
def open_cluster(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, before anything is charged.

    Raises:
        InvalidArgument, Unsuitable: nobody answers at this address, or there are no workers or ones of other versions.
    """
    if not address.startswith(("tcp://", "tls://")):
        raise InvalidArgument("dask", address, "be the address of a scheduler, such as tcp://host:8786")
    try:
        from distributed import Client, TimeoutError
    except ModuleNotFoundError:
        raise Unsuitable("Dask is not installed here: pip install 'nacre[dask]'") from None
    if address.startswith("tls://") and not _has_certificate():
        rule = "be met with a certificate: Dask's configuration (distributed.comm.tls) names none that can be read"
        raise InvalidArgument("dask", address, f"{rule}, so nothing was drawn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions that differ, which we check ourselves
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


def _has_certificate() -> bool:
    """Tell whether Dask finds what it shows to a scheduler over TLS; its own client would not end in good order."""
    from distributed.security import Security

    arguments: Any = Security
    try:
        return arguments().get_connection_args("client").get("ssl_context") is not None
    except (OSError, ValueError, TypeError):
        return False


def _check_workers(client: Any, address: str) -> None:
    from distributed import TimeoutError

    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise InvalidArgument("dask", address, "have workers: none came, so nothing was drawn") from None
    ours, workers = versions(), {}
    try:
        workers = client.run(versions)
    except Exception:  # most often nacre cannot be imported there
        raise InvalidArgument("dask", address, "have workers on which nacre is installed; nothing was drawn") from None
    for theirs in workers.values():
        differ = [
            f"{name} {theirs.get(name)} there, {our} here" for name, our in ours.items() if theirs.get(name) != our
        ]
        if differ:
            raise InvalidArgument("dask", address, f"have workers like us; {', '.join(differ)}; nothing was drawn")
