"""Small generated images with a label, and their schema."""

import numpy as np
import pyarrow as pa
import yaml

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema

SCHEMA_TEXT = """
name: shapes
unit: record
target: kind
columns:
  picture: {type: image, height: 12, width: 10}
  kind: {type: categorical, values: [bar, disc]}
"""


def make_schema(**changes: object) -> Schema:
    """Return the schema of the shapes, with top-level keys replaced."""
    return Schema.model_validate({**yaml.safe_load(SCHEMA_TEXT), **changes})


def make_pictures(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return bars and discs of changing place, slant and size. Shapes: [rows, 12, 10] uint8, [rows] text."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:12, :10].astype(np.float64)
    x = x - 4.5 - rng.uniform(-1, 1, rows)[:, None, None]
    y = y - 5.5 - rng.uniform(-1, 1, rows)[:, None, None]
    slant, size = rng.uniform(-0.4, 0.4, rows)[:, None, None], rng.uniform(1.5, 3.5, rows)[:, None, None]
    bar = np.exp(-((x - slant * y) ** 2)) * (np.abs(y) < size)
    disc = 1 / (1 + np.exp(2 * (np.hypot(x, y) - size)))
    is_disc = rng.random(rows) < 0.4
    pixels = np.rint(255 * np.where(is_disc[:, None, None], disc, bar)).astype(np.uint8)
    return pixels, np.where(is_disc, "disc", "bar")


def make_table(rows: int, seed: int = 0) -> pa.Table:
    """Return shapes as a table with a column of fixed-size lists."""
    pixels, kinds = make_pictures(rows, seed)
    return pa.table({"picture": pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 120), "kind": kinds})


def make_records(rows: int, seed: int = 0) -> Records:
    """Return shapes, encoded."""
    return Codec(make_schema()).encode(make_table(rows, seed))


EXTREMES = {"picture": [[level] * 120 for level in (255, 0, 255, 0)], "kind": ["disc", "disc", "bar", "bar"]}
"""Shapes of full ink and of none, of both kinds."""
