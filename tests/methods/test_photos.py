"""Nacre for photographs: what it charges, what it gives back, and the pipeline in color from the command line."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import leaves
from dpmodels.audit.made import pictures
from dpmodels.audit.made.colors import make_colors, make_records, make_schema
from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.generators.load import load_generator
from dpmodels.mechanisms import gaussian
from dpmodels.methods.images.photo_moments import NacrePhotos, PhotoMeasurement, PhotoTraining, estimated
from dpmodels.methods.registry import create, method_for
from dpmodels.privacy import PrivacyBudget
from dpmodels.reading.load import load_parts
from dpmodels.releases.steps import NoisySum
from dpmodels.releases.system import Craft
from tasks.stages.export import export
from tests.kit.errors import refused
from tests.kit.support import charges, measured, run_cli, synthesize_words

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
PHOTOS = NacrePhotos(PhotoMeasurement(coefficients=30), PhotoTraining())


def fitted(tmp_path: Path, records: Records, epsilon: float = 1.0):
    line = PHOTOS.plan(make_schema(), BUDGET.model_copy(update={"epsilon": epsilon}))
    return PHOTOS.fit(measured(PHOTOS, tmp_path, line, records)[0], Craft())


def drawn(model, rows: int) -> Records:
    return Records.concat(list(model.sample(rows, seed=1)))


def test_color_goes_to_it_by_default_and_gray_does_if_asked():
    assert (method_for(make_schema()), method_for(pictures.make_schema())) == ("nacre-photos", "nacre-images")
    assert PHOTOS.plan(pictures.make_schema(), BUDGET).method == "nacre-photos"
    for method in ("nacre-images", "nacre", "p3gm", "dp-gan", "dpkg", "dp-vae", "dp-gm", "p3gm-ae"):
        with refused(InvalidArgument, "be nacre-photos", name="method", value=method) as caught:
            create(method, {}, {}).plan(make_schema(), BUDGET)
        assert "\n" not in str(caught.value)


def test_each_look_gets_the_noise_it_is_charged_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: asked.append(stddev) or values)
    line = PHOTOS.plan(make_schema(), BUDGET)
    measured(PHOTOS, tmp_path, line, make_records(50))
    looks, (first, second) = PHOTOS.of(line), [event.noise_multiplier for event in leaves([line.event])]
    assert asked == [
        gaussian.lattice_noise_stddev(looks.first.l2_sensitivity, first),
        gaussian.lattice_noise_stddev(looks.usual.l2_sensitivity, second),
    ]
    assert (1 / first**2 + 1 / second**2) ** -0.5 == pytest.approx(gaussian_noise_multiplier(BUDGET), rel=1e-12)


def test_without_noise_and_clipping_images_have_the_moments_of_the_real_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    real, wide = make_records(3000), NacrePhotos(PhotoMeasurement(coefficients=60, radius=4))
    line = wide.plan(make_schema(), BUDGET.model_copy(update={"epsilon": 500.0}))
    made = drawn(wide.fit(measured(wide, tmp_path, line, real)[0], Craft()), 3000)
    assert abs(made.states.mean() - real.states.mean()) < 0.01
    for label in (0, 1):
        a, b = (r.pixels[r.states[:, 0] == label].reshape(-1, 4, 3, 2, 5, 3).astype(float) for r in (real, made))
        low, other = (each.mean(axis=(2, 4)).reshape(len(each), -1) for each in (a, b))
        assert np.abs(low.mean(axis=0) - other.mean(axis=0)).max() < 10  # of the 4 x 2 parts of an image, each color
        assert np.corrcoef(np.cov(low.T).ravel(), np.cov(other.T).ravel())[0, 1] > 0.9


def test_the_usual_clip_leaves_each_class_its_colors(tmp_path, monkeypatch):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    real = make_records(3000)
    made = drawn(fitted(tmp_path, real, 500.0), 3000)
    for label in (0, 1):
        a, b = (r.pixels[r.states[:, 0] == label].reshape(-1, 3).mean(axis=0) for r in (real, made))
        assert np.abs(a - b).max() < 20


def test_what_the_noise_hides_is_left_to_all_classes_and_what_stands_out_is_kept():
    looks = PHOTOS.design(PHOTOS.measurement, make_schema())
    embedding = looks.second(looks.choose(looks.first.lattice_sum(make_records(2000)).numpy(), 1.0))
    exact = embedding.lattice_sum(make_records(2000)).numpy()
    clear = estimated(NoisySum(exact, 1.0, embedding), 0.3)[2]
    hidden = estimated(NoisySum(exact, 1e4 * embedding.l2_sensitivity, embedding), 0.3)[2]
    assert np.linalg.norm(clear[0] - clear[1]) > 0.2 * np.linalg.norm(clear[0])
    assert np.linalg.norm(hidden[0] - hidden[1]) < 0.01 * np.linalg.norm(hidden[0])
    assert all(np.linalg.eigvalsh(each).min() > 0 for each in (*clear, *hidden))


def test_texture_is_what_the_code_does_not_show_and_is_kept_with_the_model(tmp_path):
    model = fitted(tmp_path, make_records(400), 10.0)
    model.save(tmp_path / "model")
    rough, smooth = (next(replace(model, texture=t).sample(200, seed=3)).pixels for t in (model.texture, 0.0))
    assert np.array_equal(next(load_generator(tmp_path / "model").sample(200, seed=3)).pixels, rough)
    code, unclipped = model.code, ((rough > 0) & (rough < 255)).all(axis=1)
    off = (rough.astype(float) - smooth)[unclipped]
    assert len(off) > 20 and off.std() > 2
    shown = np.abs(off @ code.basis).mean() / np.abs(off).sum(axis=1).mean()
    assert shown < 0.1 * np.abs(code.basis).mean() * 4


def test_releases_of_a_large_image_fit(tmp_path):
    column = {"type": "image", "height": 64, "width": 40, "channels": 3}
    schema = make_schema(columns={"picture": column, "kind": make_schema().columns["kind"].model_dump()})
    pixels = np.random.default_rng(0).integers(0, 256, (30, 7680), dtype=np.uint8)
    states = np.resize([0, 1], (30, 1)).astype(np.int32)
    release, _ = measured(PHOTOS, tmp_path, PHOTOS.plan(schema, BUDGET), Records(states, np.zeros((30, 1)), pixels))
    made = next(PHOTOS.fit(release, Craft()).sample(5, seed=0))
    assert Codec(schema).decode(made).num_rows == 5 and made.pixels.shape == (5, 7680)


def write_folder(folder: Path, rows: int) -> None:
    pixels, kinds = make_colors(rows)
    for index, (image, kind) in enumerate(zip(pixels, kinds, strict=True)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / kind / f"{index:03d}.png")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Take a folder of PNG files in color to a hand-off."""
    folder = tmp_path_factory.mktemp("run")
    write_folder(folder / "photos", 300)
    (folder / "colors.yaml").write_text(make_schema().to_yaml())
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": {"measurement": {"coefficients": 20}}}))
    words = synthesize_words(folder, data=folder / "photos", schema=folder / "colors.yaml", rows=60, report_epsilon=0.5)
    code, out, err = run_cli(*words)
    assert code == 0, out + err
    return folder


