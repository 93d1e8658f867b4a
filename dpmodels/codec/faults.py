"""Faults of several columns, which are named at once: whoever mends one should not meet the next afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

from dpmodels.errors import DataError


class Faults:
    """Gathers what is wrong with one column after another, each in a ``with`` of its own."""

    def __init__(self) -> None:
        self.met: list[DataError] = []

    def __enter__(self) -> None:
        """Begin with one column."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, DataError):
            return False
        self.met.append(error)
        return True


@contextmanager
def all_faults() -> Iterator[Faults]:
    """Have all columns looked at before the first fault is raised, which then names the others too.

    Raises:
        DataError: there was a fault; of several, that of the first column, which names all of them.
    """
    yield (each := Faults())
    if len(each.met) > 1:
        first, faults = each.met[0], [str(fault) for fault in each.met]
        raise DataError(first.column, "; ".join([first.rule, *faults[1:]]), faults, first.also)
    if each.met:
        raise each.met[0]
