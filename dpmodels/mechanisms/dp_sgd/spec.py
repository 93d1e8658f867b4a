"""What a plan says of DP-SGD: public parameters, which need no torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from dpmodels.frozen import Frozen

if TYPE_CHECKING:
    from torch import Tensor

Rows = tuple["Tensor", ...]
"""Tensors with one row a record; they are handed to the objective block by block."""


_FIRST = ("sampling_probability", "steps", "clip_norm", "learning_rate", "average", "micro_batch")
"""The parameters that every plan has had."""


class SgdSpec(Frozen):
    """Public parameters of DP-SGD; part of the plan.

    Attributes:
        sampling_probability: of each record in each step.
        steps: in all; an epoch is ``1 / sampling_probability`` of them.
        clip_norm: L2 norm C that the gradient of one record is clipped to. Each of G groups starts with C / sqrt(G).
        learning_rate: of Adam, a multiple of which the schedule makes.
        average: share of the older weights in the running mean that is released.
        micro_batch: rows differentiated at once, at most, but never fewer than 64; bounds memory.
        schedule: of the learning rate L: "cosine" falls from L to L / 10; "constant" is L; "late" is L, and falls to
            L / 10 in the last three tenths of the steps; "dpkg" is the rule of that paper, L (1 + 50 / step) before
            step 1000 and L / 2 from it on, so 2e-3 for L gives its 0.1 / step + 2e-3.
        momentum, steadiness: of Adam, the shares of older gradients and of older squares in its running means.
        groups: which weights are clipped together: all, those of a layer, those of a layer without its bias and all
            biases, or all biases and the clusters that DBSCAN finds in the sizes of released gradients ("density").
        bounds: the clip norms of groups: "fixed"; moved to a quantile of the gradients' norms that each step counts
            with noise; or the whole clip norm, handed out anew by the sizes of released gradients ("noised").
        quantile: share of records that are to be within their bound; quantile_share: share of the squared norm that
            pays for counting them, so gradients get noise 1 / sqrt(1 - quantile_share) times as large.
        bound_rate: how fast bounds move to the quantile: by this in the logarithm, were all records on one side.
        form_every: steps after which groups or bounds are formed anew from the gradients released since the last time.
        density_radius, density_points: of DBSCAN; the radius is in octaves of the root mean square of a gradient.
    """

    sampling_probability: Annotated[float, Field(ge=1e-6, le=0.5)] = 0.02
    steps: Annotated[int, Field(ge=1, le=10**6)] = 600
    clip_norm: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 2e-3
    average: Annotated[float, Field(ge=0, lt=1)] = 0.98
    micro_batch: Annotated[int, Field(ge=1)] = 4096
    schedule: Literal["cosine", "constant", "late", "dpkg"] = "cosine"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    steadiness: Annotated[float, Field(ge=0, lt=1)] = 0.999
    groups: Literal["one", "layers", "layers-biases", "density"] = "one"
    bounds: Literal["fixed", "quantile", "noised"] = "fixed"
    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.5
    quantile_share: Annotated[float, Field(ge=1e-3, le=0.5)] = 0.05
    bound_rate: Annotated[float, Field(gt=0, le=1)] = 0.2
    form_every: Annotated[int, Field(ge=1)] = 100
    density_radius: Annotated[float, Field(gt=0, le=64)] = 0.5
    density_points: Annotated[int, Field(ge=1)] = 3

    @model_validator(mode="after")
    def _groups_to_hand_out_to(self) -> "SgdSpec":
        if self.bounds == "noised" and self.groups == "one":
            raise ValueError("noised bounds hand the clip norm out to groups; name groups, or other bounds")
        return self

    @model_serializer(mode="wrap")
    def _as_before_there_were_groups(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the parameters that older plans lack, where all of them are what those plans meant."""
        written: dict[str, Any] = write(self)
        later = {key: field.default for key, field in type(self).model_fields.items() if key not in _FIRST}
        same = all(getattr(self, key) == default for key, default in later.items())
        return {key: value for key, value in written.items() if key in _FIRST} if same else written

    @property
    def epoch(self) -> int:
        """Count the steps after which each record was in one batch, as expected."""
        return max(1, round(1 / self.sampling_probability))

    def rate(self, steps_before: int) -> float:
        """Return the learning rate of the step that follows ``steps_before`` steps."""
        if self.schedule == "cosine":
            return float(self.learning_rate * (0.55 + 0.45 * np.cos(np.pi * steps_before / self.steps)))
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "late":
            return self.learning_rate * (1 - 3 * max(0.0, steps_before / self.steps - 0.7))
        return self.learning_rate * (1 + 50 / (steps_before + 1) if steps_before + 1 < 1000 else 0.5)


@dataclass(frozen=True)
class Noise:
    """What is charged: sigma (noise stddev over clip norm), and a released number of records to divide by."""

    multiplier: float
    records: float
