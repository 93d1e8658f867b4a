"""Replay on neighbouring data: whatever leaves the sensitive zone depends on the data through the release alone."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dpmodels.audit.tap import tapped
from dpmodels.mechanisms import gaussian
from dpmodels.methods.registry import create
from dpmodels.report.charged import Scores
from flows.audit import flow_findings, left_by, run_on
from flows.audit_runs import MEASUREMENT, tables_of
from tasks.run.store import Run
from tests.kit.support import make_table

METHODS = ["pearl", "nacre", "nacre-images"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.nightly_if("nacre-images")  # beside a table by the same moments
def test_with_the_release_copied_every_public_output_is_the_same(tmp_path, method):
    """Nor does a hash of sensitive bytes, or a canary, lie in the released zone, the ledger, the hand-off or a log."""
    found = flow_findings(method, tmp_path, report_epsilon=0.5)
    assert len(found) >= 5 and [one.says for one in found if not one.holds] == []


@pytest.mark.nightly_if("document-sketch", "federated-heads", "federated-moments")
@pytest.mark.parametrize("method", ["deep-candidate", "document-sketch", *MEASUREMENT])
def test_whole_runs_of_documents_and_federations_leave_the_same_for_other_data(tmp_path, method):
    """Quite other letters and clients, and neighbors: the home, the hand-off, the ledger and the words are the same."""
    found = flow_findings(method, tmp_path)
    assert len(found) >= 5 and [one.says for one in found if not one.holds] == []


@pytest.mark.nightly_if("nacre-images", "pearl")
@pytest.mark.parametrize("method", METHODS)
def test_with_the_noise_fixed_the_bundle_differs_through_the_released_vector_alone(tmp_path, monkeypatch, method):
    """Fed the same noise, neighbours release vectors a sensitivity apart; what is not made of them does not move."""

    def shift(values: np.ndarray, scale: float) -> np.ndarray:
        noise = np.random.default_rng(len(values)).normal(0, scale, len(values))
        return values + np.rint(noise).astype(np.int64)

    monkeypatch.setattr(gaussian, "_sampler", shift)
    both = zip(("d", "neighbour"), tables_of(method)[::2], strict=True)
    a, b = (run_on(tmp_path / name, table, method, report_epsilon=0.5)[0] for name, table in both)
    first = [pq.read_table(run.released / "release.parquet") for run in (a, b)]
    looks = [table.filter(pc.equal(table["look"], 1))["value"].to_numpy().astype(float) for table in first]
    step = np.linalg.norm(looks[1] - looks[0])
    line = a.plan.release
    assert 0 < step <= next(create(method, {}, {}).steps(line)).l2_sensitivity
    scores = [pq.read_table(run.released / "scores.parquet")["value"].to_numpy() for run in (a, b)]
    assert scores[0].shape == scores[1].shape  # of the synthetic rows, which differ, and the real ones
    left, right = (left_by(run) for run in (a, b))
    same = {name for name in left if left[name] == right.get(name)}
    assert {"home/control/the-run/plan.json", "out/schema.yaml"} <= same
    assert {"home/released/the-run/release.parquet", "out/synthetic/part-00000.parquet"} & same == set()


def test_with_the_release_copied_the_scores_differ_by_one_record_at_most(tmp_path):
    """The same synthetic rows and models, scored on neighbours without noise: one cell a table moves, by one record."""
    runs, totals = list[Run](), []
    with tapped() as tap:
        for name, table in zip(("d", "neighbour"), tables_of("nacre")[::2], strict=True):
            runs.append(run_on(tmp_path / name, table, "nacre", report_epsilon=0.5)[0])
            draws = tap.restart()
            totals.append(draws[-1].values)
            tap.copy(draws, "gaussian")
    step = totals[1] - totals[0]
    line = runs[0].plan.report
    l2_sensitivity = Scores.reading(line).of(line).embedding([]).l2_sensitivity
    assert 0.999 * l2_sensitivity < np.linalg.norm(step) <= l2_sensitivity
    assert (step > 0).sum() == 6 and (step < 0).sum() == 0  # two classifiers and four columns


@pytest.mark.nightly_if("pearl")
@pytest.mark.parametrize("method", ["pearl", "nacre"])
def test_the_order_and_the_chunks_of_the_rows_change_nothing(tmp_path: Path, monkeypatch, method):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: values)
    table = make_table(150)
    shuffled = table.take(np.random.default_rng(1).permutation(150))
    a, b = (run_on(tmp_path / name, t, method)[0] for name, t in (("a", table), ("b", shuffled)))
    left, right = (pq.read_table(run.released / "release.parquet") for run in (a, b))
    assert left.equals(right)
