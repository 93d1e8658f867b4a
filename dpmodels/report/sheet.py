"""A sheet of synthetic images for the report: the first of each class, one class a line."""

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.pages.drawing import sheet
from dpmodels.report.bins import Bins

PER_CLASS = 10
MAX_CLASSES = 40


class Sheet:
    """Collects images from a stream of synthetic records until every line is full."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.image, self.target = schema.image, schema.target_index or 0
        self.lines: list[list[NDArray[np.uint8]]] = [[] for _ in range(min(schema.classes, MAX_CLASSES))]

    @property
    def names(self) -> tuple[str, ...]:
        """Name the class of each line; none for a table without images."""
        if self.image is None or self.schema.target is None:
            return ()
        return Bins.of(self.schema.modelled[self.schema.target]).labels[: len(self.lines)]

    def add(self, records: Records) -> None:
        """Take from a batch what the sheet still lacks."""
        if self.image is None or records.pixels is None:
            return
        for label, line in enumerate(self.lines):
            members = np.flatnonzero(records.states[:, self.target] == label)[: PER_CLASS - len(line)]
            line += list(records.pixels[members])

    def data_uri(self) -> str | None:
        """Return the sheet as a PNG inside a data URI, or None for a table without images."""
        if self.image is None:
            return None
        return sheet(self.lines, PER_CLASS, self.image[1].shape)
