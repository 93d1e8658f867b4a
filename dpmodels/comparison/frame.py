"""Tables as the metrics read them: one float a column, whatever another tool wrote, streamed or sampled."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.codec.convert import as_numbers, plain, to_keys
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.names import missing_from
from dpmodels.codec.pixels import encode_image
from dpmodels.codec.text_values import with_text_read
from dpmodels.contract.base import Modelled, described
from dpmodels.contract.columns import Continuous, names_of
from dpmodels.contract.continuous import decode_numbers
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.statistics.reservoir import draw

Counted = TypeVar("Counted")


@dataclass(frozen=True)
class Frame:
    """Rows. A number stands in its own units, a category as its place in the schema, null as NaN.

    A category that the schema does not list has the place after the last one.

    Shapes: values [n, F] float64; pixels [n, numbers of an image] uint8.
    """

    values: Floats
    pixels: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: Any) -> "Frame":
        """Select rows by positions, a mask or a slice."""
        return Frame(self.values[index], None if self.pixels is None else self.pixels[index])

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> "Frame":
        """Join at least one part, in order."""
        images = [part.pixels for part in parts if part.pixels is not None]
        return Frame(np.concatenate([part.values for part in parts]), np.concatenate(images) if images else None)


@dataclass(frozen=True)
class Rows:
    """A table as batches that can be read again and again: encoded records, or Arrow as any tool writes it."""

    schema: Schema
    batches: Iterable[Records] | Iterable[pa.RecordBatch]
    run: Callable[..., Iterable[Any]] = map
    """Maps a function over batches, on however many threads."""
    name: str = ""
    """What messages call the table."""

    def each(self, function: Callable[[Frame], Counted]) -> Iterable[Counted]:
        """Stream the function's value for every batch of the table."""
        return self.run(lambda batch: function(self._read(batch)), self.batches)

    def sample(self, rows: int, seed: int) -> Frame:
        """Draw a uniform sample in one pass; a table of at most ``rows`` rows comes back whole."""
        with of_table(self.name):
            drawn = draw(self.batches, rows, seed)
        return Frame.concat(list(map(self._read, drawn)))

    def _read(self, batch: Records | pa.RecordBatch) -> Frame:
        with of_table(self.name):
            return read_frame(self.schema, batch)


@dataclass(frozen=True)
class ParquetBatches:
    """The columns of a schema in a Parquet file, or in a folder of them, batch by batch.

    ``name`` is what messages call the table, by default its path: that of a copy says nothing to anybody.

    Raises:
        DataError: there is no such file, it is damaged, or a column is missing.
    """

    path: Path
    schema: Schema
    batch_rows: int = 65_536
    name: str = ""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        image = self.schema.image
        names = [*self.schema.modelled, *([image[0]] if image else [])]
        texts = [name for name, column in self.schema.modelled.items() if not column.continuous]
        kinds = Codec(self.schema).csv_types
        for path in self.files():
            try:
                there = pq.read_schema(path).names
                missing = missing_from(names, there, self.name or str(path))
                if not missing:
                    file = pq.ParquetFile(path, read_dictionary=texts)
                    for batch in file.iter_batches(batch_size=self.batch_rows, columns=names):
                        yield with_text_read(batch, kinds)
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise DataError("", f"{self.name or path} cannot be read as Parquet") from None
            if missing:
                raise DataError(*missing)

    def files(self) -> list[Path]:
        """List the Parquet files."""
        files = sorted(self.path.rglob("*.parquet")) if self.path.is_dir() else [self.path]
        if not files or not self.path.exists():
            raise DataError("", f"{self.path} does not exist or holds no Parquet files")
        return files


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Have whatever is wrong with one of several tables say which it is, by what its caller calls it."""
    try:
        yield
    except DataError as fault:
        if name not in str(fault):
            fault.args = (f"{name}: {fault}",)
        raise


def read_frame(schema: Schema, batch: Records | pa.RecordBatch) -> Frame:
    """Read a batch of either kind."""
    columns = schema.modelled.items()
    if isinstance(batch, Records):
        read = [_decode(column, batch.states[:, j], batch.values[:, j]) for j, (_, column) in enumerate(columns)]
        return Frame(np.stack(read, axis=1), batch.pixels)
    read = [_convert(name, column, batch.column(name)) for name, column in columns]
    pixels = None
    if schema.image:
        name, image = schema.image
        pixels = encode_image(name, image, plain(batch.column(name)))
    return Frame(np.stack(read, axis=1), pixels)


def category_count(column: Modelled) -> int:
    """Count the listed values of a column that is not continuous; null is not among them."""
    return column.states - column.nullable


def category_names(column: Modelled) -> list[str]:
    """Name the cells of a column that is not continuous: its values, then what a table may hold besides."""
    return [*names_of(column), "not in the schema", "null"]


def _decode(column: Modelled, states: NDArray[np.int32], values: Floats) -> Floats:
    if isinstance(column, Continuous):
        return decode_numbers(column, states, values)
    read = states.astype(np.float64)
    if column.null_state is not None:
        read[states == column.null_state] = np.nan
    return read


def _convert(name: str, column: Modelled, array: pa.Array) -> Floats:
    """Read a column of any tool's table; what the schema does not admit stays visible and is no error."""
    try:
        if isinstance(column, Continuous):
            return as_numbers(column, array)
        if not pa.types.is_dictionary(array.type):
            return _places(column, array)
        entry_values = _places(column, array.dictionary)
        null = array.indices.is_null().to_numpy(zero_copy_only=False)
        index = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return np.where(null, np.nan, entry_values[index]) if len(entry_values) else np.full(len(array), np.nan)
    except (pa.ArrowException, TypeError, ValueError):
        pass  # its message may quote a value
    raise DataError(name, f"cannot be read as {type(column).__name__.lower()}; it holds {described(array.type)}")


def _places(column: Any, array: pa.Array) -> Floats:
    keys = column.keys
    if isinstance(keys[0], float):
        array = pa.array(to_keys(column, array), from_pandas=True)
    else:
        array = array.cast(pa.array(keys).type)
    null = array.is_null().to_numpy(zero_copy_only=False)
    index = pc.index_in(array, value_set=pa.array(keys, type=array.type)).fill_null(len(keys))
    return np.where(null, np.nan, index.to_numpy(zero_copy_only=False))
