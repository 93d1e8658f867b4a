"""Where a run keeps what it makes: one folder in the sensitive zone, one in the released zone, and the ledger.

    NACRE_HOME/ledger.sqlite
    NACRE_HOME/sensitive/RUN/    0700; may be deleted as soon as the release is sealed
    NACRE_HOME/released/RUN/     plan, release, generator, synthetic table, charged scores, report

A stage that finished leaves a record of its artifact; a resumed run skips every stage whose record still holds.
"""

import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from pydantic import BaseModel, ConfigDict

from dpmodels.accounting.artifact import sha256_of, sync
from dpmodels.errors import ArtifactError
from dpmodels.synthesizers.base import Plan
from tasks.engine import cores

REPORT_PLAN = "report-plan.json"


class Settings(BaseModel):
    """What the stages of one run need besides the plan; nothing here can change what is charged.

    Attributes:
        paid_by: the run whose release this one samples again; empty for a run that pays for its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    data: Path
    out: Path
    account: str
    rows: int | None
    seed: int
    device: str
    batch_rows: int
    threads: int = 0
    dask: str | None = None
    training: dict[str, Any]
    ledger: str | None = None
    signing_key: Path | None = None
    approver: str = ""
    approval_hours: float = 24
    paid_by: str = ""


class Handle(BaseModel):
    """An artifact of a finished stage: its place and the SHA-256 of its bytes (empty in the sensitive zone)."""

    model_config = ConfigDict(frozen=True)
    path: Path
    sha256: str = ""


class Run(BaseModel):
    """One run of the pipeline, by its home and its name: small enough to be a Prefect parameter."""

    model_config = ConfigDict(frozen=True)
    home: Path
    name: str

    @property
    def sensitive(self) -> Path:
        """The run's folder in the sensitive zone."""
        return self.home / "sensitive" / self.name

    @property
    def released(self) -> Path:
        """The run's folder in the released zone."""
        return self.home / "released" / self.name

    @property
    def ledger(self) -> str | Path:
        """The ledger that pays: its URL, or the file that all runs of a home share."""
        return self.settings.ledger or self.home / "ledger.sqlite"

    @property
    def cluster(self) -> str | None:
        """The Dask cluster for a stage that needs nothing sensitive: it lies in the sensitive zone, so None outside."""
        return self.settings.dask if os.access(self.sensitive, os.R_OK) else None

    @property
    def settings(self) -> Settings:
        """The run's settings, as they were when it was created."""
        return Settings.model_validate_json(self._read("settings.json"))

    @property
    def plan(self) -> Plan:
        """The run's plan of its release, as it was when it was created."""
        return Plan.model_validate_json(self._read("plan.json"))

    @property
    def report_plan(self) -> Plan | None:
        """The plan's second line, the charged section of the report, if the run was asked for one."""
        return Plan.model_validate_json(self._read(REPORT_PLAN)) if (self.released / REPORT_PLAN).is_file() else None

    @classmethod
    def create(cls, home: Path, settings: Settings, plan: Plan, name: str = "", report: Plan | None = None) -> "Run":
        """Make the folders of a new run and write down what it is to do; what makes it a run comes last."""
        run = cls(home=home.absolute(), name=name or new_name())
        make_private(run.home)
        make_private(run.sensitive)
        (run.released / "stages").mkdir(parents=True, exist_ok=True)
        write_text(run.released / "plan.json", plan.model_dump_json(indent=1))
        if report is not None:
            write_text(run.released / REPORT_PLAN, report.model_dump_json(indent=1))
        run._settle(settings)
        return run

    @classmethod
    def find(cls, home: str | Path, name: str) -> "Run":
        """Return an existing run.

        Raises:
            ArtifactError: there is none of this name.
        """
        run = cls(home=Path(home).absolute(), name=name)
        if not (run.released / "settings.json").is_file():
            known = sorted(path.name for path in (run.home / "released").glob("*/"))
            raise ArtifactError(f"no run {name} under {run.home}; the latest are: {', '.join(known[-5:]) or 'none'}")
        return run

    def move(self, dask: str | None) -> None:
        """Let another Dask cluster do what is left of the run's sums, or this machine."""
        self._settle(self.settings.model_copy(update={"dask": dask}))

    def again(self, name: str, out: Path, rows: int | None, seed: int) -> "Run":
        """Return a run that samples this one's release again; it is made of released artifacts only.

        It has no charged section: the scores of this run are about the rows of this run.

        Raises:
            ArtifactError: this run has not been trained yet.
        """
        release, model = self.finished("sanitize"), self.finished("train")
        if release is None or model is None:
            raise ArtifactError(f"run {self.name} has no trained generator yet")
        changes = {"out": out, "rows": rows, "seed": seed, "paid_by": self.settings.paid_by or self.name}
        again = Run.create(self.home, self.settings.model_copy(update=changes), self.plan, name)
        for stage, handle in (("sanitize", release), ("train", model)):
            if again.finished(stage) is None:
                again.finish(stage, Path(shutil.copy(handle.path, again.released)))
        return again

    def finished(self, stage: str) -> Handle | None:
        """Return what a stage left, if it finished and its artifact is still there, unchanged."""
        record = self.released / "stages" / f"{stage}.json"
        if not record.is_file():
            return None
        stored = json.loads(record.read_text())
        path = self.home / stored["path"]
        if not path.exists():
            return None
        if digest(path) != stored["sha256"]:
            raise ArtifactError(f"artifact {stored['path']} was changed after stage {stage} finished")
        return Handle(path=path, sha256=stored["sha256"])

    def finish(self, stage: str, path: Path) -> Handle:
        """Record a finished stage of the released zone. Hashes of sensitive artifacts are never written down."""
        handle = Handle(path=path, sha256=digest(path))
        record = {"path": str(path.relative_to(self.home)), "sha256": handle.sha256}
        write_text(self.released / "stages" / f"{stage}.json", json.dumps(record))
        return handle

    def _settle(self, settings: Settings) -> None:
        write_text(self.released / "settings.json", settings.model_dump_json(indent=1))

    def _read(self, name: str) -> str:
        return (self.released / name).read_text(encoding="utf-8")


def new_name() -> str:
    """Return a fresh name that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{token_hex(3)}"


def make_private(folder: Path) -> None:
    """Make a folder, and its missing parents, that only its owner can open."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for part in missing:
        part.chmod(0o700)


def write_text(path: Path, text: str) -> None:
    """Write a small file so that it is either whole or absent."""
    temporary = path.with_name(f".part-{path.name}")
    temporary.write_text(text, encoding="utf-8")
    sync(temporary)
    os.replace(temporary, path)


def replace_folder(part: Path, target: Path) -> None:
    """Move a finished folder to its place, replacing an unfinished one."""
    if target.exists():
        shutil.rmtree(target)
    os.replace(part, target)
    sync(target.parent)


def digest(path: Path) -> str:
    """Hash a file, or the names and hashes of a folder's files."""
    if path.is_file():
        return sha256_of(path)
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    with ThreadPoolExecutor(cores()) as pool:
        hashes = list(pool.map(sha256_of, files))
    lines = [f"{file.relative_to(path)} {sha256}" for file, sha256 in zip(files, hashes, strict=True)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
