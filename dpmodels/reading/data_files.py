"""Where data lies: a file, a folder or a pattern of names, on this machine or in an object store."""

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from dpmodels.errors import DataError, InvalidArgument, NacreError
from dpmodels.reading.addresses import LOG, METADATA, Address, address_of
from dpmodels.reading.links import check_links, identities
from dpmodels.reading.table_folders import check_apart
from dpmodels.sites import open_sites

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".xlsx": "excel",
    ".duckdb": "duckdb",
}
PLAIN_TEXT = (".txt", ".md")
NO_COLUMNS = (
    "a text file has no columns: write a CSV file with a row for each document, or whatever a record is, and a first "
    "line of names, such as id,text; of a CSV file change the ending to .csv"
)
READERS = {
    ".dta": "stata",
    ".sav": "spss",
    ".sas7bdat": "sas",
    ".xpt": "sas",
    ".xls": "excel",
    ".xlsm": "excel",
    ".ods": "excel",
    ".xml": "xml",
}
CONVERTED = '; in Python `pandas.read_{}("FILE{}").to_parquet("FILE.parquet")` converts it'
"""How a file of another program becomes one that is read."""
EMPTY = "{} cannot be read: the file is empty; it must begin with a line of names, with rows below it"
EMPTY_AMONG = "{} holds an empty file; remove it, or name the files that hold rows"
KINDS = (
    "Parquet (.parquet), CSV (.csv, .tsv), Arrow (.arrow, .feather), JSON lines (.jsonl), Excel (.xlsx) or DuckDB "
    "(.duckdb)"
)
PACKED = (".gz", ".bz2", ".zst")
SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "https", "file")
PUBLIC_KEYS = ("region",)
"""What may stand behind the question mark of a URI; a signed URL holds a key there, and what names another server or
proxy would have it sent the worker's credentials."""
REGION = re.compile(r"[a-z0-9-]{1,40}")
BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
AZURE = re.compile(
    r"([\w$-]+@)?[a-z0-9]+\.(dfs|blob)\.core\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|([a-z0-9]+@)?[a-z0-9$-]+"
)
ELSEWHERE = (
    "be a bucket, and a region, of the store itself: another server is named by AWS_ENDPOINT_URL in the environment of "
    "the worker, whose credentials it is sent"
)
LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
PATIENCE = 120
"""Seconds that an object store may be silent in the middle of an answer."""
STEP = 2**22
"""Bytes of a packed file that are asked of its place at once."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
FAILURES = (pa.ArrowException, ArithmeticError, OSError, ValueError, KeyError, RuntimeError)
"""What readers raise; the messages may quote the file, or what a server says, so none is passed on."""


@dataclass(frozen=True)
class DataFile:
    """One file of a table, and the columns whose values its folders are named after.

    Attributes:
        keys: columns that have one value in the whole file, as text.
        columns: all names of an open table, where files that were written before some were added lack these.
        table: the table, or the sheet, of a file that may hold several.
        scanned: the kind of an open table whose rows only its library can tell, and the path of each of its files.
        snapshot: which one of that table.
    """

    system: pafs.FileSystem
    path: str
    uri: str
    keys: tuple[tuple[str, str | None], ...] = ()
    columns: tuple[str, ...] = ()
    table: str = ""
    scanned: tuple[str, tuple[str, ...]] = ("", ())
    snapshot: str = ""

    @property
    def format(self) -> str:
        """Tell by the name how the file is read; empty where that is unknown."""
        if self.scanned[0]:
            return self.scanned[0]
        name = PurePosixPath(self.path.lower())
        if name.suffix in PACKED:
            packed = FORMATS.get(PurePosixPath(name.stem).suffix, "")
            return packed if packed in ("csv", "json") else ""
        return FORMATS.get(name.suffix, "")

    def stream(self) -> pa.NativeFile:
        """Open the file to be read from front to back, unpacked."""
        # what unpacks asks for 64 KiB at a time, each of which would be a request of its own to an object store
        step = STEP if PurePosixPath(self.path.lower()).suffix in PACKED else None
        return self.system.open_input_stream(self.path, compression="detect", buffer_size=step)

    def open(self) -> pa.NativeFile:
        """Open the file to be read anywhere."""
        return self.system.open_input_file(self.path)

    def digest(self, method: Callable[[], Any] | str) -> bytes:
        """Hash the bytes of the file as they lie there, and the name of its table; of several files their hashes.

        Raises:
            DataError: they cannot be read to their end.
        """
        if parts := self.scanned[1]:
            files = (replace(self, path=part, scanned=("", ())) for part in parts)
            return self._hashed(method, b"".join(sorted(file.digest(method) for file in files)))
        try:
            with self.system.open_input_stream(self.path, compression=None, buffer_size=STEP) as content:
                digest = hashlib.file_digest(content, method).digest()
            return self._hashed(method, digest + self.table.encode()) if self.table else digest
        except FAILURES:
            pass
        raise DataError("", f"{self.uri} cannot be read to its end: it changed, or the connection broke")

    @staticmethod
    def _hashed(method: Callable[[], Any] | str, content: bytes) -> bytes:
        hasher = hashlib.new(method) if isinstance(method, str) else method()
        hasher.update(content)
        return bytes(hasher.digest())

    @property
    def identities(self) -> frozenset[tuple[object, ...]]:
        """What its rows are known by where they lie, whatever names and links lead there: its files, and its table.

        Raises:
            DataError: one is gone.
        """
        paths = self.scanned[1] or (self.path,)
        if isinstance(self.system, pafs.LocalFileSystem):
            files: set[Any] = set(identities([Path(path) for path in paths], self.uri))
        else:
            files = {(self.system.type_name, urlsplit(self.uri).netloc, path) for path in paths}
        return frozenset((*file, self.table) for file in files)


def is_uri(uri: str) -> bool:
    """Tell a URI from a path."""
    return "://" in uri


def is_local(uri: str) -> bool:
    """Tell whether a place is on this machine."""
    return not is_uri(uri) or uri.startswith("file:")


def settled(uri: str) -> str:
    """Return a URI as it is, and a path as one that is found from any folder."""
    address = address_of(uri)
    return str(address if is_uri(address.base) else address.at(str(Path(address.base).absolute())))


def check_place(uri_text: str, name: str = "data") -> None:
    """Refuse a URI of an unknown kind, and one that holds a secret: it would be kept with the run.

    Raises:
        InvalidArgument: the place cannot be used, whatever lies there.
    """
    if "\0" in uri_text:
        raise InvalidArgument(name, uri_text, "not hold the letter NUL")
    uri_text = address_of(uri_text).base
    if not is_uri(uri_text):
        return
    try:
        uri = urlsplit(uri_text)
        keys = {pair.partition("=")[0] for pair in uri.query.split("&") if pair}
        secret = "@" in uri.netloc and not uri.scheme.startswith("abfs")
        secret |= ":" in uri.netloc.partition("@")[0] and "@" in uri.netloc
    except ValueError:
        raise InvalidArgument(name, "(hidden)", "be a path, or a URI that can be read") from None
    if secret or keys - set(PUBLIC_KEYS) or uri.fragment:
        rule = f"hold no user, password, key or signature, and behind a question mark only {', '.join(PUBLIC_KEYS)}"
        raise InvalidArgument(name, "(hidden)", f"{rule}; credentials come from the environment of the worker")
    regions = [value for _, value in parse_qsl(uri.query, keep_blank_values=True)]
    bucket_name = {"s3": BUCKET, "gs": BUCKET, "gcs": BUCKET, "abfs": AZURE, "abfss": AZURE}.get(uri.scheme)
    if (bucket_name and not bucket_name.fullmatch(uri.netloc)) or not all(map(REGION.fullmatch, regions)):
        raise InvalidArgument(name, "(hidden)", ELSEWHERE)
    if uri.scheme not in SCHEMES:
        raise InvalidArgument(
            name, f"{uri.scheme}://…", f"be a path, a URI of {', '.join(SCHEMES)}, or a database with a query"
        )


def open_system(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a place and the path there, with the credentials of this process's environment.

    Raises:
        DataError: there is no such bucket, or the package that reads such places is not installed.
    """
    check_place(uri)
    uri = address_of(uri).base
    if not is_uri(uri):
        return pafs.LocalFileSystem(), str(Path(uri).absolute())
    try:
        if uri.startswith("https:"):
            return open_sites(), uri
        system, path = pafs.FileSystem.from_uri(uri)
        return _patient(system, uri) if isinstance(system, pafs.S3FileSystem) else system, path
    except ImportError:
        lacks = "https:// needs fsspec and aiohttp: pip install 'nacre[https]'"
    except FAILURES:
        lacks = f"{uri} cannot be reached: check its name, and the credentials in the environment"
    raise DataError("", lacks)


