"""What is compared or checked may be given as a run's data may: text and Arrow, not Parquet alone."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpmodels.audit.made.clinic import make_schema, make_table
from dpmodels.comparison.frame import ParquetBatches, read_frame
from tasks.run.table_inputs import as_parquet
from tasks.stages.validate import check_hand_off
from tests.kit.inputs import as_arrow, as_csv, as_json

SCHEMA = make_schema()
FORMS = {"t.csv": lambda path: as_csv(path, ";"), "t.csv.gz": as_csv, "t.jsonl": as_json, "t.arrow": as_arrow}


@pytest.mark.parametrize("name", FORMS)
def test_a_table_in_any_form_is_compared_as_the_same_numbers(tmp_path: Path, name: str) -> None:
    whole, other = tmp_path / "whole.parquet", FORMS[name](tmp_path / name)
    with as_parquet(FORMS["t.arrow"](tmp_path / "w.arrow"), SCHEMA, tmp_path) as path:
        pq.write_table(pq.read_table(path), whole)
    with as_parquet(other, SCHEMA, tmp_path) as path:
        frames = [[read_frame(SCHEMA, batch) for batch in ParquetBatches(each, SCHEMA)] for each in (whole, path)]
    first, second = (np.concatenate([frame.values for frame in each]) for each in frames)
    assert np.array_equal(first, second, equal_nan=True)
    assert not [file for file in tmp_path.iterdir() if file.is_dir()]


def test_a_table_of_text_is_validated(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(SCHEMA.to_yaml())
    whole = make_table(40)
    for table, fine in ((whole, True), (whole.set_column(1, "age", whole["age"].cast("int32")), True)):
        verdicts = check_hand_off(as_csv(tmp_path / "t.csv", table=table), tmp_path / "clinic.yaml")
        assert (not verdicts.broken) == fine, [str(rule) for rule in verdicts.broken]
    text = (tmp_path / "t.csv").read_text().replace("north", "nowhere")
    (tmp_path / "t.csv").write_text(text)
    assert check_hand_off(tmp_path / "t.csv", tmp_path / "clinic.yaml").broken
