"""The contract of the image embedding: bounded, exact, and a function of the image alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpmodels.audit.made.pictures import make_records, make_schema
from dpmodels.codec.encode import Records
from dpmodels.embeddings.image_moments import BASIS_BITS, CODE_BITS, DIRECTION_BITS, ImageMoments, smooth_basis
from dpmodels.embeddings.pose import REFERENCE, STEPS, Frame, from_spreads, to_spreads
from dpmodels.methods.images.image_moments import ImageLooks, ImageMeasurement

LOOKS = ImageLooks(ImageMeasurement(coefficients=30, directions=12), make_schema())
FIRST = LOOKS.first
SECOND = LOOKS.second(LOOKS.choose(FIRST.lattice_sum(make_records(300, seed=9)).numpy(), 1.0))


def singles(records: Records) -> list[Records]:
    return [records.take(slice(i, i + 1)) for i in range(len(records))]


def squared(vector: torch.Tensor) -> int:
    return sum(int(v) ** 2 for v in vector)


def strange_pixels(rows: int = 200) -> np.ndarray:
    """Return images nobody draws: empty, full, one pixel, noise, a checkerboard."""
    rng = np.random.default_rng(1)
    single = np.zeros((4, 120), dtype=np.uint8)
    single[[0, 1, 2, 3], [0, 9, 110, 119]] = 255
    flat = np.stack([np.zeros(120), np.full(120, 255), np.resize([0, 255], 120)]).astype(np.uint8)
    return np.concatenate([single, flat, rng.integers(0, 256, (rows, 120), dtype=np.uint8)])


def labelled(pixels: np.ndarray) -> Records:
    """Give images the labels 0, 1, 0, 1 ..."""
    labels = np.resize([0, 1], (len(pixels), 1)).astype(np.int32)
    return Records(labels, np.zeros(labels.shape), pixels)


@pytest.mark.parametrize("embedding", [FIRST, SECOND], ids=["first look", "second look"])
def test_no_image_moves_the_sum_by_more_than_its_bound(embedding: ImageMoments):
    for batch in (make_records(50), labelled(strange_pixels())):
        moved = [squared(embedding.lattice_sum(batch.take(slice(i, i + 1)))) for i in range(len(batch))]
        assert max(moved) <= embedding.l2_sensitivity**2


@pytest.mark.parametrize("embedding", [FIRST, SECOND], ids=["first look", "second look"])
def test_no_search_finds_an_image_beyond_the_bound(embedding: ImageMoments):
    """Hill climbing over pixels, from many starts and for either class, on the exact norm of what an image adds."""
    rng = np.random.default_rng(4)
    pixels = np.concatenate([strange_pixels(30), make_records(20).pixels])
    best = np.array([squared(embedding.lattice_sum(one)) for one in singles(labelled(pixels))])
    start = best.copy()
    for _ in range(12):
        changed, where = pixels.copy(), rng.random(pixels.shape) < rng.choice([0.02, 0.2])
        changed[where] = rng.integers(0, 256, where.sum())
        moved = np.array([squared(embedding.lattice_sum(one)) for one in singles(labelled(changed))])
        pixels[moved > best] = changed[moved > best]
        best = np.maximum(best, moved)
    assert (best > start).any()  # the search does climb
    assert max(best) <= embedding.l2_sensitivity**2


@pytest.mark.parametrize("embedding", [FIRST, SECOND], ids=["first look", "second look"])
def test_the_bound_is_tight_where_images_are_clipped(embedding: ImageMoments):
    tight = ImageMoments(embedding.code, replace(embedding.clip, radius=1), 1, pooled=embedding.pooled)
    moved = [squared(tight.lattice_sum(one)) ** 0.5 for one in singles(make_records(20))]
    assert max(moved) > 0.99 * tight.l2_sensitivity


def test_rows_of_one_unit_move_the_sum_by_as_many_bounds():
    several = ImageMoments(SECOND.code, SECOND.clip, 3, pooled=False)
    assert 3 * SECOND.l2_sensitivity <= several.l2_sensitivity <= 3 * SECOND.l2_sensitivity + 3
    moved = squared(several.lattice_sum(labelled(np.full((3, 120), 255, dtype=np.uint8))))
    assert moved <= several.l2_sensitivity**2


def test_a_code_is_never_longer_than_its_clip_radius():
    codes = FIRST.code.encode(strange_pixels(500))
    for factor in (1, 3, 50):
        for label in (0, 1):
            z = SECOND.bounded(codes * factor, np.full(len(codes), label))
            assert (z**2).sum(axis=1).max() <= 4**CODE_BITS


@pytest.mark.parametrize("embedding", [FIRST, SECOND], ids=["first look", "second look"])
def test_neighbours_differ_by_one_image_exactly(embedding: ImageMoments):
    records = make_records(100)
    whole, without = embedding.lattice_sum(records), embedding.lattice_sum(records.take(slice(1, None)))
    alone = embedding.lattice_sum(records.take(slice(0, 1)))
    assert torch.equal(whole - without, alone)
    names, label = embedding.coordinates(), records.states[0, 0]
    touched = set(names["class"][alone.numpy() != 0])
    assert label in touched <= {label, -1}  # its own class, and what is summed over all


def test_unpacked_moments_are_those_of_the_clipped_codes():
    records = make_records(200)
    z = SECOND.bounded(SECOND.code.encode(records.pixels), records.states[:, 0]) / 2**CODE_BITS
    counts, sums, moments = SECOND.unpack(SECOND.lattice_sum(records).numpy())
    for label in (0, 1):
        members = z[records.states[:, 0] == label]
        assert counts[label] == pytest.approx(len(members))
        assert np.allclose(sums[label], members.sum(axis=0))
        assert np.allclose(moments[label], members.T @ members)


def test_the_first_look_holds_class_means_and_one_second_moment():
    records = make_records(200)
    z = FIRST.bounded(FIRST.code.encode(records.pixels), records.states[:, 0]) / 2**CODE_BITS
    _, sums, moments = FIRST.unpack(FIRST.lattice_sum(records).numpy())
    assert np.allclose(sums[1], z[records.states[:, 0] == 1].sum(axis=0))
    assert moments.shape[0] == 1 and np.allclose(moments[0], z.T @ z)


@pytest.mark.parametrize("embedding", [FIRST, SECOND], ids=["first look", "second look"])
def test_every_coordinate_is_named(embedding: ImageMoments):
    names = embedding.coordinates()
    assert all(len(column) == embedding.dim for column in names.values())
    vector = embedding.lattice_sum(make_records(100)).numpy()
    counts = vector[names["part"] == "count"] / embedding.count_step
    assert counts.sum() == pytest.approx(100)
    square = (names["part"] == "moment") & (names["row"] == names["column"])
    assert (vector[square] >= 0).all()


def test_the_second_look_is_centred_by_class_and_evened_out():
    records = make_records(2000, seed=9)
    spec = ImageMeasurement(coefficients=30, directions=12, basis_radius=1, class_radius=10, evening=1)
    looks = ImageLooks(spec, make_schema())
    second = looks.second(looks.choose(looks.first.lattice_sum(records).numpy(), 1.0))
    z = second.bounded(second.code.encode(records.pixels), records.states[:, 0]) / 2**CODE_BITS
    for label in (0, 1):
        assert np.linalg.norm(z[records.states[:, 0] == label].mean(axis=0)) < 0.1
    assert z.std(axis=0).max() < 2 * z.std(axis=0).min()
    assert np.linalg.norm(second.clip.directions, axis=0).max() <= 1.01 * 2**DIRECTION_BITS


def test_the_basis_is_orthonormal_and_smooth_functions_come_first():
    basis = smooth_basis(Frame(14, 10), 20, 2.0) / 2**BASIS_BITS
    assert np.allclose(basis.T @ basis, np.eye(20), atol=0.01)
    roughness = np.abs(np.diff(basis.reshape(14, 10, 20), axis=0)).sum(axis=(0, 1))
    assert roughness[0] < roughness[-1]


def disc(frame: Frame, x: float, y: float, slant: float, width: float, height: float) -> np.ndarray:
    v = (frame.y - y) / height
    u = (frame.x - x - slant * (frame.y - y)) / width
    return np.rint(255 * np.exp(-(u**2 + v**2) / 2)).astype(np.uint8)[None]


@pytest.mark.parametrize("frame", [Frame(28, 28), Frame(40, 20)], ids=str)
@pytest.mark.parametrize("pose", [(0.0, 0.0, 0.0, 4.0, 5.0), (1.5, -2.0, 0.3, 3.0, 4.0), (-1.0, 1.0, -0.4, 2.5, 4.5)])
def test_the_pose_of_a_blob_is_its_place_slant_and_size(frame: Frame, pose: tuple[float, ...]):
    assert frame.poses(disc(frame, *pose))[0] / STEPS == pytest.approx(pose, abs=0.12)


def test_a_normalised_blob_has_the_reference_pose_and_restoring_brings_it_back():
    frame = Frame(28, 28)
    image = disc(frame, 1.5, -2.0, 0.3, 2.5, 3.0)
    poses = frame.poses(image)
    normal = frame.normalise(image, poses)
    assert frame.poses(normal.astype(np.uint8))[0] / STEPS == pytest.approx(REFERENCE, abs=0.25)
    back = frame.restore(normal.astype(np.float64), poses)
    assert np.abs(back - image).mean() < 0.05 * image.mean()


def test_poses_stay_within_public_bounds_and_round_trip():
    poses = Frame(12, 10).poses(strange_pixels())
    assert np.array_equal(from_spreads(to_spreads(poses)), poses)
    assert np.abs(to_spreads(poses)).max() <= 3
