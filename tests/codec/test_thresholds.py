"""Rules that differ in their numbers alone are looked at together, and tell of each row what they tell one by one."""

import numpy as np

from dpmodels.codec import thresholds
from dpmodels.codec.encode import Codec
from dpmodels.codec.rules import RowRules
from dpmodels.codec.thresholds import Thresholds
from dpmodels.contract.schema import Schema

COLUMNS = {
    "hired": {"type": "datetime", "min": "1990-01-01", "max": "2009-12-31", "nullable": True},
    "born": {"type": "integer", "min": 1950, "max": 1999, "nullable": True},
    "grade": {"type": "categorical", "values": [1, 2, 5], "nullable": True},
    "fee": {"type": "number", "min": 0, "max": 10, "round": 1, "zero_inflated": True},
    "bonus": {"type": "number", "min": 0, "max": 10, "dtype": "float32"},
}
ALIKE = [
    *(f"when hired < {year}-01-01 then born <= {year - 20}" for year in range(1991, 2009)),
    *(f"when grade <= {grade} then fee != {grade}.5" for grade in (1, 2)),
    *(f"when born > {year} then grade < {grade}" for year, grade in ((1960, 5), (1980, 2))),
]
APART = [
    "when hired < 1995-01-01 then born < 1980",
    "when fee = 0 then grade = null",
    "when fee > 1 and fee < 2 then grade = 5",
    "fee <= bonus",
]


def test_rules_looked_at_together_tell_what_each_tells_by_itself(monkeypatch) -> None:
    schema = Schema.model_validate({"name": "staff", "columns": COLUMNS, "constraints": [*ALIKE, *APART]})
    rules, codec, rng = RowRules(schema), Codec(schema), np.random.default_rng(0)
    cells = np.stack([rng.integers(0, size, 3000) for size in codec.cell_sizes], axis=1).astype(np.int32)
    records = codec.from_cells(cells, rng)
    assert [isinstance(one, Thresholds) for one in rules.gathered].count(True) == 3
    assert len(rules.gathered) == 3 + len(APART)
    apart = np.sum([~rules.keeps(records, rule) for rule in rules.all], axis=0)
    assert apart.max() > 10 and (apart == 0).sum() > 50
    for block in (thresholds.BLOCK, 100, 1):
        monkeypatch.setattr(thresholds, "BLOCK", block)
        assert np.array_equal(rules.broken(rules.read(records, rules.all), rules.gathered), apart)
        assert np.array_equal(rules.hold(records), apart == 0)
