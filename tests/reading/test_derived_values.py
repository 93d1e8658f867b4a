"""Raw rows are held to what a schema derives, and to its bounds, whatever format they are read from."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.gate.expectations import Gate
from dpmodels.reading.data_files import find_files
from dpmodels.reading.formats import parts_of
from tests.kit.every_kind import make
from tests.kit.support import run_cli

MEMBERS = """
name: members
columns:
  joined: {type: datetime, min: 2015-01-01, max: 2024-12-31}
  active: {type: integer, min: 0, max: 3653}
  seen: {type: derived, formula: "add_days(joined, active)", max: 2024-12-31}
"""
DAYS = ("joined", "seen")
FORMATS = ["parquet", "csv", "jsonl"]
NOT_DERIVED = "must be `add_days(joined, active)`"
LATE = "`seen <= 2024-12-31` must hold in every row"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("joined", "seen", "says"),
    [
        ("2024-12-30", "2025-01-01", LATE),
        ("2024-12-30", None, LATE),
        ("2024-12-20", "2024-12-31", NOT_DERIVED),
        ("2024-12-20", "soon", ""),
    ],
)
@pytest.mark.nightly_if(
    "*soon--parquet", "*soon--csv", "*active)`-jsonl", "*active)`-parquet", "*None-*-jsonl", "*2025-*-csv"
)  # beside each form and each fault
def test_no_format_lets_a_raw_row_break_what_is_derived(
    tmp_path: Path, form: str, joined: str, seen: str | None, says: str
) -> None:
    good = {"joined": "2024-12-01", "active": 2, "seen": "2024-12-03"}
    lines = [dict(good) for _ in range(50)]
    lines[7] = {"joined": joined, "active": 2, "seen": seen}
    text = {key: [line[key] for line in lines] for key in good}
    path = tmp_path / f"m.{form}"
    if form == "parquet":
        days = {
            key: text[key] if seen == "soon" else pa.array(text[key]).cast(pa.date32()) for key in ("joined", "seen")
        }
        pq.write_table(pa.table({"joined": days["joined"], "active": text["active"], "seen": days["seen"]}), path)
    elif form == "csv":
        path.write_text("".join(f"{one}\n" for one in ["joined,active,seen", *(
            f"{line['joined']},{line['active']},{line['seen'] or ''}" for line in lines)]))  # fmt: skip
    else:
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "m.yaml").write_text(MEMBERS)
    words: list[Any] = ["synthesize", path, "--schema", tmp_path / "m.yaml", "--epsilon", "1", "--delta", "1e-5"]
    words += ["--open", "--home", tmp_path / "home", "--out", tmp_path / "out", "--no-prefect"]
    code, out, err = run_cli(*map(str, words))
    assert code == 1 and says in err and "nothing was charged" in err, err
    assert "Traceback" not in out + err and "soon" not in out + err and not (tmp_path / "out").exists()


def test_derived_numbers_and_text_of_json_lines_are_held_to_what_they_follow_from(tmp_path: Path) -> None:
    schema = make("""
name: shop
columns:
  n: {type: integer, min: 0, max: 9}
  k: {type: categorical, values: [a, b]}
  half: {type: derived, formula: n / 2, max: 4}
  word: {type: derived, of: k, values: {a: one, b: two}}
  odd: {type: derived, of: k, values: {a: true, b: false}}
""")
    good = {"n": 3, "k": "a", "half": 1.5, "word": "one", "odd": True}
    path = tmp_path / "t.jsonl"
    broken: list[dict[str, Any]] = [{"half": 1}, {"word": "two"}, {"odd": False}, {"n": 9, "half": None}]
    for change, fits in (({}, True), ({"half": None, "word": None}, True), *((one, False) for one in broken)):
        path.write_text("".join(f"{json.dumps(good | one)}\n" for one in ({}, change)))
        gate = Gate(schema, raw=True)
        (part,) = parts_of(find_files(str(path))[0], Codec(schema))
        for batch in part.read(100):
            gate.check(batch)
        assert (not gate.broken) == fits, change
