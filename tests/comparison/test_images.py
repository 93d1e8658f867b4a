"""Images: the distances agree with the public judge's, a CNN learns what there is, and a copied image is shown."""

import base64
import io

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from benchmarks.judge_images import ImageJudge, Images
from dpmodels.audit.made import colors, pictures
from dpmodels.comparison import images
from dpmodels.comparison.frame import Rows
from dpmodels.comparison.images import frechet, kernel_distances, lenet_features
from dpmodels.comparison.report import Options, evaluate_table, load_real
from dpmodels.contract.schema import Schema
from dpmodels.pages.drawing import GAP
from dpmodels.privacy import Sensitive
from dpmodels.report.sheet import PER_CLASS, Sheet

GRAY = pictures.make_schema()
IMAGES = ("CNN accuracy", "nearest real images", "distance of image features", "overfitting", "copied rows")


@pytest.fixture(scope="module")
def lenet(tmp_path_factory):
    """Weights of the right shapes: what the features mean does not matter here."""
    draw = torch.Generator().manual_seed(0)
    shapes = {"c1": (6, 1, 5, 5), "c3": (16, 6, 5, 5), "c5": (120, 16, 5, 5), "f6": (84, 120)}
    weights = {f"{name}.weight": 0.2 * torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": torch.zeros(shape[0]) for name, shape in shapes.items()}
    path = tmp_path_factory.mktemp("weights") / "lenet.safetensors"
    save_file(weights, path)
    return path, weights


def test_the_frechet_distance_agrees_with_the_judge(lenet):
    path, weights = lenet
    rng = np.random.default_rng(0)
    real, made = (rng.integers(0, 256, (150, 784), dtype=np.uint8) // divisor for divisor in (1, 2))
    judge = ImageJudge(Images((real / 255).astype(np.float32), np.zeros(150, dtype=np.int64)), path)
    ours = frechet(lenet_features(weights, real), lenet_features(weights, made))
    assert ours == pytest.approx(judge.frechet((made / 255).astype(np.float32)), rel=1e-4)
    assert ours > 10 * abs(frechet(lenet_features(weights, real), lenet_features(weights, real)))


def test_the_kernel_distance_is_unbiased_and_grows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 600, 8))
    same, far = kernel_distances(x, y, 0), kernel_distances(x, y + 1, 0)
    assert abs(same.mean()) < 0.1 * far.mean()


def judge(made: pa.Table, real: pa.Table, held: pa.Table, schema: Schema = GRAY) -> dict:
    rows = [Rows(schema, table.to_batches(max_chunksize=64)) for table in (real, held, made)]
    options = Options(workers=1, only=IMAGES)
    side = load_real(Sensitive(rows[0]), Sensitive(rows[1]), schema, options)
    return evaluate_table(side, rows[2], options).reveal()


def test_images_in_color_are_judged_by_all_their_colors_and_shown_in_color(monkeypatch):
    monkeypatch.setattr(images, "STEPS", 60)
    real, held, made = (colors.make_table(200, seed) for seed in range(3))
    found = {name: one["result"] for name, one in judge(made, real, held, colors.make_schema())["metrics"].items()}
    assert found["CNN accuracy"]["tstr_accuracy"] > 0.55
    data = base64.b64decode(found["nearest real images"]["sheet"].split(",")[1])
    shown = np.asarray(Image.open(io.BytesIO(data)))
    assert shown.shape[0] == 24 + GAP and shown.shape[2] == 3
    lists = made["picture"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
    blue = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(lists[:, ::-1]).ravel()), 360)
    worse = judge(made.set_column(0, "picture", blue), real, held, colors.make_schema())["metrics"]
    fid = "distance of image features"
    assert worse[fid]["result"]["fid"] > 2 * found[fid]["fid"]  # the same shapes with red and blue exchanged


@pytest.mark.slow
@pytest.mark.nightly
def test_a_fresh_draw_is_as_good_as_real_images_and_noise_is_not(monkeypatch):
    monkeypatch.setattr(images, "STEPS", 120)
    real, held, made = (pictures.make_table(300, seed) for seed in range(3))
    good = {name: one["result"] for name, one in judge(made, real, held)["metrics"].items()}
    assert good["CNN accuracy"]["tstr_accuracy"] > 0.85 < good["CNN accuracy"]["trtr_accuracy"]
    assert "CNN trained on the real images" in good["distance of image features"]["features"]
    assert good["nearest real images"]["sheet"].startswith("data:image/png;base64,")
    noise = np.random.default_rng(0).integers(0, 256, 300 * 120).astype(np.uint8)
    worse = made.set_column(0, "picture", pa.FixedSizeListArray.from_arrays(pa.array(noise), 120))
    bad = {name: one["result"] for name, one in judge(worse, real, held)["metrics"].items()}
    assert bad["distance of image features"]["fid"] > 5 * good["distance of image features"]["fid"]
    assert bad["CNN accuracy"]["tstr_accuracy"] < good["CNN accuracy"]["tstr_accuracy"] - 0.15


def test_copied_images_are_caught(monkeypatch):
    monkeypatch.setattr(images, "STEPS", 1)
    real, held, made = (pictures.make_table(200, seed) for seed in range(3))
    report = judge(pa.concat_tables([real.slice(0, 60), made.slice(60)]), real, held)
    assert {"overfitting", "copied rows"} <= {check["name"] for check in report["checks"] if check["holds"] is False}
    assert report["metrics"]["nearest real images"]["result"]["root_mean_square_distances"][0] == 0.0


def test_the_sheet_of_images_in_color_is_in_color():
    records, sheet = colors.make_records(60), Sheet(colors.make_schema())
    sheet.add(records)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(sheet.data_uri().split(",")[1]))))
    assert shown.shape == (2 * (12 + GAP) - GAP, PER_CLASS * (10 + GAP) - GAP, 3)
    first = records.pixels[records.states[:, 0] == 0][0].reshape(12, 10, 3)
    np.testing.assert_array_equal(shown[:12, :10], first)


def test_the_sheet_shows_the_first_images_of_each_class_on_a_line_of_its_own():
    records, sheet = pictures.make_records(60), Sheet(pictures.make_schema())
    sheet.add(records.take(slice(0, 7)))
    sheet.add(records.take(slice(7, 60)))
    kind, data = sheet.data_uri().split(",")
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert sheet.names == ("bar", "disc") and kind == "data:image/png;base64"
    assert shown.shape == (2 * (12 + GAP) - GAP, PER_CLASS * (10 + GAP) - GAP)
    for label in range(2):
        members = records.pixels[records.states[:, 0] == label][:PER_CLASS].reshape(-1, 12, 10)
        for place, image in enumerate(members):
            top, left = label * (12 + GAP), place * (10 + GAP)
            np.testing.assert_array_equal(shown[top : top + 12, left : left + 10], image)
