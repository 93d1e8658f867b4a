"""A run that a command is given: by its name, or by the folder of what it handed over."""

from pathlib import Path
from typing import TYPE_CHECKING

from flows.sections import HOME

if TYPE_CHECKING:
    from tasks.run.store import Run


def run_named(run: str, home: Path | None) -> "Run":
    """Return the run of a name, or the one that the manifest of a hand-off names, which is then said.

    Raises:
        ArtifactError: the manifest cannot be read, or the home has no such run.
    """
    from flows.command_line.console import note
    from tasks.run.store import Run

    if (folder := Path(run)) == Path() or not (folder / "manifest.json").is_file():
        return Run.find(home or HOME, run)
    from dpmodels.hand_off.manifest import read_manifest

    made_by = Run.find(home or HOME, read_manifest(folder).made_by)
    note(f"{folder} is of run {made_by.name}")
    return made_by
