"""Where a run keeps its files, separated by who may write them, and where the ledger lies.

    NACRE_HOME/ledger.sqlite
    NACRE_HOME/.locks/RUN        held by whoever works at a run (tasks/run/lock.py)
    NACRE_HOME/sensitive/RUN/    0700; may be deleted as soon as the release is sealed
    NACRE_HOME/control/RUN/      what is believed: plan, settings, approval, records of stages that read data, report;
                                 stages without data access read it and cannot write it
    NACRE_HOME/released/RUN/     release, charged scores, generator, synthetic table: stages that are not trusted write
                                 here too, so nothing in it is believed before it was received

A stage that finished leaves a record of its artifact; a resumed run skips every stage whose record still holds. Only
the digest in a record is relied on: this module and not the record says which file a stage makes.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpmodels.artifact import aside, make_folder, replace_folder, sweep, write_text
from dpmodels.errors import ArtifactError, FileMissing, PathTaken, Unsuitable, shortened
from dpmodels.files import list_plain, read_plain, sha256_plain
from dpmodels.plural import counted
from dpmodels.releases.formats import read_plan
from dpmodels.releases.plan import Plan
from tasks.engine.engines import cores
from tasks.run.folders import close_home, make_private
from tasks.run.settings import Settings

T = TypeVar("T")
REPORT_PLAN = "report-plan.json"
BEGUN, DELIVERED = "begun", "delivered"
"""Names of the mark in a run's control folder, before and after its hand-off is complete (tasks/run/unfinished.py)."""
MADE = {
    "round": "round.json",
    "sanitize": "release.parquet",
    "train": "generator.safetensors",
    "sample": "synthetic",
    "score": "scores.parquet",
    "validate": "report",
}
"""The artifact of each stage, in their order: a file, or a folder of the files in ``PARTS``."""
NAME = r"^[A-Za-z0-9_-]{1,200}$"
"""The names that a run may have: each is one folder in each zone, and no path to another place."""
LARGEST_STAGE = 2**20
"""Bytes of the record of a stage."""
FREE = {"train", "sample"}
"""Stages that run where no data can be read; they write the released zone, and keep their records there."""
REPEATABLE = {*FREE, "validate"}
"""Stages that make the same again of released objects and a seed: what is lost of them is made again."""
PARTS = {
    "synthetic": re.compile(r"part-\d{5}\.parquet|parts\.json"),
    "report": re.compile(r"report\.html|report\.json|checks\.html"),
}


class Made(BaseModel):
    """What made the artifact of a stage: the version and its settings, as the stage wrote them into its record.

    The record of a free stage lies in the released zone, so it is shown and never relied on.
    """

    model_config = ConfigDict(frozen=True)
    nacre_version: str = ""
    seed: int | None = None
    settings: dict[str, Any] = {}


class Handle(BaseModel):
    """An artifact of a finished stage: its place and the SHA-256 of its bytes (empty in the sensitive zone)."""

    model_config = ConfigDict(frozen=True)
    path: Path
    sha256: str = ""


