"""A progress bar for each long stage: on standard error at a terminal, and in Prefect's UI for a deployed flow."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from dpmodels.escapes import escaped

LOG = logging.getLogger("nacre")
"""Whose level says how much is told at a terminal: no progress above WARNING, the seconds of each stage from INFO."""
LISTENER: ContextVar[Callable[[str, float], None] | None] = ContextVar("LISTENER", default=None)
"""Who else hears, by the bar's title, how many percent are done."""
TOLD_EVERY = 3.0  # seconds between two updates to Prefect's server


class Terminal(logging.Handler):
    """Writes log lines to standard error, with what a terminal would obey in the names that they hold written out."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        print(escaped(self.format(record)), file=sys.stderr, flush=True)


class Tick(Protocol):
    """Report how far the work is; ``total`` is None where the total is private."""

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None:
        """Move the bar."""


@contextmanager
def progress_bar(title: str) -> Iterator[Tick]:
    """Show a bar for the block and hand out the function that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, disable=not console.is_terminal or LOG.level > logging.WARNING
    ) as progress:
        task = progress.add_task(title, total=None, note="")

        artifact, listener = _ShownByPrefect(title), LISTENER.get()

        def tick(done: float, total: float | None = None, note: str = "") -> None:
            progress.update(task, completed=done, total=total, note=note)
            if total:
                artifact.update(100 * done / total)
                if listener:
                    listener(title, 100 * done / total)

        yield tick


def is_deployed() -> bool:
    """Tell whether this code runs in a flow run that a deployment made.

    Prefect's own ``runtime.deployment.id`` would send a request to the server each time.
    """
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return bool(context and context.flow_run and context.flow_run.deployment_id)


class _ShownByPrefect:
    """A progress artifact of the task run, if this is one of a deployed flow run."""

    def __init__(self, title: str) -> None:
        self.title, self.artifact, self.updated_at = title, None, 0.0
        self.deployed = is_deployed()

    def update(self, percent: float) -> None:
        if not self.deployed or (time.monotonic() < self.updated_at + TOLD_EVERY and percent < 100):
            return
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        self.updated_at = time.monotonic()
        if self.artifact is None:
            artifact: Any = create_progress_artifact(percent, key=f"progress-{self.title}", description=self.title)
            self.artifact = artifact
        else:
            update_progress_artifact(self.artifact, percent)
