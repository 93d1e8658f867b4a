"""From the command line to a hand-off that anybody can check, with every method."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.data import data_of
from dpmodels.audit.made import firm
from dpmodels.codec.embedded import codec_of
from dpmodels.codec.flat import split
from dpmodels.methods.quick import QUICK
from dpmodels.methods.registry import of_kind
from tests.kit.support import charges, run_cli, synthesize_words


def write(folder: Path, method: str) -> list[object]:
    """Write data, schema and quick settings of a method; return the words of its run."""
    quick = QUICK[method]
    data, table = folder / "data.parquet", data_of(method).make_table(60)
    if data_of(method) is firm:
        (data := folder / "data").mkdir()
        for name, rows in split(firm.make_schema(), table).items():
            pq.write_table(rows, data / f"{name}.parquet")
    else:
        pq.write_table(table, data)
    (folder / "schema.yaml").write_text(data_of(method).make_schema().to_yaml())
    model = {"method": method, "measurement": quick.measurement, "training": quick.training}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model}))
    return synthesize_words(folder, data=data, schema=folder / "schema.yaml", rows=30)


@pytest.mark.parametrize("method", of_kind("table"))
@pytest.mark.nightly_if(
    "dp-merf", "dp-gm", "nacre-images", "p3gm", "dp-vae", "dp-gan", "moments"
)  # beside p3gm-ae, dp-gm, dpkg and nacre
def test_a_run_ends_in_a_hand_off_and_a_ledger_that_are_verified(tmp_path, method):
    code, _, err = run_cli(*write(tmp_path, method))
    assert code == 0, err
    schema = data_of(method).make_schema()
    whole = tmp_path / "out" / "synthetic"
    table = pq.read_table(whole / schema.root if data_of(method) is firm else whole)
    codec = codec_of(schema)
    types = codec.output_of(schema.root) if data_of(method) is firm else codec.output_schema
    assert table.schema.equals(types) and table.num_rows == 30
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"] == method
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]
    code, _, err = run_cli("verify", tmp_path / "out")
    assert code == 3, err
    code, _, err = run_cli("ledger", "verify", "--home", tmp_path / "home")
    assert code == 0, err
