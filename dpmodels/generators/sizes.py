"""The sizes of the networks: public, and read where nothing is trained."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class NetworkSpec(BaseModel):
    """Size of the generator network."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    latent_dim: Annotated[int, Field(ge=1)] = 32
    hidden_dim: Annotated[int, Field(ge=1)] = 256


class VaeSpec(BaseModel):
    """Sizes of the networks; public, part of the plan.

    Attributes:
        hidden: units of the decoder's two hidden layers, and of the encoder's one.
        draws: of the latent for each record, averaged inside its gradient.
        kl_weight: of the divergence beside the reconstruction.
        most_cells: that an interval column is cut into.
        numbers: decoded as cells or as values; auto takes values where most columns are numbers.
        imitation_steps: of fitting the decoder to the inverse projection, before it sees data (free).
        pretraining_steps: of training on samples of a warm start (free).
        seed: public, of first weights and imitation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    hidden: Annotated[int, Field(ge=1, le=4096)] = 100
    draws: Annotated[int, Field(ge=1, le=64)] = 2
    kl_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    most_cells: Annotated[int, Field(ge=2, le=1024)] = 24
    numbers: Literal["auto", "cells", "values"] = "auto"
    imitation_steps: Annotated[int, Field(ge=0, le=10**5)] = 500
    pretraining_steps: Annotated[int, Field(ge=0, le=10**5)] = 1500
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
