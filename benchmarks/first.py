"""Take a CSV file of invented patients by the schema that README.md shows, from its account to a hand-off.

Seconds are those of the command with its start; megabytes are what it leaves in the hand-off and in its home.
"""

import os
import re
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from benchmarks.common import ROOT, Table, measure, parse, report

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=12_000)


def shown_schema() -> str:
    """Return the schema that README.md shows."""
    (found,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


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


def main() -> None:
    args = parse(__doc__, options)
    rows = 2_000 if args.quick else args.rows
    table = Table("The first run", ["command", "seconds", "peak MiB", "left: hand-off MB", "home MB"], digits=1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pc.write_csv(patients(rows), folder / "patients.csv")
        (folder / "patients.yaml").write_text(shown_schema(), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        data, schema, home = ["patients.csv"], ["--schema", "patients.yaml"], ["--home", "home"]
        for words in (
            ["schema", "lint", "patients.yaml"],
            ["ledger", "open", "patients", *schema, "--cap-epsilon", "3", "--cap-delta", "1e-5", *home],
            ["plan", *data, *schema, *BUDGET, *home],
            ["synthesize", *data, *schema, *BUDGET, *home, "--out", "hand-off"],
        ):
            ran = measure([sys.executable, "-m", "nacre", *words], cwd=folder, env=environment)
            if ran.code:
                raise SystemExit(f"{words[0]} failed:\n{ran.output}")
            name = " ".join(words[: 2 if words[0] in ("schema", "ledger") else 1])
            sizes = [megabytes(folder / "hand-off"), megabytes(folder / "home")] if name == "synthesize" else ["", ""]
            table.add(f"`nacre {name}`", ran.seconds, round(ran.peak_mib), *sizes)
    report("first", [table], [1], args)


if __name__ == "__main__":
    main()
