"""The publishable report as a page: the facts of ``report.json`` in plain words, plots and tables."""

from collections.abc import Mapping
from typing import Any

from dpmodels.accounting.events import EVENT
from dpmodels.accounting.meaning import factor_rounded_up, guesses_of_budget, in_words, right_guesses
from dpmodels.contract.remarks import of_figures
from dpmodels.pages.asked.officer import for_officer
from dpmodels.pages.asked.several import bets_of_records
from dpmodels.pages.by_column import by_column
from dpmodels.pages.card_words import SMALL, delta_over_records, of_several
from dpmodels.pages.drawing import Figure, meter
from dpmodels.pages.embedded import render_embedded
from dpmodels.pages.excluded import DROPPED, received_columns, stronger_pairs, weaker_pairs
from dpmodels.pages.facts import render_facts
from dpmodels.pages.federated import render_federated
from dpmodels.pages.figures.amounts import amount, both_ends, error, large_amount
from dpmodels.pages.figures.asked_for import Together, figures_together
from dpmodels.pages.figures.classes import class_figures, class_names
from dpmodels.pages.figures.dependences import dependence_figures
from dpmodels.pages.figures.group_means import TABLES as TABLES_OF_MEANS
from dpmodels.pages.figures.named import farther
from dpmodels.pages.figures.open_means import IF_THIN
from dpmodels.pages.figures.rate_pictures import RATES
from dpmodels.pages.figures.rates import without_outcome
from dpmodels.pages.figures.strip import across, strip
from dpmodels.pages.glance import (
    AS_A_RULE,
    cautions_of_whole,
    clipped,
    example,
    fits,
    has_few_values,
    received,
    sentences_in_short,
    warned_columns,
    with_figures,
    within_of,
    worst_first,
)
from dpmodels.pages.maps import scatter
from dpmodels.pages.multiples import TABLES, multiples, pairs_figure
from dpmodels.pages.notes import not_handed_over, notes_of
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.tiles import tiles
from dpmodels.pages.uses import uses
from dpmodels.pages.words import MEANINGS, look_in_words, quantity_in_words
from dpmodels.plural import counted
from dpmodels.statistics.normal import NORMAL_95

DONE = {
    "nacre": "Noisy histograms of every column were released first, to find where its values lie and how many they "
    "are; thin cells were merged, and noisy counts of all pairs of columns (by the target, if any) were released on "
    "the merged cells. A model was fitted to all of these: groups of rows, in each of which the columns vary "
    "independently (a mixture of product distributions). The rows were drawn from it.",
    "nacre-tree": "For every table, noisy histograms of its columns and of those of the rows above were released, each "
    "unit weighing one; then noisy counts of pairs of them, on merged cells. A mixture was fitted for each table. "
    "Units were drawn first, then the rows below them, each given what is known of it.",
    "moments": "Noisy counts of all pairs of columns (by the target, if any) were released on cells known in "
    "advance. A model was fitted to them: groups of rows, in each of which the columns vary independently (a mixture "
    "of product distributions). The rows were drawn from it.",
    "nacre-images": "Noisy moments of all images gave a basis, noisy moments of each class in that basis were "
    "released, and images were drawn from Gaussians fitted to them.",
    "nacre-photos": "Noisy moments of all images and of each class were released, of the cosines in which photographs "
    "vary most; images were drawn from Gaussians fitted to them, with texture that is public.",
    "document-moments": "Every document was embedded by a public encoder, as the direction of the mean of its "
    "sentences. The noisy mean of all embeddings was released first; the noisy number and mean of each class, and one "
    "covariance, were released about it. Embeddings were drawn from Gaussians with these moments, and brought to norm "
    "1; none of them stands for a document.",
    "pearl": "One noisy characteristic function of the rows was released, class by class, and a generator was "
    "trained until its own came close (PEARL).",
    "privbayes": "A network of columns was chosen under privacy, the joint counts of each column and its parents were "
    "released with noise, and the rows were drawn column by column.",
    "p3gm": "Noisy moments gave directions, a noisy mixture was fitted in them, and a decoder was trained with noisy "
    "gradients; the rows were drawn from the mixture and decoded (P3GM).",
    "dp-vae": "A variational auto-encoder was trained with noisy gradients, and the rows were decoded from noise.",
    "dp-gm": "The rows were clustered under privacy, and one variational auto-encoder a cluster was trained with noisy "
    "gradients.",
    "dp-gan": "A generator was trained against a critic; only the critic saw the rows, through noisy gradients.",
    "dpkg": "The rows were clustered under privacy, and one generator a cluster was trained against a critic; only the "
    "critics saw the rows, through noisy gradients.",
    "dp-merf": "One noisy mean of random Fourier features was released, class by class, and a generator was "
    "trained until its own came close (DP-MERF).",
}
OPEN = 0.3
"""Width of an interval from which on a score of a model says nothing."""
ASKED = 12
"""Pairs of a workload that are seen at once."""
NARROW = 6
"""Columns of the table of means where noise alone leaves no mean open."""
ELSE_DONE = "The method released noisy quantities under the budget below and drew the rows from a model of them alone."


