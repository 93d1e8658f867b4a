"""What an attacker tried and reached: each test is the way in, which is shut now."""

import hashlib
import json
import math
import os
import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dpmodels.errors import ArtifactError, ParameterRefused
from dpmodels.generators.load import load_generator
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.limits import LARGEST_MANIFEST, LARGEST_REPORT
from flows.synthesize import carry_out, start
from flows.with_prefect.operators import SHIPPED, read_deployments
from flows.with_prefect.pool import PoolWorker
from tasks.run.receive import sample_again
from tasks.stages.ingest import ingest
from tasks.stages.sample import sample
from tasks.stages.sanitize import sanitize
from tasks.stages.train import train
from tests.kit.configurations import config
from tests.kit.manifests import CHARGED
from tests.kit.support import write_clinic


def bomb(size: int) -> bytes:
    return b"[" + b"{}," * ((size - 4) // 3) + b"{}]"


def report(folder: Path) -> None:
    (folder / "report.json").write_bytes(bomb(LARGEST_REPORT))


def classifier(folder: Path) -> None:
    content = bomb(LARGEST_REPORT)
    (folder / "classifier.safetensors").write_bytes(len(content).to_bytes(8, "little") + content)


def manifest(folder: Path) -> None:
    whole = {**json.loads((folder / MANIFEST).read_text()), "cautions": "@"}
    text = json.dumps(whole).encode()
    (folder / MANIFEST).write_bytes(text.replace(b'"@"', bomb(LARGEST_MANIFEST - len(text) - 10)))


@pytest.mark.parametrize("place", [report, classifier, manifest])
def test_a_hand_off_of_a_stranger_takes_little_memory(tmp_path: Path, place: Callable[[Path], None]) -> None:
    """Two gigabytes were taken: values were parsed, or told as faults, before anybody counted them."""
    own = Path(shutil.copytree(CHARGED, tmp_path / "own"))
    verify_hand_off(own)
    place(own)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert verify_hand_off(own).faults
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 400


def test_folders_within_folders_are_a_fault(tmp_path: Path) -> None:
    own = Path(shutil.copytree(CHARGED, tmp_path / "own"))
    deep = own / "a/a/a"
    (deep / ("b/" * 900)).mkdir(parents=True)
    assert verify_hand_off(own).faults == ["a/a/a is not in the manifest"]


def test_a_generator_that_was_changed_after_its_check_is_not_sampled_again(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    run = start(config(tmp_path, privacy={"target_epsilon": 1.0, "delta": 1e-5}))
    carry_out(run, prefect=False)
    generator, record = run.place("train"), run.released / "stages" / "train.json"
    content = generator.read_bytes()
    generator.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    record.write_text(json.dumps({"sha256": hashlib.sha256(generator.read_bytes()).hexdigest()}))
    with pytest.raises(ArtifactError, match="changed after it was checked"):
        sample_again(run, "again", tmp_path / "more", None, 1)
    os.truncate(record, 2**40)  # takes no room on a disk, and would be read whole
    with pytest.raises(ArtifactError, match=r"larger than|mostly holes"):
        run.finished("train")


def test_garbage_that_was_received_stops_no_run_for_ever(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    run = start(config(tmp_path, privacy={"target_epsilon": 1.0, "delta": 1e-5}))
    generator = train(run, sanitize(run, ingest(run)))
    sample(run, generator)
    record, honest = run.released / "stages" / "train.json", generator.path.read_bytes()
    before = record.read_text()
    generator.path.write_bytes(b"garbage")
    record.write_text(json.dumps({"sha256": hashlib.sha256(b"garbage").hexdigest()}))
    with pytest.raises(ArtifactError):
        carry_out(run, prefect=False)
    generator.path.write_bytes(honest)
    record.write_text(before)
    assert (carry_out(run, prefect=False).settings.out / MANIFEST).exists()


def test_a_number_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    """It was left alone, and asked about again every few seconds for ever."""

    class Server:
        def deployment(self, _: str) -> dict[str, str]:
            return {"flow": "synthesize-table", "name": "ad-hoc", "entrypoint": "flows.table.synthesize_table"}

        def work_pool(self) -> dict[str, str]:
            return {}

    worker = PoolWorker(read_deployments(SHIPPED), Server(), 1)  # type: ignore[arg-type]
    asked = {"id": "x", "deployment_id": "y", "parameters": {"config": {"privacy": {"target_epsilon": 10**400}}}}
    with pytest.raises(ParameterRefused):
        worker._read(asked)


@pytest.mark.parametrize("count", [1e9, float("inf"), float("nan")])
def test_a_forged_header_does_not_decide_how_many_rows_are_sampled(tmp_path: Path, count: float) -> None:
    """Who writes the released zone put a generator in the place of the trained one, with a record of its hash."""
    write_clinic(tmp_path)
    run = start(config(tmp_path, privacy={"target_epsilon": 1.0, "delta": 1e-5}))
    made = train(run, sanitize(run, ingest(run)))
    model = load_generator(made.path)
    replace(model, class_counts=torch.full_like(model.class_counts, count)).save(made.path)
    forged = run.finish("train")
    with pytest.raises(ArtifactError, match="which its release does not"):
        sample(run, forged)
    if math.isfinite(count):  # whoever asks for rows gets them, whatever the header says
        run.settle(run.settings.model_copy(update={"rows": 30}))
        assert sample(run, forged).path.is_dir()
