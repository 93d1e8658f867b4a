"""Other tools on the same cells, the same budget and the same schema, each in a virtual environment of its own.

A peer is given the table as cell numbers (``Codec.to_cells``), so that all methods see the same public cells, and gives
cell numbers back. A peer that fails or runs out of time is reported as such. ``PEER_DPMM`` and ``PEER_SMARTNOISE`` name
the interpreter of an environment that is there already.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.common import ROOT, measure
from dpmodels.codec.encode import Codec

HERE = Path(__file__).parent
ENVIRONMENTS = ROOT / "build" / "peers"
SECONDS = 3600


@dataclass(frozen=True)
class Peer:
    """One method of one tool."""

    tool: str
    method: str

    @property
    def name(self) -> str:
        """How it is called in a table."""
        return f"{self.method} ({self.tool})"


REQUIREMENTS = {
    "dpmm": ["dpmm==0.1.9"],
    "smartnoise": ["smartnoise-synth==1.0.8", "torch>=2.8,<2.14"],
}
DPMM = ("aim", "aim-target", "mst", "priv-bayes")
PEERS = {peer.name: peer for peer in (*(Peer("dpmm", method) for method in DPMM), Peer("smartnoise", "mst"))}


@dataclass(frozen=True)
class Outcome:
    """A peer's table, or why there is none."""

    table: pd.DataFrame | None
    seconds: float
    peak_mib: float
    failure: str = ""


def run_peer(
    peer: Peer,
    real: pa.Table,
    codec: Codec,
    epsilon: float,
    delta: float,
    seed: int,
    folder: Path,
    seconds: int = SECONDS,
) -> Outcome:
    """Fit and sample as many rows as the real table has, in a process of its own."""
    cells = pd.DataFrame(codec.to_cells(codec.encode(real)), columns=list(codec.columns))
    sizes = dict(zip(codec.columns, map(int, codec.cell_sizes), strict=True))
    task = {"sizes": sizes, "epsilon": epsilon, "delta": delta, "seed": seed, "target": codec.schema.target}
    outcome = run_cells(peer, cells, task, folder, seconds)
    if outcome.table is None:
        return outcome
    records = codec.from_cells(outcome.table.to_numpy().astype(np.int32), np.random.default_rng(seed))
    return replace(outcome, table=codec.decode(records).to_pandas())


def run_cells(peer: Peer, cells: pd.DataFrame, task: dict[str, Any], folder: Path, seconds: int = SECONDS) -> Outcome:
    """Fit and sample cell numbers; ``task`` holds sizes, epsilon, delta, seed and target."""
    folder.mkdir(parents=True, exist_ok=True)
    cells.to_csv(folder / "real.csv", index=False)
    (folder / "task.json").write_text(json.dumps({"method": peer.method, **task}))
    command = [str(_python(peer.tool)), str(HERE / f"run_{peer.tool}.py"), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        ran = measure(["timeout", str(seconds), *command], env=environment)
    except OSError as error:
        return Outcome(None, 0.0, 0.0, type(error).__name__)
    if ran.code:
        last = ran.output.strip().splitlines()[-1:] or ["no output"]
        return Outcome(None, ran.seconds, ran.peak_mib, "out of time" if ran.code == 124 else last[0][:80])
    return Outcome(pd.read_csv(folder / "synthetic.csv")[list(cells)], ran.seconds, ran.peak_mib)


def _python(tool: str) -> Path:
    """Return the interpreter of a tool's environment, which is made at its first use where ``PEER_DPMM`` names none."""
    if named := os.environ.get(f"PEER_{tool.upper()}"):
        return Path(named)
    home = ENVIRONMENTS / tool
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        install = [home / "bin" / "python", "-m", "pip", "install", "--quiet", *reversed(REQUIREMENTS[tool])]
        subprocess.run(install, check=True)
        (home / "ready").touch()
    return home / "bin" / "python"
