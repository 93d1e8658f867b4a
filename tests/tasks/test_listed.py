"""Groups have the values of the data where each is one that the schema lists, and stand in the order of the list."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.contract.schema import Schema
from tasks.stages.listed import counts_with_values, in_order, with_values

LISTS: dict[str, Any] = {
    "grade": {"type": "categorical", "values": [7, 1, 8], "nullable": True},
    "rate": {"type": "categorical", "values": [1.0, 0.5]},
    "ward": {"type": "categorical", "values": ["west", "east", "north"]},
    "sick": {"type": "boolean"},
    "code": {"type": "derived", "of": "ward", "values": {"west": 30, "east": 10, "north": 20}},
    "age": {"type": "integer", "min": 0, "max": 90},
}
COLUMNS = Schema.model_validate({"name": "t", "columns": LISTS}).columns


@pytest.mark.parametrize(
    ("name", "labels", "expected", "dtype"),
    [
        ("grade", ["1", "8", "7"], [7, 1, 8], "int64"),
        ("grade", ["null", "8", "1"], ["1", "8", "null"], "object"),
        ("grade", ["1", "7, 8"], ["7, 8", "1"], "object"),
        ("rate", ["0.5", "1.0"], [1.0, 0.5], "float64"),
        ("rate", ["1.0"], [1.0], "float64"),
        ("ward", ["east", "null", "west"], ["west", "east", "null"], "object"),
        ("ward", ["north, east", "west"], ["west", "north, east"], "object"),
        ("sick", ["true", "false"], [False, True], "bool"),
        ("code", ["10", "20", "30"], [30, 10, 20], "int64"),
        ("age", ["null", "50 to 90", "0 to 50"], ["null", "50 to 90", "0 to 50"], "object"),
        ("gone", ["b", "a"], ["b", "a"], "object"),
    ],
)
def test_a_group_is_a_value_of_the_data(name: str, labels: list[str], expected: list[Any], dtype: str) -> None:
    frame = pd.DataFrame({name: pd.Series(labels, dtype=object), "mean": range(len(labels))})
    made = with_values(in_order(frame, [name], COLUMNS), [name], COLUMNS)
    assert made[name].tolist() == expected and str(made[name].dtype) == dtype and made.index[0] == 0
    assert sorted(made["mean"]) == frame["mean"].tolist()
    counts = pa.table({name: pa.array(labels).dictionary_encode(), "count": [1.0] * len(labels)})
    listed = counts_with_values(counts, [name], COLUMNS)
    values = listed[name].to_pylist()
    assert values == labels if dtype == "object" else sorted(values) == sorted(expected)
    assert str(listed.to_pandas()[name].dtype) == {"object": "category"}.get(dtype, dtype)


def test_groups_of_several_columns_stand_in_the_order_of_each_in_turn() -> None:
    rows = [("0 to 50", "east"), ("50 to 90", "null"), ("0 to 50", "west"), ("50 to 90", "west")]
    frame = pd.DataFrame(rows, columns=["age", "ward"])
    assert [*in_order(frame, ["age", "ward"], COLUMNS).itertuples(index=False, name=None)] == [
        ("0 to 50", "west"),
        ("0 to 50", "east"),
        ("50 to 90", "west"),
        ("50 to 90", "null"),
    ]
    assert in_order(frame, ["ward", "age"], COLUMNS)["ward"].tolist() == ["west", "west", "east", "null"]
