"""A canary in every step of DP-SGD: an objective whose gradient is the record itself, trained with it and without it.

The adversary sees the sum of every step with its noise, and knows the sum of everybody else, so of each step it has

    score = <released - sum of the others, canary> / ||canary||   in clip norms,

which is N(0, z^2) without the canary and (1 - q) N(0, z^2) + q N(1, z^2) with it. By Neyman and Pearson its best
statistic over all T steps is the sum of log(1 - q + q exp((score - 1/2) / z^2)).
"""

import numpy as np
import torch
from torch import Tensor, nn

from dpmodels.accounting.events import SampledGaussianEvent
from dpmodels.arrays import Floats
from dpmodels.audit.tap import Tap, tapped
from dpmodels.mechanisms.dp_sgd.adaptive import STEP_BITS
from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS
from dpmodels.mechanisms.dp_sgd.randomness import new_key
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.privacy import Sensitive

SIZE, OTHERS, MANY = 4, 64, 3000


class Itself(nn.Module):
    """An objective whose gradient is the row that it is given."""

    normals = (0,)

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(SIZE, 1, bias=False)

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        """Return a loss for each row. Shapes: [B, SIZE], [B, 0] -> [B]."""
        loss: Tensor = self.net(x)[:, 0]
        return loss


def rows(canary: bool) -> Tensor:
    """Return rows of length 1 along each axis in turn, and last the canary, along the first."""
    others = torch.eye(SIZE).repeat(OTHERS // SIZE, 1)
    return torch.cat([others, 2 * torch.eye(SIZE)[:1]]) if canary else others


def scores(event: SampledGaussianEvent, canary: bool) -> tuple[Floats, Floats]:
    """Train once; return each step's score in clip norms, and whether the canary was in its batch. Shapes: [steps]."""
    spec = SgdSpec(steps=event.steps, sampling_probability=event.sampling_probability)
    data = rows(canary)
    sgd = DpSgd(Itself(), spec, Noise(event.noise_multiplier, float(OTHERS)), new_key())
    with tapped() as tap:
        list(sgd.train(Sensitive((data,))))
    sampled = np.array([float(OTHERS in batch) for _, batch in tap.batches]) if canary else np.zeros(spec.steps)
    return _along(sgd, data, tap), sampled


def _along(sgd: DpSgd, data: Tensor, tap: Tap) -> Floats:
    """Return <released - sum of the others, canary> of every step, by the sum that DP-SGD itself forms."""
    projections = []
    for step, (draw, (_, batch)) in enumerate(zip(tap.draws, tap.batches, strict=True)):
        sgd.step = step
        others = sgd._clipped_sum((data,), batch[batch < OTHERS])
        projections.append(float(draw.released[0] - others[0]))
    scaled: Floats = np.ldexp(np.array(projections), -STEP_BITS)
    return scaled


def log_ratio(projections: Floats, event: SampledGaussianEvent) -> Floats:
    """Return the log-likelihood ratio of each step's score."""
    q, z = event.sampling_probability, event.noise_multiplier
    ratio: Floats = np.logaddexp(np.log1p(-q), np.log(q) + (projections - 0.5) / z**2)
    return ratio


def odd_batches() -> dict[str, bool]:
    """Tell what holds of batches that are empty, overflow, or are cut into blocks otherwise."""
    data = torch.cat([rows(True), torch.full((1, SIZE), 3e38)])
    sgd = DpSgd(Itself(), SgdSpec(sampling_probability=0.5), Noise(1.0, float(OTHERS)), bytes(32))
    everybody = np.arange(len(data))
    whole = sgd._clipped_sum((data,), everybody)
    without = sgd._clipped_sum((data,), everybody[:-1])
    alone = DpSgd(Itself(), SgdSpec(sampling_probability=0.5), Noise(1.0, float(OTHERS)), bytes(32))
    alone.block = 1
    empty = sgd._clipped_sum((data,), everybody[:0])
    one, many = sgd._block_sum((data,), everybody[:1]), torch.zeros(MANY, dtype=torch.int64).numpy()
    dropped = 2 * FACTOR_BITS - STEP_BITS
    exact = (MANY * one.numpy() + 2 ** (dropped - 1)) >> dropped
    canary = without - sgd._clipped_sum((data,), everybody[:OTHERS])
    return {
        "an empty batch adds up to nothing": not empty.any(),
        "a record that overflows adds nothing": bool((whole == without).all()),
        "the sum is the same however a batch is cut into blocks": bool(
            (alone._clipped_sum((data,), everybody) == whole).all()
        ),
        f"{MANY} equal records add up to {MANY} times one of them, exactly": bool(
            (sgd._clipped_sum((data,), many) == exact).all()
        ),
        "a record moves the sum by one clip norm at most, and a long one by that": bool(
            0.99 * 4.0**STEP_BITS < float(canary.astype(object) @ canary.astype(object)) <= 4.0**STEP_BITS
        ),
    }
