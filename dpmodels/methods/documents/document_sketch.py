"""A private embedding of each document, read off a few noisy numbers rather than chosen among candidates.

    public    a sketch of a sentence in d whole numbers, and a reader of noisy sketches, trained together on public
              documents through the noise to come                                                   text/sketch.py
    measure   for each document x with the sentences s_1..s_k:
                  y = sum_i sketch(G(s_i)) + noise                  released                        mechanisms/k_norm.py
    fit       the embedding of document x is what the reader makes of y and k

Against DeepCandidate, at the same guarantee: nothing is lost to the grain of m candidates, and the noise is half as
large, for what normalizes its probabilities is the same whatever the sentences are.

Privacy: replacing a sentence moves each coordinate of its document's sum by at most twice the bound of a sketch, and
nothing of another document. The number k of sentences is public, and is released with the sum.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.contract.documents import Documents
from dpmodels.errors import Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.mechanisms.k_norm import k_norm_scale
from dpmodels.methods.documents.each_document import ROWS, Choice, EachDocument, embeddings_of, epsilon_of
from dpmodels.releases.plan import Line
from dpmodels.releases.steps import Programme, SumEach
from dpmodels.text.passages import public_columns, transform_each
from dpmodels.text.sketch import BOUND, SENSITIVITY


class DocumentSketchMeasurement(Frozen):
    """The public parameters; ``candidates`` is the SHA-256 of the public file."""

    candidates: str = ""


class DocumentSketch(EachDocument):
    """Sketches with the public networks at hand."""

    method = "document-sketch"

    def design(self, spec: DocumentSketchMeasurement, contract: Documents) -> Choice:
        """Take the networks from the public file.

        Raises:
            Unsuitable: the file has none.
        """
        self.check(spec, contract)
        sketch = self.candidates.sketch
        if sketch is None:
            raise Unsuitable("the public file holds no sketch; make it with a recipe that has one")
        return Choice(self.candidates, contract, SENSITIVITY, (spec.candidates, sketch.dim), sketch.sums)

    def programme(self, design: Choice) -> Programme:
        """Release the noisy sum of each document's sketches."""
        yield SumEach(
            lambda data: public_columns(data.records),
            lambda data, first: transform_each(design.compute, data.records, first),
            design.sensitivity,
            design.events,
            design.facts[-1],
        )

    def chosen(self, released: NDArray[np.int64], columns: pa.Table) -> NDArray[np.int64]:
        """Return the candidate that points most nearly where the embedding of each document does."""
        lengths = np.maximum(np.linalg.norm(self.candidates.embeddings, axis=1), 1e-12)
        directions = (self.candidates.embeddings.T / lengths).astype(np.float32)
        nearest = [np.zeros(0, dtype=np.int64)]
        for begin in range(0, len(released), ROWS):
            rows = slice(begin, begin + ROWS)
            nearest.append(
                np.argmax(embeddings_of(self.candidates, released[rows], columns[rows]) @ directions, axis=1)
            )
        return np.concatenate(nearest)

    def least_units(self, line: Line) -> float:
        """Say how many sentences' sketches are as large at the utmost as the noise of their sum."""
        (stddev,) = self.noise(line).values()
        return stddev

    def noise(self, line: Line) -> dict[str, float]:
        """Name the standard deviation of a number's noise, in sentences whose sketches say the utmost."""
        design = self.of(line)
        scale = k_norm_scale(design.sensitivity, epsilon_of(line)) / BOUND
        dim = design.facts[-1]  # the radius is a Gamma variable of d + 1, and a coordinate uniform below it
        return {"number of a sketch, in sentences": float(scale * np.sqrt((dim + 1) * (dim + 2) / 3))}
