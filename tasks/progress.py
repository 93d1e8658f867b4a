"""One progress bar a long stage, on standard error, only where somebody watches."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Tick(Protocol):
    """Report how far the work is; ``total`` is None while nobody may know it."""

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
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None, note="")

        def tick(done: float, total: float | None = None, note: str = "") -> None:
            progress.update(task, completed=done, total=total, note=note)

        yield tick
