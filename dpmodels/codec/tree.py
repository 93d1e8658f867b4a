"""The encoding of a tree of tables (contract/tree.py): the rows of some units in all tables, and their flat tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.codes import Codes, check_codes, code_count, code_type, from_codes
from dpmodels.codec.convert import decode_column
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.public import NONE, UNKNOWN, public_table, public_types, rows_named
from dpmodels.codec.stacked import objects_of, stack, stacked_type, unstack
from dpmodels.contract.columns import Derived, Identifier
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError

LACKING = (
    'of table {} names a row that public table {} lacks; add it there, or write `nullable: true` and `unknown: "null"`'
)
NULL = "of table {} must name a row of public table {}; write `nullable: true` if it may be null"


@dataclass(frozen=True)
class TreeRecords:
    """Encoded rows of some units in all tables of a tree; its length is the number of units.

    Attributes:
        codes: by table, the codes of its modeled columns (codec/codes.py). Shapes: arrays of [rows of the table].
        parents: by table but the root, the number of each row's parent; never falling. Shapes: [rows of the table].
    """

    tree: Tree
    codes: Mapping[str, Sequence[Codes]]
    parents: Mapping[str, Whole]

    def __len__(self) -> int:
        return self.rows(self.tree.root)

    def rows(self, table: str) -> int:
        """Count the rows of a table."""
        return len(self.codes[table][0])

    def of(self, table: str) -> Records:
        """Return the rows of one table by themselves."""
        return Records.coded(list(self.tree.tables[table].modelled.values()), self.codes[table])

    def take(self, index: Any) -> "TreeRecords":
        """Select units with all their rows, by anything numpy indexes rows with: positions, a mask, a slice."""
        chosen, parents = {self.tree.root: np.arange(len(self))[index]}, dict[str, Whole]()
        for table in self.parents:
            parent = str(self.tree.tables[table].parent)
            counts = self.counts(table)
            begin, each = (np.cumsum(counts) - counts)[chosen[parent]], counts[chosen[parent]]
            parents[table] = np.repeat(np.arange(len(each)), each)
            chosen[table] = np.arange(len(parents[table])) - np.repeat(np.cumsum(each) - each - begin, each)
        codes = {table: [column[chosen[table]] for column in columns] for table, columns in self.codes.items()}
        return TreeRecords(self.tree, codes, parents)

    @classmethod
    def concat(cls, parts: Sequence["TreeRecords"]) -> "TreeRecords":
        """Join the units of at least one part, in order."""
        tree, parents = parts[0].tree, dict[str, Whole]()
        for table in parts[0].parents:
            above = [part.rows(str(tree.tables[table].parent)) for part in parts]
            before = np.cumsum(above) - above
            parents[table] = np.concatenate([part.parents[table] + n for part, n in zip(parts, before, strict=True)])
        codes = {
            table: [np.concatenate(columns) for columns in zip(*(part.codes[table] for part in parts), strict=True)]
            for table in parts[0].codes
        }
        return cls(tree, codes, parents)

    @cached_property
    def shares(self) -> dict[str, Whole]:
        """Return by table one over what each of its rows weighs: the rows beside it, times that of its parent's row."""
        shares = {self.tree.root: np.ones(len(self), dtype=np.int64)}
        for table, above in self.parents.items():
            shares[table] = (shares[str(self.tree.tables[table].parent)] * self.counts(table))[above]
        return shares

    def counts(self, table: str) -> Whole:
        """Count for each row of the parent its rows in a table. Shapes: [rows of the parent]."""
        return np.bincount(self.parents[table], minlength=self.rows(str(self.tree.tables[table].parent)))

    def positions(self, table: str) -> Whole:
        """Number the rows of each parent from 1 on. Shapes: [rows of the table]."""
        counts, above = self.counts(table), self.parents[table]
        return np.arange(len(above)) - (np.cumsum(counts) - counts)[above] + 1

    def measured(self, table: str) -> list[NDArray[Any]]:
        """Return the codes of a table's columns as they are measured (``Branch.grouped``)."""
        branch, codes = self.tree.tables[table], list[NDArray[Any]](self.codes[table])
        for place, one in enumerate(branch.refers, len(codes) - len(branch.refers)):
            public = branch.public_of(one)
            if public.size > public.groups:
                codes[place] = np.append(public.group_of, public.groups)[codes[place]]  # null comes after the groups
        return codes

    def attributes(self, table: str) -> list[NDArray[Any]]:
        """Return the codes of what a flat table says of the rows of a table (``Tree.attributes``)."""
        codes = self.measured(table)
        codes += [self.counts(child) for child in self.tree.children(table)]
        for part in self.tree.parts(table):
            for column, values in zip(self.tree.tables[part].grouped.values(), self.measured(part), strict=True):
                codes.append(null := np.full(self.rows(table), _null_code(column)))
                null[self.parents[part]] = values
        return codes

    def given(self, table: str) -> list[NDArray[Any]]:
        """Return the codes of what is known of the rows of a table before they are drawn (``Tree.given``)."""
        branch, codes = self.tree.tables[table], list[NDArray[Any]]()
        if branch.parent is None:
            return codes
        below, rows = table, np.arange(self.rows(table))
        for above in reversed(self.tree.above(table)):
            below, rows = above, self.parents[below][rows]
            codes = [values[rows] for values in self.attributes(above)] + codes
        first = (position := self.positions(table)) == 1
        codes.append(position - 1)
        columns = dict(zip(branch.grouped, self.measured(table), strict=True))
        for name in self.tree.followed(table):
            before = np.roll(columns[name], 1).astype(np.int64)
            codes.append(np.where(first, _null_code(branch.grouped[name]), before))
        return codes

    def flat(self, table: str) -> Records:
        """Return the flat table of a table, whose rows weigh one over ``shares``."""
        columns = list(self.tree.flat_of(table).modelled.values())
        codes = [*self.given(table), *self.attributes(table)]
        typed = [each.astype(code_type(column)) for column, each in zip(columns, codes, strict=True)]
        return Records.coded(columns, typed)

    def rows_of(self, table: str) -> Records:
        """Return what a flat table says of the rows of a table (``Tree.attributes``)."""
        columns = list(self.tree.attributes(table).values())
        pairs = zip(columns, self.attributes(table), strict=True)
        return Records.coded(columns, [codes.astype(code_type(column)) for column, codes in pairs])

    def units(self, table: str) -> Whole:
        """Return the number of the unit of each row. Shapes: [rows of the table]."""
        parent = self.tree.tables[table].parent
        return np.arange(len(self)) if parent is None else self.units(parent)[self.parents[table]]

    def ruled(self, table: str) -> Records:
        """Return the rows of a table as those of the flat table that their rules are about (``Tree.ruled``)."""
        if not self.tree.is_part(table):
            return self.flat(table)
        return self.flat(str(self.tree.tables[table].parent)).take(self.parents[table])


