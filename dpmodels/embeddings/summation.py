"""The exact sum of an embedding over a stream of records: whole numbers, so any split and order gives the same bits.

A table that comes in parts is summed part by part, by threads or on other machines.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import Embedding
from dpmodels.errors import Unsuitable
from dpmodels.late import torch
from dpmodels.privacy import Sensitive

Vector: TypeAlias = NDArray[np.int64]
SumOf = Callable[[Iterable[Records]], Vector]


@runtime_checkable
class Parted(Protocol):
    """A stream of records that is made of parts."""

    def sums(self, sum_of: SumOf) -> Iterator[Vector]:
        """Yield what a function makes of every part, once each, in any order."""


def transform_sum(
    embedding: Embedding, batches: Sensitive[Iterable[Records]], device: "str | torch.device" = "cpu"
) -> Sensitive[Vector]:
    """Sum an embedding over a stream of records.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``embedding.l2_sensitivity`` in L2 norm. The
        sums of parts are as sensitive as the rows. A part may be summed again after a fault: nothing is drawn here.
    """
    stream, sum_of = batches.reveal(), partial(sum_records, embedding, device)
    total = np.zeros(embedding.dim, dtype=np.int64)
    for partial_sum in stream.sums(sum_of) if isinstance(stream, Parted) else [sum_of(stream)]:
        total += partial_sum
    return Sensitive(total)


def sum_records(embedding: Embedding, device: "str | torch.device", batches: Iterable[Records]) -> Vector:
    """Sum an embedding over records that are at hand. Shapes: [dim] int64, as sensitive as they are."""
    total = torch.zeros(embedding.dim, dtype=torch.int64)
    for records in batches:
        total += embedding.lattice_sum(records, device)
    vector: Vector = total.numpy()
    return vector


def check_repeatable(batches: Sensitive[Iterable[Records]]) -> None:
    """Refuse a stream that can be read only once: the second look would see no rows, and no error would say so."""
    stream = batches.reveal()
    if iter(stream) is stream:
        raise Unsuitable("the batches are an iterator, which ends after one pass; give what can be read twice")


def check_disjoint(parts: Sequence[Sensitive[Vector] | None]) -> None:
    """Refuse parts of the data that share a record: what each releases costs as much as one of them only if none do.

    Shapes: of each part the numbers of its records.
    """
    numbers = [part.reveal() for part in parts if part is not None]
    whole = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
    if len(numbers) < len(parts) or len(np.unique(whole)) < len(whole):
        raise Unsuitable("the parts of the data are not disjoint or do not say which rows they have; cut it otherwise")
