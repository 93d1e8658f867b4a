"""What another fit of a release changed, and what its hand-off declares in the words of the run that paid."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpmodels.pages.words import look_in_words
from tasks.run.store import Made, Run

UNKNOWN, NOT_AT_HAND = "not recorded", "not at hand"


@dataclass(frozen=True)
class Outcome:
    """What made a run's generator, and what its publishable report says of the table."""

    made: Made
    report: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run) -> "Outcome | None":
        """Read the outcome of a run that was handed over; None for a run that was not."""
        report = run.place("validate") / "report.json"
        return cls(run.made("train"), json.loads(report.read_text(encoding="utf-8"))) if report.is_file() else None


@dataclass(frozen=True)
class Changes:
    """What another fit changed: rows of a table, each with a name, the value before and the value now.

    Attributes:
        rows: those of the table.
        declared: by which names the run that paid declares what this hand-off declares in its words.
        paid_by: that run.
    """

    rows: tuple[tuple[str, str, str], ...]
    declared: tuple[str, ...] = ()
    paid_by: str = ""

    @property
    def taken_over(self) -> str:
        """Say what is declared in the words of the run that paid; empty if nothing is."""
        if not self.declared:
            return ""
        names = ", ".join(self.declared)
        return f"{names}: as run {self.paid_by} declared in the ledger; give any of them anew to say otherwise"

    @classmethod
    def between(cls, before: Outcome | None, now: Outcome) -> "Changes":
        """Compare the earlier fit, if it is at hand, with the present one."""
        old = before.made if before else Made()
        rows = [("nacre version", old.nacre_version or UNKNOWN, now.made.nacre_version), *_settings(old, now.made)]
        figures = _figures(before.report) if before else {}
        rows += [(name, figures.get(name, UNKNOWN), figure) for name, figure in _figures(now.report).items()]
        if before is None:
            rows = [(name, NOT_AT_HAND, figure) for name, _, figure in rows]
        return cls(tuple((_line(name), _line(one), _line(other)) for name, one, other in rows))

    def __repr__(self) -> str:
        rows = [("what changed", "before", "now"), *self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]  # noqa: B905
        return "\n".join([*lines, *([f"declared: {self.taken_over}"] if self.declared else [])])


def _settings(old: Made, new: Made) -> Iterator[tuple[str, str, str]]:
    """Yield the settings of the fitter that differ."""
    before = dict(_flat({"seed": old.seed, **old.settings})) if old.nacre_version else {}
    now = dict(_flat({"seed": new.seed, **new.settings}))
    differ = [name for name in before | now if not before or before.get(name, "") != now.get(name, "")]
    for name in differ:
        yield f"fitter: {name}", before.get(name, "" if before else UNKNOWN), now.get(name, "")
    if not differ:
        yield "fitter: all settings", "as now", "as before"


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", str(value)


def _figures(report: Mapping[str, Any]) -> dict[str, str]:
    """Say how many rows a publishable report is about, and how far they are from what was released."""
    columns = [column for column in report["columns"] if "distance_to_release" in column]
    figures = {"synthetic rows": str(report["synthetic_rows"])}
    if columns:
        distances = [column["distance_to_release"] for column in columns]
        noise = sum(column["expected_distance"] for column in columns)
        figures["distance to the release, mean of columns"] = f"{sum(distances) / len(columns):.4f}"
        figures["distance to the release, farthest column"] = f"{max(distances):.4f}"
        figures["distance that noise alone puts there, mean"] = f"{noise / len(columns):.4f}"
    for look in report["fit"]:
        figures[f"left of {look_in_words(look['look'])}, in units of its noise"] = f"{look['left']:.3f}"
    return figures


def _line(text: str) -> str:
    """Make text fit on one line of a table, since anybody may have written the records of free stages."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:120])
