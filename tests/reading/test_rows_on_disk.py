"""Keys of more rows than are in memory are compared by hashes of 128 bits."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.reading import rows_on_disk
from dpmodels.reading.rows_on_disk import KeysOnDisk


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("lane", [0, 1])
def test_keys_of_text_that_have_one_half_of_a_hash_in_common_differ_in_the_other(monkeypatch, tmp_path, lane, columns):
    """Every text has the same hash by one of the two keys, as two of very many might; the other tells them apart."""
    whole_hash, alike = pd.util.hash_array, rows_on_disk.HASH_KEYS[lane]

    def hash_array(values, encoding="utf8", hash_key="0123456789123456", categorize=True):
        hashes = whole_hash(values, encoding, hash_key, categorize)
        return np.zeros_like(hashes) if hash_key == alike else hashes

    monkeypatch.setattr("pandas.util.hash_array", hash_array)
    texts = [pa.chunked_array([[f"key {row}" for row in range(1000)]])] * columns
    halves = rows_on_disk._hashes(texts)
    assert [len(np.unique(half)) for half in halves] == ([1, 1000] if lane == 0 else [1000, 1])
    keys = KeysOnDisk(tmp_path, "table", 3)
    keys.add(texts)
    assert not keys.has_repeated()
    keys.add([column.slice(7, 1) for column in texts])
    assert keys.has_repeated()


def test_the_two_keys_that_text_is_hashed_with_are_of_the_length_that_is_needed_and_differ():
    assert {len(key.encode()) for key in rows_on_disk.HASH_KEYS} == {16} and len({*rows_on_disk.HASH_KEYS}) == 2


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(20)])
def test_whole_numbers_are_told_apart(kind, tmp_path):
    keys = KeysOnDisk(tmp_path, "table", 2)
    numbers = pa.array([0, 1, 2**53, 2**53 + 1, 2**63 - 1], kind)
    keys.add([pa.chunked_array([numbers])])
    assert not keys.has_repeated()
    keys.add([pa.chunked_array([numbers.slice(3, 1)])])
    assert keys.has_repeated()