def render(facts: Mapping[str, Any], card: Mapping[str, Any] | None = None) -> str:
    """Lay the facts of a run out as one self-contained HTML page.

    Args:
        facts: of the report.
        card: the facts of the hand-off that the page is in, with the pages beside it; None of a page that lies alone.
    """
    officer = for_officer(card)
    if facts.get("about") == "embeddings":
        return render_embedded(facts, officer)
    if facts.get("about") == "federation":
        return render_federated(facts, officer)
    if "about" in facts:
        return render_facts(facts, _privacy_in_words(facts["privacy"], None), officer)
    return _render_rows(facts, officer)


def _render_rows(facts: Mapping[str, Any], officer: Mapping[str, Any]) -> str:
    """Lay the facts of a run out that drew rows, of columns that have figures."""
    numbers, together, judged = _numbers(facts), figures_together(facts), by_column(facts)
    tables, pairs, small = strip(multiples(received_columns(facts)), pairs_figure(facts))
    return render_page(
        "report.html",
        report=facts,
        officer=officer,
        large_delta=_large_delta(facts),
        unlike={"weaker": weaker_pairs(facts), "stronger": stronger_pairs(facts)},
        done=DONE.get(facts["method"].removesuffix("-ae"), ELSE_DONE),
        privacy=_privacy_in_words(facts["privacy"], facts.get("charged")),
        discoveries=facts["privacy"].get("discoveries", ()),
        map=_map(facts["map"]) if facts.get("map") else None,
        tables=tables,
        pairs=pairs,
        small=small,
        across=across(len(small)),
        **_together(facts, together),
        uses=uses(facts, is_tabled=True),
        dropped=DROPPED,
        by_column=judged,
        tiles=tiles(facts, judged, together.asked.grades if together.asked else ()),
        farther=farther(facts),
        headline=sentences_in_short(facts),
        warned=warned_columns(facts),
        notes=notes_of(facts),
        whole=cautions_of_whole(facts),
        errors=worst_first(received_columns(facts)),
        numbers=numbers,
        narrow=[row[:NARROW] for row in numbers],
        clipped=clipped([one for one in received(facts) if "mean" in one]),
        charged=_charged(facts.get("charged")),
        noise=_noises(facts["noise_stddev"], facts.get("released_noise_stddev")),
        meter=meter,
        fits=fits,
        close=all(map(fits, facts.get("fit") or ())),
        plain=look_in_words,
        meanings=MEANINGS,
        as_a_rule=AS_A_RULE,
        example=example(facts),
        figures_are=[f"{said}." for said in [*map(of_figures, facts.get("cautions", ())), _of_users(facts)] if said],
    )


def _together(facts: Mapping[str, Any], together: Together) -> dict[str, Any]:
    """Return what a page says of pairs of columns, rates and means: those that were asked for, and the others."""
    return {
        "together": together,
        "asked": together.asked,
        "dependences": dependence_figures(facts),
        "without_outcome": without_outcome(facts),
        "classes": _classes(facts, together),
        "class_names": class_names(facts),
        "at_once": {"asked": ASKED, "rates": RATES, "groups": TABLES_OF_MEANS, "tables": TABLES},
    }


def _classes(facts: Mapping[str, Any], together: Together) -> list[Figure]:
    """Draw all classes of the target by every other column, in the order of its rates."""
    places = {name: place for place, name in enumerate(together.rated)}
    every = [figure for figure in class_figures(facts) if figure.title in places]
    return sorted(every, key=lambda figure: places[figure.title])


def _noises(planned: Mapping[str, float], released: Mapping[str, float] | None) -> list[tuple[str, ...]]:
    """Return what noise was planned, and what it became where the release decided that."""
    if released is None:
        return [(quantity_in_words(name), short(stddev)) for name, stddev in planned.items()]
    return [
        (quantity_in_words(name), short(stddev), short(released[name]) if name in released else "as planned")
        for name, stddev in planned.items()
        if name in released or "where a class is small" not in name
    ]