def _patient(system: pafs.S3FileSystem, bucket_uri: str) -> pafs.S3FileSystem:
    """Return the same store with more patience: by itself it takes three silent seconds for a broken connection.

    Arrow read the environment's endpoint when it opened the place; nothing was sent there yet.

    Raises:
        DataError: it is neither over TLS nor on this machine.
    """
    endpoint = str(system.__reduce__()[1][0]["endpoint_override"])
    region = dict(parse_qsl(urlsplit(bucket_uri).query)).get("region", system.region)
    override = {}
    if endpoint:
        uri = urlsplit(endpoint)
        if uri.scheme != "https" and not (uri.scheme == "http" and LOOPBACK.fullmatch(uri.hostname or "")):
            raise DataError("", "AWS_ENDPOINT_URL must begin with https://, since credentials are sent there")
        override = {"endpoint_override": uri.netloc, "scheme": uri.scheme}
    return pafs.S3FileSystem(region=region, **override, connect_timeout=10, request_timeout=PATIENCE)


def find_files(uri: str) -> list[DataFile]:
    """List the files of a table in reading order, all of one format, without those that are hidden.

    A ``*`` stands for any part of a name, and ``**`` for any folders. Folders named ``column=value``, below the place
    or where its first star is, give their files a column.

    Raises:
        DataError: there are none, one is empty, or they are of several formats, or of an unknown one; or of an open
            table, as for ``files_of_table``.
    """
    address = address_of(uri)
    if address.kind in ("delta", "iceberg", "catalog"):
        return _open_table(address, uri)
    system, path = open_system(uri)
    sizes, listing = _listed(system, path, uri)
    if "*" not in path and any(name.startswith(f"{LOG}/") for name in sizes):
        return _open_table(Address(uri, "delta"), uri)
    if not uri.startswith("https:"):  # a web server has no folders
        check_apart(system, root_of(path), sizes, [name for name, _ in listing], uri)
    listing = [(name, size) for name, size in listing if not _hidden(name)]
    if not listing:
        raise DataError("", f"{uri} does not exist or holds no files")
    if any(size == 0 for _, size in listing):
        raise DataError("", (EMPTY_AMONG if listing[0][0] else EMPTY).format(uri))
    root = root_of(path)
    table = address.table
    files = [DataFile(system, f"{root}/{name}" if name else root, uri, _keys(name), table=table) for name, _ in listing]
    if len({file.format for file in files}) > 1 or not files[0].format:
        plain = all(PurePosixPath(file.path).suffix.lower() in PLAIN_TEXT for file in files)
        kinds = f"must be a file of one of these kinds, or a folder of files of one kind: {KINDS}"
        endings = {PurePosixPath(file.path).suffix.lower() for file in files}
        ending = next(iter(endings)) if len(endings) == 1 else ""
        cure = CONVERTED.format(READERS[ending], ending) if ending in READERS else ""
        raise DataError("", f"{uri} {kinds}{'; ' + NO_COLUMNS if plain else cure}")
    if len({tuple(key for key, _ in file.keys) for file in files}) > 1:
        raise DataError("", f"{uri} must name the same columns in the folders of all files")
    return files