class Run(BaseModel):
    """One run of the pipeline: its home, its name, and the ledger and cluster that this process was given.

    Attributes:
        ledger_url, dask: the ledger (empty for the home's own) and the cluster that this process works with. They come
            from its own command line or environment, never from a file of the run.
    """

    model_config = ConfigDict(frozen=True)
    home: Path
    name: Annotated[str, Field(pattern=NAME)]
    ledger_url: str = ""
    dask: str | None = None

    @property
    def parties(self) -> list["Run"]:
        """The runs that are charged: those of a federation's clients, otherwise this one."""
        clients = [self.model_copy(update={"name": party_name(self.name, client)}) for client in self.settings.clients]
        return clients or [self]

    @property
    def sensitive(self) -> Path:
        """The run's folder in the sensitive zone."""
        return self.home / "sensitive" / self.name

    @property
    def control(self) -> Path:
        """The run's folder in the control zone, whose files are believed."""
        return self.home / "control" / self.name

    @property
    def released(self) -> Path:
        """The run's folder in the released zone."""
        return self.home / "released" / self.name

    @property
    def ledger(self) -> str | Path:
        """The ledger that pays: its URL, or the file that all runs of a home share.

        Raises:
            Unsuitable: the run was started with another ledger.
        """
        if self.ledger_url != self.settings.ledger:
            started = self.settings.ledger or "the ledger in its home"
            raise Unsuitable(f"run {self.name} was started with another ledger; name that one: {started}")
        return self.ledger_url or self.home / "ledger.sqlite"

    @property
    def settings(self) -> Settings:
        """The run's settings, as they were when it was created."""
        return self.believed("settings.json", lambda: Settings.model_validate_json(self._read("settings.json")))

    @property
    def plan(self) -> Plan:
        """The run's plan, as it was when it was created; earlier versions wrote the report's line to a second file."""
        report = self._read(REPORT_PLAN) if (self.control / REPORT_PLAN).is_file() else None
        return self.believed("plan.json", lambda: read_plan(self._read("plan.json"), report))

    def create(self, settings: Settings, plan: Plan, files: Mapping[str, bytes] = MappingProxyType({})) -> "Run":
        """Make the folders of a new run and write public files, plan and settings, which make it a run and come last.

        Raises:
            ArtifactError: somebody put files, or a link, where the run's folder in the released zone is to be.
        """
        if os.path.lexists(self.released) and (self.released.is_symlink() or _files_below(self.released)):
            raise PathTaken(self.released, "is there already, and no run of this name was started; remove it")
        close_home(self.home)
        make_folder(self.control.parent)
        for folder in (".", self.control.parent.name):
            sweep(self.home, folder, deep=False)
        with aside(self.control) as part:  # it is a run from here on; `recover` makes the folders below if need be
            (part / "stages").mkdir(parents=True)
            for name, content in files.items():
                (part / name).write_bytes(content)
            (part / BEGUN).touch()
            (part / "plan.json").write_text(plan.model_dump_json(indent=1), encoding="utf-8")
            (part / "settings.json").write_text(settings.model_dump_json(indent=1), encoding="utf-8")
            replace_folder(part, self.control)
        make_private(self.sensitive)
        make_folder(self.released / "stages")
        return self

    @property
    def exists(self) -> bool:
        """Tell whether the run was created."""
        return (self.control / "settings.json").is_file()

    @classmethod
    def find(cls, home: str | Path, name: str, ledger: str | None = None, dask: str | None = None) -> "Run":
        """Return an existing run, to go on with it on this ledger and this cluster.

        Raises:
            ArtifactError: there is no run of this name.
        """
        check_name(name)
        run = cls(home=Path(home).absolute(), name=name, ledger_url=ledger or "", dask=dask)
        if run.exists:
            return run
        settings = sorted(run.home.glob("control/*/settings.json"), key=lambda path: path.stat().st_mtime)
        latest = ", ".join(path.parent.name for path in settings[-5:])
        raise ArtifactError(f"no run {name} under {run.home}; the latest are: {latest or 'none'}")

    def settle(self, settings: Settings) -> None:
        """Write the run's settings down."""
        write_text(self.control / "settings.json", settings.model_dump_json(indent=1))

    def place(self, stage: str) -> Path:
        """Return where the artifact of a stage belongs."""
        return (self.control if stage in ("validate", "round") else self.released) / MADE[stage]

    def finished(self, stage: str) -> Handle | None:
        """Return the artifact of a stage, if the stage finished and the artifact is still there, unchanged.

        What is made for free of released objects and a seed is not missed: if it was changed, or is being replaced
        at this moment, its stage runs again.

        Raises:
            ArtifactError: an artifact that was paid for was changed, or one is or holds a file that no stage makes.
        """
        record, path = self._record(stage), self.place(stage)
        if not os.path.lexists(record) or not os.path.lexists(path):
            return None
        try:
            sha256 = self.recorded(stage)
            if sha256 and digest(self._root(stage), path) == sha256:
                return Handle(path=path, sha256=sha256)
        except FileMissing:
            if stage not in FREE:
                raise
        if stage in REPEATABLE:
            return None
        raise ArtifactError(f"artifact {path.relative_to(self.home)} was changed after stage {stage} finished")

    @property
    def reached(self) -> str:
        """The last stage that left a record; empty before the first. What it made is not looked at."""
        return next((stage for stage in reversed(MADE) if os.path.lexists(self._record(stage))), "")

    def read(self, stage: str) -> bytes:
        """Return the bytes of a file that a trusted stage made, as they were when it finished.

        Raises:
            ArtifactError: the stage has not finished, or its file was changed.
        """
        content = read_plain(self._root(stage), self.place(stage))
        if not self._record(stage).is_file() or hashlib.sha256(content).hexdigest() != self.recorded(stage):
            raise ArtifactError(f"{self.place(stage)} is not what stage {stage} of run {self.name} left")
        return content

    def finish(self, stage: str, sha256: str = "", made: Made | None = None) -> Handle:
        """Record a finished stage with the digest of its artifact: the ledger's digest, if the ledger sealed it.

        Hashes of sensitive artifacts are never written down.
        """
        path = self.place(stage)
        handle = Handle(path=path, sha256=sha256 or digest(self._root(stage), path))
        if stage == "train" and os.path.lexists(self._record(stage)) and self.recorded(stage) != handle.sha256:
            self.forget("sample")  # a device or a version that computes otherwise: these rows are of another generator
        record = {"sha256": handle.sha256, **(made.model_dump(mode="json") if made else {})}
        write_text(self._record(stage), json.dumps(record))
        return handle

    def made(self, stage: str) -> Made:
        """Return what the record of a stage says of its making; records of earlier versions say nothing."""
        try:
            return Made.model_validate_json(read_plain(self._zone(stage).parent, self._record(stage), LARGEST_STAGE))
        except (ArtifactError, ValidationError):
            return Made()

    def forget(self, stage: str) -> None:
        """Have a stage run once more; its artifact stays until it is replaced."""
        self._record(stage).unlink(missing_ok=True)

    def recorded(self, stage: str) -> str:
        """Return the digest in a stage's record, or none if the record is damaged and the stage may run again.

        Raises:
            ArtifactError: the record is damaged, and the stage may not run again unasked.
        """
        record = self._record(stage)
        try:
            return str(json.loads(read_plain(self._zone(stage).parent, record, LARGEST_STAGE))["sha256"])
        except (ValueError, KeyError, TypeError, RecursionError):
            if stage in REPEATABLE:
                return ""
        raise ArtifactError(f"{record} is damaged; delete it and resume the run, which charges nothing a second time")

    def _record(self, stage: str) -> Path:
        return self._zone(stage) / "stages" / f"{stage}.json"

    def _zone(self, stage: str) -> Path:
        """Return where a stage keeps its record."""
        return self.released if stage in FREE else self.control

    def _root(self, stage: str) -> Path:
        """Return the zone that a stage's artifact lies in: the last folder of its path that only we can rename."""
        return self.place(stage).parents[1]

    def believed(self, name: str, read: Callable[[], T]) -> T:
        """Return what a file of the run says.

        Raises:
            ArtifactError: it is damaged.
        """
        try:
            return read()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # whose words quote the file
            raise ArtifactError(
                f"{self.control / name} is damaged, and what it says cannot be made again: put it back from a backup, "
                "or start a new run"
            ) from None

    def _read(self, name: str) -> str:
        return (self.control / name).read_text(encoding="utf-8")


