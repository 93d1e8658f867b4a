"""What a federation's classifier says of public records, and how certain each client is of them, as one Parquet file.

Privacy: post-processing of what was released and of public records, where the classifier is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.arrays import Floats


def write_soft_labels(
    path: Path, first: int, classes: Sequence[str], probabilities: Floats, certainties: Mapping[str, Floats]
) -> None:
    """Write a row for each public record: its number, the probability of each class, and each client's certainty.

    Numbers count from 0, in the order in which the public files are read; ``first`` is that of the first record here.

    Shapes: probabilities [n, classes]; each certainty [n].
    """
    columns = {"row": pa.array(np.arange(first, first + len(probabilities)))}
    columns |= {f"probability of {name}": pa.array(probabilities[:, number]) for number, name in enumerate(classes)}
    columns |= {f"certainty of {name}": pa.array(certainty) for name, certainty in certainties.items()}
    pq.write_table(pa.table(columns), path, compression="zstd")