def _open_table(address: Address, uri: str) -> list[DataFile]:
    from dpmodels.reading.open_tables import files_of_table

    return files_of_table(address, uri)


def is_there(uri: str) -> bool:
    """Tell whether there is anything at a path; or at a pattern or a URI files that can be listed from here."""
    uri = address_of(uri).base
    if not is_uri(uri) and "*" not in uri:
        return Path(uri).exists()
    try:
        return bool(_listed(*open_system(uri), uri)[1])
    except NacreError:
        return False


def name_of(uri: str) -> str:
    """Return the one name of a place, whatever links lead to it; it begins with the name of any that it lies in."""
    system, path = open_system(uri)
    if table := address_of(uri).table:
        path = f"{path}#{table}"
    if isinstance(system, pafs.LocalFileSystem):
        return f"{os.path.realpath(path).rstrip('/')}/"
    return f"{system.type_name}://{urlsplit(uri).netloc}/{path.rstrip('/')}/"


def _listed(system: pafs.FileSystem, path: str, uri: str) -> tuple[dict[str, int | None], list[tuple[str, int | None]]]:
    """List all files below the root of a place by their names, with their sizes, and in order those that it names.

    A file itself has an empty name.
    """
    root = path.rstrip("/") if "*" not in path else root_of(path)
    try:
        first = system.get_file_info(root)
        if first.type == pafs.FileType.File:
            return {"": first.size}, [("", first.size)]
        if first.type == pafs.FileType.NotFound:
            return {}, []
        infos = system.get_file_info(pafs.FileSelector(root, recursive=True))
    except FAILURES:
        infos = None
    if infos is None and not is_uri(uri):
        raise DataError("", f"{uri} is neither a file nor a folder that can be listed")
    if infos is None:
        raise DataError("", f"{uri} cannot be listed: check its name, and the credentials in the environment")
    matches = _pattern(path[len(root) :].strip("/") or "**")
    if isinstance(system, pafs.LocalFileSystem):
        check_links(Path(root), infos, uri, lambda name: matches.fullmatch(name) is not None and not _hidden(name))
    sizes = {info.path[len(root) :].strip("/"): info.size for info in infos if info.type == pafs.FileType.File}
    files = [(name, size) for name, size in sizes.items() if matches.fullmatch(name)]
    return sizes, sorted(files, key=lambda file: PurePosixPath(file[0]).parts)


