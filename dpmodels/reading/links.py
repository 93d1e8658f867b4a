"""Links among the files of a table: none may show a file twice, or lead nowhere."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow.fs as pafs

from dpmodels.errors import DataError


def check_links(root: Path, infos: Sequence[pafs.FileInfo], uri: str, counts: Callable[[str], bool]) -> None:
    """Refuse files of which a part is missing, or would be read twice; ``counts`` tells them by their names.

    Raises:
        DataError: two of the files are one, by a link, or one is none, as a link that leads nowhere.
    """
    files = [(Path(info.path), info.type) for info in infos if info.type != pafs.FileType.Directory]
    files += [(path, pafs.FileType.NotFound) for path in root.rglob("*") if path.is_symlink() and not path.exists()]
    files = [(path, kind) for path, kind in files if counts(str(path.relative_to(root)))]
    if any(kind != pafs.FileType.File for _, kind in files):
        raise DataError("", f"{uri} holds a link that leads nowhere, or something else that is no file")
    check_once([path for path, _ in files], uri)


def check_once(files: Sequence[Path], uri: object) -> None:
    """Refuse a file that is there twice, by a link: noise that hides one row hides no twin of it.

    Raises:
        DataError: see above, or a file is gone.
    """
    if len(identities(files, uri)) < len(files):
        raise DataError("", f"{uri} holds the same file twice, by a link: its rows would count twice")


def identities(files: Sequence[Path], uri: object) -> set[tuple[int, int]]:
    """Return by what the system knows files, whatever names and links lead to them.

    Raises:
        DataError: a file is gone.
    """
    try:
        return {(status.st_dev, status.st_ino) for status in (path.stat() for path in files)}
    except OSError:
        raise DataError("", f"{uri} changes while it is listed, or holds a link that leads nowhere") from None


def share_rows(some: Iterable[tuple[object, ...]], others: Iterable[tuple[object, ...]]) -> bool:
    """Tell whether identities of files meet; of a file with several tables only where they may be the same table."""
    tables = defaultdict[object, set[str]](set)
    for *file, table in some:
        tables[tuple(file)].add(str(table))
    return any(_may_be(one, str(table)) for *file, table in others for one in tables.get(tuple(file), ()))


def _may_be(table: str, other: str) -> bool:
    """Tell whether two names may be one table's: one names none, as there is only one, or lacks its schema."""
    shorter, longer = sorted((table.casefold(), other.casefold()), key=len)
    return shorter in ("", longer) or longer.endswith(f".{shorter}")
