"""The judge of images on small data, and the figure of the sweep."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from benchmarks.archive.pearl import join as table_1
from benchmarks.common import Table
from benchmarks.image_stages import Studio, stages
from benchmarks.images import join, plot
from benchmarks.judge_images import ImageJudge, Images, LeNetScore, LightJudge
from dpmodels.audit.made import pictures
from dpmodels.generators.image_matching import MatchingSpec
from dpmodels.methods.images.image_moments import ImageMeasurement, NacreImages
from dpmodels.privacy import PrivacyBudget

SHAPES = {"c1": (6, 1, 5, 5), "c3": (16, 6, 5, 5), "c5": (120, 16, 5, 5), "f6": (84, 120)}


def make_images(rows: int, seed: int) -> Images:
    """Return images of two classes: light above or light below."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    light = np.where(np.arange(784) < 392, 1 - y[:, None], y[:, None])
    return Images((0.7 * light + 0.3 * rng.random((rows, 784))).astype(np.float32), y)


@pytest.fixture
def judge(tmp_path: Path) -> ImageJudge:
    generator = torch.Generator().manual_seed(0)
    weights = {f"{name}.weight": 0.1 * torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    weights |= {f"{name}.bias": torch.zeros(shape[0]) for name, shape in SHAPES.items()}
    save_file(weights, tmp_path / "lenet.safetensors")
    return ImageJudge(make_images(300, seed=0), tmp_path / "lenet.safetensors")


def test_the_distance_is_nothing_to_the_same_images_and_grows_with_what_is_wrong(judge: ImageJudge) -> None:
    same, near = judge.frechet(judge.test.x), judge.frechet(make_images(300, seed=1).x)
    far = judge.frechet(np.random.default_rng(0).random((300, 784), dtype=np.float32))
    assert abs(same) < 1e-3 < far and near < far / 5


def test_the_kernel_distance_is_about_nothing_to_images_of_one_law_and_grows_with_what_is_wrong(judge) -> None:
    far = np.random.default_rng(0).random((300, 784), dtype=np.float32)
    near, wrong = (
        [judge.kernel(judge.features(x), np.random.default_rng(seed)) for seed in range(10)]
        for x in (make_images(300, seed=1).x, far)
    )
    assert abs(np.mean(near)) < np.mean(wrong) / 5
    assert min(near) < 0  # it is unbiased, so of one law it falls on both sides


def test_rows_of_several_runs_of_table_1_are_put_in_its_order() -> None:
    head = {"title": "mnist, delta=1e-5", "columns": ["method", "epsilon", "FID"], "digits": 2}
    paper = ["PEARL, as published", 1.0, 3.52]
    records = [{"tables": [{**head, "rows": [paper, row]}]} for row in (["pearl", 1.0, [2.0]], ["pearl", 10.0, [1.0]])]
    (table,) = table_1([*records, {"tables": [{**head, "rows": [paper, ["dp-merf", 1.0, [9.0]]]}]}])
    assert [row[:2] for row in table.rows] == [paper[:2], ["dp-merf", 1.0], ["pearl", 10.0], ["pearl", 1.0]]


@pytest.mark.nightly
def test_a_judgement_is_repeatable_and_finds_what_there_is_to_learn(judge: ImageJudge) -> None:
    made = make_images(1200, seed=2)
    one, two = judge.judge(made, 1000, 2, seed=5), judge.judge(made, 1000, 2, seed=5)
    assert one == two and one.cnn > 0.95
    wrong = judge.judge(Images(made.x, 1 - made.y), 1000, 2, seed=5)
    assert wrong.cnn < 0.05


def test_the_sweep_is_drawn_with_every_set_and_the_real_data(tmp_path: Path) -> None:
    tables = [Table(f"{name}, CNN on 9 images, delta", ["method", "epsilon", "CNN"]) for name in ("mnist", "fashion")]
    for table in tables:
        table.add("real data", "–", 0.99)
        table.add("nacre-images", 1.0, [0.9, 0.92])
        table.add("nacre-images", 10.0, [0.95])
    plot(tables, tmp_path / "a.svg")
    plot(tables, tmp_path / "b.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "mnist" in text and "fashion" in text and "epsilon" in text and "CNN on 9 images" in text
    assert text == (tmp_path / "b.svg").read_text()


def make_record(judge: str, *rows: tuple[str, float, list[float]]) -> dict[str, Any]:
    """Return the record of a run as --json writes it."""
    table = Table(f"mnist, {judge}, delta", ["method", "epsilon", "CNN"])
    for row in (("PEARL, as published", 1.0, 0.782), *rows):
        table.add(*row)
    return {"tables": [asdict(table)]}


def test_runs_of_parts_are_put_together_by_epsilon_and_never_of_two_judges() -> None:
    parts = [
        make_record("CNN on 9 images", ("nacre-images", 10.0, [0.95])),
        make_record("CNN on 9 images", ("nacre-images", 1.0, [0.9])),
        make_record("CNN on 9 images", ("nacre-images", 1.0, [0.92])),
    ]
    (table,) = join(parts)
    assert table.rows == [
        ["PEARL, as published", 1.0, 0.782],
        ["nacre-images", 1.0, [0.9, 0.92]],
        ["nacre-images", 10.0, [0.95]],
    ]
    with pytest.raises(SystemExit, match="not of one judge"):
        join([*parts, make_record("CNN on 8 images", ("nacre-images", 1.0, [0.9]))])


def test_the_lenet_score_counts_the_classes_that_images_are_surely_of() -> None:
    told = LeNetScore.taught(make_images(2000, seed=2), epochs=3)
    two, one = make_images(400, seed=3), make_images(400, seed=4)
    assert told.score(two.x) == pytest.approx(2, abs=0.05)
    assert told.score(one.take(np.flatnonzero(one.y == 1)).x) == pytest.approx(1, abs=0.05)


def test_the_light_judge_finds_what_there_is_to_learn_and_says_the_same_again(judge: ImageJudge) -> None:
    light, made = LightJudge(judge.test), make_images(400, seed=2)
    assert light.accuracy(made) == light.accuracy(made) > 0.95
    assert light.accuracy(Images(made.x, 1 - made.y)) < 0.05


@pytest.fixture(scope="module")
def studio() -> Studio:
    records = pictures.make_records(2000)
    images = Images(records.pixels.astype(np.float32) / 255, records.states[:, 0].astype(np.int64))
    system = NacreImages(ImageMeasurement(coefficients=30, directions=10), MatchingSpec(rounds=2, images=200))
    return Studio(images, pictures.make_schema(), system, PrivacyBudget(epsilon=1.0, delta=1e-5))


def test_real_images_go_through_every_stage_and_keep_less_at_each(studio: Studio) -> None:
    made = {name: images() for name, images in stages(studio, 1000, seed=0)}
    assert [name.split(",")[0] for name in made][:2] == ["real images", "code of 30 functions"] and len(made) == 7
    assert all(images.x.shape[1] == 120 and set(images.y) == {0, 1} for images in made.values())
    real = studio.images.take(np.random.default_rng(0).permutation(2000)[:1000])  # as the stages choose real images
    lost = [float(np.abs(made[name].x - real.x).mean()) for name in list(made)[1:4]]
    assert np.array_equal(made["code of 30 functions"].y, real.y)
    assert 0 < lost[0] < min(lost[1:]) and max(lost) < 0.1


def test_a_release_in_the_studio_is_what_the_programme_sums_and_its_noise_is_what_is_charged(studio: Studio) -> None:
    first, second = studio.release(noise=False)
    records = pictures.make_records(2000)
    assert np.array_equal(studio.looks.first.lattice_sum(records).numpy(), first.vector)
    assert np.array_equal(second.embedding.lattice_sum(records).numpy(), second.vector)
    noisy = studio.release()[0]
    assert (noisy.vector - first.vector).std() == pytest.approx(noisy.noise_stddev, rel=0.2)
    assert noisy.noise_stddev == studio.line.noise_stddev(0, studio.looks.first.l2_sensitivity)
