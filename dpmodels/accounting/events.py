"""What a mechanism costs, as data: our own serialised events, each with its twin in dp-accounting."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class _EventModel(BaseModel):
    """Frozen, closed, finite; floats keep every bit through JSON, which writes their shortest repr."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


NoiseMultiplier = Annotated[float, Field(ge=1e-4, le=1e12)]


class GaussianEvent(_EventModel):
    """One Gaussian release.

    Units:
        noise_multiplier: noise standard deviation / L2 sensitivity, a ratio.
    """

    kind: Literal["gaussian"] = "gaussian"
    noise_multiplier: NoiseMultiplier
    mechanism: str = ""


class LaplaceEvent(_EventModel):
    """One Laplace release.

    Units:
        noise_multiplier: scale of the noise / L1 sensitivity, a ratio; the release is 1/noise_multiplier-DP.
    """

    kind: Literal["laplace"] = "laplace"
    noise_multiplier: Annotated[float, Field(ge=1e-2, le=1e6)]
    mechanism: str = ""


class SampledGaussianEvent(_EventModel):
    """Steps of DP-SGD: each is a Gaussian release about a Poisson sample of the records.

    Units:
        noise_multiplier: noise standard deviation / clip norm, a ratio.
        sampling_probability: the chance of each record to be in a step's sample, below 1.
    """

    kind: Literal["sampled_gaussian"] = "sampled_gaussian"
    noise_multiplier: Annotated[float, Field(ge=0.1, le=1e6)]
    sampling_probability: Annotated[float, Field(ge=1e-9, lt=1)]
    steps: Annotated[int, Field(ge=1, le=10**7)] = 1
    mechanism: str = ""


class PureEvent(_EventModel):
    """One epsilon-DP release of which nothing else is known, such as a draw from the exponential mechanism."""

    kind: Literal["pure"] = "pure"
    epsilon: Annotated[float, Field(ge=1e-6, le=100)]
    mechanism: str = ""


class ComposedEvent(_EventModel):
    """Several releases from the same data, adaptively chosen or not."""

    kind: Literal["composed"] = "composed"
    events: Annotated[tuple["Event", ...], Field(min_length=1)]


Leaf = GaussianEvent | LaplaceEvent | SampledGaussianEvent | PureEvent
Event = Annotated[Leaf | ComposedEvent, Field(discriminator="kind")]
ComposedEvent.model_rebuild()


def leaves(events: Iterable[Event]) -> Iterator[Leaf]:
    """Walk the releases that are not compositions, in order."""
    for event in events:
        if isinstance(event, ComposedEvent):
            yield from leaves(event.events)
        else:
            yield event


def to_dp_accounting(event: Event) -> "DpEvent":
    """Translate one event into dp-accounting's vocabulary.

    A pure event has no twin there; the closest is randomised response between two answers, which dp-accounting knows
    under replacement only, so its accountants are given our own distribution instead.

    Raises:
        NotImplementedError: the event is pure.
    """
    import dp_accounting

    match event:
        case ComposedEvent():
            return dp_accounting.ComposedDpEvent([to_dp_accounting(part) for part in event.events])
        case GaussianEvent():
            return dp_accounting.GaussianDpEvent(event.noise_multiplier)
        case LaplaceEvent():
            return dp_accounting.LaplaceDpEvent(event.noise_multiplier)
        case SampledGaussianEvent():
            step = dp_accounting.GaussianDpEvent(event.noise_multiplier)
            sampled = dp_accounting.PoissonSampledDpEvent(event.sampling_probability, step)
            return dp_accounting.SelfComposedDpEvent(sampled, event.steps)
        case PureEvent():
            raise NotImplementedError("dp-accounting has no event for a pure release")
