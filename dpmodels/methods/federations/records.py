"""Read the records of a party, or public ones, from files of any format: columns of numbers, or one column of lists."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dpmodels.codec.convert import plain, to_floats
from dpmodels.contract.base import is_text
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import Examples
from dpmodels.errors import DataError
from dpmodels.frozen import Frozen
from dpmodels.late import Tensor, torch
from dpmodels.limits import LONGEST_RECORD
from dpmodels.privacy import Sensitive
from dpmodels.reading.data_files import find_files
from dpmodels.reading.database import Query, read_query
from dpmodels.reading.named_columns import check_once_named, open_columns

BATCH_ROWS = 2**16
MISSING = "must be in every file, and once, since the federation's records have it"


class RecordsSpec(Frozen):
    """Which columns a record has; all of it is public.

    Attributes:
        label: the column of classes; public records need none.
        inputs: columns of numbers; or a single one that holds the pixels of an image as a list, whose ``shape`` is
            channels, height and width.
    """

    label: str = "label"
    inputs: Annotated[tuple[str, ...], Field(min_length=1)]
    shape: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(max_length=3)] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({self.label, *self.inputs}) <= len(self.inputs):
            raise ValueError("must name every column once, and the label's among none of the inputs")
        if self.shape and (len(self.inputs) > 1 or len(self.shape) != 3):
            raise ValueError("must give a shape of channels, height and width for a single column of lists only")
        return self

    @property
    def record(self) -> tuple[int, ...]:
        """The shape of a record."""
        return self.shape or (len(self.inputs),)


def read_public(path: str | Path, spec: RecordsSpec) -> Tensor:
    """Read public records without labels. Shapes: [n, ...].

    Raises:
        DataError: the files cannot be read, or lack a column.
    """
    return _inputs(_table(path, spec, labeled=False), spec)


def read_labeled(path: str | Path, spec: RecordsSpec, classes: Sequence[str]) -> Examples:
    """Read public records with labels, which classifiers are judged by.

    Raises:
        DataError: the files cannot be read, lack a column or hold no record, or a label is none of the classes.
    """
    table = _table(path, spec, labeled=True)
    if not table.num_rows:
        raise DataError("", "there must be records to judge by")
    return Examples(_inputs(table, spec), torch.from_numpy(_labels(table[spec.label], spec.label, classes)))


def load_examples(source: str | Path | Query, spec: RecordsSpec, contract: Federation) -> Sensitive[Examples]:
    """Read the labeled records of a client. A value that is missing makes its record's vector zero and nothing else.

    Privacy: Sensitive. Records that break the contract are refused before anything is charged.

    Raises:
        DataError: the files cannot be read or lack a column, a label is none of the classes, or the number of records
            is not what the contract says of it.
    """
    table = _table(source, spec, labeled=True)
    inputs, labels = _inputs(table, spec), _labels(table[spec.label], spec.label, contract.classes)
    if len(labels) > contract.most or (contract.size is not None and len(labels) != contract.size):
        raise DataError("", "the number of records must be what the contract says of it")
    return Sensitive(Examples(inputs, torch.from_numpy(labels)))


def _table(source: str | Path | Query, spec: RecordsSpec, labeled: bool) -> pa.Table:
    texts = {**dict.fromkeys(spec.inputs, pa.float64()), **({spec.label: pa.string()} if labeled else {})}
    if isinstance(source, Query):
        return _answer(source, spec, texts)
    files = [open_columns(file, texts, MISSING) for file in find_files(str(source))]
    if any(file.types != files[0].types for file in files):
        raise DataError("", f"{source} must hold values of the same types in all of its files")
    records = chain.from_iterable(file.read(BATCH_ROWS, LONGEST_RECORD) for file in files)
    return pa.Table.from_batches(records, files[0].types)


def _answer(query: Query, spec: RecordsSpec, texts: Mapping[str, pa.DataType]) -> pa.Table:
    """Read what a database answers: numbers as float64 and labels as text, whatever types each batch of it has."""
    if spec.shape:
        raise DataError(spec.inputs[0], "must come in files that hold lists, such as Parquet; a database holds none")
    check = partial(check_once_named, columns=texts, missing=MISSING)
    batches = [batch for batch in read_query(query, texts, check, BATCH_ROWS) if batch.num_rows]
    columns = {
        name: pa.chunked_array([_numbers(each[name], name) for each in batches], pa.float64()) for name in spec.inputs
    }
    labels = [_texts(each[spec.label], spec.label) for each in batches]
    return pa.table({**columns, spec.label: pa.chunked_array(labels, pa.string())})


@np.errstate(over="ignore")  # numpy's warning would tell that a value is huge
def _inputs(table: pa.Table, spec: RecordsSpec) -> Tensor:
    columns = [table[name].combine_chunks() for name in spec.inputs]
    if spec.shape:
        return torch.from_numpy(_lists(columns[0], spec))
    numbers = [_numbers(column, name) for column, name in zip(columns, spec.inputs, strict=True)]
    with np.errstate(over="ignore"):  # what is beyond a float is infinite, and counts as missing
        return torch.from_numpy(np.stack(numbers, axis=1).astype(np.float32))


def _lists(column: pa.Array, spec: RecordsSpec) -> NDArray[np.float32]:
    (name,), size = spec.inputs, int(np.prod(spec.shape))
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or column.null_count or pc.any(pc.not_equal(pc.list_value_length(column), size)).as_py():
        raise DataError(name, f"must hold a list of {size} numbers in every record")
    with np.errstate(over="ignore"):
        flat: NDArray[np.float32] = _numbers(pc.list_flatten(column), name).astype(np.float32)
    return flat.reshape(-1, *spec.shape)


def _numbers(column: pa.Array, name: str) -> NDArray[np.float64]:
    kind = column.type
    exact = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    if not (exact or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise DataError(name, "must hold numbers")
    return to_floats(column)


def _texts(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array | pa.ChunkedArray:
    """Return labels as text."""
    column = plain(column)
    kind = column.type
    if not (pa.types.is_integer(kind) or is_text(kind) or pa.types.is_null(kind)):
        raise DataError(name, "must hold text or whole numbers")
    return column.cast(pa.string())


def _labels(column: pa.ChunkedArray, name: str, classes: Sequence[str]) -> NDArray[np.int64]:
    codes = pc.index_in(_texts(column, name), pa.array(list(classes), pa.string()))
    if codes.null_count:
        raise DataError(name, "must be one of the federation's classes in every record")
    labels: NDArray[np.int64] = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return labels
