"""A raw table may lack derived columns that follow from its others: they are computed, and handed over all the same."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import nacre
from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.errors import DataError, NacreError
from dpmodels.reading.load import RawRows
from tests.kit.errors import refused

SCHEMA = """name: staff
columns:
  pay: {type: derived, formula: rate * hours, round: 2, max: 300}
  city: {type: derived, of: site, values: {a: Aachen, b: Bonn}}
  counted: {type: number, min: 0, max: 300, round: 2, computed: pay, keep: drop}
  born: {type: derived, formula: year(hired) - age, min: 1900}
  rate: {type: number, min: 1, max: 30, round: 2}
  hours: {type: integer, min: 0, max: 10}
  site: {type: categorical, values: [a, b]}
  hired: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: day}
  age: {type: integer, min: 18, max: 70, nullable: true}
text: {date_format: "%d/%m/%Y"}
"""
MADE = ["pay", "city", "born"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    table = pd.DataFrame({"rate": [1.25, 30.0, 9.99] * 200, "hours": [3, 10, 7] * 200, "site": ["a", "b", "a"] * 200})
    table["hired"] = ["31/12/2020", "01/02/2020", "05/06/2020"] * 200
    table["age"] = pd.array([20, 70, None] * 200, "Int64")
    table["pay"], table["city"] = (table.rate * table.hours).round(2), table.site.map({"a": "Aachen", "b": "Bonn"})
    return table.assign(born=2020 - table.age)


def written(frame: pd.DataFrame, place: Path) -> Path:
    if place.suffix == ".jsonl":
        frame.to_json(place, orient="records", lines=True)
    else:
        {".csv": frame.to_csv, ".parquet": frame.to_parquet, ".xlsx": frame.to_excel}[place.suffix](place, index=False)
    return place


def rows_of(place: Path) -> pa.Table:
    schema, faults = parse(SCHEMA)
    assert schema is not None and not faults
    codec = Codec(schema)
    return pa.Table.from_batches([codec.to_arrow(codec.encode(batch)) for batch in RawRows(place, schema, 100)])


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "jsonl"])
def test_rows_are_the_same_with_and_without_what_follows_from_others(frame, ending: str, tmp_path: Path) -> None:
    given = frame.assign(hired=pd.to_datetime(frame.hired, dayfirst=True)) if ending == "xlsx" else frame
    whole, lacking = (
        written(one, tmp_path / f"{len(one.columns)}.{ending}") for one in (given, given.drop(columns=MADE))
    )
    assert rows_of(whole).equals(rows_of(lacking)) and rows_of(lacking).num_rows == len(frame)
    assert nacre.validate(lacking, SCHEMA, raw=True).success.all()


@pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
def test_what_is_counted_in_place_of_a_derived_column_makes_its_groups(frame: pd.DataFrame, tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = nacre.synthesize(frame, SCHEMA, epsilon=20, delta=1e-5, home=home, rows=50, internal_report=False)
    means, of_copy = nacre.means(made, "hours", by="pay"), nacre.means(made, "hours", by="counted")
    assert (
        list(means)[:3] == ["pay", "pay_low", "pay_high"] and means.to_numpy().tolist() == of_copy.to_numpy().tolist()
    )
    bands = nacre.means(made, "hours", by={"pay": [0, 20, 300]})
    assert len(bands) == 2 and bands["mean"][0] < bands["mean"][1]
    cells = nacre.marginals(made, "pay")
    assert list(cells)[:5] == ["pay", "pay_low", "pay_high", "pay_mean", "pay_stddev"]
    assert cells.likely.sum() == pytest.approx(600, rel=0.1)
    with refused(NacreError, "name each of the columns"):
        nacre.means(made, "rate", by=["pay", "pay"])


def test_a_bound_of_a_column_that_is_computed_is_held_to_and_another_fault_stands_alone(frame: pd.DataFrame) -> None:
    lacking = frame.drop(columns=MADE)
    checked = nacre.validate(lacking, SCHEMA.replace("max: 300}", "max: 299}", 1), raw=True)
    assert checked[~checked.success].rule.str.contains("rate|pay").all() and not checked.success.all()
    with refused(DataError, "^column hired: must hold dates[^;]*$"):
        nacre.validate(lacking, SCHEMA.partition("text:")[0], raw=True)
    with refused(DataError, "is in the schema but not in the data.*a column whose name differs from", column="pay"):
        nacre.validate(lacking.assign(pays=1.0, city="Bonn"), SCHEMA, raw=True)
    with refused(DataError, "pay is there in other letters", column="born"):
        nacre.validate(lacking.assign(Pay=1.0, city="Bonn"), SCHEMA, raw=True)


def test_a_frame_without_them_is_synthesized_and_comes_back_with_them(frame: pd.DataFrame, tmp_path: Path) -> None:
    quick = {"method": "nacre", "training": {"components": 8, "steps": 5}}
    made = nacre.synthesize(frame.drop(columns=MADE), SCHEMA, epsilon=1, delta=1e-5, home=tmp_path / "h", **quick).table
    assert [*made.columns] == ["pay", "city", "born", "rate", "hours", "site", "hired", "age"]
    assert ((made.rate * made.hours - made.pay).abs() < 0.0051).all()
