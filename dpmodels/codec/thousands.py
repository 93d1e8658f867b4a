"""Numbers of a text file whose points may stand between thousands, which would make each a thousandth of itself."""

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.codec.faults import all_faults
from dpmodels.codec.text_values import NUMBERS
from dpmodels.contract.columns import Number
from dpmodels.contract.discovery.discovery import GROUPS
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.plain_columns import PlainNumber
from dpmodels.errors import DataError

GROUPED = r"^\s*[-+]?[1-9][0-9]{0,2}\.[0-9]{3}\s*$"
"""A number that is one thing or a thousand times that, as 1.500 is."""
PLAIN = r"^\s*[-+]?[0-9]{1,3}\s*$|^[^0-9]*$"
"""A number of fewer than four digits without any mark, or none: it fits both readings."""
FAULT = (
    "may be a thousandth of what is meant, since 1.500 in a file without commas between its fields is 1.5 or 1500, and "
    "every number of the column that has a point fits both: write `round: 3` in the schema, for a number, if the point "
    f"stands before decimals, or else add {NUMBERS}"
)


def undeclared(schema: Schema) -> frozenset[str]:
    """Name the columns of numbers whose points may part thousands, for all that the schema says of them."""
    if schema.text is not None and schema.text.is_of_numbers:
        return frozenset()
    numbers = ((name, column) for name, column in schema.raw.items() if isinstance(column, Number | PlainNumber))
    return frozenset(name for name, one in numbers if isinstance(one, PlainNumber) or (one.decimals or 0) < GROUPS)


def checked(batches: Iterator[pa.RecordBatch], names: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield the text of a whole file, and refuse its columns of numbers that can be read in two ways.

    One number such as 0.5, 1234 or 12.25 of a column settles how its others are read, which is always the same: with
    a point before decimals. So no value is read by others, and a file is refused or not.

    Privacy: of a column that is refused it says that none of its numbers settles this, and of values no more. That a
        file is refused depends on its rows, as it does for a value that is no number, and nothing is charged.

    Raises:
        DataError: at the end, for each such column.
    """
    open_names, grouped = set(names), set[str]()
    for batch in batches:
        for name in open_names & set(batch.schema.names):
            is_grouped = pc.match_substring_regex(batch[name], GROUPED)
            is_open = pc.or_(is_grouped, pc.match_substring_regex(batch[name], PLAIN))
            grouped |= {name} if pc.any(is_grouped).as_py() else set()
            open_names -= set() if pc.all(is_open).as_py() in (True, None) else {name}
        yield batch
    with all_faults() as each:
        for name in sorted(grouped & open_names):
            with each:
                raise DataError(name, FAULT)
