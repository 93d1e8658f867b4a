"""The running sum of an account: all that later charges need to know about earlier ones, in constant size.

A tally is exact and keeps neither order nor nesting, so a void subtracts precisely what its charge added. It is written
into the ledger's entries, where the hash chain protects it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from dpmodels.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    Leaf,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
    ThresholdEvent,
    leaves,
)
from dpmodels.errors import Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.privacy import exact_decimal

# Sums are whole multiples of 2^-160: finer than the last bit of 1/z^2 for every z an event may have.
SCALE = 2**160
# An account may have this many different kinds of releases beside Gaussians, each repeated without limit.
MAX_KINDS = 64
MAX_TEXT = 2**16
"""Signs of parts in parallel as they are written: of parts within parts every level doubles the quotes of the last."""


class Tally(Frozen):
    """What counts against a cap.

    Attributes:
        gaussian: the sum of 1 / noise_multiplier^2 over all Gaussian releases, in units of 2^-160.
        others: every other release, as canonical JSON, with the number of times it was made; parallel parts of which
            none is surely the heaviest are such a release.
        renyi: in an account that is a Renyi filter, the Renyi divergences at its order, in units of 2^-160; the first
            two fields are then empty.
        delta: the sum of the deltas of all thresholds, in units of 2^-160. What is left of an account's delta is that
            at which everything else is added up.
    """

    gaussian: Annotated[int, Field(ge=0)] = 0
    others: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    renyi: Annotated[int, Field(ge=0)] = 0
    delta: Annotated[int, Field(ge=0)] = 0

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Tally":
        """Add events up; parallel parts count as their heaviest."""
        gaussian, delta, others = 0, 0, Counter[str]()
        for part in leaves(events):
            if isinstance(part, GaussianEvent):
                gaussian += exact(part.noise_multiplier**-2)
            elif isinstance(part, ParallelEvent):
                cost = _parallel(part)
                gaussian, others = gaussian + cost.gaussian, others + Counter(cost.others)
                delta += cost.delta
            elif isinstance(part, ThresholdEvent):
                delta += exact(part.delta)
            else:
                others[_kind(part)] += part.steps if isinstance(part, SampledGaussianEvent) else 1
        return cls(gaussian=gaussian, others=dict(others), delta=delta)

    @property
    def key(self) -> tuple[int, tuple[tuple[str, int], ...], int, int]:
        """The tally as something hashable, equal for equal tallies."""
        return self.gaussian, tuple(sorted(self.others.items())), self.renyi, self.delta

    @property
    def besides(self) -> "Tally":
        """The tally without its thresholds."""
        return self.model_copy(update={"delta": 0}) if self.delta else self

    @property
    def threshold_delta(self) -> Decimal:
        """The sum of the deltas of all thresholds, rounded up to 40 digits."""
        with localcontext(prec=40, rounding=ROUND_CEILING):
            return Decimal(self.delta) / Decimal(SCALE)

    @property
    def brief(self) -> dict[str, object]:
        """The tally as it is written into an entry, without empty fields."""
        return self.model_dump(exclude_defaults=True)

    @property
    def kinds(self) -> list[tuple["Leaf | Parallel", int]]:
        """The releases in ``others``, parsed, with the number of times each was made."""
        return [(parse_kind(kind), times) for kind, times in self.others.items()]

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The exact sum of all epsilons, each the decimal that was written; None where not every release is pure."""
        if self.gaussian or self.renyi or self.delta:
            return None
        each = [(_pure_epsilon(part), times) for part, times in self.kinds]
        return None if any(epsilon is None for epsilon, _ in each) else sum((e * n for e, n in each if e), Fraction(0))

    @property
    def mu_squared(self) -> float:
        """The sum of 1 / noise_multiplier^2, correctly rounded."""
        return self.gaussian / SCALE

    def __bool__(self) -> bool:
        return bool(self.gaussian or self.others or self.renyi or self.delta)

    def __add__(self, other: "Tally") -> "Tally":
        return self._with(other, 1)

    def __sub__(self, other: "Tally") -> "Tally":
        return self._with(other, -1)

    def _with(self, other: "Tally", sign: int) -> "Tally":
        others = dict(self.others)
        for kind, times in other.others.items():
            others[kind] = others.get(kind, 0) + sign * times
        return Tally(
            gaussian=self.gaussian + sign * other.gaussian,
            others={kind: times for kind, times in others.items() if times},
            renyi=self.renyi + sign * other.renyi,
            delta=self.delta + sign * other.delta,
        )


class Parallel(Frozen):
    """The costs of parallel parts of which none is surely the heaviest; each way of accounting takes its largest."""

    kind: Literal["parallel"] = "parallel"
    parts: tuple[Tally, ...]


