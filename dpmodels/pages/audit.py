"""The page of an audit: what each method claims to lose, what was recovered of it, what was tried, and what was not."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.plots import Shares, bars

HEAD = (
    "draw",
    "mechanism",
    "claimed mu or epsilon",
    "recovered, parametric",
    "recovered, without assumptions",
    "ceiling of that",
    "share of the claim",
    "reach",
    "draws",
)


def render_audit(audits: Sequence[Mapping[str, Any]]) -> str:
    """Lay audits out as one self-contained HTML page."""
    return render_page(
        "audit.html",
        audits=[{**one, "rows": [_row(each) for each in one["recovered"]]} for one in audits],
        figures=[_figure(one) for one in audits if one["recovered"]],
        head=HEAD,
        holds=all(each["holds"] for one in audits for each in one["findings"]),
        checks=sum(len(one["findings"]) for one in audits),
    )


def share_of(one: Mapping[str, Any]) -> float:
    """Return the best lower bound over the claim."""
    return max(one["assumption_free"] or 0.0, one["parametric"][0] if one["parametric"] else 0.0) / float(
        one["claimed"]
    )


def _figure(audit: Mapping[str, Any]) -> Figure:
    """Draw for each step the lower bound as a share of its claim, and the interval as a whisker on it."""
    lows, middles, widths = [], [], []
    for one in audit["recovered"]:
        low, high = one["parametric"] or (0.0, 0.0)
        high = low if high is None else high
        lows.append(share_of(one))
        middles.append((low + high) / 2 / one["claimed"])
        widths.append((high - low) / 4 / one["claimed"])
    return bars(
        f"{audit['method']}: recovered of what is claimed",
        f"bar: lower bound; whisker: interval; each holds with a probability of {percent(audit['confidence'])}",
        [one["step"].removeprefix("step ") for one in audit["recovered"]],
        Shares("lower bound", lows),
        Shares("interval", middles, widths),
    )


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = one["parametric"] or (None, None)
    interval = "" if low is None else short(low) if high in (None, low) else f"{short(low)} to {short(high)}"
    free = "" if one["assumption_free"] is None else f"at least {short(one['assumption_free'])}"
    ceiling = "" if one["ceiling"] is None else short(one["ceiling"])
    share, reach = percent(share_of(one)), percent(one["reach"])
    return (
        one["step"],
        one["mechanism"],
        short(one["claimed"]),
        interval,
        free,
        ceiling,
        share,
        reach,
        str(one["draws"] or "exact"),
    )
