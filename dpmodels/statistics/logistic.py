"""The optimum of a regularized logistic loss: a function of all records that one record moves little, by a proof.

    J(W) = sum_x loss(W phi(x), y)  +  strength / 2 ||W||^2,       phi(x) = (c z, bias),   ||phi(x)|| <= 1

Summed are the private records and, where there are any, public ones. With one output the loss is that of two classes,
log(1 + exp(-t w.phi)), whose gradient has norm at most 1. With K outputs it is the multinomial one, whose gradient in W
is (p - e_y) phi': its norm is at most ||p - e_y|| <= sqrt 2, which it nears where the wrong class is believed.

Privacy. Let W and W' be the optima of neighboring data, and D(W) = grad J'(W) - grad J(W) what the records in which
they differ add to the gradient. Then grad J'(W) = D(W), since grad J(W) = 0. J' is strongly convex, so
strength ||W - W'|| <= ||grad J'(W) - grad J'(W')|| = ||D(W)||. A record that is added or removed makes ||D|| at most
1 or sqrt 2; one that is replaced, twice that. With one output all private records have one label, so D is
s phi(x') - r phi(x) with s and r in [0, 1]. Its norm is largest at a corner: 1, or ||phi(x) - phi(x')|| <= 2 c, since
the bias is the same in both.

    strength is public: with it neither the bound nor the objective knows the number of records, so records may be added
    or removed. Divided by the number of records it is the lambda of the literature; C of scikit-learn is 1 / strength.

Nobody finds the optimum itself. The gradient at what is found has a norm of at most ``tolerance``, rounding included,
so it lies within tolerance / strength of the optimum: twice that is added. Rounding to the lattice moves a difference
by at most one step in each coordinate, so sqrt(dim) is added.

Source: Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization" (2011), for output
perturbation; the proof is the one above.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from dpmodels.arrays import Floats, Whole
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import BLOCK_ROWS, Z_BITS, Points

STEP_BITS = 20
"""One lattice step is ``2**-STEP_BITS`` of what one record moves the optimum by."""
SHORTER = 1 - 2.0**-40
"""Features are made this much shorter, so that no rounding lifts their norm above 1."""


@dataclass(frozen=True)
class Logistic:
    """The loss, the strength of its regularization, and what follows from them: all public.

    Attributes:
        size: of a record's vector; outputs: 1 for two classes, otherwise the number of classes.
        bias: the coordinate of phi that is the same for all records, in [0, 1).
        replaced: whether neighbors differ by a record that is replaced; otherwise by one that is added or removed.
        most: records, public and private together, for which the gradient can be certified.
        tolerance: of the gradient's norm, where that of one record is at most 1 or sqrt 2.
    """

    size: int
    outputs: int
    strength: float
    bias: float
    replaced: bool
    most: int
    tolerance: float = 2e-3

    def __post_init__(self) -> None:
        farthest = math.sqrt(2 * self.most * math.log(max(2, self.outputs)) / self.strength)
        condition, error = self._condition(self.most), self._rounding(self.most, farthest)
        near = max(self.tolerance, self.strength / (4 * math.sqrt(condition)))
        if 32 * error > self.tolerance or 2 * condition * error > near:
            rule = f"be more for {self.most} records, or rounding could hide the optimum: raise lambda or allow fewer"
            raise InvalidArgument("strength", self.strength, rule)

    @property
    def dim(self) -> int:
        """Count the coordinates of W."""
        return self.outputs * (self.size + 1)

    @property
    def change(self) -> float:
        """Bound what neighboring data add to the gradient."""
        if self.outputs > 1:
            return math.sqrt(2) * (2 if self.replaced else 1)
        return max(1.0, 2 * math.sqrt(1 - self.bias**2)) if self.replaced else 1.0

    @property
    def bound(self) -> float:
        """Bound how far neighboring data move what is found, before it is rounded to the lattice."""
        return (self.change + 2 * self.tolerance) / self.strength

    @property
    def step(self) -> float:
        """The lattice step, in units of W."""
        return math.ldexp(self.change / self.strength, -STEP_BITS)

    @property
    def l2_sensitivity(self) -> int:
        """Bound how far neighboring data move the rounded optimum, in lattice steps."""
        return math.ceil(self.bound / self.step * (1 + 2.0**-40) + math.sqrt(self.dim))

    def features(self, z: Whole) -> Floats:
        """Return phi of vectors; see ``with_bias``."""
        return with_bias(z, self.bias)

    def targets(self, label: Whole) -> Floats:
        """Write classes as what the outputs should be; a class beyond them counts as the last. Shapes: [n, outputs]."""
        if self.outputs == 1:
            return label[:, None].clip(0, 1).astype(np.float64)
        one: Floats = np.eye(self.outputs)[label.clip(0, self.outputs - 1)]
        return one

    def solve(self, phi: Floats, targets: Floats) -> Floats | None:
        """Return a W whose gradient is certified to be within the tolerance, or None where none was found.

        The tolerance is met for all data of at most ``most`` records. Every step is Newton's where that shrinks the
        gradient, otherwise one against the gradient, which takes a share of 1 / condition from its norm, but for the
        rounding. Along a Newton step the Hessian changes by a factor within exp(+-r) with r = sqrt(2) times its length,
        so what is left of the gradient is at most 0.1 + sqrt(condition) (e^r - 1 - r) / r of it: less than a third
        where its norm is below strength / (4 sqrt(condition)). So rounding errors do not sum up near the optimum.

        Shapes: [n, d], [n, outputs] -> [outputs, d].
        """
        condition = self._condition(len(phi))
        w = np.zeros((self.outputs, phi.shape[1]))
        gradient, curvature = self._slope(w, phi, targets)
        times = math.log(max(2.0, math.sqrt(2) * len(phi) / self.tolerance)) + 1
        for _ in range(math.ceil(2 * times * max(8.0, condition))):
            norm = float(np.linalg.norm(gradient))
            if norm + self._rounding(len(phi), float(np.linalg.norm(w))) <= self.tolerance:
                return w
            newton = _conjugate_gradients(curvature, gradient, min(0.1, math.sqrt(norm)) * norm, condition)
            for length in (1.0, 0.5, 0.125):
                tried = w - length * newton
                slope, bend = self._slope(tried, phi, targets)
                if np.linalg.norm(slope) <= (1 - length / 2) * norm:
                    break
            else:
                tried = w - gradient / (condition * self.strength)
                slope, bend = self._slope(tried, phi, targets)
            w, gradient, curvature = tried, slope, bend
        return None

    def whole(self, phi: Floats, targets: Floats) -> Whole:
        """Return the optimum in lattice steps; zeros, which say nothing of the data, should none be certified.

        Shapes: [n, d], [n, outputs] -> [dim].
        """
        optimum = self.solve(phi, targets)
        steps = np.zeros(self.dim) if optimum is None else np.rint(optimum.ravel() / self.step)
        return steps.astype(np.int64)

    def weights(self, released: Whole) -> Floats:
        """Return W of a released vector (post-processing). Shapes: [dim] -> [outputs, size + 1].

        A vector that all classes share changes no softmax, and the optimum has none: what noise made of it is removed.
        """
        w = released.astype(np.float64).reshape(self.outputs, self.size + 1) * self.step
        return w if self.outputs == 1 else w - w.mean(axis=0)

    def _slope(self, w: Floats, phi: Floats, targets: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return the gradient at W, and the function that multiplies by the Hessian there."""
        probabilities = [_believed(rows @ w.T) for rows in _blocks(phi)]
        parts = zip(probabilities, _blocks(phi), _blocks(targets), strict=True)
        gradient: Floats = sum(((p - y).T @ rows for p, rows, y in parts), self.strength * w)

        def curvature(v: Floats) -> Floats:
            bent = self.strength * v
            for p, rows in zip(probabilities, _blocks(phi), strict=True):
                turned = rows @ v.T * p
                turned -= p * (turned if self.outputs == 1 else turned.sum(axis=1, keepdims=True))
                bent = bent + turned.T @ rows
            return bent

        return gradient, curvature

    def _condition(self, records: int) -> float:
        """Bound the largest eigenvalue of the Hessian by this many times the strength, which bounds the least."""
        return 1 + records * (0.25 if self.outputs == 1 else 0.5) / self.strength

    def _rounding(self, records: int, norm: float) -> float:
        """Bound the rounding error of the gradient's norm.

        A logit errs by (d + 1) u ||W||, a softmax by twice that and K + 10 more, a sum by its blocks and their number.
        """
        each = 2 * (self.size + 2) * (1 + norm) + self.outputs + 10 + BLOCK_ROWS + records / BLOCK_ROWS
        return 2.0**-52 * (records * each + 4 * self.strength * norm)


