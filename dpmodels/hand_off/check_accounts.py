"""Check what a card says of accounts: the figures of each hang together, and with what this hand-off cost."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from dpmodels.accounting.composition import LEAST, remaining_epsilon, spent_delta
from dpmodels.accounting.meaning import guesses_of_budget
from dpmodels.accounting.tally import Tally
from dpmodels.frozen import Frozen
from dpmodels.hand_off.card import LARGEST_AMOUNT
from dpmodels.hand_off.check_charges import CLOSE, least_spent
from dpmodels.hand_off.lines import Line
from dpmodels.hand_off.manifest import CARD, Manifest, printable
from dpmodels.hand_off.verification import Verification
from dpmodels.ledger.records import LARGEST_CAP, Standing, Text
from dpmodels.ledger.replay import SLACK

ROUNDED = 1e-5
"""Part of a share of right guesses by which it may be rounded."""
MOST_ABOVE = 100
"""Accounts above one another, which is more than any ledger has."""
Amount = Annotated[Decimal, Field(ge=0, le=LARGEST_AMOUNT)]


class Above(Frozen):
    """What a card says of an account above the one that paid, as it was when the hand-off was made."""

    account: Text
    delta: Annotated[Decimal, Field(ge=0, lt=1)]
    cap: Amount
    spent: Amount


ABOVE = TypeAdapter(Annotated[tuple[Above, ...], Field(max_length=MOST_ABOVE)])


def check_standings(manifest: Manifest, stood: Sequence[Standing], check: Verification) -> None:
    """Hold what every account had spent after its charges to what these cost, and to the cap."""
    for one, lines in zip(stood, _payers(manifest), strict=True):
        name = f"account {printable(one.account)}"
        if one.delta >= 1:
            check.faults.append(f"{name} has a delta that no ledger has")
            continue
        least = least_spent(lines, one.delta, one.after, check)
        if least is not None and not least <= one.after * SLACK + CLOSE:
            check.faults.append(f"{name} had spent less, after this, than this cost")
        if ((one.charges > 0) != (one.before > 0) and one.earlier) or len(one.earlier) > one.charges:
            check.faults.append(f"{name} had another number of charges before this than what it had spent says")
        if one.before > one.after * SLACK + CLOSE:
            check.faults.append(f"{name} had spent more before this than after it")
        if least is not None and not _adds_up(one, least):
            check.faults.append(f"{name} had spent another amount after this than before it and by this")
        if not check.faults and one.right_guesses is not None and not _guesses_rightly(one, lines):
            check.faults.append(f"{name} is said to tell less, or more, than its releases and its budget do")
        if one.after > one.cap * SLACK:
            check.faults.append(f"{name} had spent more than its cap, which no ledger allows")
        elif least is not None and not _remains(one, lines):
            check.faults.append(f"{name} has another amount left than its cap and what was spent leave")


def _payers(manifest: Manifest) -> list[tuple[Line, ...]]:
    """Return the lines that each account paid for."""
    return [(line,) for line in manifest.clients] if manifest.clients else [manifest.lines_of_run]


def _adds_up(one: Standing, least: Decimal) -> bool:
    """Tell whether costs add up where they do so by themselves, which is at a delta of 0."""
    return bool(one.delta) or abs(one.before + least - one.after) <= one.after * (SLACK - 1) + CLOSE


def _guesses_rightly(one: Standing, lines: Sequence[Line]) -> bool:
    """Tell whether the guesses by all that an account paid for are no fewer than by this, nor more than it allows."""
    tally = Tally.of(event for line in lines for event in line.price.events)
    if tally.others or one.right_guesses is None:
        return True
    least, most = (1 + spent_delta(tally, 0.0)) / 2, guesses_of_budget(float(one.after), float(one.delta))
    return min(least, most) * (1 - ROUNDED) <= one.right_guesses <= most * (1 + ROUNDED)


def _remains(one: Standing, lines: Sequence[Line]) -> bool:
    """Tell whether what an account has left can be so: all of it at a delta of 0, else no more than this run leaves.

    What was spent before is known as one epsilon alone, and releases together cost less than the sum of theirs. But an
    account that has been charged for this run has no more left than one that was charged for nothing else.
    """
    left = one.cap - one.after
    if left <= 0:
        return one.remaining == 0
    slack = one.cap * (SLACK - 1) + CLOSE
    if not one.delta:
        return abs(one.remaining - left) <= slack or (one.remaining == 0 and left < LEAST + slack)
    if one.remaining > one.cap:
        return False
    tally = Tally.of(event for line in lines for event in line.price.events)
    if tally.others:  # an hour of work, for a bound that is seldom near
        return True
    return one.remaining <= remaining_epsilon(tally, min(one.cap, LARGEST_CAP), one.delta) * SLACK + CLOSE


def check_above(manifest: Manifest, stood: Sequence[Standing], above: Any, check: Verification) -> None:
    """Hold what accounts above had spent to their caps, and to what this cost, which counts against each of them.

    Charges of others that were given back since no longer count there, so what an account above has spent may be less
    than what the paying account had spent after this.
    """
    try:
        accounts = ABOVE.validate_python(above, strict=False)
    except ValidationError:
        check.faults.append(f"{CARD} is not as nacre writes it")
        return
    if not stood and accounts:
        check.faults.append(f"{CARD} has accounts above one that paid, and none that paid")
    names = [*(one.account for one in stood[:1]), *(one.account for one in accounts)]
    if len(set(names)) < len(names):
        check.faults.append(f"{CARD} has one account twice among the payer and those above it")
    for one in accounts if stood else ():
        name, lines = f"account {printable(one.account)}", _payers(manifest)[0]
        least = least_spent(lines, one.delta, stood[0].after, check)
        if least is not None and not least <= one.spent * SLACK + CLOSE:
            check.faults.append(f"{name}, above the one that paid, has spent less than this cost")
        if one.spent > one.cap * SLACK:
            check.faults.append(f"{name}, above the one that paid, has spent more than its cap")
