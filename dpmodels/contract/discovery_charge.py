"""What a schema was discovered with: the charge that paid for it, whole, so that every home can state its price.

A completed schema may be carried elsewhere, without the ledger that paid. So it holds all that a manifest's line needs.
"""

from typing import Annotated

from pydantic import Field

from dpmodels.accounting.events import GaussianEvent, ThresholdEvent
from dpmodels.frozen import Frozen

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
