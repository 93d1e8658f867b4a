"""Replay on neighbouring data: whatever leaves the sensitive zone depends on the data through the release alone."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.evaluation.audit.made import pictures
from dpmodels.evaluation.published.charged import Scores
from dpmodels.mechanisms import gaussian
from dpmodels.synthesizers.registry import create
from flows.config import SynthesizeConfig
from flows.synthesize import synthesize
from tasks.store import Run
from tests.support import make_table, write_clinic

METHODS = ["pearl", "nacre", "nacre-images"]
TRAINING = {
    "pearl": {"steps": 6, "batch_size": 32, "frequencies_per_step": 16, "network": {"hidden_dim": 16}},
    "nacre": {"steps": 6, "components": 20},
    "nacre-images": {"rounds": 1, "images": 100},
}
MEASUREMENT = {
    "pearl": {"frequencies": {"count": 32}},
    "nacre": {"fine_cells": 20},
    "nacre-images": {"coefficients": 12, "directions": 5},
}


def run_on(folder: Path, table: pa.Table, method: str = "pearl", **privacy: float) -> Run:
    data, schema, config = write_clinic(folder)
    pq.write_table(table, data)
    if method == "nacre-images":
        schema.write_text(pictures.make_schema().to_yaml())
    model = {"method": method, "measurement": MEASUREMENT[method], "training": TRAINING[method]}
    config.write_text(yaml.safe_dump({"model": model}))
    settings = {
        "data": data,
        "schema": schema,
        "out": folder / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5, **privacy},
        "runtime": {"home": folder / "home", "prefect": False},
    }
    return synthesize(SynthesizeConfig.build(settings, config))


def neighbours(method: str = "pearl") -> tuple[pa.Table, pa.Table]:
    """A table, and the same with one extreme record more."""
    if method == "nacre-images":
        images = pictures.make_table(150)
        black = pa.FixedSizeListArray.from_arrays(pa.array(np.full(120, 255, dtype=np.uint8)), 120)
        return images, pa.concat_tables([images, pa.table({"picture": black, "kind": ["disc"]}, schema=images.schema)])
    table = make_table(150)
    extreme = {"patient": [999], "age": [99], "ward": ["west"], "dose": [10.0], "smoker": [True], "sick": ["yes"]}
    return table, pa.concat_tables([table, pa.table(extreme, schema=table.schema)])


class Copier:
    """Draws the first run's noise as ever, then hands every later run the vectors that the first one released."""

    def __init__(self) -> None:
        self.drawn: list[np.ndarray] = []
        self.left: list[np.ndarray] | None = None

    def rewind(self) -> None:
        self.left = list(self.drawn)

    def sample(self, values: np.ndarray, scale: float) -> np.ndarray:
        if self.left is None:
            self.drawn.append(gaussian.discrete_gaussian(values, scale))
            return self.drawn[-1]
        vector = self.left.pop(0)
        assert vector.shape == values.shape  # what was released before decides the shape of what comes next
        return vector


@pytest.fixture
def copier(monkeypatch) -> Copier:
    copier = Copier()
    monkeypatch.setattr(gaussian, "_sampler", copier.sample)
    monkeypatch.setattr("flows.planning.new_name", lambda: "the-run")
    return copier


@pytest.mark.parametrize("method", METHODS)
def test_with_the_release_copied_every_public_output_is_the_same(tmp_path, copier, method):
    table, neighbour = neighbours(method)
    a = run_on(tmp_path / "d", table, method, report_epsilon=0.5)
    copier.rewind()
    b = run_on(tmp_path / "neighbour", neighbour, method, report_epsilon=0.5)
    assert copier.left == [] and len(copier.drawn) == (2 if method == "pearl" else 3)  # looks, then scores
    assert json.loads((a.settings.out / "report.json").read_text())["charged"]["status"] == "measured"
    assert (a.released / "scores.parquet").is_file()
    left, right = (public_files(run) for run in (a, b))
    assert left.keys() == right.keys() and len(left) >= 10
    assert {"out/report.html", "out/report.json", "out/checks.html", "out/schema.yaml"} <= left.keys()
    assert [name for name in left if left[name] != right[name]] == ["control/settings.json"]  # it names the folders
    left, right = (json.loads((run.settings.out / "manifest.json").read_text()) for run in (a, b))
    for line in (left, right, left["report"], right["report"]):
        for entry in line["ledger"]["entries"]:
            del entry["hash"]
    assert left == right


