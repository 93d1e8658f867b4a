"""Systems trained by DP-SGD: one plan and one charge for looks and steps, their noise, and a kill in between."""

import os
import signal
import time
from decimal import Decimal
from pathlib import Path

import dp_accounting
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors import safe_open

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import SampledGaussianEvent, leaves
from dpmodels.accounting.translation import to_dp_accounting
from dpmodels.audit.made import pictures
from dpmodels.codec.encode import Codec, Records
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.generators.load import load_generator
from dpmodels.mechanisms import gaussian
from dpmodels.mechanisms.dp_sgd import training as dp_sgd
from dpmodels.methods.registry import create
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.privacy import PrivacyBudget, PrivacyUnit, Sensitive
from dpmodels.releases.state import DrawState
from dpmodels.releases.steps import Data
from dpmodels.releases.system import Craft
from flows.audit import flow_findings
from tests.kit import support
from tests.kit.children import begun
from tests.kit.noise import has_stddev
from tests.kit.support import charges, make_records, make_schema, make_table, run_cli, synthesize_words, write_clinic

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
SGD = {"steps": 10, "sampling_probability": 0.2}
VAE = {"hidden": 8, "imitation_steps": 20, "draws": 2}
GAN = {"latent": 4, "hidden": 16, "critic_hidden": 16, "critic_steps": 2, "generator_batch": 8}
SMALL = {
    "p3gm": {"directions": 4, "components": 2, "iterations": 2, "sgd": SGD, "vae": VAE},
    "p3gm-ae": {"directions": 4, "sgd": SGD, "vae": VAE},
    "dp-vae": {"latent": 4, "sgd": SGD, "vae": VAE},
    "dp-gm": {"latent": 4, "clusters": 2, "iterations": 2, "sgd": SGD, "vae": VAE},
    "dp-gan": {"sgd": SGD, "gan": GAN},
    "dpkg": {"clusters": 2, "iterations": 2, "sgd": SGD, "gan": GAN},
}


SIDE_BY_SIDE = [("dp-gm", "cluster"), ("dpkg", "cluster")]


def small(method: str, **changes: object):
    return create(method, {**SMALL[method], **changes}, {})


def measured(folder: Path, method, schema, records: Records, budget: PrivacyBudget = BUDGET):
    return support.measured(method, folder, method.plan(schema, budget), records)


def fit(method, release):
    return method.fit(release, Craft())


@pytest.mark.parametrize("method", SMALL)
@pytest.mark.nightly_if("dp-gan", "dp-vae")  # beside methods of the same events
def test_looks_and_steps_are_one_plan_whose_epsilon_is_dp_accountings(method):
    plan = create(method, {}, {}).plan(make_schema(), BUDGET)
    ours = float(spent_epsilon([plan.event], Decimal("1e-5")))
    accountant = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    theirs = accountant.compose(to_dp_accounting(plan.event)).get_epsilon(1e-5)
    assert theirs <= ours <= theirs * 1.002
    assert 0.99 < ours <= 1.0
    *looks, steps = leaves([plan.event])
    assert looks and (isinstance(steps, SampledGaussianEvent) or (method, steps.by) in SIDE_BY_SIDE)


@pytest.mark.parametrize("method", SMALL)
@pytest.mark.nightly_if("dp-gm", "dp-vae")
def test_it_charges_the_ledger_once_for_everything_and_samples_rows_of_the_schema(tmp_path, method):
    system, schema = small(method), make_schema()
    release, ledger = measured(tmp_path / "run", system, schema, make_records(300))
    assert [entry.kind for entry in ledger.entries()] == ["open", "reserve", "draw", "seal", "commit"]
    plan = release.value.line
    assert float(ledger.balance("a").spent_epsilon) == pytest.approx(
        float(spent_epsilon([plan.event], Decimal("1e-5")))
    )
    model = fit(system, release)
    model.save(tmp_path / "model")
    again = load_generator(tmp_path / "model")
    one, two = (Records.concat(list(m.sample(100, seed=3))) for m in (model, again))
    assert np.array_equal(one.states, two.states) and np.array_equal(one.values, two.values)
    assert Codec(schema).decode(one).num_rows == 100
    assert not list((tmp_path / "run" / "private").glob("draw-*"))


