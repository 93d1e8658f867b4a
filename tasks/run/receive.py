"""Receive: copy files of the released zone to where only trusted stages can write, before any of them is believed.

Stages without data access write the released zone. If such a stage put a link there, a stage that can read the data
would follow it and hand the data over; if it changed a file after its check, the changed file would be handed over. So
the trusted stages read a copy that nobody else can write: named plain files, opened without following a link, hashed
while they are copied.
"""

import json
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmodels.artifact import aside, replace_folder, write_text, write_whole
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.files import copy_plain, size_plain
from dpmodels.releases.plan import Plan
from tasks.run.bucket import Bucket, here, landing, local, read_listing
from tasks.run.ready import LEAST_FREE
from tasks.run.store import MADE, Handle, Run, members

RECORD = "received.json"


@dataclass(frozen=True)
class Received:
    """The copy: what may be read, and what is published; of a table in an object store, the names and digests."""

    folder: Path
    bucket: str = ""

    @property
    def generator(self) -> Path:
        """The trained generator."""
        return self.folder / MADE["train"]

    @property
    def synthetic(self) -> Path:
        """The synthetic table, a folder; or the folder of its listing."""
        return self.folder / MADE["sample"]

    @property
    def parts(self) -> dict[str, str] | None:
        """The digests of a table's files in the object store; None where they lie in the folder."""
        return read_listing(self.synthetic, self.bucket)

    def here(self, most: int | None = None) -> AbstractContextManager[Path]:
        """Yield a folder with the table's files, or with the first of them."""
        return here(self.synthetic, self.bucket, most)


def receive(run: Run) -> Received:
    """Return the copy of a sampled run's generator and synthetic table; make it where it is not there yet.

    Raises:
        ArtifactError: something is missing, is no plain file, or is not what was received before.
    """
    received = Received(run.control / "received", run.settings.bucket)
    if received.folder.exists():  # it was moved here when it was complete, and nobody else can write it
        return received
    _check_room(run)
    with aside(received.folder) as part:
        (part / MADE["sample"]).mkdir(parents=True)
        digests = {name: copy_plain(run.released.parent, run.released / name, part / name) for name in _names(run)}
        _check(run, digests)
        replace_folder(part, received.folder)
    return received


def _check_room(run: Run) -> None:
    """Refuse a copy that would fill the disk; how large it is, was up to a stage that is not trusted.

    Raises:
        ArtifactError: it would.
    """
    size, free = sum(size_plain(run.released.parent, run.released / name) for name in _names(run)), LEAST_FREE
    if size > shutil.disk_usage(run.control).free - free:
        raise ArtifactError(
            f"what was made for run {run.name} takes {size // 2**20} MiB, for which the disk of {run.control} has no "
            "room; free some space and resume the run, or find out why it is so large"
        )


def forget(run: Run) -> None:
    """Delete the copy, which is as large as the table; it can be received again."""
    received = run.control / "received"
    if received.exists():
        with aside(received) as part:  # in one step, since a folder that is there counts as complete
            received.rename(part)


def sample_again(run: Run, name: str, out: str | Path, rows: int | None, seed: int) -> Run:
    """Return a run that samples the generator of another run again; it is made of released artifacts only.

    Its report has no charged section, because the scores of the first run are about the rows of that run.

    Raises:
        ArtifactError: the first run has not been trained yet.
    """
    handles = {stage: run.finished(stage) for stage in ("sanitize", "train")}
    payer = run.settings.paid_by or ("" if run.settings.is_paid_elsewhere else run.name)
    changes = {**landing_of(run, out), "rows": rows, "seed": seed, "opens": None, "paid_by": payer}
    if handles["train"] is not None:
        check_received(run, handles["train"])
    again = run.model_copy(update={"name": name})
    if not again.exists:
        again.create(run.settings.model_copy(update=changes), Plan(lines=(run.plan.release,)))
    for stage, handle in handles.items():
        if handle is None:
            raise ArtifactError(f"run {run.name} has no trained generator yet")
        if again.finished(stage) is None:
            _copy_checked(run, handle, again.place(stage))
            again.finish(stage, handle.sha256, run.made(stage))
    return again


def redirected(run: Run, out: str | Path) -> dict[str, Any]:
    """Return the settings of another place for a run's hand-off; a table that lies in the old one is drawn again."""
    elsewhere = landing_of(run, out)
    if uri := run.settings.bucket:
        Bucket(uri).abandon(run.name)
        for stage in ("validate", "sample"):
            run.forget(stage)
        reject(run)
    return elsewhere


def landing_of(run: Run, out: str | Path) -> dict[str, Any]:
    """Return the settings of another place for what a run hands over.

    Raises:
        InvalidArgument: the run was asked for its table in one file too, which an object store does not get.
    """
    if run.settings.format and local(out) is None:
        rule = (
            f"be a folder: run {run.name} was started with --format {run.settings.format}, and a hand-off in an object "
            "store has its table as Parquet alone; export it there once it is in a folder"
        )
        raise InvalidArgument("out", out, rule)
    return landing(out, run.home)


def _copy_checked(run: Run, handle: Handle, target: Path) -> None:
    """Copy an artifact whose digest is known; a file that an earlier attempt left is replaced."""

    def copy(part: Path) -> None:
        if copy_plain(run.released.parent, handle.path, part) != handle.sha256:
            raise ArtifactError(f"{handle.path} was changed after its stage finished")

    write_whole(target, copy)


def reject(run: Run) -> None:
    """Forget the received table that failed its gate, so that a table that is sampled anew can be received."""
    forget(run)
    (run.control / RECORD).unlink(missing_ok=True)


def check_received(run: Run, generator: Handle) -> None:
    """Refuse a generator that is another than the one that was received for the hand-off.

    Raises:
        ArtifactError: a stage without data access changed it since.
    """
    record = run.control / RECORD
    if record.exists() and _recorded(run)[MADE["train"]] != generator.sha256:
        raise ArtifactError(f"the generator of run {run.name} was changed after it was checked; nothing was drawn")


def _recorded(run: Run) -> dict[str, str]:
    """Return the digests of what was received first."""

    def read() -> dict[str, str]:
        digests = json.loads((run.control / RECORD).read_text(encoding="utf-8"))
        return {MADE["train"]: digests[MADE["train"]], **digests}

    return run.believed(RECORD, read)


def _names(run: Run) -> list[str]:
    folder = run.place("sample")
    files = members(run.released.parent, folder)
    return [MADE["train"], *(f"{folder.name}/{file.name}" for file in files)]


def _check(run: Run, digests: dict[str, str]) -> None:
    """Compare digests with those that were written down when the files were first received, or write them down."""
    record = run.control / RECORD
    if not record.exists():
        write_text(record, json.dumps(digests, indent=1))
    elif _recorded(run) != digests:
        raise ArtifactError(f"what stages without data access made for run {run.name} was changed after it was checked")
