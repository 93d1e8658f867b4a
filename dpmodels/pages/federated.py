"""The publishable report on a federation as a page: who took part, what epsilon means, what the classifier says."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.accounting.events import EVENT
from dpmodels.accounting.meaning import in_words, right_guesses
from dpmodels.contract.federation import ROUNDS
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.plots import Figure, Shares, bars, curve

DONE = {
    "federated-heads": "A frozen public network made a bounded vector of every record. Each client released, once, the "
    "optimum of two regularized logistic problems with noise: one tells its records from public ones, which says how "
    "certain the client is of a record, and one tells the classes apart. The classifier is the mean of all clients' "
    "logits, weighted by their certainties (FedAUX, in its private one-shot form).",
    "federated-moments": "A frozen public network made a bounded vector of every record. Each client released, once, "
    "the counts, sums and second moments of its vectors by class, with noise. The sums of all clients were added up "
    "and read as one Gaussian for each class, whose discriminants are the classifier.",
    "federated-scores": "A frozen public network made a bounded vector of every record. Each client released, once, "
    "the optimum of one regularized logistic problem with noise, which says how certain the client is of a record. "
    "Then models were trained in rounds: clients that were drawn trained the server's model on their records, without "
    "any noise, and the server averaged what they sent and, but in FedAvg and FedProx, distilled it on public records.",
    "federated-rounds": "Models were trained in rounds: clients that were drawn trained the server's model on their "
    "records, without any noise, and the server averaged what they sent and, but in FedAvg and FedProx, distilled it "
    "on public records. Nothing was released with noise, and nothing was charged.",
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


def render_federated(facts: Mapping[str, Any]) -> str:
    """Lay the facts of a federation out as one self-contained HTML page."""
    weighs = any("certainty" in one for one in facts["clients"])
    priced = "epsilon of scores" if facts["unprotected"] else "epsilon"
    paid = () if facts["method"] == ROUNDS else (priced, "account")
    names = [one["name"] for one in facts["classes"]]
    class_bars = bars(
        "What the classifier says of public records",
        "share of the public records that it puts in each class",
        names,
        Shares("public records", [one["share"] for one in facts["classes"]]),
    )
    return render_page(
        "federated.html",
        report=facts,
        done=CENTRAL if facts.get("trust") == "central" else DONE[facts["method"]],
        taken=sum(not one["dropped"] for one in facts["clients"]),
        words=_words(facts["privacy"]),
        heads=("client", "took part", *paid, *(("certainty", "leads") if weighs else ())),
        rows=[_row(one, bool(paid), weighs) for one in facts["clients"]],
        figures=[class_bars, *_curves(facts.get("rounds", ()))],
        losses=_losses(facts.get("rounds", ())),
    )


def _words(privacy: Mapping[str, Any]) -> dict[str, str]:
    """Say what epsilon means, where one is stated."""
    epsilon, delta = privacy["spent_epsilon"], privacy["delta"]
    if epsilon is None:
        return {}
    right = right_guesses([EVENT.validate_python(privacy["event"])], epsilon, delta)
    return {"guesses": in_words(right), "factor": f"{math.exp(epsilon):.3g}"}


def _curves(rounds: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Draw accuracy and participation, round by round."""
    if not rounds:
        return []
    labels = [f"round {one['number']}" for one in rounds]
    took = [1 - len(one["dropped"]) / len(one["drawn"]) for one in rounds]
    dropout = curve(
        "Participation",
        "share of the clients drawn for a round whose update was used",
        labels,
        Shares("updates used", took),
    )
    if any(one["accuracy"] is None for one in rounds):
        return [dropout]
    right = Shares("accuracy", [one["accuracy"] for one in rounds])
    note = "share of the public labeled records that the server's model is right about after a round"
    return [curve("Accuracy", note, labels, right), dropout]


def _losses(rounds: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return who was dropped in which round, and why."""
    return [(str(one["number"]), name, why) for one in rounds for name, why in one["dropped"].items()]


def _row(one: Mapping[str, Any], paid: bool, weighs: bool) -> tuple[str, ...]:
    if one["dropped"]:
        account = ("", one["account"]) if paid else ()
        return (one["name"], f"no: {one['dropped']}", *account, *(("", "") if weighs else ()))
    account = (short(one["epsilon"]), one["account"]) if paid else ()
    sure = (short(one["certainty"]), percent(one["leads"])) if weighs else ()
    return (one["name"], "yes", *account, *sure)
