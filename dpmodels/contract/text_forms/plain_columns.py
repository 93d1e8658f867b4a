"""Columns of text as a discovery reads them: held to nothing, and with what they hold, which says how it is written."""

from typing import ClassVar, Literal

from dpmodels.contract.identifiers.identifier import Identifier


class PlainColumn(Identifier):
    """A column of which a discovery counts values of a kind; what cannot be read as that is counted too."""

    holds: ClassVar[Literal["numbers", "moments"]] = "numbers"


class PlainNumber(PlainColumn):
    """A column of numbers, of unknown decimals."""


class PlainDecimal(PlainColumn):
    """A column of numbers that declares three decimals or more."""


class PlainMoment(PlainColumn):
    """A column of days or moments."""

    holds: ClassVar[Literal["numbers", "moments"]] = "moments"


def plain_column(counts: str, has_decimals: bool) -> type[Identifier]:
    """Return what a column is read as, by what is counted of it: ``cells`` of numbers, ``years``, or something else."""
    of_numbers = PlainDecimal if has_decimals else PlainNumber
    return {"cells": of_numbers, "years": PlainMoment}.get(counts, Identifier)
