"""A process that works until it is asked to stop."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether this process was asked to stop, by Ctrl-C or otherwise."""
    signals: list[int] = []

    def note(number: int, _frame: Any) -> None:
        signals.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pause(seconds: float, is_over: Callable[[], bool]) -> None:
    """Wait, but no longer than until this process is asked to stop."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_over():
        time.sleep(min(0.2, seconds))
