"""No file of a Delta or an Iceberg table is read by itself: deleted rows would come back, and others count twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pyarrow.fs as pafs
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dpmodels.errors import DataError
from dpmodels.reading import data_files
from dpmodels.reading.data_files import find_files
from dpmodels.reading.tree_files import place_of as place_in_tree
from tests.kit.buckets import Bucket
from tests.kit.errors import refused
from tests.kit.inputs import TABLE, parquet
from tests.kit.open_tables import delta, iceberg


def part_of(folder: Path) -> Path:
    return sorted(folder.rglob("*.parquet"))[0]


def linked_folder(path: Path) -> str:
    (path / "elsewhere").mkdir()
    (path / "elsewhere" / "north").symlink_to(part_of(path / "visits").parent)
    return f"{path}/elsewhere"


def linked_file(path: Path) -> str:
    (path / "north.parquet").symlink_to(part_of(path / "visits"))
    return f"{path}/north.parquet"


INSIDE: dict[str, Callable[[Path], object]] = {
    "a pattern": lambda path: f"{path}/visits/**/*.parquet",
    "a pattern of folders": lambda path: f"{path}/visits/ward=*",
    "a pattern above": lambda path: f"{path}/*/*/*.parquet",
    "a folder": lambda path: f"{path}/visits/ward=north",
    "a file": lambda path: part_of(path / "visits"),
    "a tree": lambda path: place_in_tree(f"{path}/{{table}}/*/*.parquet", "visits"),
    "a link to a folder": linked_folder,
    "a link to a file": linked_file,
    "a URI": lambda path: f"{(path / 'visits').as_uri()}/ward=*",
    "Iceberg, a folder": lambda path: path / "i/clinic/visits/data",
    "Iceberg, a pattern": lambda path: f"{path}/i/clinic/visits/data/*.parquet",
    "Iceberg, a pattern above": lambda path: f"{path}/i/**/*.parquet",
    "Iceberg, a file": lambda path: part_of(path / "i"),
}


@pytest.mark.parametrize("place", INSIDE.values(), ids=INSIDE)
def test_files_of_an_open_table_are_not_read_by_themselves(tmp_path: Path, place: Callable[[Path], object]) -> None:
    delta(tmp_path / "visits", TABLE, partition_by=["ward"])
    iceberg(tmp_path / "i")
    with refused(DataError, "which also hold deleted rows; give", column=""):
        find_files(str(place(tmp_path)))


def test_files_beside_a_table_are_read(tmp_path: Path) -> None:
    delta(tmp_path / "wh" / "visits")
    (tmp_path / "wh" / "metadata").mkdir()
    (tmp_path / "wh" / "metadata" / "notes.json").write_text("{}")
    file = parquet(tmp_path / "wh" / "wards" / "a.parquet")
    for place in (file, file.parent, f"{tmp_path}/wh/wards/*.parquet", f"{tmp_path}/wh/w*/*.parquet"):
        assert [each.path for each in find_files(str(place))] == [str(file)]


def test_files_of_a_table_in_a_bucket_are_not_read_by_themselves(tmp_path: Path, bucket: Bucket) -> None:
    folder = delta(tmp_path / "visits", TABLE, partition_by=["ward"])
    iceberg(tmp_path / "i")
    bucket.put(folder, "wh/visits"), bucket.put(tmp_path / "i" / "clinic" / "visits", "wh/i")
    file = bucket.put(parquet(tmp_path / "a.parquet"), "wh/a.parquet")
    file_name = part_of(folder).relative_to(folder)
    for place in ("wh/visits/ward=*", "wh/visits/ward=north", f"wh/visits/{file_name}", "wh/i/data"):
        with refused(DataError, "which also hold deleted rows; give", column=""):
            find_files(bucket.uri(place))
    for place in (file, bucket.uri("wh/*.parquet")):
        assert len(find_files(place)) == 1


class Lent(MemoryFileSystem):  # type: ignore[misc]
    """A store of which only what lies in one folder may be listed."""

    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def _strip(self, path: str) -> str:
        if not path.strip("/").startswith("bucket/lent"):
            raise PermissionError
        return path

    def info(self, path: str, **options: Any) -> Any:
        return super().info(self._strip(path), **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        return super().ls(self._strip(path), detail, **options)

    def find(self, path: str, *given: Any, **options: Any) -> Any:
        return super().find(self._strip(path), *given, **options)


def test_a_folder_above_which_nothing_may_be_listed_is_read(tmp_path: Path) -> None:
    store = Lent()
    store.pipe_file("/bucket/lent/wards/a.parquet", parquet(tmp_path / "a.parquet").read_bytes())
    system = pafs.PyFileSystem(pafs.FSSpecHandler(store))
    with patch.object(data_files, "open_system", lambda _: (system, "bucket/lent/wards")):
        assert len(find_files("s3://bucket/lent/wards")) == 1
    store.pipe_file("/bucket/lent/_delta_log/0.json", b"{}")
    with (
        patch.object(data_files, "open_system", lambda _: (system, "bucket/lent/wards")),
        refused(DataError, "which also hold deleted rows; give", column=""),
    ):
        find_files("s3://bucket/lent/wards")
