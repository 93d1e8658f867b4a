"""Privacy events: what a mechanism costs, as data that is written to plans and ledgers."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from dpmodels.errors import InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.privacy import Adjacency

MAX_PARTS = 1000


NoiseMultiplier = Annotated[float, Field(ge=1e-4, le=1e12)]


class GaussianEvent(Frozen):
    """One Gaussian release.

    Units:
        noise_multiplier: noise standard deviation / L2 sensitivity, a ratio.
    """

    kind: Literal["gaussian"] = "gaussian"
    noise_multiplier: NoiseMultiplier
    mechanism: str = ""


class LaplaceEvent(Frozen):
    """One Laplace release.

    Units:
        noise_multiplier: scale of the noise / L1 sensitivity, a ratio; the release is 1/noise_multiplier-DP.
    """

    kind: Literal["laplace"] = "laplace"
    noise_multiplier: Annotated[float, Field(ge=1e-2, le=1e6)]
    mechanism: str = ""


class SampledGaussianEvent(Frozen):
    """Steps of DP-SGD: each is a Gaussian release about a Poisson sample of the records.

    Units:
        noise_multiplier: noise standard deviation / clip norm, a ratio.
        sampling_probability: the probability, below 1, that a record is in the sample of a step.
    """

    kind: Literal["sampled_gaussian"] = "sampled_gaussian"
    noise_multiplier: Annotated[float, Field(ge=0.1, le=1e6)]
    sampling_probability: Annotated[float, Field(ge=1e-9, lt=1)]
    steps: Annotated[int, Field(ge=1, le=10**7)] = 1
    mechanism: str = ""


class PureEvent(Frozen):
    """One epsilon-DP release of which nothing else is known, such as a draw from the exponential mechanism."""

    kind: Literal["pure"] = "pure"
    epsilon: Annotated[float, Field(ge=1e-6, le=100)]
    mechanism: str = ""


class ThresholdEvent(Frozen):
    """The keys of a noisy count that the data itself names, such as the values of a column; only its delta is here.

    The counts have noise of their own, charged as an event of its own. A key that one unit alone brings passes the
    threshold with a probability of at most ``delta``, over all keys that one unit can bring (mechanisms/threshold.py).

    Privacy:
        Let D have one unit more than D', and let S be the keys of D'. On S the release is one noisy vector for both.
        What D releases beside S depends on independent noise, and is nothing with probability 1 - q, where q is at most
        delta. So the larger of both divergences is at every epsilon at most (1 - q) times that of the vector, plus q:
        the deltas of thresholds add to the delta of everything else, at every epsilon, and no epsilon buys them off.
    """

    kind: Literal["threshold"] = "threshold"
    delta: Annotated[float, Field(ge=1e-30, lt=1)]
    mechanism: str = ""


class ComposedEvent(Frozen):
    """Several releases from the same data, adaptively chosen or not."""

    kind: Literal["composed"] = "composed"
    events: Annotated[tuple["Event", ...], Field(min_length=1)]


class ParallelEvent(Frozen):
    """Releases from disjoint parts of the data, one of which holds a privacy unit; together they cost the heaviest.

    ``events`` holds one event for each part, or a single one for all of them: a family whose number of parts is
    private or unknown has a single event, and that number is never written.

    Privacy:
        Two neighboring data sets must differ in one part at most. Under add-or-remove-one they do if the part of a unit
        follows from the unit alone. Under replace-one a unit must be replaced within its part (a sentence within its
        document, a record within its client); where the new unit may be in another part, a replacement changes two.
        What the other parts release is then equally likely with both data sets, so the hockey-stick divergence of
        everything is at every epsilon at most the largest of the parts', and the same holds for Renyi divergences and
        pure epsilons. The largest of convex curves is a convex curve, and so the divergence of one pair of
        distributions, which composes with other releases as any event does (Zhu, Dong and Wang 2022, theorem 10).

    Attributes:
        by: the kind of part, such as cluster, document or client.
    """

    kind: Literal["parallel"] = "parallel"
    by: Annotated[str, Field(min_length=1, max_length=100)]
    events: Annotated[tuple["Event", ...], Field(min_length=1, max_length=MAX_PARTS)]


def priced(event: "Event", part: str) -> "Event":
    """Return what is charged for an event that is measured of each part of a kind, or, without one, of everything."""
    return ParallelEvent(by=part, events=(event,)) if part else event


Leaf = GaussianEvent | LaplaceEvent | SampledGaussianEvent | PureEvent | ThresholdEvent
Event = Annotated[Leaf | ComposedEvent | ParallelEvent, Field(discriminator="kind")]
ComposedEvent.model_rebuild()
ParallelEvent.model_rebuild()
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def leaves(events: Iterable[Event]) -> Iterator[Leaf | ParallelEvent]:
    """Yield the releases whose costs add up, in order; a parallel release is one of them, for its parts do not."""
    for event in events:
        if isinstance(event, ComposedEvent):
            yield from leaves(event.events)
        else:
            yield event


def check_adjacency(events: Iterable[Event], adjacency: Adjacency) -> None:
    """Refuse events whose price is not proved under an adjacency.

    Gaussian, Laplace and pure events are priced from a ratio to a sensitivity, or from an epsilon, which the system
    that plans them proves under the adjacency of the budget; so their price is the same under each adjacency. The price
    of Poisson samples is proved under add-or-remove-one alone, where a unit that is in no sample changes nothing; so is
    that of thresholds, where a unit that is replaced would take keys away and bring others.

    Raises:
        InvalidArgument: there are sampled Gaussians or thresholds and the adjacency is replace-one.
    """
    for event in leaves(events):
        if isinstance(event, ParallelEvent):
            check_adjacency(event.events, adjacency)
        elif isinstance(event, SampledGaussianEvent | ThresholdEvent) and adjacency != Adjacency.ADD_OR_REMOVE_ONE:
            what = "a threshold" if isinstance(event, ThresholdEvent) else "DP-SGD"
            rule = f"be add_or_remove_one for {what}: the price of Poisson samples and of thresholds is proved there"
            raise InvalidArgument("adjacency", adjacency, rule)
