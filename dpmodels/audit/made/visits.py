"""Visits, of which a discovery is to say the wards, the bounds of two numbers and of the days, and the nulls."""

import math
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from dpmodels.contract.discovery.discovery import Discovery, MarkedKeys
from dpmodels.privacy import PrivacyBudget, PrivacyUnit

WARDS = ("north", "south", "west")
ROWS_OF_A_PATIENT = 2
EXTREMES: list[dict[str, Any]] = [
    {"ward": WARDS[0], "age": 1e300, "fee": "-1e300", "day": date(9999, 12, 31)},
    {"ward": WARDS[0], "age": math.inf, "fee": "1e308", "day": date(9999, 12, 31)},
    {"ward": WARDS[0], "age": math.nan, "fee": "-inf", "day": date(1, 1, 1)},
    {"ward": WARDS[0], "age": 0.0, "fee": "no number", "day": date(1, 1, 1)},
    {"ward": None, "age": None, "fee": None, "day": None},
]
"""Visits at the ends of what is told apart, that cannot be read, and without anything; none has a ward of its own."""


def make_contract() -> Discovery:
    """Return what is asked of the visits; a patient with several visits is protected."""
    columns = {
        "ward": MarkedKeys(type="categorical", keys=("values",)),
        "age": MarkedKeys(type="integer", keys=("min", "max", "max_null_share")),
        "fee": MarkedKeys(type="number", keys=("min", "max")),
        "day": MarkedKeys(type="datetime", keys=("min", "max")),
    }
    unit = PrivacyUnit(user="patient", max_rows=ROWS_OF_A_PATIENT)
    return Discovery(name="visits", unit=unit, columns=("patient", *columns), wanted=columns)


def make_budget(epsilon: float) -> PrivacyBudget:
    """Return a budget for one patient."""
    return PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=make_contract().unit)


def make_visits(rows: int, more: dict[str, Any] | None = None, position: int = 0) -> pa.RecordBatch:
    """Return visits to each ward by turns, and at a place those of one patient more, all alike."""
    visits = [
        {
            "ward": WARDS[row % 3],
            "age": 20.0 + row % 60,
            "fee": f"{row % 9}.5",
            "day": date(2020, 1, 1) + timedelta(row),
        }
        for row in range(rows)
    ]
    visits[position:position] = [more] * ROWS_OF_A_PATIENT if more else []
    kinds = [("ward", pa.string()), ("age", pa.float64()), ("fee", pa.string()), ("day", pa.date32())]
    return pa.RecordBatch.from_pylist(visits, pa.schema(kinds))