def root_of(path: str) -> str:
    """Return a path up to the folder in which its first star is."""
    return path.partition("*")[0].rpartition("/")[0] if "*" in path else path.rstrip("/")


def _pattern(text: str) -> re.Pattern[str]:
    """Return what matches the files, and the files in the folders, that a pattern names."""
    stars = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", text)
    return re.compile("".join(stars.get(part) or re.escape(part) for part in parts) + "(?:/.*)?", re.DOTALL)


def _hidden(name: str) -> bool:
    return any(part[0] in "._" and "=" not in part for part in PurePosixPath(name).parts)


def _keys(name: str) -> tuple[tuple[str, str | None], ...]:
    pairs = (part.partition("=") for part in PurePosixPath(name).parts[:-1] if "=" in part)
    return tuple((unquote(key), None if value == NO_VALUE else unquote(value)) for key, _, value in pairs)


def unescaped(name: str) -> str:
    """Return what a name in a URI stands for: each of its escapes once."""
    return unquote(name)


def title_of(uri: str) -> str:
    """Name a table after its file, or after the folder that holds all of its files: the name of its account."""
    address = address_of(uri)
    path = urlsplit(address.base).path if is_uri(address.base) else address.base
    name = PurePosixPath(root_of(path)).name
    if name.endswith(METADATA):
        name = PurePosixPath(path).parent.parent.name
    if address.table and "{" not in address.table:
        name = address.table.rpartition(".")[2]
    suffixes: Sequence[str] = (*FORMATS, *PACKED)
    while (suffix := PurePosixPath(name).suffix.lower()) in suffixes:
        name = name[: -len(suffix)]
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-") or "data"
