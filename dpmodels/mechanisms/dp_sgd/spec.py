"""What a plan says of DP-SGD: public parameters, which need no torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from torch import Tensor

Rows = tuple["Tensor", ...]
"""Tensors with one row a record; they are handed to the objective block by block."""


class SgdSpec(BaseModel):
    """Public parameters of DP-SGD; part of the plan.

    Attributes:
        sampling_probability: of each record in each step.
        steps: in all; an epoch is ``1 / sampling_probability`` of them.
        clip_norm: L2 norm that the gradient of one record is clipped to.
        learning_rate: of Adam, falling to a tenth along a cosine.
        average: share of the older weights in the running mean that is released.
        micro_batch: rows differentiated at once, at most, but never fewer than 64; bounds memory.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    sampling_probability: Annotated[float, Field(ge=1e-6, le=0.5)] = 0.02
    steps: Annotated[int, Field(ge=1, le=10**6)] = 600
    clip_norm: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 2e-3
    average: Annotated[float, Field(ge=0, lt=1)] = 0.98
    micro_batch: Annotated[int, Field(ge=1)] = 4096

    @property
    def epoch(self) -> int:
        """Count the steps after which each record was in one batch, as expected."""
        return max(1, round(1 / self.sampling_probability))


@dataclass(frozen=True)
class Noise:
    """What is charged: sigma (noise stddev over clip norm), and a released number of records to divide by."""

    multiplier: float
    records: float
