"""Table to arrays and back: one row at a time in meaning, whole columns at a time in code."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.codec.codes import Codes, check_codes, code_type, to_codes
from dpmodels.codec.convert import (
    arrow_type,
    check_type,
    csv_type,
    decode_column,
    encode_continuous,
    encode_discrete,
    joined,
    plain,
)
from dpmodels.codec.derive import derive, derived_type, may_lack, operands_of
from dpmodels.codec.faults import all_faults
from dpmodels.codec.names import count_unknown, first_line_fault, in_place_of, missing_from
from dpmodels.codec.pixels import Pixels, check_image_type, decode_image, encode_image
from dpmodels.codec.records import Records
from dpmodels.contract.columns import Column, Continuous, Derived, Identifier
from dpmodels.contract.image import Image
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, Unsuitable
from dpmodels.plural import counted

__all__ = ["Codec", "Records"]

LACKED = "the data has {} that the schema lacks"
LISTED = ": `nacre schema init FILE` lists the names, which may be values and are not printed here"
HEADER = "; the first line (of a sheet the first row) must hold the names of the schema"
NESTED = "; nested objects and lists are refused, so write each part as a column of its own"
NAMELESS = (
    "it is an index that pandas wrote (write the file with index=False), lines end with a delimiter, or the delimiter "
    "has two characters"
)
Table: TypeAlias = pa.Table | pa.RecordBatch


class Codec:
    """The encoding a schema defines; a row's code depends on that row and the public schema alone."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.columns = schema.modelled
        self.cell_sizes = tuple(column.size for column in self.columns.values())
        fields = [(name, pa.from_numpy_dtype(code_type(column))) for name, column in self.columns.items()]
        if schema.image:
            fields.append((schema.image[0], schema.image[1].arrow_type))
        self.arrow_schema = pa.schema(fields)
        self.output_schema = pa.schema(
            [
                (name, _output_type(column, self.schema))
                for name, column in schema.columns.items()
                if not (isinstance(column, Identifier) and column.keep == "drop")
            ]
        )

    @property
    def csv_types(self) -> dict[str, pa.DataType]:
        """Return the type to read each column of a CSV file as; wide, so that the schema judges and not the reader."""
        return {name: csv_type(column) for name, column in self.schema.raw.items()}

    def check_names(self, names: Sequence[str], is_text: bool = False, nested: bool = False) -> None:
        """Refuse a table whose columns are not the schema's by name.

        ``is_text``: the names are what stands in the first line of a text file, or in the first row of a sheet;
        ``nested``: one that the schema lacks holds objects or lists.

        Privacy: a name that the schema lacks may be a value, of a text file without a header, and is never shown.

        Raises:
            DataError: a column is missing, unknown, or there twice.
        """
        if is_text and (cause := first_line_fault(names, self.schema.raw)):
            raise DataError("", cause)
        expected = self._expected(names)
        for name in self.schema.columns:
            if names.count(name) > 1:
                raise DataError(name, "is in the data more than once: keep one of them, or rename it")
        extra = count_unknown(self.schema.columns, names)
        unknown = LACKED.format(counted(extra, "column"))
        if "" in names:
            unknown += f"; one has no name: {NAMELESS}"
        elif any(name.startswith("Unnamed: ") or name == "__index_level_0__" for name in names):
            unknown += "; one is an index that pandas wrote (write the file with index=False)"
        else:
            unknown += in_place_of(expected, self.schema.columns, names) + LISTED + HEADER * is_text + NESTED * nested
        if missing := missing_from(expected, names):
            more = f"; {unknown}" * bool(extra) if missing[0] else HEADER * is_text + NESTED * nested
            raise DataError(missing[0], missing[1] + more)
        if extra:
            raise DataError("", unknown)

    def _expected(self, names: Sequence[str]) -> list[str]:
        """Name the columns that a table with these must have, which are not the derived ones.

        Where all others are there and a name is unknown, that may be meant for a derived column, so these are named.
        """
        declared, optional = list(self.schema.raw), may_lack(self.schema)
        needed = [name for name in declared if name not in optional]
        has_strangers = not {*names} <= self.schema.columns.keys()
        return declared if has_strangers and {*needed} <= {*names} else needed

    def check_types(self, arrow_schema: pa.Schema) -> None:
        """Refuse a table whose columns are not the schema's, by name and by type.

        Raises:
            DataError: the names are wrong, or types cannot hold the columns' declared values, all of which are named.
        """
        strange = [field.type for field in arrow_schema if field.name not in self.schema.columns]
        self.check_names(arrow_schema.names, nested=any(map(pa.types.is_nested, strange)))
        with all_faults() as each:
            for name, column in {**self.columns, **operands_of(self.schema)}.items():
                with each:
                    if name in self.schema.raw and (name in arrow_schema.names or name not in self.schema.derived):
                        check_type(name, column, arrow_schema.field(name).type)
            if self.schema.image:
                name = self.schema.image[0]
                with each:
                    check_image_type(name, arrow_schema.field(name).type)

    def encode(self, table: Table) -> Records:
        """Encode the modeled columns of a table, after the schema's policy for values outside it.

        Privacy: reads raw rows; the result is as sensitive as they are. Each row is encoded, or dropped
            (``reject-row``), by itself, so any chunking gives the same rows.

        Raises:
            DataError: a column is missing or of a wrong type, or breaks a rule the schema says to refuse.
        """
        keep = np.ones(table.num_rows, dtype=np.bool_)
        codes: list[Codes] = []
        for name, column in self.columns.items():
            if table.schema.names.count(name) != 1:
                raise DataError(name, "must be in the data exactly once")
            array = joined(table.column(name))
            check_type(name, column, array.type)
            encode = encode_continuous if isinstance(column, Continuous) else encode_discrete
            column_codes, dropped = encode(name, column, array)
            codes.append(column_codes)
            keep &= ~dropped
        records = Records.coded(list(self.columns.values()), codes, self._pixels(table))
        return records if keep.all() else records.take(keep)

    def decode(self, records: Records, first_row: int = 0) -> pa.Table:
        """Decode records to a table of the schema's types and order; identifiers are made from ``first_row`` on."""
        self._check_shape(records.states)
        modelled = {
            name: decode_column(column, records.states[:, index], records.values[:, index])
            for index, (name, column) in enumerate(self.columns.items())
        }
        arrays: list[pa.Array] = []
        for name in self.output_schema.names:
            if name in modelled:
                arrays.append(modelled[name])
            elif name in self.schema.derived:
                arrays.append(derive(self.schema.derived[name], self.columns, pa.RecordBatch.from_pydict(modelled)))
            elif self.schema.image and name == self.schema.image[0]:
                arrays.append(self._images(records))
            elif isinstance(identifier := self.schema.columns[name], Identifier):
                arrays.append(self._identifiers(name, identifier, first_row, records))
        return pa.Table.from_arrays(arrays, schema=self.output_schema)

    def codes_of(self, records: Records) -> Sequence[Codes]:
        """Return each column's codes. Shapes: F arrays of [B]."""
        if records.codes is not None:
            return records.codes
        self._check_shape(records.states)
        pairs = zip(self.columns.values(), records.states.T, records.values.T, strict=True)
        return [to_codes(column, states, values) for column, states, values in pairs]

    def to_arrow(self, records: Records) -> pa.RecordBatch:
        """Lay records out as columns of codes, the form in which they are stored."""
        arrays = [pa.array(codes) for codes in self.codes_of(records)]
        if self.schema.image:
            arrays.append(self._images(records))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def from_arrow(self, batch: Table) -> Records:
        """Read records back from their stored form.

        Raises:
            DataError: the columns or the codes are not those of the schema.
        """
        if not batch.schema.equals(self.arrow_schema):
            raise DataError("", "the encoded data does not belong to this schema")
        codes = [check_codes(column, batch.column(name).to_numpy()) for name, column in self.columns.items()]
        return Records.coded(list(self.columns.values()), codes, self._pixels(batch))

    def to_cells(self, records: Records) -> NDArray[np.int32]:
        """Number each record's cell: a continuous column's value cells come first, then its other states.

        Shapes:
            [B, F] int32, column f below ``cell_sizes[f]``.
        """
        self._check_shape(records.states)
        cells = records.states.copy()
        for index, column in enumerate(self.columns.values()):
            if isinstance(column, Continuous):
                states = records.states[:, index]
                value_cell = column.grid.of(records.values[:, index])
                cells[:, index] = np.where(states == 0, value_cell, states + column.cells - 1)
        return cells

    def from_cells(self, cells: NDArray[np.int32], rng: np.random.Generator) -> Records:
        """Draw records from their cells: uniformly within a value cell, then on the column's lattice."""
        self._check_shape(cells)
        states, values = cells.astype(np.int32), np.zeros(cells.shape)
        for index, column in enumerate(self.columns.values()):
            if isinstance(column, Continuous):
                cell = cells[:, index]
                has_value = cell < column.cells
                states[:, index] = np.where(has_value, 0, cell - column.cells + 1)
                values[has_value, index] = column.grid.draw(cell[has_value], rng)
        return Records(states, values)

    def _pixels(self, table: Table) -> Pixels | None:
        """Return the image column of a table, if the schema has one."""
        if self.schema.image is None:
            return None
        name, column = self.schema.image
        if table.schema.names.count(name) != 1:
            raise DataError(name, "must be in the data exactly once")
        return encode_image(name, column, plain(table.column(name)))

    def _images(self, records: Records) -> pa.Array:
        """Lay the images of records out as a column; only for a schema that has one."""
        name, column = self.schema.image or ("", None)
        if column is None or records.pixels is None or records.pixels.shape != (len(records), column.numbers):
            raise Unsuitable(f"the records hold no images for column {name}; encode them with this schema")
        return decode_image(column, records.pixels)

    def _identifiers(self, name: str, identifier: Identifier, first_row: int, records: Records) -> pa.Array:
        """Make the identifiers of a column, one a row."""
        return identifier.make(first_row, len(records))

    def _check_shape(self, array: NDArray[np.int32]) -> None:
        if array.ndim != 2 or array.shape[1] != len(self.columns):
            raise Unsuitable(f"the records have not the {len(self.columns)} columns of the schema; encode them with it")


def _output_type(column: Column, schema: Schema) -> pa.DataType:
    """Return the Arrow type a column is handed over as."""
    if isinstance(column, Derived):
        return derived_type(column, schema.columns)
    return column.arrow_type if isinstance(column, Image | Identifier) else arrow_type(column)
