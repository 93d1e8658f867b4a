"""The publishable report on a federation as a page: who took part, what epsilon means, what the classifier says."""

import math
from collections.abc import Mapping
from typing import Any

from dpmodels.accounting.events import EVENT
from dpmodels.accounting.meaning import factor_rounded_up, guesses_of_budget, in_words, right_guesses
from dpmodels.pages.drawing import Figure
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.plots import Shares, bars

DONE = {
    "federated-heads": "A frozen public network made a bounded vector of every record. Each client released, once, the "
    "optimum of two regularized logistic problems with noise: one tells its records from public ones, which says how "
    "certain the client is of a record, and one tells the classes apart. The classifier is the mean of all clients' "
    "logits, weighted by their certainties (FedAUX, in its private one-shot form).",
    "federated-moments": "A frozen public network made a bounded vector of every record. Each client released, once, "
    "the counts, sums and second moments of its vectors by class, with noise. The sums of all clients were added up "
    "and read as one Gaussian for each class, whose discriminants are the classifier.",
    "federated-both": "A frozen public network made a bounded vector of every record. Each client released, once and "
    "under one budget, two regularized logistic heads and the moments of its vectors by class, with noise. Two "
    "classifiers were made: the certainty-weighted mean of the heads' logits (FedAUX, in its private one-shot form), "
    "and one Gaussian for each class, read off the sum of all moments.",
}
CENTRAL = (
    "A frozen public network made a bounded vector of every record. Each client handed the exact counts, sums and "
    "second moments of its vectors by class to a trusted aggregator, which added them up and released the total once, "
    "with one noise for all clients. The total was read as one Gaussian for each class, whose discriminants are the "
    "classifier."
)


def render_federated(facts: Mapping[str, Any], officer: Mapping[str, Any]) -> str:
    """Lay the facts of a federation out as one self-contained HTML page."""
    weighs = any("certainty" in one for one in facts["clients"])
    names, judged = [one["name"] for one in facts["classes"]], bool(facts["compared"]["classifiers"])
    class_bars = bars(
        "What the classifier says of public records",
        "share of the public records that it puts in each class",
        names,
        Shares("public records", [one["share"] for one in facts["classes"]]),
    )
    return render_page(
        "federated.html",
        report=facts,
        officer=officer,
        done=CENTRAL if facts.get("trust") == "central" else DONE[facts["method"]],
        taken=sum(not one["dropped"] for one in facts["clients"]),
        words=_words(facts["privacy"]),
        heads=("client", "took part", "epsilon", "account", *(("certainty", "leads") if weighs else ())),
        rows=[_row(one, weighs) for one in facts["clients"]],
        judged=judged,
        figures=[*([_accuracies(facts["compared"])] if judged else []), class_bars],
    )


def _accuracies(compared: Mapping[str, Any]) -> Figure:
    """Draw how often each classifier is right, with what so many records leave open."""
    right, records = [one["accuracy"] for one in compared["classifiers"]], max(compared["records"], 1)
    stddevs = [math.sqrt(share * (1 - share) / records) for share in right]
    note = f"share of {compared['records']:,} public labeled records; a whisker is two standard deviations either way"
    names = [one["name"] for one in compared["classifiers"]]
    return bars("How often it is right", note, names, Shares("right", right, stddevs))


def _words(privacy: Mapping[str, Any]) -> dict[str, str]:
    """Say what epsilon means."""
    epsilon, delta = privacy["spent_epsilon"], privacy["delta"]
    right = right_guesses([EVENT.validate_python(privacy["event"])], epsilon, delta)
    guesses = in_words(guesses_of_budget(epsilon, delta))
    return {"guesses": guesses, "by_noise": in_words(right), "factor": factor_rounded_up(epsilon)}


def _row(one: Mapping[str, Any], weighs: bool) -> tuple[str, ...]:
    if one["dropped"]:
        return (one["name"], f"no: {one['dropped']}", "", one["account"], *(("", "") if weighs else ()))
    sure = (short(one["certainty"]), percent(one["leads"])) if weighs else ()
    return (one["name"], "yes", short(one["epsilon"]), one["account"], *sure)
