"""What becomes public of public tables is said before the charge, and a private table's file is none of them."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import DataError
from dpmodels.hand_off.verify import verify_hand_off
from flows.config import SynthesizeConfig
from flows.description import describe_config, describe_run
from flows.settings import placed
from flows.start import start
from flows.synthesize import pipeline
from tests.kit.errors import refused
from tests.kit.patients import PUBLIC, SCHEMA
from tests.kit.support import run_cli


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write a private table of 300 units, and a public one of which two columns are not listed."""
    (tmp_path / "shop").mkdir()
    rows = range(300)
    columns = {"id": rows, "name": map(str, rows), "product_id": [1 + row % 2 for row in rows]}
    patients = pa.table({**{name: list(values) for name, values in columns.items()}, "age": [row % 99 for row in rows]})
    pq.write_table(patients, tmp_path / "shop" / "patient.parquet")
    pq.write_table(PUBLIC, tmp_path / "shop" / "product.parquet")
    (tmp_path / "shop.yaml").write_text(SCHEMA)
    return tmp_path


def config_of(folder: Path) -> SynthesizeConfig:
    given = {"data": folder / "shop", "schema": folder / "shop.yaml", "out": folder / "out", "home": folder / "home"}
    return SynthesizeConfig.build(placed({**given, "target_epsilon": 1.0, "delta": 1e-5, "prefect": False}))


def words_of(folder: Path) -> list[object]:
    return [
        folder / "shop",
        "--schema",
        folder / "shop.yaml",
        "--epsilon",
        1,
        "--delta",
        1e-5,
        "--home",
        folder / "home",
    ]


def test_plan_run_and_terminal_say_which_public_rows_are_handed_over(shop: Path) -> None:
    says = "product: 2 rows as they are, of id, name; 2 columns of its file left out"
    facts, _ = describe_config(config_of(shop))
    assert facts["becomes public"] == says and "price" not in str(facts)
    assert f"becomes public: {says}" in run_cli("plan", *words_of(shop))[1]
    assert describe_run(start(config_of(shop)))["becomes public"] == says
    code, _, shown = run_cli("synthesize", *words_of(shop), "--out", shop / "out", "--no-prefect")
    assert code == 0 and shown.index(f"becomes public: {says}") < shown.index("if it is interrupted")


def test_a_private_file_in_the_place_of_a_public_one_is_refused_before_there_is_a_run(shop: Path) -> None:
    (shop / "shop" / "product.parquet").unlink()
    os.link(shop / "shop" / "patient.parquet", shop / "shop" / "product.parquet")
    for command in ("plan", "synthesize"):
        code, _, shown = run_cli(command, *words_of(shop), "--out", shop / "out")
        assert code == 1 and "shares a file with private table patient" in shown
    with refused(DataError, "shares a file"):
        start(config_of(shop))
    assert not (shop / "home" / "control").exists() and not (shop / "home" / "ledger.sqlite").exists()


def test_a_hand_off_of_public_texts_with_unusual_line_ends_is_whole(shop: Path) -> None:
    odd = pa.table({"id": [1, 2], "name": ["a\x85b", "a\u2028b"]})
    pq.write_table(odd, shop / "shop" / "product.parquet")
    pipeline(run := start(config_of(shop)), lambda stage, *handles: stage(*handles))
    assert verify_hand_off(run.settings.out).faults == []