@pytest.mark.parametrize("groups", ["layers-biases", "density"])
def test_groups_and_counted_quantiles_are_in_the_plan_and_change_nothing_that_is_charged(tmp_path, groups):
    changed = {**SGD, "groups": groups, "bounds": "quantile", "form_every": 3, "schedule": "dpkg"}
    system, schema = small("p3gm", sgd=changed), make_schema()
    line = system.plan(schema, BUDGET)
    plain = small("p3gm").plan(schema, BUDGET)
    assert line.event == plain.event and line.hash != plain.hash
    assert line.measurement["sgd"]["groups"] == groups and "groups" not in plain.measurement["sgd"]
    release, _ = measured(tmp_path / "run", system, schema, make_records(300))
    assert release.value.line == line and len(Codec(schema).decode(next(iter(fit(system, release).sample(9, seed=0)))))


@pytest.mark.parametrize("method", SMALL)
@pytest.mark.nightly_if("p3gm-ae", "dp-vae", "dp-gm")  # beside p3gm, dp-gan and dpkg
def test_images_go_the_same_way(tmp_path, method):
    system, schema = small(method), pictures.make_schema()
    model = fit(system, measured(tmp_path / "run", system, schema, pictures.make_records(200))[0])
    made = next(iter(model.sample(50, seed=0)))
    assert made.pixels.shape == (50, 120) and set(np.unique(made.states)) <= {0, 1}


def test_each_look_gets_the_noise_it_is_charged_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: asked.append(stddev) or values)
    system = small("p3gm")
    release, _ = measured(tmp_path / "run", system, make_schema(), make_records(100))
    *looks, _ = leaves([release.value.line.event])
    phases = system.of(release.value.line).looks
    wanted = [
        gaussian.lattice_noise_stddev(p.l2_sensitivity, e.noise_multiplier) for p, e in zip(phases, looks, strict=True)
    ]
    assert asked == wanted


def test_the_released_looks_hold_that_noise(tmp_path):
    system, records = small("p3gm", directions=8), make_records(100)
    release, _ = measured(tmp_path / "run", system, make_schema(), records)
    plan, phases = release.value.line, system.of(release.value.line)
    first = next(system.programme(phases))
    noise = release.value.vector[: first.dim] - first.total(Data(Sensitive([records]))).reveal()
    stddev = plan.noise_stddev(0, first.l2_sensitivity)
    assert has_stddev(noise, stddev)
    assert not has_stddev(noise, stddev / 2) and not has_stddev(noise, stddev * 2)


def test_a_plan_is_public_and_refuses_what_its_batches_cannot_promise():
    unit = PrivacyUnit(user="patient", max_rows=3)
    for method in SMALL:
        assert small(method).plan(make_schema(), BUDGET) == small(method).plan(make_schema(), BUDGET)
        with pytest.raises(Unsuitable, match="one record"):
            small(method).plan(make_schema(unit=unit.model_dump()), BUDGET.model_copy(update={"unit": unit}))
    with pytest.raises(Unsuitable, match="takes the whole budget"):
        small("p3gm", pca_share=0.6, em_share=0.5).plan(make_schema(), BUDGET)


