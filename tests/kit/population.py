"""A population to try metrics on: tables drawn from it are as good as each other, and defects are planted in them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml

from dpmodels.comparison.frame import Rows
from dpmodels.comparison.report import Options, evaluate_table, load_real
from dpmodels.contract.schema import Schema
from dpmodels.privacy import Sensitive

SCHEMA = Schema.model_validate(
    yaml.safe_load(
        """
name: town
unit: record
target: ill
columns:
  age: {type: integer, min: 0, max: 99}
  income: {type: number, min: 0, max: 100000, round: 2, nullable: true}
  rent: {type: number, min: 0, max: 100000, round: 2}
  ward: {type: categorical, values: [north, south, west, isle, fort]}
  smoker: {type: boolean}
  ill: {type: categorical, values: ["no", "yes"]}
"""
    )
)


def draw(rows: int, seed: int) -> pd.DataFrame:
    """Draw a table; income goes with age, rent with income, being ill with age and smoking; two wards are rare."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 18, rows), 0, 99).astype(int)
    income = np.round(np.clip(300 * age + rng.gamma(3, 6000, rows), 0, 1e5), 2)
    rent = np.round(np.clip(0.3 * income + rng.normal(0, 1500, rows), 0, 1e5), 2)
    ward = rng.choice(["north", "south", "west", "isle", "fort"], rows, p=[0.4, 0.32, 0.24, 0.03, 0.01])
    smoker = rng.random(rows) < 0.3
    ill = rng.random(rows) < 0.05 + 0.4 * smoker + 0.4 * (age > 60)
    known = np.where(rng.random(rows) < 0.05, np.nan, income)
    words = np.where(ill, "yes", "no")
    return pd.DataFrame({"age": age, "income": known, "rent": rent, "ward": ward, "smoker": smoker, "ill": words})


def rows_of(table: pd.DataFrame) -> Rows:
    batches = pa.Table.from_pandas(table, preserve_index=False).to_batches(max_chunksize=700)
    return Rows(SCHEMA, batches)


def write(table: pd.DataFrame, path: Path) -> Path:
    table.to_parquet(path, index=False)
    return path


def judge(table: pd.DataFrame, real: pd.DataFrame, held: pd.DataFrame | None, **options: object) -> dict:
    settings = Options.model_validate({"workers": 1, **options})
    kept = None if held is None else Sensitive(rows_of(held))
    side = load_real(Sensitive(rows_of(real)), kept, SCHEMA, settings)
    return evaluate_table(side, rows_of(table), settings).reveal()


Planted = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


def copied(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """One row in five is a real one."""
    return pd.concat([table.iloc[len(table) // 5 :], real.iloc[: len(table) // 5]])


def unrelated(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Rent no longer goes with anything."""
    return table.assign(rent=np.random.default_rng(0).permutation(table["rent"]))


def collapsed(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Only twenty different rows are left."""
    return table.iloc[np.arange(len(table)) % 20]


def narrowed(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """No row repeats another, but all lie around a few dozen points."""
    few = collapsed(table, real).reset_index(drop=True)
    noise = np.random.default_rng(0).normal(0, 50, len(few))
    return few.assign(rent=np.round(np.clip(few["rent"] + noise, 0, 1e5), 2))


def purged(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """A rare ward is gone."""
    return table[table["ward"] != "isle"]


def stretched(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Everybody is twenty years older."""
    return table.assign(age=np.minimum(table["age"] + 20, 99))


def foreign(table: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """A ward that the schema does not list."""
    return table.assign(ward=table["ward"].where(np.arange(len(table)) % 50 > 0, "moon"))
