"""Formulas with a table of numbers by a category, such as a price by contract, in derived and in computed columns."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.derive import derive, follows, with_computed
from dpmodels.contract.derivation.reach import reach

SCHEMA = """
name: power
columns:
  kwh: {type: number, min: 0, max: 100, round: 1, nullable: true}
  contract: {type: categorical, values: [day, night], nullable: true}
  green: {type: boolean}
  step: {type: categorical, values: [1, 2.5]}
  paid: {type: derived, formula: "kwh * {'day': 0.31, 'night': 0.25}[contract]", round: 2}
  level: {type: derived, formula: "step * {1: 10, 2.5: 20}[step] + {'true': -1, 'false': 0}[green]"}
  share: {type: number, min: 0, max: 1, round: 2, computed: "kwh / {'day': 100, 'night': 50}[contract]",
          nullable: true}
"""


def test_a_category_is_looked_up_in_a_formula_and_what_is_computed_is_rounded_before_its_bounds() -> None:
    schema, faults = parse(SCHEMA)
    assert schema is not None, faults
    table = pa.table(
        {
            "kwh": [10.0, 50.2, None, 4.0],
            "contract": ["day", "night", "day", None],
            "green": [True, False, True, False],
            "step": [1.0, 2.5, 2.5, 1.0],
        }
    )
    assert derive(schema.derived["paid"], schema.columns, table).to_pylist() == [3.1, 12.55, None, None]
    assert derive(schema.derived["level"], schema.columns, table).to_pylist() == [9.0, 50.0, 49.0, 10.0]
    told = table.append_column("paid", pa.array([3.1, 12.55, 7.0, 7.0])).to_batches()[0]
    assert follows("paid", schema.columns, told).all()
    wrong = table.append_column("paid", pa.array([2.5, 12.55, 7.0, 7.0])).to_batches()[0]
    assert follows("paid", schema.columns, wrong).tolist() == [False, True, True, True]
    (batch,) = with_computed(table.to_batches(), schema)
    # 50.2 / 50 is 1.004, which is 1.00 to two decimals, and so within the bounds
    assert batch.column("share").to_pylist() == [0.1, 1.0, None, None]
    assert np.allclose(reach(str(schema.derived["paid"].formula), schema.columns), (0, 31))
    assert reach(str(schema.derived["level"].formula), schema.columns) == (9, 50)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("{'day': 1, 'night': 2, 'day': 3}", "names a value twice in a table"),
        ("{1: 10, '1': 11, 2.5: 3}", "names a value twice in a table"),
        (f"{{'day': 1{'0' * 400}, 'night': 2}}", "holds a number that is too large"),
        ("{'day': 1, 'night': 1e400}", "holds a number that is too large"),
    ],
)
def test_a_table_that_says_two_things_of_a_value_or_has_too_large_a_number_is_refused(table: str, says: str) -> None:
    for key in ("derived, formula", "number, min: 0, max: 1, computed"):
        text = f'{SCHEMA}  more: {{type: {key}: "{table}[contract]"}}\n'
        schema, faults = parse(text)
        assert schema is None and any(says in str(one) for one in faults), faults
