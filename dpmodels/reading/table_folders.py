"""Folders of Delta and Iceberg tables: none of their files is read by itself, since it may also hold deleted rows."""

import os
from collections.abc import Iterable
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.fs as pafs

from dpmodels.errors import DataError
from dpmodels.reading.addresses import LOG, METADATA

INSTEAD = {
    "a Delta": f"the folder of the table, in which {LOG} lies",
    "an Iceberg": f"its newest file metadata/*{METADATA}, or its catalog as iceberg:CATALOG.db#NAMESPACE.TABLE",
}


def check_apart(system: pafs.FileSystem, root: str, listing: Iterable[str], names: Iterable[str], uri: str) -> None:
    """Refuse files that lie in the folder of an open table, wherever above them that is.

    A store is asked of the folders above the root alone; where it may not be, what the listing shows counts.

    Args:
        system: where the files lie.
        root: the folder of which they were listed, or the only file.
        listing: the names of all files below the root.
        names: those of the files to read.
        uri: how the operator named the files.

    Raises:
        DataError: a file may also hold rows that were deleted.
    """
    paths = [f"{root}/{name}".rstrip("/") for name in names]
    folders = {path.rpartition("/")[0] for path in paths}
    if isinstance(system, pafs.LocalFileSystem):
        folders |= {os.path.realpath(folder) for folder in folders}
        folders |= {os.path.dirname(os.path.realpath(path)) for path in paths if os.path.islink(path)}
        above = folders = _with_parents(folders)
    else:
        folders, above = _with_parents(folders), _with_parents({root}) - {root}
    kinds = _kinds_listed(root, listing) | {folder: _kind_at(system, folder) for folder in above}
    for kind in sorted({kinds.get(folder, "") for folder in folders} - {""}):
        raise DataError("", f"{uri} holds files of {kind} table, which also hold deleted rows; give {INSTEAD[kind]}")


def _with_parents(folders: set[str]) -> set[str]:
    """Return folders and all above them, of a store up to its bucket."""
    paths = {path for folder in folders for path in (PurePosixPath(folder), *PurePosixPath(folder).parents)}
    return {str(path) for path in paths if path.name}


def _kinds_listed(root: str, listing: Iterable[str]) -> dict[str, str]:
    """Return the folders of tables that a listing shows, with their kinds."""
    kinds = {}
    for name in listing:
        folder, log, _ = f"{root}/{name}".partition(f"/{LOG}/")
        above, metadata, file = f"{root}/{name}".rpartition("/metadata/")
        if log:
            kinds[folder] = "a Delta"
        elif metadata and file.endswith(METADATA):
            kinds[above] = "an Iceberg"
    return kinds


def _kind_at(system: pafs.FileSystem, folder: str) -> str:
    """Return which kind of table lies in a folder; of one that may not be listed this is not known."""
    try:
        if system.get_file_info(f"{folder}/{LOG}").type == pafs.FileType.Directory:
            return "a Delta"
        infos = system.get_file_info(pafs.FileSelector(f"{folder}/metadata", allow_not_found=True))
    except (OSError, pa.ArrowException):
        return ""
    return "an Iceberg" if any(info.path.endswith(METADATA) for info in infos) else ""
