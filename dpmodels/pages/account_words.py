"""How a card's pages write accounts: what was spent before, with this, and at worst, and what that means."""

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from itertools import zip_longest
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.meaning import MOST_EPSILON, guesses_of_budget, in_words
from dpmodels.pages.card_words import after_at_worst, by_factor, cases, cut, odds_factor, tells, there
from dpmodels.pages.page import percent_up, short

HUNDREDTH = Decimal("0.01")


def accounts_of(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write the accounts that paid, with the names of the clients that they are of, heaviest first."""
    hand_off = facts["hand_off"]
    names = [one["name"] for one in hand_off["clients"]] or [""]
    books = facts.get("books") or [{}] * len(facts["accounts"])
    triples = list(zip(facts["accounts"], books, names, strict=False))
    triples.sort(key=lambda triple: -Decimal(triple[0]["after"]))
    return [_account(one, book, name, hand_off) for one, book, name in triples]


def _account(
    one: Mapping[str, Any], book: Mapping[str, Any], client: str, hand_off: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the amounts of an account; those that are spent are rounded up, and what remains is rounded down."""
    earlier = one.get("earlier", ())
    return {
        "name": one["account"],
        "client": client,
        "delta": short(float(one["delta"])),
        "cap": amounts.written(one["cap"]),
        "before": amounts.spent(one["before"]),
        "after": amounts.spent(one["after"]),
        "remaining": amounts.remaining(one["remaining"]),
        "all": _of_all(one, hand_off),
        "of_cap": _of_cap(one),
        "losses": _losses(one, there(hand_off)),
        "fits": _fits(one, hand_off["epsilon"]),
        "used": _used(one),
        "more": _more(one, hand_off["epsilon"]),
        "why": amounts.composes(one["cap"], one["after"], one["remaining"]),
        "approved": one["approved"],
        "owner": cut(book.get("owner", "")),
        "expires": book.get("expires") or "",
        "charges": one.get("charges", 0),
        "earlier": [_earlier(charge, spent) for charge, spent in zip_longest(earlier, book.get("spent", ())) if charge],
    }


def _used(one: Mapping[str, Any]) -> str:
    """Say which part of the cap is used, in words for a board."""
    part = Decimal(one["after"]) / Decimal(one["cap"])
    word = {Decimal("0.25"): "a quarter", Decimal("0.5"): "half", Decimal("0.75"): "three quarters", Decimal(1): "all"}
    return f"{word.get(part.quantize(HUNDREDTH, ROUND_CEILING)) or percent_up(float(part))} used"


def _more(one: Mapping[str, Any], epsilon: str | None) -> str:
    """Say how many further releases of the size of this one are certain to fit: their epsilons at most add up."""
    if not epsilon or not Decimal(epsilon):
        return "what further releases fit depends on their size"
    each, left = Decimal(amounts.spent(epsilon)), Decimal(one["cap"]) - Decimal(one["after"])
    number = max(int(left / each), int(Decimal(one["remaining"]) >= each))
    several = f"{number:,} more of this size are" if number else "no other of this size is"
    return f"{'one more of this size is' if number == 1 else several} certain to fit"


def _fits(one: Mapping[str, Any], epsilon: str | None) -> str:
    """Say what further release fits, and why amounts are no plain sum where releases together cost less."""
    before, after = Decimal(one["before"]), Decimal(one["after"])
    is_less = bool(amounts.composes(one["cap"], after, one["remaining"]))
    is_less = is_less or bool(before and epsilon and after < before + Decimal(epsilon) - amounts.PLACES)
    said = f"one further release of {amounts.remaining(one['remaining'])} at most fits"
    said = said if Decimal(one["remaining"]) else "nothing further fits"
    return f"{said}: no plain sum, as releases together cost less than the sum of their ε" if is_less else said


def _of_all(one: Mapping[str, Any], hand_off: Mapping[str, Any]) -> dict[str, Any] | None:
    """Say what everything means together that an account paid for; None where there is one release."""
    if not Decimal(one["before"]):
        return None
    epsilon, delta = float(one["after"]), float(one["delta"])
    of_noise = "right_guesses" in one
    of_budget = in_words(guesses_of_budget(epsilon, delta))
    guesses = in_words(one["right_guesses"]) if of_noise else of_budget
    told = tells(hand_off, _factor(epsilon), delta, guesses, beyond=one["beyond"] if of_noise else None)
    of_epsilon = {"epsilon": amounts.spent(one["after"]), "guesses_of_budget": cases(of_budget), "of_noise": of_noise}
    return {**told, **({} if of_noise else _but(delta)), **of_epsilon}


def _losses(one: Mapping[str, Any], of_what: str) -> str:
    """Say by how much all that an account paid for moves odds: before this, and with it."""
    before, after = (by_factor(odds_factor(_factor(float(one[name])))) for name in ("before", "after"))
    aside = ", δ aside," if Decimal(one["delta"]) else ""
    if Decimal(one["before"]):
        said = "For whoever was in the data each time, what the releases tell adds up: odds on "
        said += f"{of_what} moved{aside} by {before} by all before this (ε = {amounts.spent(one['before'])}), and move "
        said += f"by {after} with it (ε = {amounts.spent(one['after'])})."
    else:
        said = f"By this release odds on {of_what} move{aside} by {after}."
    if not Decimal(one["remaining"]):
        return f"{said} The account is spent, so nothing is added to that while its cap stays."
    return said


def _of_cap(one: Mapping[str, Any]) -> dict[str, Any] | None:
    """Say what everything would mean together if all of an account is ever spent; None where nothing further fits."""
    if not Decimal(one["remaining"]):
        return None
    cap, delta = float(one["cap"]), float(one["delta"])
    factor = _factor(cap)
    figures = {
        "epsilon": amounts.spent(one["cap"]),
        "guesses_of_budget": cases(in_words(guesses_of_budget(cap, delta))),
        "example": after_at_worst(factor),
        "example_of_values": after_at_worst(factor and factor**2),
    }
    return {**figures, "factor": by_factor(odds_factor(factor)), **_but(delta)}


def _but(delta: float) -> dict[str, str]:
    """Say what a bound on odds leaves aside where only epsilon and delta are known."""
    return dict.fromkeys(("beyond", "beyond_of_values"), "δ" if delta else "")


def _factor(epsilon: float) -> float | None:
    return math.exp(epsilon) if epsilon < MOST_EPSILON else None


def _earlier(charge: Mapping[str, str], spent: str | None) -> dict[str, str]:
    """Write an earlier charge as a row, with what had been spent after it."""
    said = filter(None, (charge.get("purpose"), charge.get("recipient")))
    return {
        "day": charge["day"],
        "run": charge["run"],
        "epsilon": amounts.written(charge["epsilon"]),
        "delta": amounts.written(charge["delta"]),
        "spent": amounts.spent(spent) if spent else "not known",
        "declared": "; ".join(said) or "nothing",
    }


def above_words(one: Mapping[str, Any]) -> dict[str, str]:
    """Write the cap of an account above the one that paid, and what was spent below it."""
    return {"name": one["account"], "cap": amounts.written(one["cap"]), "spent": amounts.spent(one["spent"])}
