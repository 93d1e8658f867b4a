"""What a mechanism costs, as data: our own serialised events, each with its twin in dp-accounting."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class _EventModel(BaseModel):
    """Frozen, closed, finite; floats keep every bit through JSON, which writes their shortest repr."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class GaussianEvent(_EventModel):
    """One Gaussian release.

    Units:
        noise_multiplier: noise standard deviation / L2 sensitivity, a ratio.
    """

    kind: Literal["gaussian"] = "gaussian"
    noise_multiplier: Annotated[float, Field(ge=1e-4, le=1e12)]
    mechanism: str = ""


class ComposedEvent(_EventModel):
    """Several releases from the same data, adaptively chosen or not."""

    kind: Literal["composed"] = "composed"
    events: Annotated[tuple["Event", ...], Field(min_length=1)]


Event = Annotated[GaussianEvent | ComposedEvent, Field(discriminator="kind")]
ComposedEvent.model_rebuild()


def leaves(events: Iterable[Event]) -> Iterator[GaussianEvent]:
    """Walk the releases that are not compositions, in order."""
    for event in events:
        if isinstance(event, ComposedEvent):
            yield from leaves(event.events)
        else:
            yield event


def to_dp_accounting(event: Event) -> "DpEvent":
    """Translate one event into dp-accounting's vocabulary."""
    import dp_accounting

    if isinstance(event, ComposedEvent):
        return dp_accounting.ComposedDpEvent([to_dp_accounting(part) for part in event.events])
    return dp_accounting.GaussianDpEvent(event.noise_multiplier)
