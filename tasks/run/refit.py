"""Fit again: fit a release that was paid for with this version's fitter, for free, wherever the release comes from.

Nothing here reads data, charges or writes into a ledger. The ledger at hand is asked whether it paid for the release.
If it did not, or if there is no ledger, the run says so, and its manifest names the charge as the release's footer
does.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.files import read_plain
from dpmodels.ledger.ledger import Charge
from dpmodels.methods.registry import create, of_kind
from dpmodels.pages.words import look_in_words
from dpmodels.releases.plan import RELEASE, REPORT, Plan
from dpmodels.releases.release import Release, read_release
from dpmodels.report import charged
from dpmodels.report.fidelity import Measured
from tasks.run.accounts import desk_of
from tasks.run.home import open_ledger
from tasks.run.ready import check_ready, check_writable
from tasks.run.receive import landing_of, reject
from tasks.run.settings import Settings
from tasks.run.store import MADE, Made, Run

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
    """What another fit changed: rows of a table, each with a name, the value before and the value now."""

    rows: tuple[tuple[str, str, str], ...]

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
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)  # noqa: B905


def start_fit(run: Run, release: Path, wished: Settings) -> Outcome | None:
    """Have a new run fit a release again, and return the outcome of the paying run's own fit if it is in this home.

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
    payer = _payer(run, read, sha256)
    account, paid_by = (payer.account, payer.run) if payer else ("", "")
    settings = wished.model_copy(update={"account": account, "paid_by": paid_by, "fits": read.entry})
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


def _payer(run: Run, release: Release, sha256: str) -> Charge | None:
    """Return the charge of a release, if the ledger at hand has it.

    Raises:
        ArtifactError: the ledger has the charge, and sealed another file for it.
    """
    ledger = run.ledger_url or run.home / "ledger.sqlite"
    entry = open_ledger(run.home, ledger).find(release.entry) if run.ledger_url or Path(ledger).exists() else None
    if entry is None:
        return None
    if (entry.state, entry.artifact_hash, entry.charge.plan_hash) != (
        "committed",
        sha256,
        release.line.hash,
    ):
        raise ArtifactError(
            f"the ledger has charge {release.entry[:12]} of run {entry.charge.run}, and this is not the release that "
            "was sealed and committed for it; fit the one in the run's own folder"
        )
    return entry.charge


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
