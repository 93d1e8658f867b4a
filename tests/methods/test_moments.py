import numpy as np
import pytest
import torch

from dpmodels.errors import InvalidArgument
from dpmodels.generators.load import load_generator
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.mechanisms import gaussian
from dpmodels.methods.registry import create
from dpmodels.methods.tables.moments import MomentsMeasurement, MomentsSystem
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from tests.kit.errors import refused
from tests.kit.support import make_records, make_schema, measured

BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)
MOMENTS = MomentsSystem(MomentsMeasurement(cells=8), MixtureSpec(components=20, directions=2, steps=40))


def test_one_look_one_charge_and_a_generator_that_reloads(tmp_path):
    plan = MOMENTS.plan(make_schema(), BUDGET)
    release, ledger = measured(MOMENTS, tmp_path, plan, make_records(500))
    assert [entry.kind for entry in ledger.entries(key=release.value.entry)] == ["reserve", "draw", "seal", "commit"]
    assert plan.event.kind == "gaussian" and next(MOMENTS.steps(plan)).l2_sensitivity == MOMENTS.of(plan).l2_sensitivity
    model, again = (MOMENTS.fit(release, Craft(seed=1, checkpoint=tmp_path / name)) for name in ("c", "d"))
    assert torch.equal(model.probabilities, again.probabilities)
    model.save(tmp_path / "model")
    (ours,), (theirs,) = model.sample(300, 1), load_generator(tmp_path / "model").sample(300, 1)
    assert np.array_equal(ours.states, theirs.states) and np.array_equal(ours.values, theirs.values)


def test_with_the_noise_replayed_neighbours_differ_by_one_record(tmp_path, monkeypatch):
    noise = np.random.default_rng(0)
    plan, records = MOMENTS.plan(make_schema(), BUDGET), make_records(60)
    drawn = noise.integers(-9, 9, MOMENTS.of(plan).dim)
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values + drawn)
    a, b = (
        measured(MOMENTS, tmp_path / str(rows), plan, records.take(slice(0, rows)))[0].value.vector for rows in (60, 59)
    )
    assert np.linalg.norm(a - b) == pytest.approx(MOMENTS.of(plan).l2_sensitivity, abs=1)


def test_what_cannot_be_measured_is_refused_before_any_charge():
    with refused(InvalidArgument, name="cells", value=4096):
        MomentsSystem(MomentsMeasurement(cells=4096)).plan(make_schema(), BUDGET)
    with refused(InvalidArgument, name="fine_share", value=0.3):
        create("moments", {"fine_share": 0.3}, {})
