"""Real beside synthetic, for the operator's eyes: how the values of every column are spread, and a few whole rows.

Bars are cut where the rows of both tables lie, not at public cells, so what a release does not resolve shows here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.comparison.case import Case
from dpmodels.comparison.frame import Frame, category_names
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.report.axis import ticks
from dpmodels.report.bins import written

MOST_VALUES = 24
"""A number with at most so many values has a bar for each; with more, as many bars over its range."""
TAIL = 0.005
"""Share of the rows at either end of a range that the first and the last bar take in, so that no outlier sets it."""
MOST_DRAWN = 150
"""Columns that are drawn; of a wider table the first."""
ROWS = 5


def column_shares(case: Case) -> dict[str, Any]:
    """Return the shares of every column's values in samples of both tables, on the same bars."""
    charted = list(case.schema.modelled.items())[:MOST_DRAWN]
    both = case.real.train, case.synthetic
    return {
        "columns": [
            {
                "name": name,
                "type": getattr(column, "type", ""),
                **_shares(column, *(each.values[:, j] for each in both)),
            }
            for j, (name, column) in enumerate(charted)
        ],
        "left_out": len(case.schema.modelled) - len(charted),
    }


def sample_rows(case: Case, real: bool = False) -> dict[str, Any]:
    """Return a few synthetic rows, drawn at random, as text, and if asked real ones; without the pixels of images."""
    real_rows = {"real": _rows(case, case.real.train)} if real else {}
    return {"columns": list(case.schema.modelled), **real_rows, "synthetic": _rows(case, case.synthetic)}


def _shares(column: Modelled, real: Floats, synthetic: Floats) -> dict[str, Any]:
    if not isinstance(column, Continuous):
        return _of_categories(column, real, synthetic)
    present = np.concatenate([real[~np.isnan(real)], synthetic[~np.isnan(synthetic)]])
    if not len(present):
        return {
            "ordered": False,
            "labels": ["null"],
            **_named([np.array([len(each)]) for each in (real, synthetic)], (real, synthetic)),
        }
    values, axis = np.unique(present), {}
    if len(values) <= MOST_VALUES:
        labels, counts = [written(column, x) for x in values], [_exactly(values, each) for each in (real, synthetic)]
    else:
        edges, step = _edges(column, present)
        ends = zip(edges[:-1], edges[1:] - step, strict=True)
        labels = [f"{written(column, low)} to {written(column, high)}" for low, high in ends]
        counts = [_between(edges, each) for each in (real, synthetic)]
        axis = {"axis": _axis(column, edges)}
    nulls = [float(np.isnan(each).mean()) if len(each) else 0.0 for each in (real, synthetic)]
    return {"ordered": True, "labels": labels, **_named(counts, (real, synthetic)), "null": nulls, **axis}


def _of_categories(column: Modelled, real: Floats, synthetic: Floats) -> dict[str, Any]:
    labels = category_names(column)
    counts = [
        np.bincount(np.where(np.isnan(each), len(labels) - 1, each).astype(np.int64), minlength=len(labels))
        for each in (real, synthetic)
    ]
    occurring = np.flatnonzero(counts[0] + counts[1])
    shares = _named([each[occurring] for each in counts], (real, synthetic))
    return {"ordered": False, "labels": [labels[index] for index in occurring], **shares}


def _named(counts: list[NDArray[np.int64]], tables: tuple[Floats, Floats]) -> dict[str, list[float]]:
    shares = [(each / max(len(table), 1)).round(6).tolist() for each, table in zip(counts, tables, strict=True)]
    return dict(zip(("real", "synthetic"), shares, strict=True))


def _edges(column: Continuous, present: Floats) -> tuple[Floats, float]:
    """Cut the range of both tables, but for their tails, into equal bars; return their edges, and the column's step.

    Bars are equal along the logarithm where the schema says so, and otherwise hold equally many possible values.
    """
    low, high = np.quantile(present, [TAIL, 1 - TAIL])
    if low == high:
        low, high = present.min(), present.max()
    step = 0.0 if column.decimals is None else column.interval.step
    if column.log:
        begin, end = column.interval.to_unit(np.clip(np.array([low, high]), column.low, column.high))
        edges = column.interval.from_unit(np.linspace(begin, end, MOST_VALUES + 1))
        return np.unique(np.append(np.floor(edges / step), np.floor(high / step) + 1)) * step if step else edges, step
    if not step:
        return np.linspace(low, high, MOST_VALUES + 1), step
    first, last = np.floor(low / step), np.ceil(high / step)
    width = np.ceil((last - first + 1) / MOST_VALUES)
    return np.arange(first, last + 1 + width, width) * step, step


def _axis(column: Continuous, edges: Floats) -> dict[str, Any]:
    """Say where bars begin and end, on the scale of the column, and what is written beneath them."""
    positions = column.interval.scaled(edges - column.low)
    parts = (positions - positions[0]) / (positions[-1] - positions[0])
    tick_labels = ticks(column, float(edges[0]), float(edges[-1]))
    return {"edges": parts.round(6).tolist(), "ticks": tick_labels, "bars": len(edges) - 1}


def _between(edges: Floats, values: Floats) -> NDArray[np.int64]:
    present = values[~np.isnan(values)]
    bin_index = np.clip(np.searchsorted(edges, present, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(bin_index, minlength=len(edges) - 1)


def _exactly(values: Floats, column: Floats) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(values, column[~np.isnan(column)]), minlength=len(values))


def _rows(case: Case, frame: Frame) -> list[list[str]]:
    rows = case.draw(frame, ROWS).values
    return [[_value(column, x) for column, x in zip(case.schema.modelled.values(), row, strict=True)] for row in rows]


def _value(column: Modelled, x: float) -> str:
    if np.isnan(x):
        return "null"
    return written(column, x) if isinstance(column, Continuous) else category_names(column)[int(x)]
