"""Hold the files of public tables apart from private ones, since their rows are handed over as they are.

Whoever writes a public table's file may put a link or a copy of a private one there. A link out of the table's place is
refused, and so are a file that is a private table's by any name, and one with the same bytes.

Privacy: of private files the places and sizes are looked at; the bytes of one are hashed if a public file is as long. A
    refusal shows that both are one content, as of documents and their candidates. Rows are not compared: whoever
    writes a public file could else ask which rows a private one has.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

import pyarrow.fs as pafs

from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.reading.addresses import address_of
from dpmodels.reading.data_files import DataFile, find_files, open_system, root_of
from dpmodels.reading.links import share_rows
from dpmodels.reading.tree_files import NAME, place_of

LEADS_AWAY = "must lie in files of its own: a link leads out of its place; put the file itself there"
SHARED = "shares a file with private table {}: its rows would be handed over; give the public table a file of its own"
COPIED = "is a copy of a file of private table {}: its rows would be handed over; put the public rows there"


def files_apart(tree: Tree, data: str, name: str) -> list[DataFile]:
    """List the files of a public table in reading order, none of which is a link elsewhere or a private table's.

    Raises:
        DataError: one is, or the table has no files.
    """
    place = place_of(data, name)
    files = find_files(place)
    if any(_leads_away(path, data, place) for file in files for path in file.scanned[1] or (file.path,)):
        raise DataError("", LEADS_AWAY)
    identities = [identity for file in files for identity in file.identities]
    for other in tree.tables:
        private = list[DataFile]()
        with suppress(DataError):  # it cannot be opened, as where a run is planned without data
            private = find_files(place_of(data, other))
        if share_rows([identity for file in private for identity in file.identities], identities):
            raise DataError("", SHARED.format(other))
        if _is_copied(private, files):
            raise DataError("", COPIED.format(other))
    return files


def _leads_away(path: str, data: str, place: str) -> bool:
    """Tell whether a link below what the operator named leads out of a table's place, a file or a folder."""
    address = address_of(place)
    system, root = open_system(address.base)
    if address.kind == "catalog" or not isinstance(system, pafs.LocalFileSystem):
        return False
    root = root_of(root)
    base = open_system(_base(data) or ".")[1]
    here = os.path.normpath(os.path.join(os.path.realpath(base), os.path.relpath(root, base)))
    target = os.path.realpath(root if address.kind == "iceberg" else path)  # whose files are held to its folder
    return target != here and not target.startswith(f"{here}/")


def _base(data: str) -> str:
    """Return what the operator named, whatever links it leads through: a folder, or a file that has all tables."""
    before, is_pattern, _ = data.removeprefix("delta:").removeprefix("iceberg:").partition(NAME)
    file, has_tables, _ = before.partition("#")
    return file if has_tables or not is_pattern else root_of(f"{before}*")


def _is_copied(private: Sequence[DataFile], public: Sequence[DataFile]) -> bool:
    """Tell whether a private file and a public one have the same bytes; only those of one length are read."""
    sizes = {_size(file) for file in public}
    alike = [file for file in private if _size(file) in sizes]
    if not alike:
        return False
    digests = {file.digest("sha256") for file in public}
    return any(file.digest("sha256") in digests for file in alike)


def _size(file: DataFile) -> int:
    """Return the length of a file, of several their sum; -1 where nobody says it."""
    sizes = [info.size for info in file.system.get_file_info(list(file.scanned[1] or (file.path,)))]
    return -1 if None in sizes else sum(sizes)