def with_bias(z: Whole, bias: float) -> Floats:
    """Return phi, of norm at most 1, whose last coordinate is the bias. Shapes: [n, d] -> [n, d + 1].

    Raises:
        Unsuitable: a vector exceeds the norm that the sensitivity is proved for.
    """
    whole = z.astype(np.float64)
    if (whole * whole).sum(axis=1).max(initial=0) > 4.0**Z_BITS:
        raise Unsuitable("a vector passes the norm that the sensitivity is proved for; bound it before solving")
    scaled = np.ldexp(whole, -Z_BITS) * (math.sqrt(1 - bias**2) * SHORTER)
    return np.concatenate([scaled, np.full((len(z), 1), bias)], axis=1)


def transform_optimum(
    problem: Logistic, points: Sensitive[Iterable[Points]], records: int, public: Whole | None = None
) -> Sensitive[Whole]:
    """Solve a logistic problem on private records, and on public ones of label 0 where the private have label 1.

    ``records`` is the number of private records where that is public, else 0; ``public`` holds the vectors of public
    records, or is None where each record has a class of its own.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``problem.l2_sensitivity`` in L2 norm.

    Raises:
        Unsuitable: there are more records than can be certified, or another number than is said to be public; or
            vectors have another size than the problem.
    """
    if (problem.outputs == 1) != (public is not None):
        raise Unsuitable("one output tells private records from public ones; give both, or an output for each class")
    parts = list(points.reveal())
    z = np.concatenate([part.z for part in parts] or [np.zeros((0, problem.size), dtype=np.int64)])
    label = np.concatenate([part.label for part in parts] or [np.zeros(0, dtype=np.int64)])
    if any(rows is not None and rows.shape[1] != problem.size for rows in (z, public)):
        raise Unsuitable("the vectors are of another size than the sensitivity is proved for; plan again")
    if len(z) + (0 if public is None else len(public)) > problem.most or (records and len(z) != records):
        raise Unsuitable(
            "the number of records is not what the contract says of it; correct the contract and plan again"
        )
    if public is not None:
        label = np.repeat([1, 0], [len(z), len(public)])
        z = np.concatenate([z, public])
    return Sensitive(problem.whole(problem.features(z), problem.targets(label)))


def _believed(logits: Floats) -> Floats:
    """Return the probabilities of logits; of the first of two classes where there is one output."""
    probabilities: Floats = expit(logits) if logits.shape[1] == 1 else softmax(logits, axis=1)
    return probabilities


def _blocks(rows: Floats) -> Iterator[Floats]:
    """Cut rows into blocks, so that rounding errors of their sums stay small."""
    return (rows[start : start + BLOCK_ROWS] for start in range(0, max(1, len(rows)), BLOCK_ROWS))


def _conjugate_gradients(
    product: Callable[[Floats], Floats], target: Floats, enough: float, condition: float
) -> Floats:
    """Return a v for which product(v) is within ``enough`` of the target, in as many steps as that takes at most."""
    solution, left = np.zeros_like(target), target.copy()
    direction, squared = left, float((left * left).sum())
    for _ in range(math.ceil(math.sqrt(condition) * math.log(20 * condition / min(1.0, enough)))):
        bent = product(direction)
        length = squared / float((direction * bent).sum())
        solution, left = solution + length * direction, left - length * bent
        before, squared = squared, float((left * left).sum())
        if squared <= enough**2:
            break
        direction = left + squared / before * direction
    return solution
