"""The sizes of the networks: public, and read where nothing is trained."""

from typing import Annotated, Literal

from pydantic import Field

from dpmodels.frozen import Frozen


class NetworkSpec(Frozen):
    """Size of the generator network.

    Attributes:
        channels: of the maps that an image grows from; tables have none.
    """

    latent_dim: Annotated[int, Field(ge=1, le=8192)] = 32
    hidden_dim: Annotated[int, Field(ge=1, le=8192)] = 256
    # left out at its default, so that generators and checkpoints of tables keep their bits
    channels: Annotated[int, Field(ge=1, le=1024, exclude_if=lambda channels: channels == 16)] = 16


class VaeSpec(Frozen):
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

    hidden: Annotated[int, Field(ge=1, le=4096)] = 100
    draws: Annotated[int, Field(ge=1, le=64)] = 2
    kl_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    most_cells: Annotated[int, Field(ge=2, le=1024)] = 24
    numbers: Literal["auto", "cells", "values"] = "auto"
    imitation_steps: Annotated[int, Field(ge=0, le=10**5)] = 500
    pretraining_steps: Annotated[int, Field(ge=0, le=10**5)] = 1500
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class GanSpec(Frozen):
    """Sizes and free steps of a critic and a generator; public, part of the plan.

    Attributes:
        latent: number of coordinates of z; hidden: units of the generator's two hidden layers.
        critic_hidden, critic_layers: units of each of the critic's hidden layers, and their number.
        critic_pixels: side of the squares of pixels whose means the critic sees: fewer inputs have less noise.
        convolutions: whether the networks of images are convolutional; channels: of their widest feature maps.
        loss: of a Wasserstein critic, or the non-saturating one of a critic that tells records from fakes.
        penalty: weight of the critic's slope between a record and its fake; 0 for none.
        critic_steps: of DP-SGD before each step of the generator; they double, up to ``most_critic_steps``, whenever
            the critic tells less than the share ``told`` of the fakes (0: never).
        generator_batch, generator_rate: fakes in a step of the generator, and the learning rate of its Adam, which
            follows the schedule of DP-SGD.
        momentum, steadiness: of this Adam, as of that of DP-SGD.
        average: share of the older weights in the running mean of the generator, which is what is released.
        snapshots: number of such means that are released, from evenly spread steps of the second half; each record is
            drawn from one of them. A generator against a noisy critic wanders, and its places together say more.
        temperature: at which drawn categories are smoothed where the generator is differentiated.
        reach: of a warm start, how far the generator may take ink or values from where it starts.
        anchor: of a warm start, weight of the squared distance from there in the generator's loss.
        pool: of a warm start, number of sampled records; pretraining_steps: of the critic on them (free).
        most_cells, numbers: see VaeSpec.
        seed: public, of first weights and of the generator's steps.
    """

    latent: Annotated[int, Field(ge=1, le=1024)] = 32
    hidden: Annotated[int, Field(ge=1, le=4096)] = 256
    critic_hidden: Annotated[int, Field(ge=1, le=4096)] = 128
    critic_layers: Annotated[int, Field(ge=1, le=8)] = 1
    critic_pixels: Annotated[int, Field(ge=1, le=4)] = 1
    convolutions: bool = False
    channels: Annotated[int, Field(ge=4, le=1024)] = 32
    loss: Literal["wgan-gp", "non-saturating"] = "non-saturating"
    penalty: Annotated[float, Field(ge=0, le=1000)] = 0.0
    critic_steps: Annotated[int, Field(ge=1, le=10**5)] = 1
    most_critic_steps: Annotated[int, Field(ge=1, le=10**5)] = 200
    told: Annotated[float, Field(ge=0, le=1)] = 0.0
    generator_batch: Annotated[int, Field(ge=1, le=65536)] = 256
    generator_rate: Annotated[float, Field(gt=0, le=1)] = 1e-3
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.5
    steadiness: Annotated[float, Field(ge=0, lt=1)] = 0.9
    average: Annotated[float, Field(ge=0, lt=1)] = 0.995
    snapshots: Annotated[int, Field(ge=1, le=64)] = 1
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.7
    reach: Annotated[float, Field(gt=0, le=1)] = 0.5
    anchor: Annotated[float, Field(ge=0, le=1000)] = 0.1
    pool: Annotated[int, Field(ge=1, le=10**6)] = 20_000
    pretraining_steps: Annotated[int, Field(ge=0, le=10**5)] = 300
    most_cells: Annotated[int, Field(ge=2, le=1024)] = 24
    numbers: Literal["auto", "cells", "values"] = "auto"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
