"""Nacre for images: what it charges, what it gives back, and the whole pipeline from the command line."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.accounting.calibration import gaussian_epsilon, gaussian_noise_multiplier
from dpmodels.accounting.events import leaves
from dpmodels.audit.made.pictures import make_records, make_schema, make_table
from dpmodels.codec.encode import Codec, Records
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.generators.image_matching import MatchingSpec
from dpmodels.generators.images import ImageModel
from dpmodels.generators.load import load_generator
from dpmodels.generators.model_file import read_model
from dpmodels.mechanisms import gaussian
from dpmodels.methods.images import image_moments
from dpmodels.methods.images.image_moments import ImageMeasurement, NacreImages
from dpmodels.methods.registry import create, method_for
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.statistics.symmetric import principal_directions, shrink, shrink_classes
from tests.kit.support import charges, measured, run_cli, synthesize_words
from tests.kit.support import make_schema as make_clinic
from tests.releases.make_golden import GOLDEN

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
IMAGES = NacreImages(ImageMeasurement(coefficients=30, directions=10), MatchingSpec(rounds=4, images=200))


def measure(tmp_path, records: Records, budget: PrivacyBudget = BUDGET):
    line = IMAGES.plan(make_schema(), budget)
    return measured(IMAGES, tmp_path, line, records)[0]


def fit(release):
    return IMAGES.fit(release, Craft())


def test_two_looks_are_one_charge_within_the_budget():
    plan = IMAGES.plan(make_schema(), BUDGET)
    parts = [event.noise_multiplier for event in leaves([plan.event])]
    assert len(parts) == 2
    together = sum(1 / z**2 for z in parts) ** -0.5
    assert together == pytest.approx(gaussian_noise_multiplier(BUDGET), rel=1e-12)
    assert 0.999 < gaussian_epsilon(together, BUDGET.delta) <= BUDGET.epsilon


def test_each_look_gets_the_noise_it_is_charged_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: asked.append(stddev) or values)
    release = measure(tmp_path, make_records(200)).value
    parts = [event.noise_multiplier for event in leaves([release.line.event])]
    assert asked == [gaussian.lattice_noise_stddev(IMAGES.of(release.line).first.l2_sensitivity, z) for z in parts]


def test_a_plan_is_a_function_of_public_inputs_and_needs_an_image():
    assert IMAGES.plan(make_schema(), BUDGET) == IMAGES.plan(make_schema(), BUDGET)
    with pytest.raises(Unsuitable, match="column of type image"):
        IMAGES.plan(make_clinic(), BUDGET)
    for method in ("nacre", "moments", "privbayes"):
        with pytest.raises(InvalidArgument):
            create(method, {}, {}).plan(make_schema(), BUDGET)
    assert (method_for(make_schema()), method_for(make_clinic())) == ("nacre-images", "nacre")


def test_shrinking_removes_what_noise_alone_puts_there_and_keeps_what_is_far_above_it():
    rng = np.random.default_rng(0)
    noise = np.triu(rng.standard_normal((80, 80)), 1) / 2**0.5
    noise = noise + noise.T + np.diag(rng.standard_normal(80))
    edge = (2 * 80) ** 0.5
    assert np.linalg.eigvalsh(shrink(noise, 1.0)).max() < 0.4 * edge
    true = np.zeros((80, 80))
    true[0, 0] = 10 * edge
    kept = shrink(true + noise, 1.0)
    assert np.linalg.norm(kept - true) < np.linalg.norm(noise) / 3
    assert np.linalg.eigvalsh(kept).min() > 0


def test_images_drawn_without_noise_have_the_moments_of_the_real_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    real = make_records(3000)
    model = fit(measure(tmp_path, real, BUDGET.model_copy(update={"epsilon": 500.0})))
    made = Records.concat(list(model.sample(3000, seed=1)))
    assert model.default_rows() == 3000
    assert abs(made.states.mean() - real.states.mean()) < 0.01
    for label in (0, 1):
        a, b = (r.pixels[r.states[:, 0] == label].astype(np.float64) for r in (real, made))
        assert np.abs(a.mean(axis=0) - b.mean(axis=0)).max() < 20
        assert np.corrcoef(np.cov(a.T).ravel(), np.cov(b.T).ravel())[0, 1] > 0.9


def test_the_second_look_is_read_from_the_release_and_never_computed_again(tmp_path, monkeypatch):
    release = measure(tmp_path, make_records(300))
    line, chosen = release.value.line, release.value.chosen
    expected = IMAGES.of(line).second(chosen).clip
    before = next(fit(release).sample(20, seed=0)).pixels
    # another machine: eigenvectors of the other sign
    monkeypatch.setattr(image_moments, "principal_directions", lambda *args: -principal_directions(*args))
    assert np.array_equal(next(fit(release).sample(20, seed=0)).pixels, before)
    first, second = IMAGES.sums(release.value)
    assert np.array_equal(second.embedding.clip.directions, expected.directions)
    assert np.array_equal(second.vector, release.value.vector[first.embedding.dim :])


def test_a_changed_basis_is_found_by_the_hash(tmp_path):
    measure(tmp_path, make_records(50))
    path = tmp_path / "public" / "r.parquet"
    table = pq.read_table(path)
    numbers = json.loads(table.schema.metadata[b"nacre.chosen"])
    changed = {**table.schema.metadata, b"nacre.chosen": json.dumps([numbers[0] + 1, *numbers[1:]])}
    pq.write_table(table.replace_schema_metadata(changed), path)
    with pytest.raises(ArtifactError, match="changed"):
        read_release(path)


def test_replayed_on_a_neighbour_all_that_leaves_comes_from_the_released_numbers(tmp_path, monkeypatch):
    """Same noise, one image less: where both released vectors are made the same, every byte after them is."""
    vectors: list[np.ndarray] = []

    def record(values: np.ndarray, stddev: float) -> np.ndarray:
        vectors.append(gaussian.discrete_gaussian(values, stddev))
        return vectors[-1]

    records = make_records(120)
    monkeypatch.setattr(gaussian, "_sampler", record)
    one = measure(tmp_path / "one", records).value
    replay = iter(list(vectors))
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: next(replay))
    other = measure(tmp_path / "other", records.take(slice(1, None))).value
    assert np.array_equal(one.vector, other.vector) and np.array_equal(one.chosen, other.chosen)
    for release, name in ((one, "one"), (other, "other")):
        fit(Released(release.model_copy(update={"entry": "same"}))).save(tmp_path / name / "model")
    assert (tmp_path / "one" / "model").read_bytes() == (tmp_path / "other" / "model").read_bytes()
    left, right = (pq.read_table(tmp_path / name / "public" / "r.parquet") for name in ("one", "other"))
    assert left.equals(right)
    differing = {key for key in left.schema.metadata if left.schema.metadata[key] != right.schema.metadata[key]}
    assert differing <= {b"nacre.ledger_entry"}


def test_classes_share_what_one_class_alone_cannot_show():
    rng = np.random.default_rng(2)
    true = np.diag(np.linspace(2, 0.2, 30))
    noise = rng.standard_normal((10, 30, 30)) * 0.2
    noisy = true + np.triu(noise, 1) / 2**0.5 + np.triu(noise, 1).swapaxes(1, 2) / 2**0.5 + noise * np.eye(30)
    together = shrink_classes(noisy, np.full(10, 0.2), np.full(10, 100.0))
    alone = np.stack([shrink(each, 0.2) for each in noisy])
    assert np.linalg.norm(together - true) < np.linalg.norm(alone - true) / 2
    odd = noisy.copy()
    odd[3] += 8 * np.outer(np.eye(30)[5], np.eye(30)[5])
    assert shrink_classes(odd, np.full(10, 0.2), np.full(10, 100.0))[3, 5, 5] > 8


def test_sampling_is_repeatable_and_survives_saving(tmp_path):
    model = fit(measure(tmp_path, make_records(400)))
    model.save(tmp_path / "a.safetensors")
    model.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    again = load_generator(tmp_path / "a.safetensors")
    one, two = (Records.concat(list(m.sample(50, seed=3))) for m in (model, again))
    assert np.array_equal(one.pixels, two.pixels) and np.array_equal(one.states, two.states)
    other = next(iter(model.sample(50, seed=4)))
    assert not np.array_equal(one.pixels, other.pixels)


def test_texture_is_planned_unless_told_otherwise_and_is_all_that_it_changes(tmp_path):
    assert IMAGES.plan(make_schema(), BUDGET).measurement["texture"] > 0
    model = fit(measure(tmp_path, make_records(400)))
    model.save(tmp_path / "model")
    rough, smooth = (next(replace(model, texture=t).sample(200, seed=3)).pixels for t in (model.texture, 0.0))
    assert np.array_equal(next(load_generator(tmp_path / "model").sample(200, seed=3)).pixels, rough)
    assert not rough[smooth == 0].any()
    middling = (smooth > 40) & (smooth < 120)  # where nothing is clipped
    ratio = rough[middling] / smooth[middling]
    assert ratio.mean() == pytest.approx(1, abs=0.02) and ratio.std() == pytest.approx(model.texture, rel=0.1)


def test_with_less_shrinkage_the_same_release_gives_images_that_vary_more(tmp_path):
    release = measure(tmp_path, make_records(400))
    specs = [MatchingSpec(rounds=0, shrinkage=shrinkage) for shrinkage in (1.0, 0.3)]
    models = [NacreImages(IMAGES.measurement, spec).fit(release, Craft()) for spec in specs]
    full, light = (np.einsum("cij,cij->c", model.factors, model.factors) for model in models)
    assert (light > full).all()


@pytest.mark.parametrize("name", ["FORMAT-1", "FORMAT-2"])
def test_a_release_or_generator_of_a_version_without_texture_is_drawn_without(tmp_path, name):
    model = fit(read_release(GOLDEN / name / "nacre-images.parquet"))
    model.save(tmp_path / "now")
    facts, tensors = read_model(tmp_path / "now")
    assert facts.pop("texture") == 0
    former = ImageModel.of(facts, tensors)
    drawn = [next(each.sample(50, seed=3)).pixels for each in (model, former, replace(model, texture=0.3))]
    assert np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_data_set_of_hardly_anything_still_gives_images(tmp_path, rows):
    model = fit(measure(tmp_path, make_records(5).take(slice(0, rows))))
    made = next(iter(model.sample(20, seed=0)))
    assert made.pixels.shape == (20, 120) and Codec(make_schema()).decode(made).num_rows == 20


def test_the_pipeline_takes_images_to_a_hand_off(tmp_path):
    pq.write_table(make_table(300), tmp_path / "shapes.parquet")
    (tmp_path / "shapes.yaml").write_text(make_schema().to_yaml())
    training = {"rounds": 2, "images": 100}
    config = {"model": {"measurement": {"coefficients": 20, "directions": 8}, "training": training}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    words = synthesize_words(tmp_path, data=tmp_path / "shapes.parquet", schema=tmp_path / "shapes.yaml", rows=60)
    code, out, err = run_cli(*words)
    assert code == 0, out + err
    table = pq.read_table(tmp_path / "out" / "synthetic")
    assert table.schema.equals(Codec(make_schema()).output_schema) and table.num_rows == 60
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"] == "nacre-images"
    assert charges(tmp_path / "home").count("reserve") == 1
    assert "data:image/png;base64," in (tmp_path / "out" / "report.html").read_text()
    internal = next((tmp_path / "home" / "sensitive").rglob("internal-report.json"))
    assert json.loads(internal.read_text())["metrics"]["utility of the target"]["result"]["metric"] == "auroc"
