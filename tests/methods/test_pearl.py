"""PEARL's three verbs: a plan that reads nothing, one charged measurement, a fit that reads only the release."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpmodels.embeddings.characteristic import FrequencySpec
from dpmodels.embeddings.fourier import FourierFeatures
from dpmodels.errors import ArtifactError, FileDamaged, InvalidArgument, Unsuitable
from dpmodels.generators.reconstruction import TrainingSpec
from dpmodels.mechanisms import gaussian
from dpmodels.methods.registry import create
from dpmodels.methods.tables.pearl import Pearl, PearlMeasurement, reconstruction_target
from dpmodels.privacy import PrivacyBudget, PrivacyUnit, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from tests.kit.errors import refused
from tests.kit.noise import repeated_noise
from tests.kit.support import desk_in, make_records, make_schema

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
PEARL = Pearl(PearlMeasurement(frequencies=FrequencySpec(count=40)), TrainingSpec(steps=5, batch_size=32))


def measure(tmp_path, records, line: Line, run: str = "run", pearl: Pearl = PEARL):
    desk = desk_in(tmp_path / run, line, run)
    pearl.measure(Sensitive([records.take(slice(0, 9)), records.take(slice(9, None))]), line, desk)
    return desk.ledger, desk.released


def test_a_plan_is_a_function_of_public_inputs():
    plan = PEARL.plan(make_schema(), BUDGET)
    assert plan == PEARL.plan(make_schema(), BUDGET)
    assert Line.model_validate_json(plan.model_dump_json()).hash == plan.hash
    assert plan.hash != PEARL.plan(make_schema(), BUDGET.model_copy(update={"epsilon": 2.0})).hash
    assert plan.hash != PEARL.plan(make_schema(name="other"), BUDGET).hash


def test_a_plan_for_another_unit_is_refused():
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, unit=PrivacyUnit(user="patient", max_rows=2))
    with pytest.raises(Unsuitable, match="unit"):
        PEARL.plan(make_schema(), budget)
    users = PEARL.plan(make_schema(unit={"user": "patient", "max_rows": 2}), budget)
    assert PEARL.of(users).l2_sensitivity == 2 * PEARL.of(PEARL.plan(make_schema(), BUDGET)).l2_sensitivity


def test_a_table_with_nothing_but_its_target_is_refused():
    schema = make_schema(columns={"sick": {"type": "categorical", "values": ["no", "yes"]}})
    with pytest.raises(Unsuitable, match="besides the target"):
        PEARL.plan(schema, BUDGET)


def test_the_release_carries_its_plan_entry_event_and_hash(tmp_path):
    plan = PEARL.plan(make_schema(), BUDGET)
    ledger, released = measure(tmp_path, make_records(60), plan)
    release = read_release(released).value
    assert release.line == plan
    entries = ledger.entries(key=release.entry)
    assert [entry.kind for entry in entries] == ["reserve", "draw", "seal", "commit"]
    table = pq.read_table(released)
    assert table.num_rows == 2 * 81 and set(table.column_names) == {"look", "class", "part", "index", "value"}
    assert {b"nacre.event", b"nacre.adjacency", b"nacre.values_sha256"} <= set(table.schema.metadata)


def test_a_changed_release_is_refused(tmp_path):
    _, released = measure(tmp_path, make_records(60), PEARL.plan(make_schema(), BUDGET))
    table = pq.read_table(released)
    values = table["value"].to_numpy().copy()
    values[0] += 1
    pq.write_table(table.set_column(table.column_names.index("value"), "value", [values]), released)
    with pytest.raises(ArtifactError, match="changed"):
        read_release(released)
    released.write_bytes(released.read_bytes()[:-10])
    with pytest.raises(FileDamaged):
        read_release(released)


def test_with_the_noise_replayed_neighbours_differ_by_one_record_and_nothing_else(tmp_path, monkeypatch):
    records, plan = make_records(60), PEARL.plan(make_schema(), BUDGET)
    noise = np.random.default_rng(0).integers(-(10**8), 10**8, 2 * 81)
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: values + noise)
    a, b = (
        pq.read_table(measure(tmp_path, data, plan, run)[1])
        for run, data in (("d", records), ("neighbour", records.take(slice(1, None))))
    )
    embedding = PEARL.of(plan)
    difference = a["value"].to_numpy() - b["value"].to_numpy()
    assert np.array_equal(difference, embedding.lattice_sum(records.take(slice(0, 1))).numpy())
    assert int(sum(int(x) ** 2 for x in difference)) <= embedding.l2_sensitivity**2
    for name in ("class", "part", "index"):
        assert a[name].equals(b[name])
    ignored = {b"nacre.ledger_entry", b"nacre.values_sha256"}  # the run's own key, and the hash of the release
    assert {k: v for k, v in a.schema.metadata.items() if k not in ignored} == {
        k: v for k, v in b.schema.metadata.items() if k not in ignored
    }


def test_fresh_noise_every_time(tmp_path):
    plan, records = PEARL.plan(make_schema(), BUDGET), make_records(60)
    a, b = (read_release(measure(tmp_path, records, plan, run)[1]).value.vector for run in ("one", "two"))
    assert (a != b).mean() > 0.99


def test_a_class_lost_in_the_noise_gets_little_weight_and_finite_targets(tmp_path, monkeypatch):
    monkeypatch.setattr(gaussian, "_sampler", repeated_noise())
    records = make_records(60)
    one_class = records.take(records.states[:, -1] == 0)
    pearl = Pearl()
    plan = pearl.plan(make_schema(), BUDGET)
    release = read_release(measure(tmp_path, one_class, plan, pearl=pearl)[1]).value
    target, counts = reconstruction_target(pearl.of(plan), release)
    assert np.isfinite(target.mean.numpy()).all() and len(counts) == 2
    assert (target.class_weights() < 0.5).all()  # 60 records under a noise of 118


def test_fit_reads_only_the_release(tmp_path):
    plan = PEARL.plan(make_schema(), BUDGET)
    release = read_release(measure(tmp_path, make_records(60), plan)[1])
    model = PEARL.fit(release, Craft(seed=1))
    (rows,) = model.sample(50, 1)
    assert len(rows) == 50 and model.release_entry == release.value.entry


def test_dp_merf_is_the_same_frame_without_a_critic():
    baseline = create("dp-merf", {}, {})
    again = Line.model_validate_json(baseline.plan(make_schema(), BUDGET).model_dump_json())
    assert isinstance(baseline.of(again).parts, FourierFeatures)
    assert baseline.plan(make_schema(), BUDGET).method == "dp-merf" and baseline.training.critic is False
    phases = baseline.of(baseline.plan(make_schema(), BUDGET)).parts.relative
    assert (phases != 0).all()  # every frequency looks at every column
    with refused(InvalidArgument, name="critic", value=True):
        create("dp-merf", {}, {"critic": True})


@pytest.mark.parametrize(
    ("method", "measurement", "training", "name", "value"),
    [
        ("pearls", {}, {}, "method", "pearls"),
        ("pearl", {"count_weight": -1}, {}, "count_weight", -1),
        ("pearl", {}, {"stesp": 3}, "stesp", 3),
    ],
)
def test_an_unknown_method_or_setting_is_named(method, measurement, training, name, value):
    with refused(InvalidArgument, name=name, value=value):
        create(method, measurement, training)
