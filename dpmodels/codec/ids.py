"""One form for the values that name users and rows, however files type them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.codec.convert import is_whole, plain
from dpmodels.contract.base import is_text
from dpmodels.errors import DataError

SEVERAL_KINDS = "holds text in one file and whole numbers in another, or UUIDs of 16 bytes; write it in one way only"
KINDS = "must hold text or whole numbers, or UUIDs as `fixed_size_binary[16]`, since it names a user or a row"
UUID = pa.binary(16)
IGNORABLE = (
    r"\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2065}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}"
    r"\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}"
)
"""What Unicode's Default_Ignorable_Code_Point names beside control and format characters (Cc, Cf)."""
UNSEEN = rf"[\p{{Cc}}\p{{Cf}}\p{{Zl}}\p{{Zp}}{IGNORABLE}\x{{2800}}\x{{FFFC}}\x{{1D159}}]|[^\P{{Zs}} ]"
"""Characters that show nothing, and spaces but the usual one: two ids that differ by them alone look like one user."""


def read_ids(name: str, column: pa.Array, kinds: set[str]) -> NDArray[Any]:
    """Return the ids of a batch in the one form in which they are compared; ``kinds`` are those of earlier batches."""
    ids: NDArray[Any] = checked_ids(name, column, kinds).to_numpy(zero_copy_only=False)
    return ids


def checked_ids(name: str, column: pa.Array, kinds: set[str]) -> pa.Array:
    """Return the same ids as an Arrow array, which takes no more memory than their text does; UUIDs are text.

    UUIDs of 16 bytes are no other spelling of those that are text, where letters may be large or small: they are a
    kind by themselves, and a column is of one kind.
    """
    array = plain(column)
    if array.null_count:
        raise DataError(name, "must not be null: every row belongs to a user")
    kind = _kind(array.type)
    if not kind:
        raise DataError(name, KINDS)
    kinds.add(kind)
    if len(kinds) > 1:
        raise DataError(name, SEVERAL_KINDS)
    if is_text(array.type):
        array = array.cast(pa.large_string())
        _check_spelling(name, array)
    return _uuids_as_text(name, array) if kind == "UUIDs" else array


def key_values(name: str, column: pa.Array, kinds: set[str], may_lack: bool) -> pa.Array:
    """Return the values of a key; null is refused, or stays null where a row may name none.

    What the values may be is decided by the column's type, so not by whether any of them is there.
    """
    if not may_lack:
        return checked_ids(name, column, kinds)
    if pa.types.is_null(column.type):
        return column
    checked_ids(name, pc.drop_null(column), kinds)
    if _kind(column.type) == "UUIDs":
        return _uuids_as_text(name, column)
    return column.cast(pa.large_string()) if is_text(column.type) else column


def _kind(dtype: pa.DataType) -> str:
    """Name the kind of ids that a type holds; empty for a type of none."""
    if isinstance(dtype, pa.BaseExtensionType):
        return "UUIDs" if dtype.extension_name == "arrow.uuid" else ""
    kinds = {"whole numbers": pa.types.is_integer(dtype), "text": is_text(dtype), "UUIDs": dtype == UUID}
    return next((kind for kind, fits in kinds.items() if fits), "")


def _uuids_as_text(name: str, column: pa.Array) -> pa.Array:
    """Write UUIDs of 16 bytes as 32 digits; null stays null."""
    array = column.storage if isinstance(column, pa.ExtensionArray) else column
    if not is_whole(array):
        raise DataError(name, KINDS)
    if not len(array):
        return pa.array([], pa.large_string())
    start = array.offset * UUID.byte_width
    digits = array.buffers()[1].to_pybytes()[start : start + len(array) * UUID.byte_width].hex()
    texts = np.frombuffer(digits.encode(), f"S{2 * UUID.byte_width}")
    return pa.array(texts, mask=array.is_null().to_numpy(zero_copy_only=False)).cast(pa.large_string())


def _check_spelling(name: str, array: pa.Array) -> None:
    """Refuse text that may be another spelling of the same id, and what is no text."""
    if not is_whole(array):
        raise DataError(name, "must hold UTF-8 text in every row")
    one_form = pc.equal(pc.utf8_trim_whitespace(array), array)
    one_form = pc.and_(one_form, pc.invert(pc.match_substring_regex(array, UNSEEN)))
    if not pc.all(pc.string_is_ascii(array), min_count=0).as_py():
        one_form = pc.and_(one_form, pc.equal(pc.utf8_normalize(array, form="NFC"), array))
    if not pc.all(one_form, min_count=0).as_py():
        form = "Unicode's composed form (NFC), without white space around or unseen characters"
        raise DataError(name, f"must name a user or a row in {form}")