@pytest.mark.parametrize("method", METHODS)
def test_with_the_noise_fixed_the_bundle_differs_through_the_released_vector_alone(tmp_path, monkeypatch, method):
    """Fed the same noise, neighbours release vectors a sensitivity apart; what is not made of them does not move."""

    def shift(values: np.ndarray, scale: float) -> np.ndarray:
        noise = np.random.default_rng(len(values)).normal(0, scale, len(values))
        return values + np.rint(noise).astype(np.int64)

    monkeypatch.setattr(gaussian, "_sampler", shift)
    monkeypatch.setattr("flows.planning.new_name", lambda: "the-run")
    both = zip(("d", "neighbour"), neighbours(method), strict=True)
    a, b = (run_on(tmp_path / name, table, method, report_epsilon=0.5) for name, table in both)
    first = [pq.read_table(run.released / "release.parquet") for run in (a, b)]
    looks = [table.filter(pc.equal(table["look"], 1))["value"].to_numpy().astype(float) for table in first]
    step = np.linalg.norm(looks[1] - looks[0])
    line = a.plan.release
    assert 0 < step <= next(create(method, {}, {}).steps(line)).l2_sensitivity
    scores = [pq.read_table(run.released / "scores.parquet")["value"].to_numpy() for run in (a, b)]
    assert scores[0].shape == scores[1].shape  # of the synthetic rows, which differ, and the real ones
    left, right = (public_files(run) for run in (a, b))
    same = {name for name in left if left[name] == right.get(name)}
    assert {"control/plan.json", "out/schema.yaml"} <= same
    assert {"released/release.parquet", "out/synthetic/part-00000.parquet"} & same == set()


def public_files(run: Run) -> dict[str, bytes]:
    """Return every file of the hand-off and the released zone; the manifest, which holds times, is judged apart."""
    places = {"out": run.settings.out, "released": run.released, "control": run.control}
    files = [(zone, root, path) for zone, root in places.items() for path in sorted(root.rglob("*")) if path.is_file()]
    found = {f"{zone}/{path.relative_to(root)}": path.read_bytes() for zone, root, path in files}
    del found["out/manifest.json"]
    return found


def test_with_the_release_copied_the_scores_differ_by_one_record_at_most(tmp_path, copier, monkeypatch):
    """The same synthetic rows and models, scored on neighbours without noise: one cell a table moves, by one record."""
    table, neighbour = neighbours("nacre")
    totals: list[np.ndarray] = []

    def sample(values: np.ndarray, scale: float) -> np.ndarray:
        if len(copier.drawn if copier.left is None else copier.drawn[len(copier.left) :]) % 3 == 2:
            totals.append(values.copy())
        return Copier.sample(copier, values, scale)

    monkeypatch.setattr(gaussian, "_sampler", sample)
    a = run_on(tmp_path / "d", table, "nacre", report_epsilon=0.5)
    copier.rewind()
    run_on(tmp_path / "neighbour", neighbour, "nacre", report_epsilon=0.5)
    step = totals[1] - totals[0]
    line = a.plan.report
    l2_sensitivity = Scores.reading(line).of(line).embedding([]).l2_sensitivity
    assert 0.999 * l2_sensitivity < np.linalg.norm(step) <= l2_sensitivity
    assert (step > 0).sum() == 6 and (step < 0).sum() == 0  # two classifiers and four columns


@pytest.mark.parametrize("method", METHODS)
def test_nothing_public_can_be_traced_to_the_encoded_table(tmp_path, method):
    """No hash of sensitive bytes lies in the released zone, the ledger or the hand-off: it would confirm a guess."""
    run = run_on(tmp_path / "d", neighbours(method)[0], method, report_epsilon=0.5)
    secrets = [hashlib.sha256(p.read_bytes()).hexdigest() for p in run.sensitive.rglob("*") if p.is_file()]
    secrets.append(hashlib.sha256(run.settings.data.read_bytes()).hexdigest())
    shutil.rmtree(run.home / "sensitive")
    public = b"".join(p.read_bytes() for p in (tmp_path / "d").rglob("*") if p.is_file() and p != run.settings.data)
    assert len(secrets) >= 4
    assert not [secret for secret in secrets if secret.encode() in public]


@pytest.mark.parametrize("method", ["pearl", "nacre"])
def test_the_order_and_the_chunks_of_the_rows_change_nothing(tmp_path, monkeypatch, method):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: values)
    table = make_table(150)
    shuffled = table.take(np.random.default_rng(1).permutation(150))
    a, b = (run_on(tmp_path / name, t, method) for name, t in (("a", table), ("b", shuffled)))
    left, right = (pq.read_table(run.released / "release.parquet") for run in (a, b))
    assert left.equals(right)
