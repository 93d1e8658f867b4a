"""A public table's file that is a private table's, by a link or a copy, is refused before anything of it is public."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.reading.public import count_unlisted, load_public_files
from tests.kit.errors import refused
from tests.kit.open_tables import database
from tests.kit.patients import PRIVATE, PUBLIC, SCHEMA, SECRET


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write the private table, and leave the public one to the test."""
    folder = tmp_path / "shop"
    folder.mkdir()
    pq.write_table(PRIVATE, folder / "patient.parquet")
    return folder


def tree() -> Tree:
    return Tree.model_validate(yaml.safe_load(SCHEMA))


def folder_link(folder: Path) -> None:
    (folder / "patient").mkdir()
    (folder / "patient.parquet").rename(folder / "patient" / "part.parquet")
    (folder / "product").symlink_to("patient")


def link_in_folder(folder: Path) -> None:
    (folder / "product").mkdir()
    (folder / "product" / "part.parquet").symlink_to(folder / "patient.parquet")


def link_elsewhere(folder: Path) -> None:
    pq.write_table(PRIVATE, folder.parent / "other.parquet")
    (folder / "product.parquet").symlink_to(folder.parent / "other.parquet")


WAYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (lambda folder: (folder / "product.parquet").symlink_to("patient.parquet"), "a link leads out"),
    "link of a folder": (folder_link, "a link leads out"),
    "link in a folder": (link_in_folder, "a link leads out"),
    "link elsewhere": (link_elsewhere, "a link leads out"),
    "hard link": (lambda folder: os.link(folder / "patient.parquet", folder / "product.parquet"), "shares a file"),
    "copy": (lambda folder: shutil.copy(folder / "patient.parquet", folder / "product.parquet"), "is a copy of a file"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_public_file_that_is_a_private_one_is_refused_without_a_value(shop: Path, way: str) -> None:
    make, says = WAYS[way]
    make(shop)
    with refused(DataError, f"table product: .*{says}") as fault:
        load_public_files(tree(), str(shop))
    assert SECRET not in str(fault.value)


@pytest.mark.parametrize("data", ["shop", "linked", "linked/{table}.parquet", "linked/{table}/*.parquet"])
def test_links_that_the_operator_named_and_links_within_a_place_are_followed(shop: Path, data: str) -> None:
    (shop.parent / "linked").symlink_to(shop)
    if data.endswith("*.parquet"):
        (shop / "patient").mkdir()
        (shop / "patient.parquet").rename(shop / "patient" / "part.parquet")
        (shop / "product" / "old").mkdir(parents=True)
        pq.write_table(PUBLIC, shop / "product" / "old" / "part.parquet")
        (shop / "product" / "now.parquet").symlink_to("old/part.parquet")
    else:
        pq.write_table(PUBLIC, shop / "product.parquet")
    assert load_public_files(tree(), f"{shop.parent}/{data}").public["product"].rows["name"] == ("tea", "jam")


def test_tables_of_one_database_are_apart(tmp_path: Path) -> None:
    database(file := tmp_path / "shop.duckdb", PRIVATE, "patient")
    database(file, PUBLIC, "product")
    (tmp_path / "linked.duckdb").symlink_to(file)
    for name in ("shop", "linked"):
        filled = load_public_files(tree(), f"{tmp_path}/{name}.duckdb#{{table}}")
        assert filled.public["product"].rows["name"] == ("tea", "jam")


def test_public_tables_are_read_where_no_private_one_lies_and_unlisted_columns_are_counted(tmp_path: Path) -> None:
    pq.write_table(PUBLIC, tmp_path / "product.parquet")
    assert load_public_files(tree(), str(tmp_path)).public["product"].size == 2
    assert count_unlisted(tree(), str(tmp_path)) == {"product": 2}
    PUBLIC.to_pandas().to_json(tmp_path / "product.jsonl", orient="records", lines=True)
    (tmp_path / "product.parquet").unlink()
    assert count_unlisted(tree(), str(tmp_path)) == {"product": 2}
    PUBLIC.to_pandas().to_csv(tmp_path / "product.csv", index=False)
    (tmp_path / "product.jsonl").unlink()
    assert count_unlisted(tree(), str(tmp_path)) == {"product": 2}
