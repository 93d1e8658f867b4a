"""A formula that rows keep but for a factor of 10, 100 or 1000 is answered with it, by a check of raw rows alone."""

import pandas as pd
import pyarrow as pa
import pytest

import nacre
from dpmodels.authoring.lint import parse
from dpmodels.gate.factors import Factor

SCHEMA = """name: sales
columns:
  amount: {{type: number, min: 0, max: 1000, round: 2}}
  percent: {{type: integer, min: 0, max: 100}}
  part: {{type: derived, formula: {formula}, round: 2}}
"""


def table() -> pd.DataFrame:
    frame = pd.DataFrame({"amount": [10.0, 20.5, 0.0, 999.99] * 50, "percent": [30, 0, 65, 100] * 50})
    return frame.assign(part=(frame.amount * frame.percent / 100).round(2))


def counted(formula: str, *frames: pd.DataFrame) -> Factor:
    schema, faults = parse(SCHEMA.format(formula=formula))
    assert schema is not None, faults
    first, *others = (Factor("part", schema) for _ in frames)
    for one, frame in zip((first, *others), frames, strict=True):
        one.see(pa.RecordBatch.from_pandas(frame))
    for one in others:
        first.add(one)
    return first


@pytest.mark.parametrize(
    ("formula", "multiple"),
    [
        ("amount * percent / 10", "(amount * percent / 10) / 10"),
        ("amount * percent", "(amount * percent) / 100"),
        ("amount * percent / 1000", "(amount * percent / 1000) * 10"),
        ("amount * percent / 100000", "(amount * percent / 100000) * 1000"),
        ("amount * percent / 100", ""),  # which holds
        ("amount * percent / 20", ""),
        ("amount + percent", ""),
    ],
)
def test_a_multiple_that_nearly_all_rows_keep_is_named_with_counts(formula: str, multiple: str) -> None:
    one = counted(formula, table().head(120), table().tail(80))
    assert bool(one.count) == bool(multiple)
    if multiple:
        assert one.text.startswith(
            f"in 100 of 200 rows the file has another value than its formula gives; `{multiple}`"
        )
        assert "holds in 200 of 200" in one.text
        off = table().assign(part=lambda frame: frame.part.where(frame.index != 0, 7.0))
        assert "holds in 199 of 200" in counted(formula, off).text
        assert counted(formula, table(), table().assign(part=7.0)).count == 0


def test_a_check_of_raw_rows_says_it_and_a_run_does_not() -> None:
    schema = SCHEMA.format(formula="amount * percent / 10")
    checked = nacre.validate(table(), schema, raw=True)
    assert "in 100 of 200 rows" in " ".join(checked.advice)
    with pytest.raises(nacre.DataError) as caught:
        nacre.synthesize(table(), schema, epsilon=1, delta=1e-5)
    assert "100 of 200" not in str(caught.value) and "/ 10) / 10" not in str(caught.value)