def _numbers(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the table of means of what is handed over."""
    dropped = not_handed_over(report)
    wholes = {name: NORMAL_95 * error for name, (_, error) in report.get("wholes", {}).items()}
    shown = [one for one in with_figures(report) if "mean" in one and one["name"] not in dropped]
    return [number_row(one, wholes.get(one["name"])) for one in shown]


def number_row(one: Mapping[str, Any], off_released: float | None = None) -> tuple[str, ...]:
    """Return a line of the table of means: two means, within what, quantile, within what, what the mean could be.

    ``off_released``: what the released mean alone is within, where all tables tell it together.
    """
    means = one.get("unseen", {}).get("means", ())
    has_quantile = "p99" in one and not has_few_values(one)
    off = within_of(one, "mean")
    synthetic = one["mean"].get("synthetic")  # reports of page layouts up to 6 have none
    return (
        one["name"],
        amount(one, one["mean"]["estimate"], off_released or off)
        + (f" ± {error(one, off_released)}" if off_released else ""),
        "" if synthetic is None else amount(one, synthetic, off),
        _within(one, "mean"),
        *((large_amount(one, one["p99"]["estimate"]), _within(one, "p99")) if has_quantile else ("", "")),
        *(both_ends(one, *means) if means else ("", "")),
    )


def _within(one: Mapping[str, Any], figure: str) -> str:
    """Write what a figure is within in nineteen releases of twenty, of one that noise leaves open on what terms."""
    within, least = within_of(one, figure), "at least " if one.get("discovered_bounds") else ""
    if within is not None:
        return least + error(one, within)
    thinned = one[figure].get("expected_error_if_thinning_out")  # reports of early layouts have none
    return "unknown" if thinned is None else f"{least}{error(one, NORMAL_95 * thinned)}, {IF_THIN}"


def _of_users(facts: Mapping[str, Any]) -> str:
    """Say what figures of users count, and what their further columns are; empty of other rows."""
    counts = "each user weighs one in all figures, however many rows they have"
    columns = "`children` is that number, and `position` which of them a row is"
    nulls = "where a user has no row, the columns of rows are null"
    return f"{counts}; {columns}; {nulls}" if facts.get("rows_are") == "users" else ""


def _privacy_in_words(privacy: Mapping[str, Any], charged: Mapping[str, Any] | None) -> dict[str, str]:
    """Say what a budget means to one person, by release and charged report together."""
    epsilon, delta = privacy.get("total_epsilon", privacy["spent_epsilon"]), _total_delta(privacy)
    discoveries = privacy.get("discoveries", ())
    events = [privacy["event"], *([charged["event"]] if charged and charged["charged"] else [])]
    events += [event for one in discoveries for event in one["events"]]
    parsed = [EVENT.validate_python(event) for event in events]
    rows = privacy["rows_of_a_unit"]
    one = "user" if privacy["unit"].startswith("user") else privacy["unit"]
    return {
        "total": f"{epsilon:.4g}",
        "delta": short(delta),
        "one": one,
        "unit": f"one user, with at most {counted(rows, 'row')}" if one == "user" else f"one {one}",
        "whose": f"any one user with all their rows (at most {rows})" if one == "user" else f"any one {one}",
        "factor": factor_rounded_up(epsilon),
        "guesses": in_words(guesses_of_budget(epsilon, delta)),
        "by_noise": in_words(right_guesses(parsed, epsilon, delta)),
        "of_several": f"{bets_of_records(epsilon, delta)} {what}s" if (what := of_several(privacy)) else "",
    }


def _total_delta(privacy: Mapping[str, Any]) -> float:
    """Return the delta of the whole price, to which those of discoveries add."""
    return float(privacy.get("total_delta", privacy["delta"]))


def _large_delta(facts: Mapping[str, Any]) -> str:
    """Warn of a delta that is not far below one over the released number of records; empty where it is, or of rows."""
    records, of_users = facts.get("released_records"), facts["privacy"]["unit"].startswith("user")
    delta = _total_delta(facts["privacy"])
    return delta_over_records(records, delta) if records and not of_users and delta * records > SMALL else ""


def _map(facts: Mapping[str, Any]) -> Figure:
    """Draw where synthetic embeddings and the means of the classes lie."""
    note = f"the two directions in which the released moments vary most, {percent(facts['explains'])} of the variance"
    means = [(*one["place"], one["name"]) for one in facts["means"]]
    return scatter("Map of the embeddings", note, [(x, y, 1) for x, y in facts["points"]], means)


def _charged(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Put the distances of the charged scores into tables, the worst columns first."""
    if facts is None or facts["status"] != "measured":
        return dict(facts) if facts else None
    tables = {
        "One column at a time": facts["columns"],
        f"Each column with {facts['target']}": facts["columns_with_target"],
    }
    worst_first = {
        title: sorted(rows, key=lambda row: (-row["low"], -row["high"])) for title, rows in tables.items() if rows
    }
    scores = [(one["model"], score) for one in facts.get("classifiers") or () for score in one["scores"]]
    open_scores = [f"{score['score']} of {model}" for model, score in scores if score["high"] - score["low"] > OPEN]
    return {**facts, "tables": worst_first, "open_scores": open_scores}
