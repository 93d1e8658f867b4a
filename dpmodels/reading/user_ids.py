"""Whose row it is: the rows of each user that are kept, as files are read."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from dpmodels.codec.convert import select
from dpmodels.codec.ids import read_ids
from dpmodels.errors import DataError
from dpmodels.gate.suite import FIXES, REPEATED, UNIQUE
from dpmodels.privacy import PrivacyUnit


def bounded(batches: Iterable[pa.RecordBatch], unit: PrivacyUnit, unique: bool = False) -> Iterator[pa.RecordBatch]:
    """Keep the first ``max_rows`` rows of each user; one counter a user is held in memory.

    ``unique``: of no user are there more, which would be left out; the schema says so.

    Privacy: a user is an id. Ids are text or whole numbers, the same of both in every file, so that no user has two
        spellings: whole numbers are compared as numbers, whatever their width; text character by character, which
        holds "7" and "007" for two users. Text is refused with white space around it, or in a form that Unicode can
        also write otherwise (not NFC). Which of a user's rows stay depends on that user's rows alone.

    Raises:
        DataError: an id is null, has an ambiguous spelling, or files type the column differently; or a user has more
            rows where ids are ``unique``.
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
        if unique and bounded_batch.num_rows < batch.num_rows:
            raise DataError(name, f"{REPEATED}; to fix it: {FIXES[UNIQUE]}")
        if bounded_batch.num_rows:
            yield bounded_batch
