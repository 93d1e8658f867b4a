"""The folders of a home, which their owner alone can open."""

import os
import stat
from pathlib import Path

from dpmodels.artifact import make_folder
from dpmodels.errors import ArtifactError


def make_private(folder: Path) -> None:
    """Make a folder, and its missing parents, that only its owner can open, from the moment that it is there."""
    make_folder(folder, mode=0o700)


def close_home(home: Path) -> None:
    """Make a home, or take from one that exists what lets others in, so that its owner alone can open it.

    Git is told to leave it out of whatever repository it lies in, unless it is one itself.

    Raises:
        ArtifactError: others can open it, and this process may not change that.
    """
    make_private(home)
    ignored, repository = home / ".gitignore", home / ".git"
    if not os.path.lexists(ignored) and not os.path.lexists(repository):
        ignored.write_text("*\n", encoding="utf-8")
    for folder in (home, home / "sensitive"):
        try:
            mode = stat.S_IMODE(folder.stat().st_mode) if folder.exists() else 0
            if mode & 0o077:
                folder.chmod(mode & 0o700)
        except OSError:
            raise ArtifactError(
                f"{folder} can be opened by others, and this process may not change that: have its owner close it "
                "(chmod 700), or name another --home; nothing was charged"
            ) from None
