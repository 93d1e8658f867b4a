"""The table of private federations, on small data: its methods run, and skew costs what it is known to cost."""

import numpy as np
import pytest

from benchmarks import fedaux
from tests.federated.parties import CLASSES, make_examples, make_features


def test_a_row_has_every_method_and_sums_do_not_know_of_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fedaux, "CLIENTS", 3)
    monkeypatch.setattr(fedaux, "CLASSES", CLASSES)
    features, own, test = make_features(), make_examples(900), make_examples(300, seed=1)
    data = {
        "auxiliary": features.whole(make_examples(500, seed=2).inputs),
        "z": features.whole(own.inputs),
        "y": own.labels.numpy(),
        "z_test": features.whole(test.inputs),
        "y_test": test.labels.numpy(),
        "extractor": np.array(features.sha256),
    }
    scores = fedaux.row(data, 0.01, fedaux.NO_NOISE, [0, 1])
    assert len(scores) == len(fedaux.HEAD) - 2
    plain, weighted, sharp, local, central = (float(np.mean(each)) for each in scores)
    assert min(local, central) > 90 and abs(local - central) < 3
    assert weighted > plain and sharp > plain