_KIND: TypeAdapter[Leaf | Parallel] = TypeAdapter(Annotated[Leaf | Parallel, Field(discriminator="kind")])


@lru_cache(maxsize=1024)
def parse_kind(kind: str) -> Leaf | Parallel:
    """Read one kind of release back from a tally."""
    return _KIND.validate_json(kind)


def _pure_epsilon(part: Leaf | Parallel) -> Fraction | None:
    """Return the epsilon of one pure release, as the decimal that was written; for parallel parts the largest."""
    match part:
        case PureEvent():
            return Fraction(exact_decimal(part.epsilon))
        case LaplaceEvent():
            return 1 / Fraction(exact_decimal(part.noise_multiplier))
        case Parallel():
            parts = [tally.pure_epsilon for tally in part.parts]
            return None if None in parts else max(epsilon for epsilon in parts if epsilon is not None)
    return None


def exact(value: float) -> int:
    """Write a float above 2^-107 in units of 2^-160, without rounding."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (SCALE // denominator)


def heaviest(tallies: Iterable[Tally]) -> list[Tally]:
    """Leave out every tally that is surely lighter than another, because the other covers it."""
    best: dict[tuple[tuple[tuple[str, int], ...], int], Tally] = {}
    for tally in tallies:
        _, others, _, delta = tally.key
        best_tally = best.get((others, delta))
        if best_tally is None or (tally.gaussian, tally.renyi) > (best_tally.gaussian, best_tally.renyi):
            best[others, delta] = tally
    left = list(best.values())
    return [one for one in left if not any(_covers(other, one) for other in left if other is not one)]


def heaviest_parts(events: Sequence[Event]) -> list[Event]:
    """Return those of some parallel events that may be the heaviest; of equal events the first."""
    parts = [(event, Tally.of([event])) for event in events]
    return [next(event for event, tally in parts if tally == heavy) for heavy in heaviest(t for _, t in parts)]


def _parallel(event: ParallelEvent) -> Tally:
    """Reduce parallel parts to the heaviest, or to those that may be; of their thresholds the largest delta counts."""
    whole = [Tally.of([part]) for part in event.events]
    delta, parts = Tally(delta=max(part.delta for part in whole)), heaviest(part.besides for part in whole)
    if len(parts) == 1:
        return parts[0] + delta
    if len(parts) > MAX_KINDS:
        raise Unsuitable(
            f"the parts by {event.by} have too many prices; let them have at most {MAX_KINDS} different ones"
        )
    texts = sorted(json.dumps(part.brief, sort_keys=True, separators=(",", ":")) for part in parts)
    if sum(map(len, texts)) > MAX_TEXT:
        raise Unsuitable(f"the parts by {event.by} hold too many releases, or parts within parts too deep; split them")
    return Tally(others={f'{{"kind":"parallel","parts":[{",".join(texts)}]}}': 1}) + delta


def _covers(heavy: Tally, light: Tally) -> bool:
    """Tell whether ``heavy`` has, for each release of ``light``, another that is as heavy: ``light`` post-processes it.

    The Gaussian releases of a tally are one, so they are compared as one. Two different tallies never cover each other
    mutually.
    """
    if heavy.gaussian < light.gaussian or heavy.renyi < light.renyi or heavy.delta < light.delta:
        return False
    left = {kind: heavy.others.get(kind, 0) - light.others.get(kind, 0) for kind in heavy.others}
    missing = {kind: times - heavy.others.get(kind, 0) for kind, times in light.others.items()}
    for kind, times in missing.items():
        if times > 0:
            other = next(
                (candidate for candidate in left if left[candidate] >= times and _outweighs(candidate, kind)), None
            )
            if other is None:
                return False
            left[other] -= times
    return True


def _outweighs(heavy: str, light: str) -> bool:
    """Tell whether a release surely costs more than another of its kind; more noise or a smaller sample costs less."""
    match parse_kind(heavy), parse_kind(light):
        case (PureEvent() as a, PureEvent() as b):
            return a.epsilon > b.epsilon
        case (LaplaceEvent() as a, LaplaceEvent() as b):
            return a.noise_multiplier < b.noise_multiplier
        case (SampledGaussianEvent() as a, SampledGaussianEvent() as b):
            noise, sample = b.noise_multiplier - a.noise_multiplier, a.sampling_probability - b.sampling_probability
            return min(noise, sample) >= 0 and max(noise, sample) > 0
    return False


def _kind(part: Leaf) -> str:
    """Write an event without its multiplicity, which is counted apart, and its label, which costs nothing."""
    content = part.model_dump(mode="json", exclude={"steps", "mechanism"})
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
