"""Fit a model of the labels of synthetic rows, and say whether the release allows it.

The mixtures of the classes follow how every two columns depend on each other within each class: moments of three
columns, the target being the third. In a table of some ten thousand rows those are mostly noise, and labels that come
with a class's mixture repeat it. A log-linear model (labels.py) is fitted to rows that the mixture draws. It keeps all
moments of the target with one other column, and gives up that two columns together may say more about it.

Whether they do, the release says: the model is used where rows with its labels are as close to the noisy second moments
of the classes as noise alone explains (Morozov's discrepancy principle, 1966, as where the mixture's training ends).

Privacy: post-processing.
"""

import math
import warnings

import numpy as np
from scipy import sparse

from dpmodels.arrays import Floats, Whole
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MomentTarget
from dpmodels.generators.refinements.labels import LabelModel

MOST_CELLS = 2**23
"""Cells of all rows that a model is fitted to, times the classes: some seconds of one core."""
RIDGE = 1.0
"""Inverse variance of the weights' prior, which settles those of cells that hardly a row has."""
ITERATIONS = 300
DEVIATIONS = 2.0
"""How many standard deviations a sum of squared noise may lie above its mean and still count as noise."""
LEAST = 1e-12
"""Share of a class in a fine cell below which it counts as this."""


def label_model(
    model: MixtureModel, target: MomentTarget, measured: Partition, rows: int, seed: int
) -> LabelModel | None:
    """Return a model of the mixture's labels, or None where there are no labels or the release speaks against it.

    ``target`` has the released moments, on the cells of ``measured``; ``rows`` is how many rows of the mixture it is
    fitted to, at most (0: no such model), and ``seed`` theirs.
    """
    partition, columns = model.partition, len(model.partition.merge)
    rows = min(rows, MOST_CELLS // max(1, columns * partition.classes))
    if partition.class_column is None or columns == 0 or rows == 0:
        return None
    records = model.draw(rows, np.random.default_rng(seed))
    labels = fitted(partition, model.detail, partition.cells(records), records.labels(partition.class_column))
    if labels is None:
        return None
    fine = Partition(partition.codec, tuple(map(np.arange, map(len, partition.merge))), 1, partition.class_column)
    shares = labels.probabilities(fine.cells(records).T)
    return labels if explained(target, measured.cells(records), shares) else None


def fitted(partition: Partition, details: list[Floats], cells: Whole, label: Whole) -> LabelModel | None:
    """Fit a log-linear model to rows; None where they have one class alone.

    Shapes: ``details``: for each column [classes, fine cells], how a class spreads within merged cells; ``cells``
    [rows, F], merged; ``label`` [rows].
    """
    from sklearn.linear_model import LogisticRegression

    present = np.unique(label)
    if len(present) < 2:
        return None
    sizes = partition.sizes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # after so many iterations the weights are as good as one draw of rows is
        regression = LogisticRegression(C=1 / RIDGE, max_iter=ITERATIONS).fit(one_hot(cells, sizes), label)
    weights, intercept = regression.coef_, regression.intercept_
    if len(present) == 2:  # scikit-learn gives those of the second class
        weights, intercept = (np.concatenate([np.zeros_like(part), part]) for part in (weights, intercept))
    bias, logits = np.full(partition.classes, -np.inf), np.zeros((partition.classes, sum(sizes)))
    bias[present], logits[present] = intercept, weights
    columns = zip(np.split(logits, partition.offsets[1:-1], axis=1), partition.merge, details, strict=True)
    return LabelModel(bias, [each[:, merge] + np.log(np.maximum(detail, LEAST)) for each, merge, detail in columns])


def explained(target: MomentTarget, cells: Whole, shares: Floats) -> bool:
    """Tell whether rows with these probabilities of labels are as close to the noisy moments as noise alone explains.

    The squared distance of the true moments is a sum of as many squared normals as the tables leave free.

    Shapes: ``cells`` [rows, F], those that were measured; ``shares`` [classes, rows].
    """
    if not target.noise:
        return False
    rows, squared = one_hot(cells, target.sizes), 0.0
    for share, noisy in zip(shares, target.noisy.numpy(), strict=True):
        weighed = rows.multiply(share[:, None] / len(cells)).tocsr()
        for strip in target.strips():
            moments = (weighed[:, strip.rows].T @ rows[:, strip.columns]).toarray()
            squared += float(np.square(strip.mask.numpy() * (moments - noisy[strip.rows, strip.columns])).sum())
    free = (target.noise_norm / target.noise) ** 2
    return squared <= target.noise**2 * (free + DEVIATIONS * math.sqrt(2 * free))


def one_hot(cells: Whole, sizes: list[int]) -> sparse.csr_matrix:
    """Return the cells of rows as a row of zeros and ones each. Shapes: [rows, F] -> [rows, D]."""
    offsets = np.cumsum([0, *sizes])
    indices, starts = (cells + offsets[:-1]).ravel(), np.arange(len(cells) + 1) * len(sizes)
    return sparse.csr_matrix((np.ones(len(indices)), indices, starts), shape=(len(cells), int(offsets[-1])))