def _null_code(column: Any) -> int:
    """Return the code of null in a column that may be null, whether it could be before or not."""
    return code_count(column) - 1 if column.nullable else code_count(column)


class TreeCodec:
    """The encoding of a tree: stacked tables to records and back; a unit's codes depend on that unit's rows alone."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.codecs = {name: Codec(tree.schema_of(name)) for name in tree.tables}
        self.arrow_schema = stacked_type({name: self._encoded(name) for name in tree.tables})
        self.output_schema = stacked_type({name: self.output_of(name) for name in tree.tables})

    def output_of(self, table: str) -> pa.Schema:
        """Return the columns of a table as it is handed over: without those that are dropped, but with all keys."""
        types, keys = self.codecs[table].output_schema, self.tree.keys_of(table)
        fields = []
        for name in self.tree.tables[table].columns:
            if name in keys:
                parent = str(self.tree.tables[table].parent)
                above = self.output_of(parent).field(self.tree.tables[parent].key[keys.index(name)])
                fields.append(pa.field(name, above.type))
            elif one := self.tree.reference_by(table, name):
                public = public_types(one.to, self.tree.public[one.to])
                fields.append(pa.field(name, public.field(self.tree.public[one.to].key[one.by.index(name)]).type))
            elif name in types.names:
                fields.append(types.field(name))
        return pa.schema(fields)

    def _encoded(self, table: str) -> pa.Schema:
        """Return the types of the codes of a table."""
        columns = self.tree.tables[table].modelled
        return pa.schema([(name, pa.from_numpy_dtype(code_type(column))) for name, column in columns.items()])

    def to_arrow(self, records: TreeRecords) -> pa.RecordBatch:
        """Lay records out as a stacked table of codes, the form in which they are stored."""
        columns = {
            table: {name: pa.array(codes) for name, codes in zip(branch.modelled, records.codes[table], strict=True)}
            for table, branch in self.tree.tables.items()
        }
        return self._stacked(columns, records, self.arrow_schema)

    def from_arrow(self, batch: pa.RecordBatch) -> TreeRecords:
        """Read records back from their stored form.

        Raises:
            DataError: the columns or the codes are not those of the tree.
        """
        if not batch.schema.equals(self.arrow_schema):
            raise DataError("", "the encoded data does not belong to this schema")
        tables, parents = unstack(self.tree, batch)
        codes = {
            name: [check_codes(column, _numbers(tables[name], key)) for key, column in branch.modelled.items()]
            for name, branch in self.tree.tables.items()
        }
        return TreeRecords(self.tree, codes, parents)

    def encode(self, batch: pa.RecordBatch | pa.Table) -> TreeRecords:
        """Encode a stacked table of whole units.

        Raises:
            DataError: a value is not what the tree admits.
        """
        tables, parents = unstack(self.tree, batch)
        return self.encode_tables(tables, parents)

    def encode_tables(self, tables: Mapping[str, pa.Table], parents: Mapping[str, Whole]) -> TreeRecords:
        """Encode tables whose rows are in order; arguments as of ``TreeRecords``.

        Raises:
            DataError: a value is not what the tree admits.
        """
        codes = {name: list(codec.codes_of(codec.encode(tables[name]))) for name, codec in self.codecs.items()}
        for name, branch in self.tree.tables.items():
            columns = [column for one in branch.refers for column in one.by]
            keys = {key: objects_of(tables[name].column(key)) for key in columns}
            codes[name] += reference_codes(self.tree, name, keys)
        return TreeRecords(self.tree, codes, {name: parents[name] for name in self.tree.tables if name in parents})

    def decode(self, records: TreeRecords, first_unit: int = 0) -> pa.Table:
        """Decode records to a stacked table; keys are made from the numbers of the units, from ``first_unit`` on."""
        numbers = {self.tree.root: np.arange(first_unit, first_unit + len(records))}
        for table, above in records.parents.items():
            branch = self.tree.tables[table]
            numbers[table] = numbers[str(branch.parent)][above] * branch.most + records.positions(table) - 1
        made = dict[str, dict[str, pa.Array]]()
        for table, codec in self.codecs.items():
            made[table] = _modelled(codec.schema, records.codes[table])
            made[table] |= self._references(table, records.codes[table])
            for name, column in self.tree.tables[table].columns.items():
                if name in made[table]:
                    continue
                if name in (keys := self.tree.keys_of(table)):
                    parent = str(self.tree.tables[table].parent)
                    values = made[parent][self.tree.tables[parent].key[keys.index(name)]]
                    made[table][name] = values.take(pa.array(records.parents[table]))
                elif isinstance(column, Identifier) and column.keep != "drop":
                    made[table][name] = column.make_at(numbers[table])
        columns = {table: {name: made[table][name] for name in self.output_of(table).names} for table in self.codecs}
        return pa.Table.from_batches([self._stacked(columns, records, self.output_schema)])

    def _references(self, table: str, codes: Sequence[Codes]) -> dict[str, pa.Array]:
        """Return the columns that name rows of public tables."""
        branch, arrays = self.tree.tables[table], dict[str, pa.Array]()
        for one, rows in zip(branch.refers, codes[len(codes) - len(branch.refers) :], strict=True):
            public = branch.public_of(one)
            keys = public_table(one.to, public)
            index = pa.array(rows.astype(np.int64), mask=rows >= public.size)
            arrays |= {
                name: keys.column(key).combine_chunks().take(index)
                for name, key in zip(one.by, public.key, strict=True)
            }
        return arrays

    def stacked(self, tables: Mapping[str, pa.Table], parents: Mapping[str, Whole]) -> pa.Table:
        """Put tables as they are handed over into one stacked table; arguments as of ``encode_tables``."""
        columns = {
            name: {key: tables[name].column(key).combine_chunks() for key in self.output_of(name).names}
            for name in self.tree.tables
        }
        arrays = stack(self.tree, columns, parents, {name: len(tables[name]) for name in self.tree.tables})
        return pa.table(arrays, names=self.output_schema.names)

    def _stacked(self, columns: Any, records: TreeRecords, types: pa.Schema) -> pa.RecordBatch:
        rows = {table: records.rows(table) for table in self.tree.tables}
        return pa.RecordBatch.from_arrays(stack(self.tree, columns, records.parents, rows), schema=types)


def reference_codes(tree: Tree, table: str, keys: Mapping[str, NDArray[Any]]) -> list[Codes]:
    """Return the codes of a table's references, of the columns that name public rows; None stands for null.

    Raises:
        DataError: a key is not in the public table, or is null, and the reference does not allow for it.
    """
    branch, codes = tree.tables[table], list[Codes]()
    for one in branch.refers:
        public = branch.public_of(one)
        rows = rows_named(public, [keys[column] for column in one.by])
        if one.unknown == "null":
            rows[rows == UNKNOWN] = NONE
        if (rows == UNKNOWN).any():
            raise DataError(one.by[0], LACKING.format(table, one.to))
        if not one.nullable and (rows == NONE).any():
            raise DataError(one.by[0], NULL.format(table, one.to))
        codes.append(np.where(rows < 0, public.size, rows).astype(code_type(branch.modelled[one.name])))
    return codes


def _modelled(schema: Schema, codes: Sequence[Codes]) -> dict[str, pa.Array]:
    """Decode the modeled columns of a table, and what follows from them."""
    decoded = {
        name: decode_column(column, *from_codes(column, values))
        for (name, column), values in zip(schema.modelled.items(), codes, strict=False)  # references come after them
    }
    rows = pa.RecordBatch.from_pydict(decoded)
    derived = {name: one for name, one in schema.columns.items() if isinstance(one, Derived)}
    return decoded | {name: derive(one, schema.modelled, rows) for name, one in derived.items()}


def _numbers(table: pa.Table, name: str) -> Codes:
    numbers: Codes = table.column(name).to_numpy()
    return numbers
