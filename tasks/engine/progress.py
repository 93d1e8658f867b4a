"""A progress bar for each long stage: on standard error at a terminal, a line below the cell of a notebook, and in
Prefect's UI for a deployed flow.
"""

import logging
import math
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
SLOW, LINE_EVERY = 2.0, 0.5  # seconds before a notebook shows a line, and between two updates of it


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

        artifact, notebook, listener = _ShownByPrefect(title), _ShownInNotebook(title), LISTENER.get()

        def tick(done: float, total: float | None = None, note: str = "") -> None:
            progress.update(task, completed=done, total=total, note=note)
            if total:
                notebook.update(done, total, note)
                artifact.update(100 * done / total)
                if listener:
                    listener(title, 100 * done / total)

        try:
            yield tick
        finally:
            notebook.close()


def is_notebook() -> bool:
    """Tell whether this code runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def is_deployed() -> bool:
    """Tell whether this code runs in a flow run that a deployment made.

    Prefect's own ``runtime.deployment.id`` would send a request to the server each time.
    """
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return bool(context and context.flow_run and context.flow_run.deployment_id)


class _ShownInNotebook:
    """A line below the cell, once the work has taken a few seconds: a notebook is no terminal."""

    def __init__(self, title: str) -> None:
        self.title, self.began, self.width = title, time.monotonic(), 0
        self.due = self.began + SLOW if LOG.level <= logging.WARNING and is_notebook() else math.inf

    def update(self, done: float, total: float, note: str) -> None:
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + LINE_EVERY
        percent = f"{self.title}: {100 * done / total:.0f} %"
        left = f"about {(now - self.began) * (total - done) / done:,.0f} s left" if done else ""
        text = ", ".join(filter(None, (percent, left, note)))
        self.width = max(self.width, len(text))
        self._write(text)

    def close(self) -> None:
        """Take the line away."""
        if self.width:
            self._write(" " * self.width + "\r")

    def _write(self, text: str) -> None:
        print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)


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
