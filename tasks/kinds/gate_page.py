"""Where the results of a gate for raw tables are kept: their counts are private, so they stay in the sensitive zone."""

import json

from dpmodels.artifact import write_text
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Verdicts
from dpmodels.pages.checks import render_checks
from tasks.run.folders import make_private
from tasks.run.store import Run

REFUSED = ".refused"
"""Folder in the sensitive zone with the page of the last refused input of each data set, whose run is not kept."""

EVERY_RULE = "shows every rule"
"""What a page of a gate does, as the refusal says behind its path."""


def keep_gate(run: Run, gate: Verdicts) -> None:
    """Write the results of a gate beside the encoded rows."""
    write_text(run.sensitive / "ingest.json", json.dumps(gate.results(), indent=1))
    write_text(run.sensitive / "checks.html", render_checks(gate), 0o600)


def refused_input(run: Run, fault: DataError, gate: Verdicts) -> DataError:
    """Write the results of a gate that refused its input where they outlive the run, and return the error with it.

    Where no rule was broken the input could not be read, and a page of rules that hold would say otherwise.
    """
    if not gate.broken:
        return DataError(fault.column, f"{fault.rule}; nothing was charged", fault.faults)
    page = run.home / "sensitive" / REFUSED / f"{run.plan.release.contract.name}.html"
    make_private(page.parent)
    write_text(page, render_checks(gate), 0o600)
    return DataError(fault.column, f"{fault.rule}; nothing was charged; {page} {EVERY_RULE}", fault.faults)
