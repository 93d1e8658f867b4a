"""The runs of a home: what each is about and how far it is, from its files in the control zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpmodels.errors import ArtifactError, NacreError
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.schema.discover import Discovery
from tasks.store import Run

PAID = ("sanitize", "score", "train", "sample", "validate")
"""Stages after the charge: who gives the same command again instead of going on pays again."""


@dataclass(frozen=True)
class Listed:
    """One run; ``stage`` is the last one that finished, ``state`` says whether there is anything left to do."""

    name: str
    day: str
    data_set: str
    method: str
    stage: str
    state: str


def list_runs(home: Path) -> Iterator[Listed]:
    """List the runs of a home, the oldest first.

    Raises:
        NacreError: there is no such home.
    """
    if not (home / "control").is_dir():
        raise NacreError(f"there are no runs at {home}; name a home with --home")
    for settings in sorted((home / "control").glob("*/settings.json"), key=lambda path: path.stat().st_mtime):
        yield _listed(Run(home=home.absolute(), name=settings.parent.name), settings)


def is_handed_over(run: Run) -> bool:
    """Tell whether the hand-off at a run's place is the run's own."""
    try:
        return read_manifest(run.settings.out).made_by == run.name
    except ArtifactError:
        return False


def _listed(run: Run, settings: Path) -> Listed:
    day = f"{datetime.fromtimestamp((run.control / 'plan.json').stat().st_mtime, UTC):%Y-%m-%d}"
    try:
        plan, own = run.plan, run.settings
    except (NacreError, ValueError, OSError):  # of another version, or damaged
        return Listed(run.name, day, "", "", run.reached, "cannot be read")
    if own.federation:
        state = f"part of {own.federation}"
    else:
        unfinished = "paid for, unfinished" if run.reached in PAID else "unfinished"
        state = "handed over" if is_handed_over(run) else unfinished
        if isinstance(plan.contract, Discovery):
            state = "discovered" if run.reached else state
    return Listed(run.name, day, plan.contract.name, plan.method, run.reached, state)
