"""The page on models that were trained in rounds: what they are, why they stay inside, and how accurate they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.plots import Shares, curve


def render_rounds(facts: Mapping[str, Any]) -> str:
    """Lay the facts of models that stay inside out as one self-contained HTML page, which stays inside as well."""
    rounds = facts["rounds"]
    weighs = any("certainty" in one for one in facts["clients"])
    return render_page(
        "rounds.html",
        report=facts,
        taken=sum(not one["dropped"] for one in facts["clients"]),
        right=None if rounds[-1]["accuracy"] is None else percent(rounds[-1]["accuracy"]),
        heads=("client", "took part", *(("certainty", "leads") if weighs else ())),
        rows=[_row(one, weighs) for one in facts["clients"]],
        figures=_curves(rounds),
        losses=[(str(one["number"]), name, why) for one in rounds for name, why in one["dropped"].items()],
    )


def _curves(rounds: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Draw accuracy and participation, round by round."""
    labels = [f"round {one['number']}" for one in rounds]
    took = [1 - len(one["dropped"]) / len(one["drawn"]) for one in rounds]
    note = "share of the clients drawn for a round whose update was used"
    participation = curve("Participation", note, labels, Shares("updates used", took))
    if any(one["accuracy"] is None for one in rounds):
        return [participation]
    note = "share of the public labeled records that the server's model is right about after a round"
    return [curve("Accuracy", note, labels, Shares("accuracy", [one["accuracy"] for one in rounds])), participation]


def _row(one: Mapping[str, Any], weighs: bool) -> tuple[str, ...]:
    if one["dropped"]:
        return (one["name"], f"no: {one['dropped']}", *(("", "") if weighs else ()))
    return (one["name"], "yes", *((short(one["certainty"]), percent(one["leads"])) if weighs else ()))
