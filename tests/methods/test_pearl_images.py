"""PEARL and DP-MERF on images: what they charge and release, the law of the frequencies, and the whole pipeline."""

import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from dpmodels.audit.audit import audit as audited
from dpmodels.audit.data import DATA
from dpmodels.audit.made import colors, pictures
from dpmodels.audit.replay import is_charged_for, replayed
from dpmodels.audit.subjects import of_method
from dpmodels.codec.encode import Codec, Records
from dpmodels.embeddings import joint
from dpmodels.embeddings.pixels import ImageLayout, PixelFunction, PixelSpec, distance
from dpmodels.errors import InvalidArgument
from dpmodels.generators import loop
from dpmodels.generators.load import load_generator
from dpmodels.mechanisms import gaussian
from dpmodels.mechanisms.lattice import GRAIN_BITS
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from tests.kit.dying import Died
from tests.kit.errors import refused
from tests.kit.support import charges, measured, run_cli, synthesize_words
from tests.kit.support import make_schema as make_clinic

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
QUICK = {"steps": 6, "batch_size": 16, "frequencies_per_step": 8, "checkpoint_every": 2, "network": {"hidden_dim": 8}}
both = pytest.mark.parametrize("method", ["pearl", "dp-merf"])
either = pytest.mark.parametrize("data", [pictures, colors], ids=["ink", "colors"])


def system(method: str = "pearl", frequencies: dict | None = None, **training: object):
    return create(method, {"frequencies": {"count": 40, **(frequencies or {})}}, {**QUICK, **training})


def embedding(method: str = "pearl", data=pictures, **frequencies: object):
    chosen = system(method, frequencies)
    return chosen.of(chosen.plan(data.make_schema(), BUDGET))


def flat(levels: list[int], data=pictures) -> Records:
    """Return images of one intensity each, of the first class."""
    numbers = data.make_schema().image[1].numbers
    states = np.zeros((len(levels), 1), dtype=np.int32)
    return Records(states, np.zeros(states.shape), np.array(levels, dtype=np.uint8)[:, None].repeat(numbers, axis=1))


@both
@pytest.mark.nightly_if("dp-merf")  # beside the same sums in pearl
def test_the_audit_holds_on_images(tmp_path, monkeypatch, method):
    """Neighbors that are wholly ink or blank come first, in the middle and last; noise, kills, order and seeds."""
    monkeypatch.setitem(DATA, method, pictures)
    audit = audited(method, tmp_path)
    assert [one.says for one in audit.findings if not one.holds] == []
    assert all(one.share > 0.9 for one in audit.recovered) and audit.recovered


@both
@pytest.mark.parametrize(("data", "rows"), [(colors, 1), (pictures, 2)], ids=["colors", "users of two"])
def test_neighbors_move_the_sum_as_far_as_its_noise_hides(tmp_path, monkeypatch, method, data, rows):
    monkeypatch.setitem(DATA, method, data)
    replay = replayed(of_method(method, rows_of_a_user=rows), tmp_path)
    assert replay.differing == []
    for step in replay.steps:
        assert step.is_charged and step.share > 0.9
        for wrong in (2 / 3, 3 / 2):
            assert not is_charged_for(step.hidden * wrong, step.farthest_alike)


@either
def test_an_image_adds_the_same_wherever_it_stands_and_never_more_than_the_bound(data):
    moments, rows, worst = embedding(data=data), data.make_records(50), flat([0, 255, 128, 1], data)
    whole = moments.lattice_sum(rows)
    for who in range(4):
        one = worst.take([who])
        alone = moments.lattice_sum(one)
        assert sum(int(x) ** 2 for x in alone) <= moments.l2_sensitivity**2
        for row in (0, 25, 50):
            more = Records.concat([rows.take(slice(0, row)), one, rows.take(slice(row, None))])
            assert torch.equal(moments.lattice_sum(more) - whole, alone)


@either
def test_sums_are_the_same_bits_for_every_size_of_block(monkeypatch, data):
    moments, rows = embedding(data=data), data.make_records(70)
    whole = moments.lattice_sum(rows)
    monkeypatch.setattr(joint, "BLOCK_NUMBERS", 3 * moments.layout.dim)
    assert torch.equal(moments.lattice_sum(rows), whole)


@both
@either
def test_the_expectation_of_images_is_the_feature_that_is_measured(method, data):
    moments, rows = embedding(method, data), data.make_records(30)
    features, k = moments.parts, moments.parts.spec.count
    measured = features.lattice_features(moments.layout.design(rows)).double() * math.ldexp(math.sqrt(k), -GRAIN_BITS)
    expected = features.expectation(torch.from_numpy(rows.pixels).float() / 255, torch.arange(k))
    assert torch.allclose(expected.real.double(), measured[:, :k], atol=1e-3)
    assert torch.allclose(expected.imag.double(), measured[:, k:], atol=1e-3)


def test_frequencies_have_the_law_of_their_description():
    layout = ImageLayout.of(pictures.make_schema())
    radians = {
        smoothness: PixelFunction(
            PixelSpec(count=4000, scale_low=1, scale_high=1, smoothness=smoothness), layout
        ).phases
        * (2 * math.pi / 2**16)
        for smoothness in (0.0, 2.0)
    }
    for drawn in radians.values():  # of the same mean square, whatever the smoothness
        assert drawn.std() * distance(layout.column) == pytest.approx(1, rel=0.05)
    side = {smoothness: drawn.reshape(12, 10, -1) for smoothness, drawn in radians.items()}
    beside = {
        smoothness: float((drawn[:, 1:] * drawn[:, :-1]).mean() / (drawn**2).mean())
        for smoothness, drawn in side.items()
    }
    assert abs(beside[0.0]) < 0.02 and beside[2.0] > 0.8


