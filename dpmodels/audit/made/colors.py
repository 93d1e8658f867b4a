"""Small generated images in color with a label, and their schema."""

import numpy as np
import pyarrow as pa
import yaml

from dpmodels.audit.made.pictures import SCHEMA_TEXT, make_pictures
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema

COLOR_TEXT = SCHEMA_TEXT.replace("shapes", "color-shapes").replace("width: 10}", "width: 10, channels: 3}")
NUMBERS = 360


def make_schema(**changes: object) -> Schema:
    """Return the schema of the shapes in color, with top-level keys replaced."""
    return Schema.model_validate({**yaml.safe_load(COLOR_TEXT), **changes})


def make_colors(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return orange discs and green bars before skies of changing blue. Shapes: [rows, 12, 10, 3], [rows]."""
    shapes, kinds = make_pictures(rows, seed)
    rng = np.random.default_rng(seed + 1)
    front = np.where((kinds == "disc")[:, None], [230, 130, 30], [40, 160, 60]) + rng.uniform(-25, 25, (rows, 3))
    top, bottom = np.array([90, 130, 220]) + rng.uniform(-40, 30, (2, rows, 3))
    down = np.linspace(0, 1, 12)[None, :, None, None]
    sky = (1 - down) * top[:, None, None] + down * bottom[:, None, None]
    ink = shapes[..., None] / 255
    mixed = ink * front[:, None, None] + (1 - ink) * sky + rng.normal(0, 4, (rows, 12, 10, 3))
    return np.rint(mixed).clip(0, 255).astype(np.uint8), kinds


def make_table(rows: int, seed: int = 0) -> pa.Table:
    """Return shapes in color as a table with a column of fixed-size lists."""
    pixels, kinds = make_colors(rows, seed)
    return pa.table({"picture": pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), NUMBERS), "kind": kinds})


def make_records(rows: int, seed: int = 0) -> Records:
    """Return shapes in color, encoded."""
    return Codec(make_schema()).encode(make_table(rows, seed))


def strange_colors() -> np.ndarray:
    """Return images nobody takes: white, black, one channel, checkerboards, a half. Shapes: [9, 360]."""
    flat = np.zeros((5, 12, 10, 3))
    flat[0] = 255
    flat[[1, 2, 3], :, :, [0, 1, 2]] = 255
    board = np.indices((12, 10)).sum(axis=0) % 2
    boards = np.stack([np.stack(each, axis=-1) for each in ([board] * 3, [1 - board] * 3, [board, 1 - board, board])])
    half = np.zeros((1, 12, 10, 3))
    half[:, :6] = 255
    return np.concatenate([flat, 255 * boards, half]).reshape(-1, NUMBERS).astype(np.uint8)


EXTREMES = {
    "picture": [list(image) for image in strange_colors()[[0, 4, 8, 5]]],
    "kind": ["disc", "disc", "bar", "bar"],
}
"""White, black, half of each, and a checkerboard, of both kinds."""
