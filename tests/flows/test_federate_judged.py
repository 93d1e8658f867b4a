"""Heads beside moments in one hand-off: which is better by public labels, and soft labels that are checked."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.methods.federations.classifier import FederatedClassifier
from flows.synthesize import carry_out
from tests.kit.support import run_cli
from tests.kit.wards import CLASSES, INPUTS, NAMES, begun, each_charged_once, make_ward, write_wards

pytestmark = pytest.mark.processes

EXTRACTOR = {"features": 8, "width": 4, "pretraining": {"steps": 5, "batch_size": 32}}
BOTH = {"method": "federated-both", "measurement": {"heads": {"records": 300}}, "extractor": EXTRACTOR}


def judged(folder: Path) -> dict[str, object]:
    return {"workers": "here", "judge": str(folder / "judge.parquet")}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation with both methods and public records that judge them."""
    folder = tmp_path_factory.mktemp("judged")
    code, out, err = run_cli("federate", write_wards(folder, model=BOTH, round=judged(folder)))
    assert code == 0 and "in short: Of 200 public labeled records" in out, err
    assert run_cli("runs", "--home", folder / "home", "--json")[1].count('"data_set": "wards"') == 1
    code, out, err = run_cli("ledger", "show", "--home", folder / "home")
    assert code == 0 and "spent by the heaviest of the 3 accounts below it" in " ".join(out.split()), out
    return folder


def inputs_of(table) -> torch.Tensor:
    return torch.from_numpy(np.stack([table[name].to_numpy() for name in INPUTS], axis=1).astype(np.float32))


def test_both_are_made_of_one_charge_and_the_better_is_handed_over(ended: Path) -> None:
    assert each_charged_once(ended) and not verify_hand_off(ended / "out").faults
    facts = json.loads((ended / "out" / "report.json").read_text())
    first, second = facts["compared"]["classifiers"]
    assert first["accuracy"] >= second["accuracy"] and facts["compared"]["records"] == 200
    made, judge = FederatedClassifier.load(ended / "out" / "classifier.safetensors"), make_ward(200, 10)
    said = np.array(CLASSES)[made.probabilities(inputs_of(judge)).argmax(axis=1)]
    assert (said == np.array(judge["label"])).mean() == pytest.approx(first["accuracy"], abs=1e-4)
    kinds = {"ensemble": "heads (FedAUX)", "gaussians": "moments-head"}
    assert kinds[made.head.kind] in first["name"] and kinds[made.head.kind] not in second["name"]
    page = (ended / "out" / "report.html").read_text()
    assert first["name"] in page and "no other that was made surpasses" in page


def test_soft_labels_are_those_of_the_classifier_and_a_changed_file_is_a_fault(ended: Path, tmp_path: Path) -> None:
    table = pq.read_table(ended / "out" / "soft-labels.parquet")
    made = FederatedClassifier.load(ended / "out" / "classifier.safetensors")
    public = make_ward(200, 9)
    wanted = made.probabilities(inputs_of(public))
    found = np.stack([table[f"probability of {name}"].to_numpy() for name in CLASSES], axis=1)
    assert table["row"].to_pylist() == list(range(200)) and np.allclose(found, wanted) and np.allclose(found.sum(1), 1)
    sure = np.stack([table[f"certainty of {name}"].to_numpy() for name in NAMES])
    assert ((sure > 0) & (sure <= 1 + 1e-6)).all() and len(np.unique(sure)) > 3
    folder = tmp_path / "out"
    shutil.copytree(ended / "out", folder)
    pq.write_table(table.slice(1), folder / "soft-labels.parquet")
    assert verify_hand_off(folder).faults == ["soft-labels.parquet was changed"]


def test_without_a_judge_the_report_says_that_nothing_tells_which_is_better(tmp_path: Path) -> None:
    carry_out(begun(tmp_path, model=BOTH), prefect=False)
    words = json.loads((tmp_path / "out" / "report.json").read_text())["compared"]["words"]
    assert "nothing tells how often it is right, or whether the Gaussians" in words and "ensemble" in words


def test_one_method_alone_is_judged_and_said_not_to_be_compared(tmp_path: Path) -> None:
    carry_out(begun(tmp_path, round=judged(tmp_path)), prefect=False)
    words = json.loads((tmp_path / "out" / "report.json").read_text())["compared"]["words"]
    assert words.startswith("Of 200 public labeled records") and "not compared with moments" in words
    assert len(pq.read_table(tmp_path / "out" / "soft-labels.parquet").column_names) == 1 + 3 + 3


def test_a_judge_with_a_label_that_is_no_class_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    config = write_wards(tmp_path, classes=["well", "ill", "dead"], round=judged(tmp_path))
    code, _, err = run_cli("federate", config)
    assert code == 1 and "must be one of the federation's classes" in err and not (tmp_path / "home").exists()
