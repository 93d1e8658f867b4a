"""Refusals, told apart by the fields of their errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

E = TypeVar("E", bound=Exception)


@contextmanager
def refused(error: type[E], says: str = "", **fields: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """Hold that the block raises such an error with these fields.

    Give ``says``, a pattern that its message has, only where the sentence is what is tested, or where no field tells
    this error from another.
    """
    with pytest.raises(error, match=says or None) as caught:
        yield caught
    assert {name: getattr(caught.value, name) for name in fields} == fields, str(caught.value)
