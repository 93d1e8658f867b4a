"""The gate for embedded documents before a hand-off: finite numbers, norm at most 1, labels among the classes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.codec.embedded import EmbeddedCodec
from dpmodels.contract.documents import Documents
from dpmodels.gate.expectations import Verdicts
from dpmodels.gate.suite import ROW_COUNT, Rule

ROUNDING = 1e-5
"""Norm above 1 that 32-bit numbers may give a vector of norm 1."""


class EmbeddedGate(Verdicts):
    """The rules of embedded documents that are handed over."""

    def __init__(self, contract: Documents, rows: int | None = None) -> None:
        embedding, size = {"column": "embedding"}, contract.encoder.dim
        rules = [
            Rule("columns", {}, "the columns must be those of the contract, with its types"),
            Rule(ROW_COUNT, {"min_value": rows or 1, "max_value": rows}, f"there must be {rows or 'some'} documents"),
            Rule("finite", embedding, f"must hold {size} finite numbers in every row"),
            Rule("norm", embedding, "must have norm 1 at most"),
        ]
        if contract.label:
            rules.append(Rule("class", {"column": contract.label}, "must be one of the contract's classes"))
        super().__init__(contract, rules)
        self.types = EmbeddedCodec(contract).output_schema
        self.label, self.classes = contract.label, pa.array(contract.classes, pa.string())

    def check(self, batch: pa.RecordBatch) -> bool:
        """Check one more batch; tell whether every document so far keeps every rule."""
        fits = batch.schema.equals(self.types)
        failed = [0 if fits else len(batch), 0, *(self._failing(batch) if fits else [0] * (len(self.outcomes) - 2))]
        for outcome, number in zip(self.outcomes, failed, strict=True):
            outcome.checked += len(batch)
            outcome.failed += number
            outcome.sound &= number == 0
        return self.sound

    def _failing(self, batch: pa.RecordBatch) -> list[int]:
        """Count the documents that break each rule about one document."""
        lists = batch.column("embedding")
        vectors = (
            lists.fill_null([np.nan] * self.types.field("embedding").type.list_size) if lists.null_count else lists
        )
        numbers = vectors.flatten().to_numpy(zero_copy_only=False).astype(np.float64).reshape(len(batch), -1)
        finite = np.isfinite(numbers).all(axis=1)
        long = np.linalg.norm(np.where(finite[:, None], numbers, 0), axis=1) > 1 + ROUNDING
        counts = [int((~finite).sum()), int(long.sum())]
        if self.label:
            labelled = pc.sum(pc.is_in(batch.column(self.label), value_set=self.classes)).as_py() or 0
            counts.append(len(batch) - labelled)
        return counts