def test_the_pipeline_takes_color_png_files_to_a_hand_off(run):
    table = pq.read_table(run / "out" / "synthetic")
    assert table.schema.equals(Codec(make_schema()).output_schema) and table.num_rows == 60
    assert json.loads((run / "out" / "manifest.json").read_text())["method"] == "nacre-photos"
    assert parse((run / "out" / "schema.yaml").read_text())[0] == make_schema()
    assert charges(run / "home").count("reserve") == 2
    assert "data:image/png;base64," in (run / "out" / "report.html").read_text()
    internal = json.loads(next((run / "home" / "sensitive").rglob("internal-report.json")).read_text())
    assert internal["metrics"]["utility of the target"]["result"]["metric"] == "auroc"
    code, out, err = run_cli("verify", run / "out")
    assert code == 3, out + err


@pytest.mark.nightly
def test_more_color_images_are_sampled_and_fitted_again_without_a_charge(run, tmp_path):
    before = charges(run / "home")
    name = next((run / "home" / "released").iterdir()).name
    code, out, err = run_cli("sample", name, "--rows", "9", "--home", run / "home", "--out", tmp_path / "more.parquet")
    assert code == 0, out + err
    assert pq.read_table(tmp_path / "more.parquet").num_rows == 9
    release = next((run / "home" / "released" / name).rglob("release*.parquet"))
    code, out, err = run_cli("fit", release, "--rows", "7", "--out", tmp_path / "out", "--home", tmp_path / "home")
    assert code == 0, out + err
    assert pq.read_table(tmp_path / "out" / "synthetic").num_rows == 7
    assert charges(run / "home") == before


def test_a_hand_off_leaves_as_png_files_that_are_read_as_the_same_images(run, tmp_path):
    code, out, err = run_cli("export", run / "out", tmp_path / "photos", "--png")
    assert code == 0, out + err
    codec = Codec(make_schema())
    back = [codec.encode(b) for part in load_parts(tmp_path / "photos", make_schema(), 64) for b in part.reveal()]
    table = codec.encode(pq.read_table(run / "out" / "synthetic"))
    by_kind = table.take(np.argsort(table.states[:, 0], kind="stable"))
    assert np.array_equal(Records.concat(back).pixels, by_kind.pixels)
    with refused(InvalidArgument, name="png", value="s3://bucket/photos"):
        export(run / "out", "s3://bucket/photos", png=True)
    clinic = Path(__file__).parents[1] / "hand_off" / "golden" / "FORMAT-5" / "card"
    with pytest.raises(Unsuitable, match="holds no images"):
        export(clinic, str(tmp_path / "none"), png=True)
    assert not (tmp_path / "none").exists()


def test_a_gray_file_among_color_ones_ends_the_run_in_one_sentence_before_any_charge(run, tmp_path):
    shutil.copytree(run / "photos", tmp_path / "photos")
    gray = next((tmp_path / "photos" / "bar").iterdir())
    Image.open(gray).convert("L").save(gray)
    words = synthesize_words(
        run, data=tmp_path / "photos", schema=run / "colors.yaml", out=tmp_path / "o", home=tmp_path / "h"
    )
    code, out, err = run_cli(*words)
    assert code != 0 and "must be color (RGB) 8-bit PNG files of 10 x 12 pixels" in err
    assert gray.name not in out + err and "reserve" not in charges(tmp_path / "h")
