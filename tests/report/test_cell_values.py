"""What cells of a number column stand for: the mean of the values in them, at the top of a long tail above all."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.releases.release import Release
from dpmodels.report.counts.noisy_tables import Counted
from tests.kit.reports import release_of

TOP = 500_000
PAID = {"type": "number", "min": 0, "max": TOP, "round": 2, "zero_inflated": True, "nullable": True}
COLUMNS = {
    "cause": {"type": "categorical", "values": ["fire", "theft"]},
    "paid": PAID,
    "age": {"type": "integer", "min": 18, "max": 100},
}


def schema_of(columns: dict[str, object]) -> Schema:
    return Schema.model_validate({"name": "claims", "columns": columns})


def claims(rows: int) -> pa.Table:
    """Make amounts with a long tail, a third of them 0, a tenth of them unknown."""
    rng = np.random.default_rng(3)
    fire = rng.random(rows) < 0.3
    paid = np.where(rng.random(rows) < 0.3, 0, np.exp(np.where(fire, 8.5, 7.5) + rng.standard_normal(rows)))
    table = {"cause": np.where(fire, "fire", "theft"), "age": rng.integers(18, 90, rows)}
    return pa.table({**table, "paid": pa.array(paid.clip(0, TOP).round(2), mask=rng.random(rows) < 0.1)})


def cells_of(release: Release, *names: str) -> pd.DataFrame:
    frame = Counted(release).counts(names).rows.to_pandas()
    parts = {part: [row[-1] for row in frame[part]] for part in ("cells", "low", "high", "mean", "stddev")}
    return pd.DataFrame({**parts, "count": frame["count"]}).drop_duplicates("cells").set_index("cells")


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_cell_stands_for_the_mean_of_the_real_values_in_it_up_to_the_top(scale: str) -> None:
    schema = schema_of({**COLUMNS, "paid": {**PAID, "scale": scale}})
    data = claims(20_000)
    release = release_of(Nacre(), Codec(schema).encode(data), schema)
    cells, paid = cells_of(release, "cause", "paid"), data["paid"].to_pandas().dropna()
    assert cells.loc["null"].drop("count").isna().all()
    assert cells.loc["exactly 0"].drop("count").eq(0).all()
    values = cells.drop(["null", "exactly 0"])
    assert (values.low <= values["mean"]).all() and (values["mean"] <= values.high).all()
    top = values.iloc[-1]
    inside = paid[paid.between(top.low, top.high)]
    assert (top.low + top.high) / 2 > 1.7 * inside.mean() and (top.low + top.high) / 2 > 1.7 * top["mean"]
    assert 0.5 < top["mean"] / inside.mean() < 2 and 0 < top.stddev < (top.high - top.low) / 4
    bounds = zip(values.low[:-1], values.high[:-1], strict=True)
    others = [paid[paid.between(low, high)].mean() for low, high in bounds]
    assert len(others) > 9 and np.allclose(values["mean"][:-1], others, rtol=0.15, atol=25)


def test_single_points_stand_for_themselves_and_even_cells_for_their_middle() -> None:
    data = claims(4000).select(["cause", "age"])
    schema = schema_of({name: COLUMNS[name] for name in ("cause", "age")})
    release = release_of(Nacre(), Codec(schema).encode(data), schema)
    fine = cells_of(release, "age")
    points = fine[fine.low == fine.high]
    assert (points["mean"] == points.low).all() and (points.stddev == 0).all()
    wide = cells_of(release, "cause", "age").iloc[:-1]
    middle, width = (wide.low + wide.high) / 2, wide.high - wide.low
    assert (width > 0).any() and np.allclose(wide["mean"], middle, atol=1) and (wide.stddev <= width / 2).all()


def test_halves_of_a_wide_table_that_mix_values_with_nulls_have_no_mean() -> None:
    rng, columns = np.random.default_rng(0), 130
    amounts = np.where(rng.random((columns, 400)) < 0.6, 0, rng.lognormal(3, 1, (columns, 400))).round(2).clip(0, TOP)
    table = pa.table({f"x{i}": pa.array(each, mask=rng.random(400) < 0.5) for i, each in enumerate(amounts)})
    schema = schema_of(dict.fromkeys(table.column_names, PAID))
    cells = cells_of(release_of(Nacre(), Codec(schema).encode(table), schema), "x0", "x1")
    mixed = [cell for cell in cells.index if " or " in cell]
    assert len(cells) == 2 and mixed and cells.loc[mixed, ["low", "high", "mean", "stddev"]].isna().all(axis=None)
