"""Faults in what is done for users, and in how their data are read, planted as those of ``faults`` are."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.audit.subjects import Subject, of_letters_of_users, of_rows, of_two_tables
from dpmodels.codec.encode import Codec
from dpmodels.codec.records import Records
from dpmodels.embeddings import per_user
from dpmodels.methods.documents.each_document import Choice
from dpmodels.privacy import PrivacyUnit
from dpmodels.reading import load
from dpmodels.reading.user_ids import bounded
from dpmodels.text import reading
from tests.audit.adversary import FAULTS
from tests.audit.faults import fault, few, neighbors_of, put


def rows() -> Subject:
    return few(of_rows(), 1, 3)


def two_tables() -> Subject:
    return few(of_two_tables(joined=False), 1, 2, 4)


def joined() -> Subject:
    return few(of_two_tables(joined=True), 1, 4)


LETTERS = neighbors_of(of_letters_of_users)


def begun_anew(batches: Any, unit: PrivacyUnit, unique: bool = False) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(bounded([batch], unit, unique) for batch in batches)


@fault("sensitivity", neighbors_of(two_tables))
def rows_of_a_user_that_weigh_one_each(stack: ExitStack) -> None:
    """A row weighs one whatever number of rows its user has."""
    put(stack, per_user, "_shared", lambda schema, records, sum_of, dim: sum_of(records, 1))


@fault("sensitivity", neighbors_of(joined))
def a_user_in_one_file_weighs_by_the_square_root(stack: ExitStack) -> None:
    """A row weighs one over the square root of its user's rows, as if these were apart."""
    real = per_user.numbers_of
    put(stack, per_user, "numbers_of", lambda *given: np.rint(np.sqrt(real(*given))).astype(np.int64))


@fault("sensitivity", neighbors_of(rows))
def a_counter_of_rows_that_begins_anew(stack: ExitStack) -> None:
    """The counter of a user's rows is reset at a batch."""
    put(stack, load, "bounded", begun_anew)


@fault("parts", LETTERS)
def a_counter_of_letters_that_begins_anew(stack: ExitStack) -> None:
    """The counter of a user's letters is reset at a batch."""
    put(stack, reading, "bounded", begun_anew)


@fault("records", neighbors_of(rows))
def numbers_winsorized_by_the_batch(stack: ExitStack) -> None:
    """Numbers are cut off at a quantile of the batch that they are read in."""
    real = Codec.encode

    def encode(own: Codec, table: Any) -> Records:
        found = real(own, table)
        return Records(found.states, np.minimum(found.values, np.quantile(found.values, 0.9, axis=0)))

    put(stack, Codec, "encode", encode)


@fault("parts", LETTERS)
def letters_charged_as_if_each_had_a_user(stack: ExitStack) -> None:
    """Each letter of a user is released at the whole epsilon, and not at its share."""
    put(stack, Choice, "events", 1)


__all__ = ["FAULTS"]
