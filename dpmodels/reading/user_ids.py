"""Whose row it is: one form for the ids of users, however files type them, and the rows of each that are kept."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.codec.convert import is_whole, plain, select
from dpmodels.contract.base import is_text
from dpmodels.errors import DataError
from dpmodels.privacy import PrivacyUnit

IGNORABLE = (
    r"\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2065}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}"
    r"\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}"
)
"""What Unicode's Default_Ignorable_Code_Point names beside control and format characters (Cc, Cf)."""
UNSEEN = rf"[\p{{Cc}}\p{{Cf}}\p{{Zl}}\p{{Zp}}{IGNORABLE}\x{{2800}}\x{{FFFC}}\x{{1D159}}]|[^\P{{Zs}} ]"
"""Characters that show nothing, and spaces but the usual one: two ids that differ by them alone look like one user."""


def bounded(batches: Iterable[pa.RecordBatch], unit: PrivacyUnit) -> Iterator[pa.RecordBatch]:
    """Keep the first ``max_rows`` rows of each user; one counter a user is held in memory.

    Privacy: a user is an id. Ids are text or whole numbers, the same of both in every file, so that no user has two
        spellings: whole numbers are compared as numbers, whatever their width; text character by character, which
        holds "7" and "007" for two users. Text is refused with white space around it, or in a form that Unicode can
        also write otherwise (not NFC). Which of a user's rows stay depends on that user's rows alone.

    Raises:
        DataError: an id is null, has an ambiguous spelling, or files type the column differently.
    """
    import pandas as pd

    row_counts: dict[int | str, int] = {}
    kinds: set[str] = set()
    name = str(unit.user)
    for batch in batches:
        ids = read_ids(name, batch.column(name), kinds)
        user_numbers, distinct_ids = pd.factorize(ids)
        users = distinct_ids.tolist()
        earlier = np.array([row_counts.get(user, 0) for user in users], dtype=np.int64)
        order = np.argsort(user_numbers, kind="stable")
        counts = np.bincount(user_numbers, minlength=len(users))
        rank = np.empty(len(user_numbers), dtype=np.int64)
        rank[order] = np.arange(len(user_numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        row_counts.update(zip(users, (earlier + counts).tolist(), strict=True))
        bounded_batch = select(batch, rank + earlier[user_numbers] < unit.max_rows)
        if bounded_batch.num_rows:
            yield bounded_batch


def read_ids(name: str, column: pa.Array, kinds: set[str]) -> NDArray[Any]:
    """Return the ids of a batch in the one form in which they are compared; ``kinds`` are those of earlier batches."""
    ids: NDArray[Any] = checked_ids(name, column, kinds).to_numpy(zero_copy_only=False)
    return ids


def checked_ids(name: str, column: pa.Array, kinds: set[str]) -> pa.Array:
    """Return the same ids as an Arrow array, which takes no more memory than their text does."""
    array = plain(column)
    if array.null_count:
        raise DataError(name, "must not be null: every row belongs to a user")
    whole = pa.types.is_integer(array.type)
    text = is_text(array.type)
    if not (whole or text):
        raise DataError(name, "must hold text or whole numbers, since it names the user a row belongs to")
    kinds.add("whole numbers" if whole else "text")
    if len(kinds) > 1:
        raise DataError(name, "holds text in one file and whole numbers in another; write one user in one way only")
    if text:
        array = array.cast(pa.large_string())
        _check_spelling(name, array)
    return array


def key_values(name: str, column: pa.Array, kinds: set[str], may_lack: bool) -> pa.Array:
    """Return the values of a key; null is refused, or stays null where a row may name none.

    What the values may be is decided by the column's type, so not by whether any of them is there.
    """
    if not may_lack:
        return checked_ids(name, column, kinds)
    if pa.types.is_null(column.type):
        return column
    checked_ids(name, pc.drop_null(column), kinds)
    return column.cast(pa.large_string()) if is_text(column.type) else column


def _check_spelling(name: str, array: pa.Array) -> None:
    """Refuse text that may be another spelling of the same id, and what is no text."""
    if not is_whole(array):
        raise DataError(name, "must hold UTF-8 text in every row")
    one_form = pc.equal(pc.utf8_trim_whitespace(array), array)
    one_form = pc.and_(one_form, pc.invert(pc.match_substring_regex(array, UNSEEN)))
    if not pc.all(pc.string_is_ascii(array), min_count=0).as_py():
        one_form = pc.and_(one_form, pc.equal(pc.utf8_normalize(array, form="NFC"), array))
    if not pc.all(one_form, min_count=0).as_py():
        rule = "must name a user in Unicode's composed form (NFC), without white space around or unseen characters"
        raise DataError(name, rule)
