"""The running sum of an account: all that later charges need to know about earlier ones, in constant size.

A tally is exact and forgets order and nesting, so a void takes back precisely what its charge added. It is written
into the ledger's entries, where the hash chain protects it.
"""

import json
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.events import Event, GaussianEvent, Leaf, SampledGaussianEvent, leaves

# Sums are whole multiples of 2^-160: finer than the last bit of 1/z^2 for every z an event may have.
SCALE = 2**160
# An account composes this many different kinds of releases beside Gaussians; each may be repeated without limit.
MAX_KINDS = 64


class Tally(BaseModel):
    """What counts against a cap.

    Attributes:
        gaussian: the sum of 1 / noise_multiplier^2 over all Gaussian releases, in units of 2^-160.
        others: every other release, as canonical JSON, with the number of times it was made.
        renyi: in an account that is a Renyi filter, the Renyi divergences at its order, in units of 2^-160; the other
            two are then not kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    gaussian: Annotated[int, Field(ge=0)] = 0
    others: dict[str, Annotated[int, Field(ge=1)]] = {}
    renyi: Annotated[int, Field(ge=0)] = 0

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Tally":
        """Add events up."""
        gaussian, others = 0, dict[str, int]()
        for part in leaves(events):
            if isinstance(part, GaussianEvent):
                gaussian += exact(part.noise_multiplier**-2)
            else:
                times = part.steps if isinstance(part, SampledGaussianEvent) else 1
                others[_kind(part)] = others.get(_kind(part), 0) + times
        return cls(gaussian=gaussian, others=others)

    @property
    def key(self) -> tuple[int, tuple[tuple[str, int], ...], int]:
        """The tally as something hashable, equal for equal tallies."""
        return self.gaussian, tuple(sorted(self.others.items())), self.renyi

    @property
    def brief(self) -> dict[str, object]:
        """The tally as it is written into an entry: without what is empty."""
        return self.model_dump(exclude_defaults=True)

    @property
    def mu_squared(self) -> float:
        """The sum of 1 / noise_multiplier^2, correctly rounded."""
        return self.gaussian / SCALE

    def __bool__(self) -> bool:
        return bool(self.gaussian or self.others or self.renyi)

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
        )


def exact(value: float) -> int:
    """Write a float between 2^-107 and infinity in units of 2^-160, without rounding."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (SCALE // denominator)


def heaviest(tallies: Iterable[Tally]) -> list[Tally]:
    """Leave out every tally that another one exceeds for certain: the same other releases, and more Gaussian ones."""
    best: dict[tuple[tuple[str, int], ...], Tally] = {}
    for tally in tallies:
        _, others, _ = tally.key
        held = best.get(others)
        if held is None or (tally.gaussian, tally.renyi) > (held.gaussian, held.renyi):
            best[others] = tally
    return list(best.values())


def _kind(part: Leaf) -> str:
    """Write an event without its multiplicity and without its label, which cost nothing."""
    content = part.model_dump(mode="json", exclude={"steps", "mechanism"})
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
