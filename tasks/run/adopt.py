"""Take over a run of an earlier version, which kept its plan and settings where stages without data access can write.

The plan is believed because its hash is that of a charge in the ledger. The settings are shown to the operator, who
reads them before going on.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from dpmodels.errors import ArtifactError
from dpmodels.files import read_plain, sha256_plain
from dpmodels.ledger.ledger import Ledger, Quote, Reservation
from dpmodels.releases.formats import read_plan
from dpmodels.releases.plan import Line, Plan
from tasks.run.accounts import STAGES, charge_of
from tasks.run.store import REPORT_PLAN, Run, Settings, check_name

DROPPED = {"dask", "approver", "ledger"}


@dataclass(frozen=True)
class Found:
    """A run as its files describe it, checked against the ledger; it is not believed before somebody read it."""

    run: Run
    settings: Settings
    plan: Plan
    sealed: dict[str, str]

    def take_over(self) -> Run:
        """Write the plan and settings that somebody has read to where only trusted stages write."""
        self.run.create(self.settings, self.plan, adopted=True)
        for stage, sha256 in self.sealed.items():
            self.run.finish(stage, sha256)
        return self.run


def quote_old(found: Found) -> Quote:
    """Ask the ledger for the state of the charges of a run that was found."""
    name, ledger = (
        found.settings.paid_by or found.run.name,
        Ledger(found.run.ledger_url or found.run.home / "ledger.sqlite"),
    )
    return ledger.quote(*(charge_of(name, line, found.settings.account) for line in found.plan.lines))


def find_old(home: Path, name: str, ledger_url: str = "") -> Found:
    """Read a run of an earlier version, and compare it with the ledger.

    Raises:
        ArtifactError: there is no run of this name, it was never charged, or its files are not what was charged.
    """
    check_name(name)
    run = Run(home=home.absolute(), name=name, ledger_url=ledger_url)
    if run.exists:
        raise ArtifactError(f"run {name} needs no taking over: `nacre resume {name}` goes on with it")
    has_report = (run.released / REPORT_PLAN).exists()
    text = _read(run, "plan.json")
    plan = read_plan(text, _read(run, REPORT_PLAN) if has_report else None)
    written = json.loads(_read(run, "settings.json"))
    kept = {key: value for key, value in written.items() if key not in DROPPED}
    settings = Settings.model_validate({**kept, "ledger": ledger_url})
    ledger = Ledger(ledger_url or run.home / "ledger.sqlite")
    if "lines" in json.loads(text) and any(line.former for line in plan.lines):
        raise _never_charged(run)  # the hash of a former line is that of a text which is not at hand
    held = {STAGES[line.name]: _charged(ledger, run, line, settings) for line in plan.lines}
    sealed = {stage: one.artifact_hash for stage, one in held.items() if one.state == "committed"}
    for stage, sha256 in sealed.items():
        _check_sealed(run, stage, sha256)
    return Found(run, settings, plan, sealed)


def _read(run: Run, name: str) -> bytes:
    return read_plain(run.released.parent, run.released / name)


def _charged(ledger: Ledger, run: Run, line: Line, settings: Settings) -> Reservation:
    """Return the charge of a line, whose key depends on the plan's hash."""
    held = ledger.find(charge_of(settings.paid_by or run.name, line, settings.account).key)
    if held is None:
        raise _never_charged(run)
    return held


def _never_charged(run: Run) -> ArtifactError:
    return ArtifactError(
        f"run {run.name} was never charged for the plan in its files, so nothing vouches for it; start a new run"
    )


def _check_sealed(run: Run, stage: str, sha256: str) -> None:
    if sha256_plain(run.released.parent, run.place(stage)) != sha256:
        raise ArtifactError(f"{run.place(stage)} is not the artifact that was sealed; put the sealed one back")
