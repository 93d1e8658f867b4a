"""Nearest neighbors: do synthetic rows sit on the rows they were made from, and do they reach all the real ones?

The distance of a synthetic row to its closest real row proves nothing by itself: dense regions have close neighbors
whoever made the table. What can be compared is the distance to rows it was made from with the distance to as many rows
of the same population that it was not made from.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.comparison.bootstrap import share_interval
from dpmodels.comparison.case import Case, Skip
from dpmodels.comparison.features import Space
from dpmodels.comparison.frame import Frame
from dpmodels.errors import DataError

ROWS = 10_000
COVERED_ROWS = 5_000
NEIGHBOURS = 5
LEAKED = 0.05
"""Share of test rows that may equal a training row beyond what chance gives."""


def overfitting_facts(case: Case) -> dict[str, Any]:
    """Return the share of synthetic rows that lie closer to training rows than to as many held-out rows.

    A half is what a table that copies nothing gives, ties counted half.
    """
    if case.real.held_out is None:
        raise Skip("it needs real rows that were held out (--test)")
    space = real_space(case)
    rows = min(len(case.real.train), len(case.real.held_out), ROWS)
    synthetic = space.points(case.draw(case.synthetic, ROWS))
    train, held_out = (
        nearest(space.points(case.draw(frame, rows, 4)), synthetic)[:, 0]
        for frame in (case.real.train, case.real.held_out)
    )
    closer = (train < held_out) + 0.5 * (train == held_out)
    return {
        "closer_to_training_rows": float(closer.mean()),
        "interval": share_interval(closer),
        "median_distance_to_training_rows": float(np.median(train)),
        "median_distance_to_held_out_rows": float(np.median(held_out)),
        "synthetic_rows": len(synthetic),
        "real_rows_of_each": rows,
    }


def copy_facts(case: Case) -> dict[str, Any]:
    """Return the share of synthetic rows that equal a real row, and that share of real rows, which are no copies.

    The latter are held-out rows; without any, half of the real rows are compared with the other half.
    """
    real, held_out = case.real.train, case.real.held_out
    if held_out is None:
        order = np.random.default_rng([case.real.seed, 5]).permutation(len(real))
        first, second = np.array_split(order, 2)
        real, held_out = real.take(first), real.take(second)
    synthetic_keys = row_keys(case.synthetic)
    real_keys = row_keys(real)
    copies, chance = (np.isin(rows, real_keys).astype(np.float64) for rows in (synthetic_keys, row_keys(held_out)))
    return {
        "synthetic_rows_that_equal_a_real_row": float(copies.mean()),
        "interval": share_interval(copies),
        "fresh_real_rows_that_equal_a_real_row": float(chance.mean()),
        "fresh_interval": share_interval(chance),
        "real_rows": len(real_keys),
    }


def coverage_facts(case: Case) -> dict[str, Any]:
    """Return the share of real rows with a synthetic row among their nearest neighbors (Naeem et al. 2020).

    Beside it the same of fresh real rows, and how many rows merely repeat another row of their own table.
    """
    space, held_out = real_space(case), case.real.held_out
    order = np.random.default_rng([case.real.seed, 6]).permutation(len(case.real.train))
    first, second = np.array_split(order, 2)
    fresh = case.real.train.take(second) if held_out is None else held_out
    rows = min(COVERED_ROWS, len(first), len(fresh), len(case.synthetic))
    real = space.points(case.real.train.take(first[:rows]))
    radius = nearest(real, real, NEIGHBOURS + 1)[:, -1]  # a row is its own first neighbor

    def covered(frame: Frame) -> float:
        return float((nearest(space.points(case.draw(frame, rows, 7)), real)[:, 0] <= radius).mean())

    return {
        "coverage": covered(case.synthetic),
        "coverage_by_fresh_real_rows": covered(fresh),
        "rows_of_each": rows,
        "repeated_rows": _repeated(case.draw(case.synthetic, len(case.real.train))),
        "repeated_rows_among_the_real": _repeated(case.draw(case.real.train, len(case.synthetic))),
    }


def real_space(case: Case) -> Space:
    """Return the space in which rows are compared, made once from the real rows."""
    return case.real.once.get("space", lambda: Space(case.schema, case.real.train))


def nearest(points: NDArray[np.float32], queries: NDArray[np.float32], count: int = 1) -> Floats:
    """Return the distances to the nearest known points, in order. Shapes: [N, d], [n, d] -> [n, count]."""
    return neighbours(points, queries, count)[0]


def neighbours(
    points: NDArray[np.float32], queries: NDArray[np.float32], count: int = 1
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distances to the nearest known points, in order, and which they are. Shapes: each [n, count]."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(count, len(points)), algorithm="brute", n_jobs=1).fit(points)
    raw_distances, indices = search.kneighbors(queries)
    distances: Floats = raw_distances.astype(np.float64)
    return np.where(distances < 1e-3, 0.0, distances), indices  # below: what float32 leaves of equal points


def row_keys(frame: Frame) -> NDArray[np.void]:
    """Return one comparable key a row."""
    values = np.where(np.isnan(frame.values), np.inf, frame.values + 0.0)
    parts = [np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)]
    if frame.pixels is not None:
        parts.append(frame.pixels)
    joined = np.ascontiguousarray(np.concatenate(parts, axis=1))
    keys: NDArray[np.void] = joined.view(np.dtype((np.void, joined.shape[1])))[:, 0]
    return keys


def refuse_training_rows(train: Frame, held_out: Frame) -> None:
    """Refuse held-out rows of which more are training rows than chance explains.

    By chance as many are as training rows have a twin among the training rows. Values are compared in single precision,
    because encoding may move them by less.

    Raises:
        DataError: the rows were not kept from the synthesis.
    """
    train_keys, held_out_keys = (
        row_keys(Frame(each.values.astype(np.float32), each.pixels)) for each in (train, held_out)
    )
    keys, times = np.unique(train_keys, return_counts=True)
    chance = float(times[times > 1].sum() / max(len(train_keys), 1))
    most = chance + max(LEAKED, 5 * float(np.sqrt(chance * (1 - chance) / max(len(held_out_keys), 1))))
    if np.isin(held_out_keys, keys).mean() > most:
        raise DataError(
            "", "many of the test rows are rows that the table was made from; name rows that were kept from it"
        )


def _repeated(frame: Frame) -> float:
    """Return the share of rows that repeat an earlier row of the same table."""
    return 1 - len(np.unique(row_keys(frame))) / len(frame)