@pytest.mark.nightly
def test_it_learns_what_goes_with_the_target(tmp_path):
    """In the mean of twelve releases: so short a training leaves a bias of .073, and one release .009 about it.

    The number of records has a noise of 51 by this budget, so its mean one of 15; the share of the sick one of .006.
    All bounds are five deviations and more away.
    """
    changes = {"sgd": {"steps": 80, "sampling_probability": 0.05}, "vae": {"hidden": 16, "imitation_steps": 300}}
    system, real = small("p3gm", **changes), make_records(4000)
    budget = BUDGET.model_copy(update={"epsilon": 3.0})
    smoker, sick, apart, numbers, off = 3, 4, [], [], []
    for number in range(12):
        model = fit(system, measured(tmp_path / str(number), system, make_schema(), real, budget)[0])
        made = Records.concat(list(model.sample(4000, seed=0)))
        off.append(made.states[:, sick].mean() - real.states[:, sick].mean())
        shares = [[r.states[r.states[:, sick] == state, smoker].mean() for state in (0, 1)] for r in (real, made)]
        apart.append(np.abs(np.subtract(*shares)))
        numbers.append(model.default_rows())
    assert abs(np.mean(off)) < 0.01 and np.abs(off).max() < 0.03 and abs(np.mean(numbers) - 4000) < 90
    assert np.mean(apart, axis=0).max() < 0.09


def test_the_state_of_a_draw_belongs_to_one_charge_and_one_plan(tmp_path):
    state = DrawState(tmp_path, "charge", "plan")
    state.keep_vector(np.arange(3))
    assert DrawState(tmp_path, "charge", "plan").vectors()[0].tolist() == [0, 1, 2]
    with pytest.raises(ArtifactError, match="another charge or plan"):
        DrawState(tmp_path, "charge", "other")
    state.path.write_bytes(b"half a file")
    with pytest.raises(ArtifactError, match="damaged"):
        DrawState(tmp_path, "charge", "plan")


def clinic(folder: Path, steps: int) -> None:
    """Write the clinic with a P3GM whose epochs are of one step."""
    write_clinic(folder)
    measurement = {**SMALL["p3gm"], "sgd": {"steps": steps, "sampling_probability": 0.5}}
    model = {"method": "p3gm", "measurement": measurement}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model}))


@pytest.mark.timeout(600)
@pytest.mark.nightly  # every kind is killed at every point in tests/kinds
def test_a_killed_training_resumes_under_the_same_charge_with_every_step_once(tmp_path, monkeypatch):
    steps = 600
    clinic(tmp_path, steps)
    child = begun(*synthesize_words(tmp_path))
    try:
        end = time.monotonic() + 300
        while not (states := list((tmp_path / "home").glob("sensitive/*/draw-*"))) or not_begun(states[0]):
            assert time.monotonic() < end and child.is_alive()
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
    finally:
        child.kill()
        child.join()
    before = DrawState(states[0].parent, *identity(states[0]))
    done, looks = int(before.training(0)["step"]), before.vectors()
    assert 0 < done < steps
    taken = []
    monkeypatch.setattr(
        dp_sgd, "KeyStream", lambda key, step, real=dp_sgd.KeyStream: taken.append(step) or real(key, step)
    )
    run = states[0].parent.name
    code, out, err = run_cli("resume", run, "--home", tmp_path / "home", "--no-prefect")
    assert code == 0, out + err
    assert taken == list(range(done, steps))
    assert charges(tmp_path / "home") == ["reserve", "draw", "draw", "seal", "commit"]
    assert not states[0].exists()
    vector = pq.read_table(tmp_path / "home" / "released" / run / "release.parquet")["value"].to_numpy()
    assert np.array_equal(vector[: sum(map(len, looks))], np.concatenate(looks))


def not_begun(path: Path) -> bool:
    """Tell whether no step is kept yet; the file is replaced whole, so it can be read at any time."""
    state = DrawState(path.parent, *identity(path)).training(0)
    return not state or int(state["step"]) < 3


def identity(path: Path) -> tuple[str, str]:
    with safe_open(path, framework="pt") as file:
        owner = file.metadata()
    return owner["charge"], owner["plan"]


def test_with_the_steps_copied_every_public_output_of_a_run_is_the_same(tmp_path):
    """Replay on neighbouring data: nothing leaves but through the looks and the steps of DP-SGD."""
    assert [one.says for one in flow_findings("dp-vae", tmp_path) if not one.holds] == []


