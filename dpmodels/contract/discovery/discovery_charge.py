"""What a schema was discovered with: the charge that paid for it, whole, so that every home can state its price.

A completed schema may be carried elsewhere, without the ledger that paid. So it holds all that a manifest's line needs.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, PlainSerializer

from dpmodels.accounting.events import GaussianEvent, ThresholdEvent
from dpmodels.frozen import Frozen
from dpmodels.privacy import PrivacyUnit

MOST_DISCOVERIES, MOST_EVENTS = 100, 10
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Named = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class DiscoveryCharge(Frozen):
    """One discovery that a schema was completed from; everything in it is public.

    Attributes:
        charge: key of the ledger's charge, which is the hash of account, plan and run.
        unit: in words, as a manifest has it; the price is for this unit alone.
        epsilon, delta: the budget that was asked for.
        events: what was charged, and what it costs follows from them.
    """

    charge: Annotated[Sha256, Field(description="The key of the charge.")]
    account: Annotated[Named, Field(description="The account that paid.")]
    run: Annotated[Named, Field(description="The run that paid.")]
    unit: Annotated[Named, Field(description="Whose presence the price is for.")]
    epsilon: Annotated[float, Field(gt=0, le=1000, description="The epsilon that was asked for.")]
    delta: Annotated[float, Field(gt=0, lt=1, description="The delta that was asked for.")]
    events: Annotated[
        tuple[Annotated[GaussianEvent | ThresholdEvent, Field(discriminator="kind")], ...],
        Field(min_length=1, max_length=MOST_EVENTS, description="The noise and the threshold that were charged."),
    ]
    plan_sha256: Annotated[Sha256, Field(description="The hash of the plan.")]
    release_sha256: Annotated[Sha256, Field(description="The hash of the release.")]


def _written(discovered: Sequence[DiscoveryCharge]) -> list[dict[str, Any]]:
    return [one.model_dump(mode="json") for one in discovered]


Sources = Annotated[
    tuple[str, ...],
    Field(
        exclude_if=lambda words: not words,
        strict=False,
        description="The public documents that bounds and categories are from.",
    ),
]
Discovered = Annotated[
    tuple[DiscoveryCharge, ...],
    PlainSerializer(_written),
    Field(
        exclude_if=lambda charges: not charges,
        strict=False,
        fail_fast=True,
        max_length=MOST_DISCOVERIES,
        description="What `nacre schema discover` was charged for keys of this schema.",
    ),
]
"""Keys of a schema that are left out where there is nothing, so that it keeps the hash that it had before."""


def discovery_faults(discovered: Sequence[DiscoveryCharge], unit: PrivacyUnit) -> Iterator[tuple[str, str]]:
    """List the discoveries that are named twice, or whose price is for another unit, as (place in the file, why)."""
    charges = [one.charge for one in discovered]
    for index, one in enumerate(discovered):
        if one.charge in charges[:index]:
            yield f"discovered.{index}.charge", "is that of another discovery here; leave one of them out"
        if one.unit != str(unit):
            why = f"is `{one.unit}`, and the schema's is `{unit}`: what was discovered has no price for it"
            yield f"discovered.{index}.unit", f"{why}; discover again with this unit"
