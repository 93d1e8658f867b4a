"""What an installation weighs, with each extra, and how long its lightest commands take from the prompt to the end."""

import os
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.common import ROOT, Table, measure, parse, report

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SCHEMA = ROOT / "flows" / "demo" / "randhie.yaml"
BUDGET = ("--target-epsilon", "1", "--delta", "1e-5", "--out", "out", "--home", "home")
COMMANDS = {
    "import nacre": ("-c", "import nacre"),
    "nacre --help": ("-m", "nacre", "--help"),
    "nacre schema lint": ("-m", "nacre", "schema", "lint", str(SCHEMA)),
    "nacre plan": ("-m", "nacre", "plan", "absent.parquet", "--schema", str(SCHEMA), *BUDGET),
}
EXTRAS = ("", "validate", "prefect", "synthesize", "all", "dev")
REPEATS, QUICK_REPEATS = range(5), range(1)


def requirements(name: str, extra: str) -> list[Requirement]:
    """Return what a distribution asks for with an extra, or without one; nacre's own are read from the checkout."""
    if name != "nacre":
        lines = distribution(name).requires or []
    else:
        lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    found = [Requirement(line) for line in lines]
    return [each for each in found if each.marker is None or each.marker.evaluate({"extra": extra})]


def closure(extra: str) -> set[str]:
    """Return every distribution that nacre needs with an extra, of those that are installed."""
    done, todo = set[tuple[str, str]](), [("nacre", ""), ("nacre", extra)]
    while todo:
        name, asked = todo.pop()
        if (name, asked) in done:
            continue
        try:
            needs = requirements(name, asked)
        except PackageNotFoundError:
            continue
        done.add((name, asked))
        todo += [(each.name, one) for each in needs for one in ("", *each.extras)]
    return {name for name, _ in done} - {"nacre"}


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
