"""Split labeled records among clients, evenly in number and as unevenly in class as asked (the paper's appendix B).

    P = [p_1 ... p_c],  p_j ~ Dirichlet(alpha, ..., alpha) over the clients, then columns and rows normalized in turn

Each client's row is brought to 1 / clients and each class's column to the class's share of the records: so all clients
have as many records, and all records have a client. With classes of one size this is the paper's standardization.
"""

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.errors import InvalidArgument

ROUNDS = 1000


def dirichlet_shares(classes: Floats, clients: int, alpha: float, rng: np.random.Generator) -> Floats:
    """Draw each client's share of all records that are of each class.

    Logarithms are drawn, because at an alpha of 0.01 most shares are smaller than any float. The shares keep a floor
    of 1e-9 of a class, with which a standardized matrix always exists.

    Shapes: ``classes`` [c], the classes' shares -> [clients, c], of row sums 1 / clients and column sums ``classes``.
    """
    uniform = rng.random((clients, len(classes)))
    log = np.log(rng.gamma(alpha + 1, size=uniform.shape)) + np.log(np.maximum(uniform, 1e-300)) / alpha
    shares: Floats = np.exp(log - log.max(axis=0)) + 1e-9
    for _ in range(ROUNDS):
        shares *= classes / shares.sum(axis=0)
        shares /= clients * shares.sum(axis=1, keepdims=True)
    return shares


def dirichlet_split(labels: Whole, clients: int, alpha: float, seed: int) -> list[Whole]:
    """Return the rows of each client: disjoint, all of them, and the numbers of two clients differ by one at most.

    Raises:
        InvalidArgument: alpha is not positive, or there are more clients than records.
    """
    if not 0 < alpha < np.inf:
        raise InvalidArgument("alpha", alpha, "be positive")
    if not 0 < clients <= len(labels):
        raise InvalidArgument("clients", clients, "be at least 1, and no more than there are records")
    rng = np.random.default_rng(seed)
    found, counts = np.unique(labels, return_counts=True)
    shares = dirichlet_shares(counts / counts.sum(), clients, alpha, rng)
    wanted = _whole_counts(shares * counts.sum(), counts)
    rows = [rng.permutation(np.flatnonzero(labels == label)) for label in found]
    cut = [np.split(own, np.cumsum(column)[:-1]) for own, column in zip(rows, wanted.T, strict=True)]
    return [rng.permutation(np.concatenate(parts)) for parts in zip(*cut, strict=True)]


def _whole_counts(wanted: Floats, counts: Whole) -> Whole:
    """Round to whole numbers that keep every class's count, and every client's number up to one record.

    Shares are rounded down. A client that has too many records then gives back some of its largest class; one that has
    too few takes those that it lacks most, of what is left. Shapes: [clients, c], [c] -> [clients, c].
    """
    clients, whole = len(wanted), np.floor(wanted).astype(np.int64)
    left = counts - whole.sum(axis=0)
    ends = np.arange(1, clients + 1) * counts.sum() // clients
    sizes = np.diff(ends, prepend=0)
    short = sizes - whole.sum(axis=1)
    for client in np.argsort(short):
        while short[client] < 0:
            most = int(whole[client].argmax())
            whole[client, most], left[most], short[client] = whole[client, most] - 1, left[most] + 1, short[client] + 1
    for client in range(clients):
        for _ in range(int(short[client])):
            best = int(np.where(left > 0, wanted[client] - whole[client], -np.inf).argmax())
            whole[client, best], left[best] = whole[client, best] + 1, left[best] - 1
    return whole