def test_dp_merf_has_one_white_bandwidth_which_is_public():
    schema = pictures.make_schema()
    plan = system("dp-merf").plan(schema, BUDGET)
    assert plan.measurement["frequencies"]["bandwidth"] == distance(schema.image[1])
    white = {"count": 40, "smoothness": 0.0, "scale_low": 1.0, "scale_high": 1.0}
    layout = ImageLayout.of(schema)
    assert np.array_equal(embedding("dp-merf").parts.phases, PixelFunction(PixelSpec(**white), layout).phases)
    wider = embedding("dp-merf", bandwidth=2 * distance(schema.image[1])).parts.phases
    assert wider.std() == pytest.approx(embedding("dp-merf").parts.phases.std() / 2, rel=0.01)


def test_settings_of_tables_and_of_images_are_told_apart():
    plan = system(frequencies={"scale_low": 0.3}).plan(pictures.make_schema(), BUDGET)
    assert plan.measurement["frequencies"]["kind"] == "pixels" and plan.measurement["frequencies"]["scale_low"] == 0.3
    with refused(InvalidArgument, name="columns_per_frequency", value=2):
        system(frequencies={"columns_per_frequency": 2}).plan(pictures.make_schema(), BUDGET)
    with refused(InvalidArgument, name="frequencies", value="pixels"):
        system(frequencies={"smoothness": 2}).plan(make_clinic(), BUDGET)
    with refused(InvalidArgument, name="count", value=10**6):  # before memory is taken for them
        wide = {"picture": {"type": "image", "height": 28, "width": 28}, "kind": pictures.make_schema().columns["kind"]}
        system(frequencies={"count": 10**6}).plan(pictures.make_schema(columns=wide), BUDGET)
    with refused(InvalidArgument, name="scale_high", value=1e9):
        system(frequencies={"scale_high": 1e9}).plan(pictures.make_schema(), BUDGET)


@both
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(tmp_path, monkeypatch, method):
    chosen = system(method)
    release, _ = measured(
        chosen, tmp_path / "run", chosen.plan(pictures.make_schema(), BUDGET), pictures.make_records(60)
    )
    chosen.fit(release, Craft(checkpoint=tmp_path / "a.state")).save(tmp_path / "a")
    save = loop.save_state

    def save_and_die(*args: object) -> None:
        save(*args)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_state", save_and_die)
        with pytest.raises(Died):
            chosen.fit(release, Craft(checkpoint=tmp_path / "b.state"))
    chosen.fit(release, Craft(checkpoint=tmp_path / "b.state")).save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    codec = Codec(pictures.make_schema())
    one, two = (next(model.sample(30, seed=2)) for model in map(load_generator, (tmp_path / "a", tmp_path / "b")))
    assert codec.decode(one).equals(codec.decode(two))


@pytest.mark.nightly
def test_without_noise_drawn_images_look_like_the_real_ones_of_their_class(tmp_path, monkeypatch):
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: values)
    training = {"steps": 500, "batch_size": 128, "frequencies_per_step": 200}
    chosen = create("pearl", {"frequencies": {"count": 200}}, training)
    real = pictures.make_records(2000)
    release, _ = measured(chosen, tmp_path, chosen.plan(pictures.make_schema(), BUDGET), real)
    model = chosen.fit(release, Craft())
    made = Records.concat(list(model.sample(2000, seed=1)))
    assert model.default_rows() == 2000
    assert abs(made.states.mean() - real.states.mean()) < 0.01
    drawn, usual = ([rows.pixels[rows.states[:, 0] == label].mean(axis=0) for label in (0, 1)] for rows in (made, real))
    for label in (0, 1):
        to_own, to_other = (np.abs(drawn[label] - usual[which]).mean() for which in (label, 1 - label))
        assert to_own < to_other / 3


@both
def test_the_pipeline_takes_images_to_a_hand_off_and_a_ledger_that_verify(tmp_path, method):
    pq.write_table(pictures.make_table(200), tmp_path / "shapes.parquet")
    (tmp_path / "shapes.yaml").write_text(pictures.make_schema().to_yaml())
    config = {"model": {"method": method, "measurement": {"frequencies": {"count": 20}}, "training": QUICK}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    words = synthesize_words(tmp_path, data=tmp_path / "shapes.parquet", schema=tmp_path / "shapes.yaml", rows=60)
    code, out, err = run_cli(*words)
    assert code == 0, out + err
    table = pq.read_table(tmp_path / "out" / "synthetic")
    assert table.schema.equals(Codec(pictures.make_schema()).output_schema) and table.num_rows == 60
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["method"] == method
    assert charges(tmp_path / "home").count("reserve") == 1
    assert "data:image/png;base64," in (tmp_path / "out" / "report.html").read_text()
    assert run_cli("verify", tmp_path / "out")[0] == 3  # it holds, and nobody signed it
    assert run_cli("ledger", "verify", "--home", tmp_path / "home")[0] == 0
