"""The convention every benchmark keeps: the same arguments, one Markdown report, one JSON record.

A cell is a word, a number, or the list of numbers that several seeds gave; a list is shown as mean ± standard
deviation and kept whole in the record. Of figures that were printed before records were kept there is only the mean
and the deviation.
"""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
Cell = str | int | float | Sequence[float] | Mapping[str, float]


def parse(
    description: str | None,
    configure: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
    argv: Sequence[str] | None = None,
) -> argparse.Namespace:
    """Parse ``--quick``, ``--json`` and whatever ``configure`` adds; pass the module's ``__doc__`` as description."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and rows: checks that it runs, not a result")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write one machine-readable record")
    configure(parser)
    return parser.parse_args(argv)


def first_alone(args: argparse.Namespace, **everything: list[str]) -> None:
    """Take the first of what an option names by default, for a quick run; what was named on the command line stays."""
    for name, names in everything.items():
        if getattr(args, name) == names:
            setattr(args, name, names[:1])


def data_dir() -> Path:
    """Return where the public data sets lie: ``NACRE_DATA``, else ``shared/data`` beside the checkout."""
    folder = Path(os.environ.get("NACRE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        raise SystemExit(f"no data at {folder}: set NACRE_DATA to the folder that holds the data sets")
    return folder


@dataclass
class Table:
    """Rows under named columns; ``digits`` are those after the point of a float."""

    title: str
    columns: list[str]
    digits: int = 3
    rows: list[list[Cell]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Append one row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for the {len(self.columns)} columns of {self.title}")
        self.rows.append([cell if isinstance(cell, str | int | float) else [float(x) for x in cell] for cell in cells])

    def markdown(self) -> str:
        """Render as a Markdown table."""
        return f"### {self.title}\n\n" + "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the table's lines without its title."""
        lines = [self.columns, ["---"] * len(self.columns), *map(self.shown, self.rows)]
        return ["| " + " | ".join(line) + " |" for line in lines]

    def shown(self, row: Sequence[Cell]) -> list[str]:
        """Return the cells of a row as they are printed."""
        return [self._show(cell) for cell in row]

    def _show(self, cell: Cell) -> str:
        if isinstance(cell, str | int):
            return str(cell)
        if isinstance(cell, float):
            return f"{cell:.{self.digits}f}"
        if isinstance(cell, Mapping):
            return self._spread(cell["mean"], cell["stdev"])
        if len(cell) < 2:
            return self._show(cell[0]) if cell else "–"
        return self._show({"mean": statistics.mean(cell), "stdev": statistics.stdev(cell)})

    def _spread(self, mean: float, stdev: float) -> str:
        """Show a mean with its deviation, or below what it lies where no digit of either is left."""
        half = 0.5 * 10.0**-self.digits
        if 0 < mean < half and stdev < half:
            return f"< {half:.{self.digits + 1}f}"
        return f"{mean:.{self.digits}f} ± {stdev:.{self.digits}f}"


def report(name: str, tables: Sequence[Table], seeds: Sequence[int], args: argparse.Namespace) -> None:
    """Print the tables with what they were measured on and, with ``--json``, write the record.

    ``benchmarks.pages`` puts the records of ``benchmarks/results`` into the pages that name them.
    """
    module = getattr(sys.modules["__main__"].__spec__, "name", f"benchmarks.{name}")
    record = {
        "benchmark": name,
        "command": shlex.join(
            ["PATH" if os.path.isabs(word) else word for word in ["python", "-m", module, *sys.argv[1:]]]
        ),
        "quick": args.quick,
        "seeds": list(seeds),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "tables": [asdict(table) for table in tables],
    }
    on = "; ".join(f"{key} {value}" for key, value in machine().items())
    print(f"## {name}{' (quick: not a result)' if args.quick else ''}\n")
    print("\n\n".join(table.markdown() for table in tables))
    print(f"\n{record['date'][:10]}, commit {record['commit']}, seeds {', '.join(map(str, seeds)) or 'none'}; {on}")
    if args.json:
        args.json.write_text(dump(record), encoding="utf-8")


def dump(record: Mapping[str, Any]) -> str:
    """Return a record as JSON with a line for each row, so that a difference shows which rows changed."""

    def fields(values: Mapping[str, Any], last: str) -> list[str]:
        return [f"{json.dumps(key)}: {json.dumps(values[key], ensure_ascii=False)}" for key in values if key != last]

    tables = []
    for table in record["tables"]:
        rows = ",\n".join("   " + json.dumps(row, ensure_ascii=False) for row in table["rows"])
        tables.append(f'  {{{", ".join(fields(table, "rows"))}, "rows": [\n{rows}\n  ]}}')
    head = "".join(f" {line},\n" for line in fields(record, "tables"))
    return f'{{\n{head} "tables": [\n' + ",\n".join(tables) + "\n ]\n}\n"


def machine() -> dict[str, str | int | float]:
    """Describe the machine by kind, never by name."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [line for line in cpuinfo.read_text().splitlines() if "model name" in line] if cpuinfo.exists() else []
    return {
        "cpu": models[0].split(":")[1].strip() if models else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def commit() -> str:
    """Return the short commit of this checkout, marked when tracked files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("-dirty" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@dataclass(frozen=True)
class Measured:
    """What a child process took: wall seconds and the peak resident MiB of it and its descendants together."""

    seconds: float
    peak_mib: float
    code: int
    output: str


def measure(command: Sequence[str], every: float = 0.05, **options: Any) -> Measured:
    """Run a command to its end; memory is sampled, and pages that processes share count once for each."""
    began, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as output:
        process = psutil.Popen(command, stdout=output, stderr=subprocess.STDOUT, **options)
        while process.poll() is None:
            peak = max(peak, _resident(process))
            time.sleep(every)
        seconds = time.perf_counter() - began
        output.seek(0)
        return Measured(seconds, peak / 2**20, process.returncode, output.read())


def _resident(process: psutil.Process) -> int:
    """Add up the resident bytes of a process and its descendants, some of which may just have ended."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
    return total


def plot_sweep(
    path: Path, curves: Mapping[str, Sequence[tuple[float, float]]], ceilings: Mapping[str, float], score: str
) -> None:
    """Draw a score against epsilon, a line a curve, with the real data's score as a dashed line of the same colour."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "nacre"}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3))
    for colour, (name, points) in zip(("#33658a", "#d1495b", "#5b8c5a"), curves.items(), strict=False):
        axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name)
        if name in ceilings:
            axes.axhline(ceilings[name], ls="--", color=colour)
    axes.set(xscale="log", xlabel="epsilon", ylabel=score)
    ticks = sorted({epsilon for points in curves.values() for epsilon, _ in points})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
