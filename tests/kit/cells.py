"""A sampler of given cells, and a schema with an order."""

from pathlib import Path

import numpy as np

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.generators.sampling import Sampler

TEXT = """
name: stays
target: ward
constraints: {constraints}
columns:
  start: {{type: integer, min: 0, max: 364}}
  end: {{type: integer, min: 0, max: 400, nullable: true{limit}}}
  ward: {{type: categorical, values: [a, b]}}
"""


def make(constraints: str = "[start <= end]", limit: str = "") -> Schema:
    schema, faults = parse(TEXT.format(constraints=constraints, limit=limit))
    assert schema is not None, faults
    return schema


class Cells(Sampler):
    """Draws stays as a generator does: cells that belong together, and values within them without a look aside."""

    batch_rows = 4096

    def __init__(self, schema: Schema, noise: float = 0.05, null: float = 0.2, gap: int = 1) -> None:
        self.schema, self.noise, self.null, self.gap = schema, noise, null, gap

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        begin = rng.integers(0, 32, rows)
        end = np.minimum(begin * 29 // 32 + rng.integers(0, self.gap + 1, rows), 31)
        end = np.where(rng.random(rows) < self.noise, rng.integers(0, 32, rows), end)
        end = np.where(rng.random(rows) < self.null, 32, end)
        cells = np.stack([begin, end, rng.random(rows) < 0.3], axis=1).astype(np.int32)
        return Codec(self.schema).from_cells(cells, rng)
