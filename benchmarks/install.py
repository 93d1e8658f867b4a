"""What an installation weighs, with each extra, and how long its lightest commands take from the prompt to the end."""

import os
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

from benchmarks.common import ROOT, Table, measure, parse, report
from supply.installed import closure

SCHEMA = ROOT / "flows" / "demo" / "earnings.yaml"
BUDGET = ("--epsilon", "1", "--delta", "1e-5", "--out", "out", "--home", "home")
COMMANDS = {
    "import nacre": ("-c", "import nacre"),
    "nacre --help": ("-m", "nacre", "--help"),
    "nacre schema lint": ("-m", "nacre", "schema", "lint", str(SCHEMA)),
    "nacre plan": ("-m", "nacre", "plan", "absent.parquet", "--schema", str(SCHEMA), *BUDGET),
}
EXTRAS = ("", "validate", "prefect", "synthesize", "all", "dev")
REPEATS, QUICK_REPEATS = range(5), range(1)


def megabytes(names: set[str]) -> float:
    """Add up the files that distributions installed, those that Python compiles by itself left out."""
    files = {file for name in names for file in distribution(name).files or () if file.suffix != ".pyc"}
    found = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in found if path.is_file()) / 1e6


def main() -> None:
    args = parse(__doc__)
    repeats = QUICK_REPEATS if args.quick else REPEATS
    sizes = Table("what is installed", ["nacre with", "packages", "megabytes"], digits=0)
    for extra in EXTRAS:
        names = closure(extra)
        sizes.add(f"[{extra}]" if extra else "no extra", len(names), megabytes(names))
    times = Table("seconds of one command", ["command", "seconds"], digits=2)
    with tempfile.TemporaryDirectory() as folder:
        for name, words in COMMANDS.items():
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            runs = [measure([sys.executable, *words], cwd=folder, env=environment) for _ in repeats]
            if any(ran.code for ran in runs):
                raise SystemExit(f"{name} failed:\n{runs[-1].output}")
            times.add(name, [ran.seconds for ran in runs])
    report("install", [sizes, times], [], args)


if __name__ == "__main__":
    main()
