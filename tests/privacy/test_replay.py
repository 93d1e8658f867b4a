"""Replay on neighbouring data: whatever leaves the sensitive zone depends on the data through the release alone."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.mechanisms import exponential, gaussian
from flows.config import SynthesizeConfig
from flows.synthesize import synthesize
from tasks import store
from tasks.store import Run
from tests.support import make_table, write_clinic

METHODS = ["pearl", "privbayes"]


def run_on(folder: Path, table: pa.Table, method: str = "pearl") -> Run:
    data, schema, config = write_clinic(folder)
    pq.write_table(table, data)
    settings = {
        "model": {"method": method},
        "data": data,
        "schema": schema,
        "out": folder / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5},
        "runtime": {"home": folder / "home", "prefect": False},
    }
    return synthesize(SynthesizeConfig.build(settings, config if method == "pearl" else None))


def neighbours() -> tuple[pa.Table, pa.Table]:
    """A table, and the same with one extreme record more."""
    table = make_table(150)
    extreme = {"patient": [999], "age": [99], "ward": ["west"], "dose": [10.0], "smoker": [True], "sick": ["yes"]}
    return table, pa.concat_tables([table, pa.table(extreme, schema=table.schema)])


@pytest.fixture
def fixed_release(monkeypatch):
    """Make every draw come out as the same vector or index, as if it had been copied from another run."""
    monkeypatch.setattr(
        gaussian, "_sampler", lambda values, scale: np.random.default_rng(0).integers(10**8, 10**9, len(values))
    )
    monkeypatch.setattr(exponential, "_selector", lambda scores, scale: len(scores) * 2 // 3)
    monkeypatch.setattr(store, "new_name", lambda: "the-run")


@pytest.mark.parametrize("method", METHODS)
def test_with_the_release_copied_every_public_output_is_the_same(tmp_path, fixed_release, method):
    names = ("d", "neighbour")
    a, b = (run_on(tmp_path / name, table, method) for name, table in zip(names, neighbours(), strict=True))
    left, right = (public_files(run) for run in (a, b))
    assert left.keys() == right.keys() and len(left) >= 8
    assert [name for name in left if left[name] != right[name]] == ["released/settings.json"]  # it names the folders
    left, right = (json.loads((run.settings.out / "manifest.json").read_text()) for run in (a, b))
    for manifest in (left, right):
        for entry in manifest["ledger"]["entries"]:
            del entry["time"], entry["hash"]
    assert left == right


def public_files(run: Run) -> dict[str, bytes]:
    """Return every file of the hand-off and the released zone; the manifest, which holds times, is judged apart."""
    places = {"out": run.settings.out, "released": run.released}
    files = [(zone, root, path) for zone, root in places.items() for path in sorted(root.rglob("*")) if path.is_file()]
    found = {f"{zone}/{path.relative_to(root)}": path.read_bytes() for zone, root, path in files}
    del found["out/manifest.json"]
    return found


def test_nothing_public_can_be_traced_to_the_encoded_table(tmp_path, fixed_release):
    """No hash of sensitive bytes lies in the released zone, the ledger or the hand-off: it would confirm a guess."""
    run = run_on(tmp_path / "d", neighbours()[0])
    secrets = [hashlib.sha256(p.read_bytes()).hexdigest() for p in run.sensitive.rglob("*") if p.is_file()]
    secrets.append(hashlib.sha256(run.settings.data.read_bytes()).hexdigest())
    shutil.rmtree(run.home / "sensitive")
    public = b"".join(p.read_bytes() for p in (tmp_path / "d").rglob("*") if p.is_file() and p != run.settings.data)
    assert len(secrets) >= 4
    assert not [secret for secret in secrets if secret.encode() in public]


@pytest.mark.parametrize("method", METHODS)
def test_the_order_and_the_chunks_of_the_rows_change_nothing(tmp_path, monkeypatch, method):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: values)
    monkeypatch.setattr(exponential, "_selector", lambda scores, scale: int(scores.argmax()))
    table = make_table(150)
    shuffled = table.take(np.random.default_rng(1).permutation(150))
    a, b = (run_on(tmp_path / name, t, method) for name, t in (("a", table), ("b", shuffled)))
    left, right = (pq.read_table(run.released / "release.parquet") for run in (a, b))
    assert left.equals(right)