@pytest.mark.nightly
def test_a_warm_start_is_charged_with_the_rest_and_reads_the_same_samples_again(tmp_path):
    changes = {"warm_share": 0.3, "components": 1, "iterations": 1, "vae": {**VAE, "pretraining_steps": 20}}
    system, schema = small("p3gm", **changes), make_schema()
    release, ledger = measured(tmp_path / "run", system, schema, make_records(400))
    assert 0.99 < float(ledger.balance("a").spent_epsilon) <= 1.0
    looks = [event for event in leaves([release.value.line.event])][:-1]
    warm = [event for event in looks if event.mechanism.startswith("nacre, ")]
    assert (
        len(warm) == NacreMeasurement().zooms + 2
        and len(looks) == len(warm) + 1 + 1
        and all(event.noise_multiplier > gaussian_noise_multiplier(BUDGET) for event in looks)
    )
    together = sum(1 / event.noise_multiplier**2 for event in warm) * gaussian_noise_multiplier(BUDGET) ** 2
    assert 0.299 < together <= 0.3
    assert len(next(iter(fit(system, release).sample(30, seed=0)))) == 30


@pytest.mark.parametrize(("method", "data"), [("dp-gan", support), ("dp-gan", pictures), ("dpkg", pictures)])
@pytest.mark.nightly_if("dp-gan-tests*", "dpkg-*")
def test_a_warm_start_that_learns_nothing_is_the_release_of_nacre_that_it_started_from(tmp_path, method, data):
    """Images to the bit, and of cells all but one in ten thousand; what it learns is added to that."""
    gan = {**GAN, "generator_rate": 1e-12, "pool": 300, "pretraining_steps": 5}
    system, schema = small(method, warm_share=0.3, gan=gan), data.make_schema()
    release, ledger = measured(tmp_path / "run", system, schema, data.make_records(400))
    assert 0.99 < float(ledger.balance("a").spent_epsilon) <= 1.0
    base, *_ = leaves([release.value.line.event])
    assert base.mechanism.startswith("nacre, ")
    model = fit(system, release)
    stream = [np.random.default_rng(7) for _ in range(2)]
    start, made = model.base.model.draw(500, stream[0]), model.draw(500, stream[1])
    if start.pixels is not None:
        assert np.array_equal(start.pixels, made.pixels) and np.array_equal(start.states, made.states)
        return
    start, made = (model.vectors.partition.cells(records) for records in (start, made))
    assert (start != made).mean() < 5e-3


def test_one_cluster_needs_no_looks_to_find_it_and_pays_none():
    looks = [event.mechanism for event in [*leaves([small("dpkg", clusters=1).plan(make_schema(), BUDGET).event])][:-1]]
    assert looks == ["records in a cluster and class"]


def test_scores_without_a_zero_set_no_pace():
    gan = {**GAN, "loss": "wgan-gp", "told": 0.5}
    with pytest.raises(Unsuitable, match="Wasserstein"):
        small("dp-gan", gan=gan).plan(make_schema(), BUDGET)


@pytest.mark.parametrize("method", ["dp-gan", "dpkg", "p3gm"])
def test_a_warm_start_that_is_named_and_gets_no_share_is_refused(method):
    with pytest.raises(Unsuitable, match="give warm_share or leave warm out"):
        small(method, warm={"fine_cells": 16}).plan(make_schema(), BUDGET)


@pytest.mark.parametrize("target", [None, "age"])
@pytest.mark.parametrize("numbers", ["cells", "values"])
@pytest.mark.nightly_if("values-None", "cells-age")  # beside the two other pairs
def test_a_table_without_classes_goes_the_same_way(tmp_path, target, numbers):
    schema = make_schema(target=target)
    records = Codec(schema).encode(make_table(200))
    for method, key, sizes in (("p3gm", "vae", VAE), ("dp-gm", "vae", VAE), ("dpkg", "gan", GAN)):
        system = small(method, **{key: {**sizes, "numbers": numbers}})
        release, _ = measured(tmp_path / method, system, schema, records)
        made = next(iter(fit(system, release).sample(30, seed=0)))
        assert Codec(schema).decode(made).num_rows == 30
