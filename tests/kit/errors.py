"""Refusals, told apart by the fields of their errors."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

E = TypeVar("E", bound=Exception)
TESTS = Path(__file__).parents[1]


@contextmanager
def refused(error: type[E], says: str = "", **fields: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """Hold that the block raises such an error with these fields.

    Give ``says``, a pattern that its message has, only where the sentence is what is tested, or where no field tells
    this error from another.
    """
    with pytest.raises(error, match=says or None) as caught:
        yield caught
    assert {name: getattr(caught.value, name) for name in fields} == fields, str(caught.value)


def shown(error: BaseException) -> str:
    """Write an error as a debugger would, with what every function of the product held."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [f"{frame.name} {frame.locals}" for frame in found.stack if not frame.filename.startswith(str(TESTS))]
    return "\n".join([*ours, str(error), *getattr(error, "__notes__", [])]) + repr(error.__context__)
