"""Take a CSV file of invented patients, by a schema such as a newcomer would write, from its account to a hand-off.

Seconds are those of the command with its start; megabytes are the most that a run left in the hand-off and in its home.
"""

import os
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from benchmarks.common import ROOT, Table, measure, parse, report

PATIENTS = ROOT / "benchmarks" / "schemas" / "patients.yaml"
LEFT = ["hand-off", "home"]
BUDGET = ["--epsilon", "1", "--delta", "1e-5"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--runs", type=int, default=3)


def patients(rows: int) -> pa.Table:
    """Invent rows that fit the schema: older patients come back more often, and cost more."""
    rng = np.random.default_rng(1)
    age, none = rng.integers(0, 101, rows), rng.random(rows) < 0.4
    back = rng.random(rows) < 0.05 + 0.2 * (age > 60)
    return pa.table(
        {
            "patient": np.arange(rows) + 1_000_000,
            "admitted": np.datetime64("2025-01-01") + rng.integers(0, 365, rows),
            "age": age,
            "ward": rng.choice(["general", "surgery", "maternity"], rows, p=[0.6, 0.3, 0.1]),
            "bill": np.where(none, 0, np.round(rng.lognormal(5 + age / 50, 1, rows), 2)).clip(0, 100_000),
            "readmitted": back,
        }
    )


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def first_run(folder: Path, rows: int) -> dict[str, tuple[float, float]]:
    """Give the commands in a new folder; return the seconds and the peak memory of each."""
    pc.write_csv(patients(rows), folder / "patients.csv")
    shutil.copy(PATIENTS, folder / "patients.yaml")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NACRE_HOME": "home"}
    described, taken = ["patients.csv", "--schema", "patients.yaml", *BUDGET], dict[str, tuple[float, float]]()
    for name, words in {
        "schema lint": ["patients.yaml"],
        "ledger open": ["patients", "--schema", "patients.yaml", "--epsilon", "3", "--delta", "1e-5"],
        "plan": described,
        "synthesize": [*described, "--out", "hand-off"],
    }.items():
        ran = measure([sys.executable, "-m", "nacre", *name.split(), *words], cwd=folder, env=environment)
        if ran.code:
            raise SystemExit(f"{name} failed:\n{ran.output}")
        taken[name] = ran.seconds, ran.peak_mib
    return taken


def main() -> None:
    args = parse(__doc__, options)
    runs, sizes = [], [0.0, 0.0]
    for _ in range(1 if args.quick else args.runs):
        with tempfile.TemporaryDirectory() as place:
            runs.append(first_run(Path(place), 2_000 if args.quick else args.rows))
            sizes = [max(size, megabytes(Path(place) / name)) for size, name in zip(sizes, LEFT, strict=True)]
    table = Table("The first run", ["command", "seconds", "peak MiB", "hand-off, MB", "home, MB"], digits=1)
    for name in runs[0]:
        seconds, peaks = zip(*(run[name] for run in runs), strict=True)
        left = [f"{size:.1f}" for size in sizes] if name == "synthesize" else ["", ""]
        table.add(f"`nacre {name}`", list(seconds), round(max(peaks)), *left)
    report("first", [table], [1], args)


if __name__ == "__main__":
    main()
