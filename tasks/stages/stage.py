"""What every stage promises, said once: its name, whether it touches sensitive data, and how it fails.

A stage stays a plain function of its run, so the pipeline works without Prefect; ``as_task`` wraps it as a task for
flows that use Prefect.
"""

import errno
import functools
import json
import os
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from dpmodels.artifact import write_text
from dpmodels.errors import ArtifactError, NacreError
from tasks.engine.pools import limited_pools
from tasks.engine.progress import LOG
from tasks.engine.silence import silenced

F = TypeVar("F", bound=Callable[..., Any])
SECONDS = "seconds.json"
TIMES = LOG.getChild("seconds")
"""How long stages take grows with the number of private rows: shown by --verbose, and promised to nobody as private."""


@dataclass(frozen=True)
class Policy:
    """How a stage is named and treated."""

    name: str
    sensitive: bool


@dataclass(frozen=True)
class Took:
    """How long a stage took, in seconds; what a sensitive one took grows with the number of private rows."""

    seconds: float
    sensitive: bool


def stage(name: str, *, sensitive: bool) -> Callable[[F], F]:
    """Declare a function to be a stage; its first argument is the run, whose ``sensitive`` is a private directory.

    Every stage computes with one thread for each library pool, and reports a full disk as such. A sensitive stage is
    silent: no warning of a library is shown while it runs. Any other error of a sensitive stage leaves it as a
    ``NacreError`` that names only the stage and the kind of error, because errors of third-party libraries quote the
    values that they fail on. The traceback goes to ``error.txt`` in the run's sensitive directory, and what a stage
    took to ``seconds.json``, if that directory is there.
    """
    policy = Policy(name, sensitive)

    def declare(function: F) -> F:
        @functools.wraps(function)
        def guarded(run: Any, *args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                with limited_pools(), silenced() if sensitive else nullcontext():
                    result = function(run, *args, **kwargs)
                _keep_seconds(run.sensitive, policy, time.perf_counter() - began)
                return result
            except Exception as error:
                failure = _publishable(error, policy, run.sensitive)
            finally:
                TIMES.info("%s: %.1f s", name, time.perf_counter() - began)
            # Raised outside the except block, where the original error would be attached as its context.
            raise failure

        guarded.policy = policy  # type: ignore[attr-defined]
        return cast(F, guarded)

    return declare


def seconds_of(run: Any) -> dict[str, Took]:
    """Return what each stage of a run took, as far as the run's sensitive directory is there and tells."""
    return _read_seconds(run.sensitive / SECONDS)


def _read_seconds(file: Path) -> dict[str, Took]:
    """Read a file that nothing depends on: one that is damaged is as good as none."""
    try:
        seconds = {name: Took(**one) for name, one in json.loads(file.read_text(encoding="utf-8")).items()}
        return {name: replace(one, seconds=float(one.seconds)) for name, one in seconds.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _keep_seconds(private: Path, policy: Policy, seconds: float) -> None:
    """Note what a stage took; of a stage that ran more than once the longest, since the others found it finished."""
    with suppress(OSError, ArtifactError):  # it is for the operator's eyes and nothing depends on it
        stages = _read_seconds(file := private / SECONDS)
        before = stages.get(policy.name, Took(0.0, policy.sensitive))
        stages[policy.name] = Took(max(round(seconds, 2), before.seconds), policy.sensitive)
        if private.is_dir():
            write_text(file, json.dumps({name: asdict(one) for name, one in stages.items()}))


def as_task(function: F) -> F:
    """Wrap a stage as a Prefect task.

    Nothing is persisted or cached, since results are handles and the ledger keeps a charge from being made twice. A
    sensitive stage is never retried; a free one is, unless its error is one that the user must act on.
    """
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    policy: Policy = function.policy  # type: ignore[attr-defined]
    wrap = task(
        name=policy.name,
        retries=0 if policy.sensitive else 2,
        retry_condition_fn=_may_heal,
        persist_result=False,
        cache_policy=NO_CACHE,
        log_prints=False,
    )
    return cast(F, wrap(function))


def _may_heal(_task: Any, _run: Any, state: Any) -> bool:
    """Tell whether a retry could help."""
    return not isinstance(state.result(raise_on_failure=False), NacreError)


def _publishable(error: Exception, policy: Policy, private: Path) -> Exception:
    """Return the error that may leave the stage, after writing the full one into the private folder."""
    if _disk_is_full(error):
        return NacreError(f"stage {policy.name}: the disk is full; free some space and resume the run")
    if not policy.sensitive:
        return error
    note = _keep(error, private / "error.txt")
    if not isinstance(error, NacreError):
        return NacreError(f"stage {policy.name} failed with {type(error).__name__}; {note}")
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error


def _keep(error: Exception, path: Path) -> str:
    """Write the full traceback where only the owner reads it, and say where."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error))
    except OSError:
        return "its details could not be written"
    return f"the details, which may hold private values, are in {path}"


def _disk_is_full(error: BaseException) -> bool:
    """Tell whether an error in the chain is a full disk, as the system or SQLite reports it."""
    return any(
        getattr(link, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        or getattr(link, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        for link in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and everything it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
