"""What orchestration costs: one small run as plain Python, and under Prefect on a fresh, old, or running server."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import ROOT, Table, measure, parse, report
from flows.with_prefect.server import PrefectServer

SCHEMA = """
name: overhead
unit: record
target: y
columns:
  x: {type: integer, min: 0, max: 9}
  y: {type: boolean}
"""
SETTINGS = "model: {method: pearl, measurement: {frequencies: {count: 16}}, training: {steps: 5, batch_size: 32}}\n"
REPEATS, QUICK_REPEATS = range(3), range(1)


def nacre(*words: object, **environment: str) -> float:
    """Run the command line in a process of its own and return its seconds."""
    ran = measure([sys.executable, "-m", "nacre", *map(str, words)], cwd=ROOT, env={**os.environ, **environment})
    if ran.code:
        raise SystemExit(f"nacre failed:\n{ran.output}")
    return ran.seconds


def synthesis(folder: Path, home: Path, out: str, *words: str, **environment: str) -> float:
    """Time one synthesis of a tiny table; its account is charged at so small an epsilon that every run fits."""
    named = ("--schema", folder / "s.yaml", "--config", folder / "c.yaml", "--epsilon", 0.01, "--delta", 1e-5)
    places = ("--account", "overhead", "--home", home, "--out", folder / out)
    return nacre("synthesize", folder / "t.parquet", *named, *places, *words, **environment)


@contextmanager
def workplace() -> Iterator[Path]:
    """Yield a folder with a tiny table, its schema and short training."""
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(0)
        pd.DataFrame({"x": rng.integers(0, 10, 500), "y": rng.random(500) < 0.5}).to_parquet(folder / "t.parquet")
        (folder / "s.yaml").write_text(SCHEMA)
        (folder / "c.yaml").write_text(SETTINGS)
        yield folder


def open_account(folder: Path, home: Path) -> Path:
    """Open the account in a new home."""
    cap = ("--schema", folder / "s.yaml", "--epsilon", 10, "--delta", 1e-5, "--home", home)
    nacre("ledger", "open", "overhead", *cap)
    return home


def main() -> None:
    args = parse(__doc__)
    repeats = QUICK_REPEATS if args.quick else REPEATS
    times: dict[str, list[float]] = {}
    with workplace() as folder:
        old = open_account(folder, folder / "old")
        synthesis(folder, old, "warm-up")
        for i in repeats:
            fresh = open_account(folder, folder / f"fresh-{i}")
            runs = {
                "nacre --help": lambda: nacre("--help"),
                "plain Python (--no-prefect)": lambda i=i: synthesis(folder, old, f"plain-{i}", "--no-prefect"),
                "Prefect, first run of a home": lambda i=i, home=fresh: synthesis(folder, home, f"fresh-out-{i}"),
                "Prefect, later run of a home": lambda i=i: synthesis(folder, old, f"old-{i}"),
            }
            for name, run in runs.items():
                times.setdefault(name, []).append(run())
        with PrefectServer(folder / "server") as server:
            url = server.wait()
            for i in repeats:
                running = synthesis(folder, old, f"running-{i}", PREFECT_API_URL=url)
                times.setdefault("Prefect, server already running", []).append(running)
    table = Table("seconds of one command, 500 rows, 5 training steps", ["command", "seconds"], digits=2)
    for name, seconds in times.items():
        table.add(name, seconds)
    report("overhead", [table], list(repeats), args)


if __name__ == "__main__":
    main()
