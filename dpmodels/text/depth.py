"""How deep public candidates lie among the sentences of a document, as whole numbers, for many documents at once.

The depth of a candidate f among k sentences, seen along a direction v, is min(h, k - h), where h counts the sentences s
with s v >= f v. The approximate Tukey depth is the least along p public directions (Meehan, Mrini and Chaudhuri 2022,
appendix A; its listing prints the largest). Up to the constant k, which is public, twice the depth is

    u(f) = - max_j |2 h_j(f) - k|,      a whole number.

Sensitivity, where a sentence is replaced. The new sentence may lie on another side of f along any v_j, so each h_j
moves by at most 1, each |2 h_j - k| by at most 2, and so does the largest of them: |u - u'| <= 2, for every number of
sentences. In a document without sentences, or with a single one, all candidates are alike, and any of them is chosen
with the same probability. The sum over directions, - sum_j |2 h_j - k|, has fewer ties, and moves by at most 2 p.

Cost. Projecting k sentences of r numbers takes k r p products, which are next to nothing. Comparing each of them with
each of m candidates would take k m p comparisons. Here the candidates are sorted once along every direction, so a
direction's k sentences cut its row of m candidates into k + 1 runs of one count, and a document takes m p look-ups
whatever k is. That is what bounds the rate: a look-up at a random place of a row that stays in the nearest cache.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Indices
from dpmodels.late import compiled
from dpmodels.text.recoder import on_lattice

Statistic = Literal["worst", "sum"]


class TukeyDepth:
    """Approximate Tukey depth along public directions: the worst of them, or their sum.

    ``sensitivity`` is how far replacing one sentence moves any score of its document, whatever its others are.

    Shapes: candidates [m, width], directions [width, p].
    """

    def __init__(self, candidates: Floats, directions: Floats, statistic: Statistic = "worst") -> None:
        self.directions = on_lattice(directions)
        projected = (on_lattice(candidates) @ self.directions).T
        self.order = np.argsort(projected, axis=1, kind="stable").astype(np.int32)
        self.sorted = np.take_along_axis(projected, self.order.astype(np.int64), axis=1)
        self.worst = statistic == "worst"
        self.sensitivity = 2 if self.worst else 2 * directions.shape[1]

    def scores(self, points: Floats, ends: NDArray[np.int64]) -> Indices:
        """Return minus |2 h - k| of every candidate, the largest of all directions or their sum, document by document.

        Shapes: points [sentences, width], of which document i has ``ends[i]`` to ``ends[i + 1]`` -> [documents, m].
        """
        projected = (points @ self.directions).T
        # candidate number t along a direction lies at or below a sentence where t is less than the sentence's place
        pairs = zip(self.sorted, projected, strict=True)
        ranks = np.array([np.searchsorted(row, values, side="right") for row, values in pairs], dtype=np.int32)
        depths = np.zeros((len(ends) - 1, self.order.shape[1]), dtype=np.int32)
        compiled(add_depths)(np.ascontiguousarray(ranks.T), ends, self.order, self.worst, depths)
        return depths


def add_depths(
    ranks: NDArray[np.int32], ends: NDArray[np.int64], order: NDArray[np.int32], worst: bool, depths: Indices
) -> None:
    """Lower each candidate's score by |2 h - k|, or to the least of these.

    Shapes: ranks [sentences, p], order [p, m], depths [documents, m], which begins as zeros.
    """
    for document in range(len(depths)):
        document_ranks = ranks[ends[document] : ends[document + 1]]
        count = len(document_ranks)
        scores = depths[document]
        for direction in range(len(order)):
            begin = 0
            cuts = np.sort(document_ranks[:, direction])
            for passed in range(count + 1):
                end = cuts[passed] if passed < count else order.shape[1]
                value = -abs(2 * (count - passed) - count)
                if worst:
                    for rank in range(begin, end):
                        candidate = order[direction, rank]
                        scores[candidate] = min(scores[candidate], value)
                else:
                    for rank in range(begin, end):
                        scores[order[direction, rank]] += value
                begin = end
