"""Faults that list the columns of a schema: one of them does, and the others name what there is not alone."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dpmodels.errors import SchemaFault

LISTING = re.compile(r"(is no column[^;]*); (?:measured|its columns) are [^;]+|(there is no column [^,;]+), but [^;]+")


def listed_once(faults: Iterable[SchemaFault]) -> Iterator[SchemaFault]:
    """Yield faults, of which the first that lists the columns does so alone."""
    is_listed = False
    for fault in faults:
        shorter = LISTING.sub(lambda match: match[1] or match[2], fault.message)
        yield replace(fault, message=shorter) if is_listed else fault
        is_listed |= shorter != fault.message
