"""Numbers that stand for raw values, whatever format they come in: ``3``, ``3.0`` and the text ``3`` have one number.

Privacy: each number is a function of its value alone, and as sensitive as that; sums of rows are keyed afterwards
    (fingerprint.py).
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.codec.convert import is_whole, plain, to_floats
from dpmodels.contract.base import is_text

Numbers = NDArray[np.uint64]
NULL, UNREAD = np.uint64(1), np.uint64(2)
TRUTH = {"true": 1.0, "false": 0.0}
DAY = r"\d{4}-\d{2}-\d{2}([T ][\d:.]+(Z|[+-][\d:]+)?)?"


def number_values(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """Return a number for each value of a column. Shapes: [n]."""
    array = plain(column)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    readable = is_text(array.type) or pa.types.is_temporal(array.type) or _is_number(array.type)
    if not readable or not is_whole(array):
        return np.where(array.is_null().to_numpy(zero_copy_only=False), NULL, UNREAD)
    if _is_number(array.type):
        return _of_floats(to_floats(array))
    values = array.dictionary_encode()
    listed = _of_texts(values.dictionary) if is_text(array.type) else _of_moments(values.dictionary)
    places = values.indices.fill_null(len(listed)).to_numpy(zero_copy_only=False)
    numbers: Numbers = np.append(listed, NULL)[places]
    return numbers


def _is_number(kind: pa.DataType) -> bool:
    return any(
        test(kind) for test in (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    )


def _of_floats(x: NDArray[np.float64]) -> Numbers:
    """Number floats by their bits, which those of moments and of text hardly ever are."""
    bits: Numbers = (x + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(np.isnan(x), NULL, bits)


def _of_moments(moments: pa.Array) -> Numbers:
    """Number days, moments and times by their text, so that a day is its midnight."""
    if pa.types.is_date(moments.type) or pa.types.is_timestamp(moments.type):
        moments = moments.cast(pa.timestamp("us", tz="UTC" if getattr(moments.type, "tz", None) else None), safe=False)
        moments = moments.cast(pa.timestamp("us"))
    return _of_words(moments.cast(pa.string()).to_numpy(zero_copy_only=False))


def _of_texts(texts: pa.Array) -> Numbers:
    """Number texts by the number, truth or moment that they name, or else by their letters."""
    import pandas as pd

    words = pd.Series(pc.utf8_trim_whitespace(texts).to_numpy(zero_copy_only=False), dtype=object)
    floats = pd.to_numeric(words, errors="coerce").astype(np.float64)
    floats = floats.fillna(words.str.lower().map(TRUTH).astype(np.float64))
    numbers = np.where(floats.isna(), _of_words(words.to_numpy()), _of_floats(np.asarray(floats, np.float64)))
    days = words.str.fullmatch(DAY).to_numpy(dtype=bool)
    if days.any():
        moments = pd.to_datetime(words[days], errors="coerce", format="ISO8601", utc=True)
        read = _of_moments(pa.array(moments.dt.tz_localize(None)))
        numbers[days] = np.where(moments.isna(), numbers[days], read)
    return numbers


def _of_words(words: NDArray[Any]) -> Numbers:
    import pandas as pd

    whole = np.array(["" if word is None else word for word in words], dtype=object)
    numbers: Numbers = pd.util.hash_array(whole, categorize=False)
    return numbers