def _files_below(folder: Path) -> bool:
    return any(path.is_symlink() or not path.is_dir() for path in folder.rglob("*"))


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a run, since it would be that of another folder.

    Raises:
        ArtifactError: it is none.
    """
    if not re.fullmatch(NAME, name):
        raise ArtifactError(f"{shortened(name)!r} is no name of a run: that has 1 to 200 letters, digits, - and _")


def party_name(run: str, client: str) -> str:
    """Name the run of a client of a federation."""
    return f"{run}-{client}"


def new_name() -> str:
    """Return a fresh name with the day but not the time, which with the ledger's times would tell a run's length."""
    return f"{datetime.now(UTC):%Y%m%d}-{token_hex(5)}"


def write_report(run: Run, files: Mapping[str, str]) -> None:
    """Write the folder of a run's publishable report, whole or not at all."""
    target = run.place("validate")
    with aside(target) as part:
        part.mkdir()
        for name, text in files.items():
            (part / name).write_text(text, encoding="utf-8")
        replace_folder(part, target)


def members(root: Path, folder: Path) -> list[Path]:
    """List the files of a stage's folder below a zone.

    Raises:
        ArtifactError: the folder holds something that the stage does not make.
    """
    pattern, names = PARTS[folder.name], list_plain(root, folder)
    if strange := [name for name in names if not pattern.fullmatch(name)]:
        raise ArtifactError(
            f"{folder} holds {counted(len(strange), 'file')} that no stage makes there; nothing is read from it. "
            "Find out who put them there, remove them, and resume the run"
        )
    return [folder / name for name in names]


def digest(root: Path, path: Path) -> str:
    """Hash a stage's file, or the names and hashes of its folder's files, without following a link below a zone."""
    if path.name not in PARTS:
        return sha256_plain(root, path)
    files = members(root, path)
    with ThreadPoolExecutor(cores()) as pool:
        hashes = list(pool.map(lambda file: sha256_plain(root, file), files))
    lines = [f"{file.name} {sha256}" for file, sha256 in zip(files, hashes, strict=True)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
