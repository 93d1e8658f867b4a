"""The table of private federations, on small data: its methods run, and skew costs what it is known to cost."""

import numpy as np
import pytest

from benchmarks.archive import fedaux
from tests.kit.parties import CLASSES, make_examples, make_features


def test_a_row_has_every_method_and_certainty_helps_where_clients_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fedaux, "CLIENTS", 3)
    monkeypatch.setattr(fedaux, "CLASSES", CLASSES)
    monkeypatch.setattr(fedaux, "DISTILLED", 100)
    features, own, test = make_features(), make_examples(900), make_examples(300, seed=1)
    data = {
        "auxiliary": features.whole(make_examples(500, seed=2).inputs),
        "z": features.whole(own.inputs),
        "y": own.labels.numpy(),
        "z_test": features.whole(test.inputs),
        "y_test": test.labels.numpy(),
        "extractor": np.array(features.sha256),
    }
    shared: dict[tuple[int, float, int, bool], list[float]] = {}
    split, ample = fedaux.Split(data, 0.01, 0, shared), fedaux.budget_of(1000.0)
    local, central = (split.gaussians(ample, releases) for releases in (3, 1))
    assert min(local, central) > 90 and abs(local - central) < 3
    rows = [fedaux.compare(fedaux.Split(data, 0.01, seed, shared)) for seed in (0, 1)]
    assert all(len(scores) == len(fedaux.HEAD) - 1 for scores in rows)
    scores = dict(zip(fedaux.HEAD[1:], np.mean(rows, axis=0), strict=True))
    assert scores["moments, no noise"] > 90
    assert 50 < scores["moments central"] < scores["moments, no noise"]  # 900 records are few for an epsilon of 1
    assert scores["FedAUX sharp, no noise"] > scores["FedDF+P, no noise"]
    assert scores["FedAUX sharp, no noise"] >= scores["FedAUX sharp"] - 1


def test_few_records_are_compared_too_as_a_quick_run_does() -> None:
    features, few = make_features(), make_examples(2000)
    data = {
        "auxiliary": features.whole(make_examples(400, seed=2).inputs),
        "z": features.whole(few.inputs),
        "y": few.labels.numpy(),
        "extractor": np.array(features.sha256),
    }
    split = fedaux.Split(data, 1.0, 0, {})
    assert len(split.heads(fedaux.budget_of(1.0), noise=False, **fedaux.FREE)) == fedaux.CLIENTS
