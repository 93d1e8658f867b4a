"""A draft whose values are to be discovered."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.support import make_schema, make_table, run_cli, write_clinic

PLANTED = "Zebulon-Quillfeather"


MARKS = {"ward": {"values": "discover"}, "age": {"min": "discover", "max": "discover"}}


def write_draft(folder: Path, rows: int = 3000) -> list[object]:
    """Write data, a draft and the settings of a quick synthesis; return the words of a discovery."""
    data, _, _ = write_clinic(folder, rows=rows)
    table = make_table(rows)
    ward = pa.array([PLANTED, *table["ward"].to_pylist()[1:]])
    pq.write_table(table.set_column(table.schema.get_field_index("ward"), "ward", ward), data)
    (folder / "draft.yaml").write_text(make_draft())
    return words(folder)


def make_draft(**changes: object) -> str:
    """Return the clinic's schema with what is to be discovered, as YAML."""
    content = make_schema(**changes).model_dump(mode="json", exclude_defaults=True)
    content["columns"] = {name: {**column, **MARKS.get(name, {})} for name, column in content["columns"].items()}
    return json.dumps(content, indent=1)


def words(folder: Path, **other: object) -> list[object]:
    named = {"schema": folder / "draft.yaml", "epsilon": 1, "delta": "1e-6", "home": folder / "home"} | other
    options = [word for name, value in named.items() for word in (f"--{name.replace('_', '-')}", value)]
    return ["schema", "discover", folder / "clinic.parquet", *options]


def open_account(folder: Path, epsilon: float = 5, delta: float = 1e-5) -> None:
    cap = ["--epsilon", epsilon, "--delta", delta]
    code, _, err = run_cli(
        "ledger", "open", "clinic", "--schema", folder / "draft.yaml", "--home", folder / "home", *cap
    )
    assert code == 0, err
