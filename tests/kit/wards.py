"""Wards of a small hospital group, and public records like theirs: what the tests of federations share."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpmodels.embeddings.frozen import digest_of, transform_frozen
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.federations.records import load_examples
from dpmodels.statistics.logistic import transform_optimum
from flows.config import FederateConfig
from flows.start import start
from tasks.kinds import federation
from tasks.run.accounts import reserve
from tasks.run.store import Run
from tasks.stages import aggregate, federate, rounds
from tests.kit.support import charges

NAMES = ("north", "south", "west")
CLASSES = ("well", "ill", "grave")
INPUTS = ("age", "pulse", "fever", "pain")
MIDDLES = np.array([[30, 70, 36.6, 1], [60, 90, 38.5, 4], [80, 110, 40.0, 8]])
WIDTHS = np.array([6, 6, 0.4, 1])


def make_ward(number: int, seed: int, shares: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)) -> pa.Table:
    """Return records whose class is easily told from their columns; a ward may have more of some classes."""
    rng = np.random.default_rng(seed)
    label = rng.choice(len(CLASSES), number, p=shares)
    values = MIDDLES[label] + WIDTHS * rng.standard_normal((number, len(INPUTS)))
    columns = {name: values[:, place] for place, name in enumerate(INPUTS)}
    return pa.table({**columns, "label": np.array(CLASSES)[label]})


def write_wards(folder: Path, number: int = 300, **changes: Any) -> Path:
    """Write each ward's records in a folder of its own, public ones, and a configuration; return the latter's path."""
    skewed = [(0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)]
    for seed, (name, shares) in enumerate(zip(NAMES, skewed, strict=True)):
        (folder / name).mkdir(parents=True)
        pq.write_table(make_ward(number, seed, shares), folder / name / "records.parquet")
    pq.write_table(make_ward(200, 9).drop_columns("label"), folder / "public.parquet")
    pq.write_table(make_ward(200, 10), folder / "judge.parquet")
    content = {
        "name": "wards",
        "clients": {name: str(folder / name) for name in NAMES},
        "public": str(folder / "public.parquet"),
        "classes": list(CLASSES),
        "records": {"inputs": list(INPUTS)},
        "most_records": 1000,
        "out": str(folder / "out"),
        "privacy": {"target_epsilon": 3.0, "delta": 1e-5},
        "model": {
            "measurement": {"records": number},
            "extractor": {"features": 8, "width": 4, "pretraining": {"steps": 5, "batch_size": 32}},
        },
        "round": {"workers": "here"},
        "runtime": {"home": str(folder / "home"), "prefect": False},
        **changes,
    }
    (folder / "federation.yaml").write_text(yaml.safe_dump(content))
    return folder / "federation.yaml"


def begun(folder: Path, **changes: object) -> Run:
    """Write wards, and start their federation."""
    return start(FederateConfig.build({}, write_wards(folder, **changes)))


def ledger_of(folder: Path) -> Ledger:
    """Return the ledger of a federation's home."""
    return Ledger(folder / "home" / "ledger.sqlite")


def each_charged_once(folder: Path) -> bool:
    """Tell whether every client was charged once, and nothing was drawn more often than a cut-off draw explains."""
    kinds = charges(folder / "home")
    return [kinds.count(kind) for kind in ("reserve", "seal", "commit")] == [3, 3, 3] and kinds.count("draw") <= 4


def replace(folder: Path, name: str, table: pa.Table) -> None:
    """Give a ward other records."""
    pq.write_table(table, folder / name / "records.parquet")


def dropped(folder: Path) -> dict[str, str]:
    """Return the clients that the hand-off names as dropped."""
    return read_manifest(folder / "out").dropped or {}


def only_run(folder: Path) -> str:
    """Return the name of the one federation's run in a home."""
    (found,) = [path.parent.name for path in (folder / "home" / "control").glob("*/public.safetensors")]
    return found


def hand_in_or_die(run: Run) -> object:
    """Hand in a client's exact sum; the process of one client is killed once it is charged."""
    return _die_in_the_south(run) or aggregate.hand_in(run)


def take_part_or_die(run: Run) -> object:
    """Release what a client's line says; the process of one client is killed once it is charged."""
    return _die_in_the_south(run) or federate.take_part(run)


def train_or_die(run: Run, number: int) -> object:
    """Train on a client's records; the process of one client is killed in the first round."""
    if number == 1 and run.name.endswith("south"):
        os.kill(os.getpid(), signal.SIGKILL)
    return rounds.train_one(run, number)


def _die_in_the_south(run: Run) -> None:
    if run.name.endswith("south"):
        reserve(run)
        os.kill(os.getpid(), signal.SIGKILL)


def dies(run: Run) -> None:
    """Do a client's work as one client that is killed, one that is done at once, and one that never ends."""
    if run.name.endswith("north"):
        os.kill(os.getpid(), signal.SIGKILL)
    if run.name.endswith("west"):
        signal.pause()


def digest_of_heads(run: Run) -> None:
    """Write down which process solved a client's classifying head, and the digest of the head before any noise."""
    line = run.plan.release
    public = federation.public_part(run.model_copy(update={"name": run.settings.federation}), federation.about(line))
    held = transform_frozen(public.features, load_examples(run.settings.data, public.records, federation.about(line)))
    problems = federation.create(line.method, line.measurement, public).of(line)
    exact = transform_optimum(problems.head, held, 0).reveal()
    with open(run.sensitive / "digests", "a") as file:
        file.write(f"{os.getpid()} {digest_of(exact[None])}\n")
