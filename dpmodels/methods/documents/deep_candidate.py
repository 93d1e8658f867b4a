"""DeepCandidate (Meehan, Mrini and Chaudhuri, 2022): each document's embedding is that of a public one, chosen for it.

    public    candidates f_1..f_m, the recoder H and directions v_1..v_p, of public documents       text/candidates.py
    measure   for each document x with the sentences s_1..s_k:
                  u(f) = - max_j |2 #{i: H(G(s_i)) v_j >= f v_j} - k|                               text/depth.py
                  z ~ exp(epsilon u(f) / 4)                         released     the exponential mechanism
    fit       the embedding of document x is that of candidate z

What differs from the paper, and why. Its listing prints the largest depth of all directions where the least is meant.
Scores are whole numbers, of sensitivity 2 where its own is 1, and draws are exact. A neighbor is a document in which
one sentence is replaced, so k is public; but a document of no sentence or of one is no special case: its scores are all
alike, and any candidate is chosen for it with the same probability.
"""

import math
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.contract.documents import Documents
from dpmodels.errors import ArtifactError
from dpmodels.frozen import Frozen
from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.methods.documents.each_document import Choice, EachDocument, epsilon_of
from dpmodels.releases.plan import Line
from dpmodels.releases.steps import ChooseEach, Programme
from dpmodels.text.depth import TukeyDepth
from dpmodels.text.encoders import Vectors
from dpmodels.text.passages import public_columns, transform_each


class DeepCandidateMeasurement(Frozen):
    """The public parameters.

    Attributes:
        candidates: SHA-256 of the file of candidates.
        utility: ``worst``: the depth along the worst direction, as in the paper; ``sum``: along all of them together.
    """

    candidates: str = ""
    utility: Literal["worst", "sum"] = "worst"


class DeepCandidate(EachDocument):
    """DeepCandidate with the public candidates at hand."""

    method = "deep-candidate"

    def design(self, spec: DeepCandidateMeasurement, contract: Documents) -> Choice:
        """Sort the candidates along every direction."""
        self.check(spec, contract)
        utility = TukeyDepth(self.candidates.points, self.candidates.directions, spec.utility)

        def scores(vectors: Vectors, ends: NDArray[np.int64]) -> NDArray[np.int32]:
            return utility.scores(self.candidates.recoder(vectors), ends)

        return Choice(self.candidates, contract, utility.sensitivity, (spec.candidates, spec.utility), scores)

    def programme(self, design: Choice) -> Programme:
        """Choose a candidate for each document.

        Privacy: replacing a sentence moves each score of its document by at most the sensitivity of the utility, and no
            score of another document.
        """
        yield ChooseEach(
            lambda data: public_columns(data.records),
            lambda data, first: transform_each(design.compute, data.records, first),
            design.sensitivity,
            design.events,
        )

    def chosen(self, released: NDArray[np.int64], columns: pa.Table) -> NDArray[np.int64]:
        """Return the indices that were released.

        Raises:
            ArtifactError: there is no such candidate.
        """
        if len(released) and not 0 <= released.min() <= released.max() < len(self.candidates):
            raise ArtifactError("the release names a candidate that there is not")
        return released

    def least_units(self, line: Line) -> float:
        """Say about how many sentences a document needs for its choice to stand out of chance.

        Scores of k sentences spread over at most k / 2 times the sensitivity, so one candidate is at most
        exp(k epsilon / 4) times as probable as another. A rule of thumb: that should reach the square root of the
        number m of candidates, so k = 2 log(m) / epsilon. Alike candidates need not be told apart; with half as many
        sentences the subjects of made letters hardly showed, and with as many two of three did.
        """
        return 2 * math.log(len(self.candidates)) / epsilon_of(line)

    def noise(self, line: Line) -> dict[str, float]:
        """Name the scale of the choices: a candidate whose score is larger by it is e times as probable."""
        scale = pure_scale(self.of(line).sensitivity, epsilon_of(line))
        return {"score of a candidate, twice its depth in sentences (scale)": scale}
