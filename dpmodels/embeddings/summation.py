"""The exact sum of an embedding over a stream of records: whole numbers, so any split and order gives the same bits."""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from dpmodels.embeddings.base import Embedding
from dpmodels.errors import InvalidArgument
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Records


def transform_sum(
    embedding: Embedding, batches: Sensitive[Iterable[Records]], device: str | torch.device = "cpu"
) -> Sensitive[NDArray[np.int64]]:
    """Sum an embedding over a stream of records.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``embedding.l2_sensitivity`` in L2 norm.
    """
    total = torch.zeros(embedding.dim, dtype=torch.int64)
    for records in batches.reveal():
        total += embedding.lattice_sum(records, device)
    return Sensitive(total.numpy())


def check_repeatable(batches: Sensitive[Iterable[Records]]) -> None:
    """Refuse a stream that can be read only once: the second look would see no rows, and no error would say so."""
    stream = batches.reveal()
    if iter(stream) is stream:
        raise InvalidArgument("sensitive", "<redacted>", "be an iterable that can be read twice, not an iterator")
