"""Read documents from files of any format, or from a database, as a stream of batches in bounded memory."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.codec.convert import plain
from dpmodels.contract.base import described, is_text
from dpmodels.contract.documents import Documents
from dpmodels.errors import DataError
from dpmodels.limits import LONGEST_DOCUMENT
from dpmodels.privacy import PrivacyUnit, Sensitive
from dpmodels.reading.data_files import find_files
from dpmodels.reading.database import Query, read_query
from dpmodels.reading.named_columns import NamedColumns, check_once_named, open_columns
from dpmodels.reading.pictures import Batches
from dpmodels.reading.user_ids import bounded

MISSING = (
    "is in the contract, so it must be in every file of the data, and once; if the data calls it something else, say "
    "so in the contract"
)


@dataclass(frozen=True)
class DocumentFiles:
    """Checked files of documents, or a query for them, which can be read any number of times.

    A batch has the columns ``id`` (text), ``content`` (text, or the lists of numbers that came instead) and ``label``
    (the place of the class among the contract's, or -1).
    """

    files: tuple[NamedColumns, ...]
    contract: Documents
    batch_rows: int
    query: Query | None = None

    def __iter__(self) -> Batches:
        batches, known_ids = self._batches(), set[str]()
        # where documents are the unit, none may push another out: one that is added would move two
        if self.contract.user and self.contract.protects != "document":
            user = PrivacyUnit(kind="user", user=self.contract.user, max_rows=self.contract.most_documents)
            batches = bounded(batches, user)
        for batch in batches:
            yield self._checked(batch, known_ids)

    def _batches(self) -> Batches:
        for file in self.files:
            yield from file.read(self.batch_rows, LONGEST_DOCUMENT, null=False)
        texts = texts_of(self.contract)
        check = partial(check_once_named, columns=texts, missing=MISSING)
        for batch in read_query(self.query, texts, check, self.batch_rows) if self.query else ():
            _check_types(batch.schema, self.contract)  # which no database says before there are rows
            yield batch

    def _checked(self, batch: pa.RecordBatch, known_ids: set[str]) -> pa.RecordBatch:
        contract = self.contract
        ids = _whole(contract.id, batch).cast(pa.large_string())
        content = _whole(contract.text or contract.embedding, batch)
        before = len(known_ids)
        known_ids.update(ids.to_pylist())
        if len(known_ids) < before + len(ids):
            raise DataError(contract.id, "must name every document once; two documents have the same id")
        labels = _classes(batch[contract.label], contract) if contract.label else np.full(len(ids), -1, dtype=np.int32)
        content = content.cast(pa.large_string()) if contract.text else content
        return pa.RecordBatch.from_arrays([ids, content, pa.array(labels)], ["id", "content", "label"])


def load_documents(source: str | Path | Query, contract: Documents, batch_rows: int = 256) -> Sensitive[DocumentFiles]:
    """Open documents and check their columns; the documents are read, and checked, as they are asked for.

    A query is sent as its documents are asked for.

    Privacy: Sensitive. With a column of users, and another unit than documents, documents beyond ``most_documents`` of
        a user, in reading order, are left out; which stay depends on that user's documents alone.

    Raises:
        DataError: no such file, of an unknown format, damaged, without a column, or with one of another type. While
            reading also: an id or a content is null, or an id is there twice.
    """
    if isinstance(source, Query):
        return Sensitive(DocumentFiles((), contract, batch_rows, source))
    files = [open_columns(file, texts_of(contract), MISSING) for file in find_files(str(source))]
    for file in files:
        if contract.embedding and file.file.format == "csv":
            raise DataError(contract.embedding, "must come in a file that holds lists, such as Parquet; CSV holds none")
        _check_types(file.types, contract)
    return Sensitive(DocumentFiles(tuple(files), contract, batch_rows))


def sentence_vectors(column: pa.Array, contract: Documents) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the vectors that came with documents, and where those of each document begin.

    A vector with a number that is missing, not a number, or infinite is 0, and so is a vector that is null; a vector
    longer than 1 is scaled to norm 1. Each follows from that vector alone, and the number of vectors stays.

    Raises:
        DataError: a vector is of another size than the contract says.
    """
    vectors, counts = column, np.ones(len(column), dtype=np.int64)
    if _is_list(column.type.value_type):
        vectors, counts = column.flatten(), pc.list_value_length(column).to_numpy(zero_copy_only=False)
    dim = contract.encoder.dim
    sizes = pc.list_value_length(vectors.drop_null())
    if len(sizes) and pc.min_max(sizes).as_py() != {"min": dim, "max": dim}:
        raise DataError(contract.embedding, f"must hold vectors of {dim} numbers, as the contract says")
    rows = np.zeros((len(vectors), dim))
    there = vectors.is_valid().to_numpy(zero_copy_only=False)
    numbers = vectors.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    rows[there] = numbers.reshape(-1, dim)
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0.0), 1.0)  # so that no square is infinite
    rows /= np.maximum(np.sqrt(np.square(rows).sum(axis=1, keepdims=True)), 1.0)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    position = np.arange(len(rows)) - np.repeat(ends[:-1], counts)
    kept_counts = np.minimum(counts, contract.most_sentences)
    first = np.concatenate([[0], np.cumsum(kept_counts)]).astype(np.int64)
    return rows[position < contract.most_sentences].astype(np.float32), first


def texts_of(contract: Documents) -> dict[str, pa.DataType]:
    """Name the columns of the data that are read, with what text in them stays."""
    names = contract.id, contract.text, contract.embedding, contract.user, contract.label
    return {name: pa.string() for name in names if name}


def _check_types(types: pa.Schema, contract: Documents) -> None:
    """Refuse columns that cannot hold what the contract says of them."""
    for field in types:
        _check_type(field.name, field.type, contract)


def _check_type(name: str, dtype: pa.DataType, contract: Documents) -> None:
    inner = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    if name == contract.embedding:
        once = inner.value_type if _is_list(inner) else inner
        once = once.value_type if _is_list(once) else once
        fits, kinds = _is_list(inner) and _is_number(once), "lists of numbers, or lists of such lists"
    elif name == contract.text:
        fits, kinds = is_text(inner), "text"
    else:
        is_label = is_text(inner) or pa.types.is_integer(inner)
        fits, kinds = is_label or (name == contract.label and pa.types.is_null(inner)), "text or whole numbers"
    if not fits:
        raise DataError(name, f"must hold {kinds}; it holds {described(dtype)}")


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype))


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_floating(dtype) or pa.types.is_integer(dtype))


def _whole(name: str, batch: pa.RecordBatch) -> pa.Array:
    column = plain(batch[name])
    if column.null_count:
        raise DataError(name, "must not be null; leave out documents without one, or give them an id and an empty text")
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:  # its message may quote the text
        raise DataError(name, "must hold text in UTF-8; some of it is damaged") from None
    return column


def _classes(column: pa.Array, contract: Documents) -> NDArray[np.int32]:
    """Return the place of each label among the classes; what is not among them, null too, counts as the last."""
    labels = plain(column).cast(pa.large_string())
    index = pc.index_in(labels, value_set=pa.array(contract.classes, type=pa.large_string()))
    class_numbers: NDArray[np.int32] = index.fill_null(len(contract.classes) - 1).to_numpy(zero_copy_only=False)
    return class_numbers.astype(np.int32)
