"""Fit again: fit a release that was paid for with this version's fitter, for free, wherever the release comes from.

Nothing here reads data, charges or writes into a ledger. The ledger at hand is asked whether it paid for the release.
If it did not, or if there is no ledger, the run says so, and its manifest names the charge as the release's footer
does.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.files import read_plain
from dpmodels.ledger.ledger import Charge
from dpmodels.methods.registry import create, of_kind
from dpmodels.releases.plan import RELEASE, REPORT, Plan
from dpmodels.releases.release import Release, read_release
from dpmodels.report import charged
from dpmodels.report.fidelity import Measured
from tasks.run.accounts import desk_of
from tasks.run.fits.changes import Outcome
from tasks.run.home import open_ledger
from tasks.run.ready import check_ready, check_writable
from tasks.run.receive import landing_of, reject
from tasks.run.settings import Settings
from tasks.run.store import MADE, Run

OF_ONE_CHARGE = "again"
"""What is declared of a charge, and of no hand-off: why the data is charged once more."""


def start_fit(run: Run, release: Path, wished: Settings, anew: Collection[str] = ()) -> Outcome | None:
    """Have a new run fit a release again, and return the outcome of the paying run's own fit if it is in this home.

    What the paying run declared of its hand-off holds for this one too, but for what is declared ``anew``. It is read
    in the chain of the ledger alone: whoever can write the release could otherwise have words said in an operator's
    name.

    Raises:
        NacreError: the release cannot be fitted by this version, or is not the one that the ledger at hand sealed for
            its charge; or a folder or a device is unsuitable.
    """
    _check_named(run.home, release)
    check_ready(wished.device, wished.bucket or wished.out, wished.signing_key)
    check_writable(run.home)
    try:
        content = read_plain(release.parent, release)
        if not content.startswith(b"PAR1"):
            raise ArtifactError("it is no release; name the release.parquet of a run")
        read = read_release(content).value
    except (ArtifactError, OSError) as fault:
        raise ArtifactError(f"{release} cannot be fitted: {fault}") from None
    check_fits(read, wished.training)
    sha256 = hashlib.sha256(content).hexdigest()
    payer, declared = _payer(run, read, sha256)
    account, paid_by = (payer.account, payer.run) if payer else ("", "")
    words = {name: text for name, text in declared.items() if name not in {*anew, OF_ONE_CHARGE}}
    settings = wished.model_copy(update={**words, "account": account, "paid_by": paid_by, "fits": read.entry})
    run.create(settings, Plan(lines=(read.line,)))
    write_whole(run.place("sanitize"), lambda part: part.write_bytes(content))
    run.finish("sanitize", sha256)
    return _first(run.home, paid_by)


def _check_named(home: Path, release: Path) -> None:
    """Refuse a folder, and the name of a run, where its release is to be named.

    Raises:
        Unsuitable: it is such.
    """
    is_run = not release.exists() and (home / "control" / release.name).is_dir()
    if is_run or release.is_dir():
        file = home / "released" / (release.name if is_run else "RUN") / MADE["sanitize"]
        what = f"the name of a run, whose release is {file}" if is_run else f"a folder; a run's release is {file}"
        raise Unsuitable(f"{release.name} is {what}: name that file")


def forget_fit(run: Run, out: str | Path) -> Run:
    """Have a run train, sample, check and hand over once more, into a new folder; its old hand-off stays as it is.

    Raises:
        NacreError: this version cannot fit its release, or its report has charged scores of the rows that it made.
    """
    release, settings = run.finished("sanitize"), run.settings
    if release is None:
        raise ArtifactError(f"run {run.name} has no sealed release yet, so there is nothing to fit again; resume it")
    check_fits(read_release(run.read("sanitize")).value, settings.training)
    reservation = desk_of(run, REPORT).held() if run.plan.report else None
    if reservation is not None and reservation.state not in ("reserved", "voided"):
        raise ArtifactError(
            f"the report of run {run.name} has scores that were charged for the rows it made, and other rows have "
            f"none; `nacre fit {release.path}` makes a run of its own, without scores"
        )
    elsewhere = landing_of(run, out)
    check_ready(settings.device, out, settings.signing_key)
    run.settle(settings.model_copy(update=elsewhere))
    for stage in ("validate", "sample", "train"):  # the earliest last, so that a cut-off changes nothing
        run.forget(stage)
    reject(run)
    (run.released / "checkpoint.safetensors").unlink(missing_ok=True)
    return Run.find(run.home, run.name, run.ledger_url, run.dask)


def check_fits(release: Release, training: Mapping[str, Any]) -> None:
    """Refuse a release that this version cannot fit, and training settings that its method does not have.

    Raises:
        ArtifactError: the release is of another kind or another version.
        InvalidArgument: the method has no such training setting, or refuses its value.
    """
    plan, older = release.line, "fit it with the version that measured it, whose number stands in its manifest"
    if plan.method == charged.METHOD:
        raise ArtifactError("the file holds the scores of a report, to which no generator is fitted; name a release")
    if plan.name != RELEASE:
        raise ArtifactError("the file's line is no line of a release; name the release.parquet of a run")
    if plan.family:
        raise ArtifactError(f"the release holds an embedding for each {plan.family}, and no generator is fitted to it")
    if plan.method not in of_kind("table"):
        raise ArtifactError(f"the release is of method {plan.method!r}, which this version does not know; {older}")
    if not re.fullmatch("[0-9a-f]{64}", release.entry):
        raise ArtifactError("the release's footer names no charge of a ledger, so nothing says that it was paid for")
    try:
        create(plan.method, plan.measurement, {})
    except (InvalidArgument, Unsuitable):
        raise ArtifactError(
            f"the plan of the release has settings that {plan.method} does not take in this version; {older}"
        ) from None
    create(plan.method, plan.measurement, training)
    try:
        Measured.of(release)
    except Exception:  # a system's errors on values that are not of its plan
        raise ArtifactError(
            f"the release does not hold what this version reads from a plan of {plan.method}; {older}"
        ) from None


def _first(home: Path, paid_by: str) -> Outcome | None:
    """Return the outcome of the paying run's own fit, if that run is in this home."""
    try:
        return Outcome.of(Run.find(home, paid_by))
    except ArtifactError:
        return None


def _payer(run: Run, release: Release, sha256: str) -> tuple[Charge | None, dict[str, str]]:
    """Return the charge of a release, if the ledger at hand has it, and what was declared with it.

    Raises:
        ArtifactError: the ledger has the charge, and sealed another file for it.
    """
    place = run.ledger_url or run.home / "ledger.sqlite"
    ledger = open_ledger(run.home, place) if run.ledger_url or Path(place).exists() else None
    entry = ledger.find(release.entry) if ledger else None
    if ledger is None or entry is None:
        return None, {}
    if (entry.state, entry.artifact_hash, entry.charge.plan_hash) != (
        "committed",
        sha256,
        release.line.hash,
    ):
        raise ArtifactError(
            f"the ledger has charge {release.entry[:12]} of run {entry.charge.run}, and this is not the release that "
            "was sealed and committed for it; fit the one in the run's own folder"
        )
    return entry.charge, ledger.declared(release.entry).said
