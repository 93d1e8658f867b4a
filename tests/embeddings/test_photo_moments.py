"""The contract of the photographs' embedding: bounded by its clip alone, exact, and a function of the image alone."""

import numpy as np
import pytest
import torch

from dpmodels.audit.made import colors, pictures
from dpmodels.audit.made.colors import make_records, make_schema, strange_colors
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.image_moments import CODE_BITS
from dpmodels.embeddings.photo_moments import COUNTED, MIDDLE, TURN, UNIT, PhotoCode, PhotoMoments, PhotoSpread, cosines
from dpmodels.methods.images.photo_moments import NacrePhotos, PhotoLooks, PhotoMeasurement


def looks(schema: Schema, **spec: float) -> PhotoLooks:
    return NacrePhotos().design(PhotoMeasurement(**{"coefficients": 30, **spec}), schema)


def design(schema: Schema, wider: float = 1.0, **spec: float) -> PhotoMoments:
    """Return the second look about a center that is off the middle."""
    both = looks(schema, **spec)
    center = np.random.default_rng(3).normal(0, both.code.usual_norm / 20, both.code.dim)
    return both.second(np.rint([*center, wider * both.code.usual_norm]).astype(np.int64))


def large(height: int, width: int) -> Schema:
    column = {"type": "image", "height": height, "width": width, "channels": 3}
    return make_schema(columns={"picture": column, "kind": make_schema().columns["kind"].model_dump()})


FIRST = looks(make_schema()).first
COLOR, GRAY = design(make_schema()), design(pictures.make_schema())
LARGE = design(large(64, 64), coefficients=40)


def squared(vector: torch.Tensor) -> int:
    return sum(int(v) ** 2 for v in vector)


def labelled(pixels: np.ndarray) -> Records:
    """Give images the labels 0, 1, 0, 1 ..."""
    labels = np.resize([0, 1], (len(pixels), 1)).astype(np.int32)
    return Records(labels, np.zeros(labels.shape), pixels)


def moved(embedding: PhotoMoments, pixels: np.ndarray) -> list[int]:
    records = labelled(pixels)
    return [squared(embedding.lattice_sum(records.take(slice(i, i + 1)))) for i in range(len(records))]


def extreme(embedding: PhotoMoments, rows: int = 40) -> np.ndarray:
    """Return images of the largest codes there are: each cosine, and sums of some, driven to black and white."""
    rng = np.random.default_rng(1)
    signs = rng.choice([-1, 1], (embedding.size, rows))
    patterns = np.concatenate([embedding.code.basis, embedding.code.basis @ signs], axis=1).T
    return np.where(patterns > 0, 255, 0).astype(np.uint8)


@pytest.mark.parametrize("embedding", [COLOR, GRAY, LARGE], ids=["color", "gray", "64 x 64"])
def test_no_image_moves_the_sum_by_more_than_its_bound_and_some_reach_it(embedding: PhotoMoments):
    numbers = embedding.code.basis.shape[0]
    noise = np.random.default_rng(2).integers(0, 256, (20, numbers), dtype=np.uint8)
    flat = np.repeat(np.array([[0], [255], [MIDDLE]], dtype=np.uint8), numbers, axis=1)
    found = moved(embedding, np.concatenate([flat, extreme(embedding), noise]))
    assert max(found) <= embedding.l2_sensitivity**2
    assert max(found) > 0.99 * embedding.l2_sensitivity**2  # clipped images reach it, up to rounding


def test_no_image_moves_the_first_look_by_more_than_its_bound_and_some_reach_it():
    found = [squared(FIRST.lattice_sum(labelled(image[None]))) for image in (*strange_colors(), *extreme(COLOR))]
    assert 0.99 * FIRST.l2_sensitivity**2 < max(found) <= FIRST.l2_sensitivity**2
    records = make_records(300)
    count, total, square = FIRST.unpack(FIRST.lattice_sum(records).numpy())
    codes = FIRST.code.encode(records.pixels)
    codes /= np.maximum(np.linalg.norm(codes, axis=1) / FIRST.radius, 1)[:, None]
    assert count == 300 and np.allclose(total, codes.sum(axis=0), atol=300 * FIRST.radius / 2**CODE_BITS)
    assert square == pytest.approx((codes**2).sum(), rel=0.01)


def test_the_center_and_the_clip_are_those_of_the_images_unless_noise_hides_them():
    both, records = looks(make_schema(), radius=1.0, first_radius=10), make_records(500)
    codes, released = both.code.encode(records.pixels), both.first.lattice_sum(records).numpy()
    *center, radius = both.choose(released, 1.0)
    assert np.allclose(center, codes.mean(axis=0), atol=both.code.usual_norm / 100)
    off = np.linalg.norm(codes - codes.mean(axis=0), axis=1)
    assert radius == pytest.approx((off**2).mean() ** 0.5, rel=0.02)
    hidden = both.choose(released, 1e4 * COUNTED)
    assert not hidden[:-1].any() and both.code.usual_norm / 4.1 < hidden[-1] < 4.1 * both.code.usual_norm
    nothing = both.choose(np.zeros_like(released), 1.0)
    assert not nothing[:-1].any() and nothing[-1] >= 1


def test_strange_colors_and_those_that_a_search_finds_stay_within_the_bound():
    """Hill climbing over pixels, from white, black, pure channels and checkerboards; nothing is clipped at first."""
    wide = design(make_schema(), wider=10)
    rng, pixels = np.random.default_rng(4), np.concatenate([strange_colors(), make_records(10).pixels])
    assert max(moved(COLOR, pixels)) <= COLOR.l2_sensitivity**2
    best = np.array(moved(wide, pixels))
    start = best.copy()
    for _ in range(15):
        changed, where = pixels.copy(), rng.random(pixels.shape) < rng.choice([0.02, 0.2])
        changed[where] = rng.choice([0, 255], where.sum())
        found = np.array(moved(wide, changed))
        pixels[found > best] = changed[found > best]
        best = np.maximum(best, found)
    assert (best > start).any() and max(best) <= wide.l2_sensitivity**2


def test_neighbours_differ_by_exactly_one_image_of_its_class_and_of_all():
    records = make_records(60)
    for index, image in enumerate(strange_colors()):
        one = labelled(image[None])
        without, alone = COLOR.lattice_sum(records), COLOR.lattice_sum(one)
        assert torch.equal(COLOR.lattice_sum(Records.concat([records.take(slice(None)), one])) - without, alone), index
        touched = set(COLOR.coordinates()["class"][alone.numpy() != 0])
        assert touched == {0, -1}


def test_rows_of_one_unit_move_the_sum_by_as_many_bounds():
    several = PhotoMoments(COLOR.code, 2, COLOR.center, COLOR.radius, (0.15, 0.6), 3)
    assert PhotoSpread(COLOR.code, FIRST.radius, 3).l2_sensitivity == 3 * FIRST.l2_sensitivity
    assert several.l2_sensitivity == 3 * COLOR.l2_sensitivity
    assert squared(several.lattice_sum(labelled(np.full((3, 360), 255, dtype=np.uint8)))) <= several.l2_sensitivity**2


@pytest.mark.parametrize("schema", [make_schema(), large(64, 64), large(64, 4)], ids=["12x10", "64x64", "64x4"])
def test_codes_are_whole_and_small_enough_for_exact_sums(schema: Schema):
    code = PhotoCode(schema, 400, 0.06, 0.0)  # the largest weights
    basis = code.basis
    whole = extreme(PhotoMoments(code, 2, np.zeros(code.dim, np.int64), 1, (0.15, 0.6), 1), 5)[-20:]
    codes = code.encode(whole)
    assert np.array_equal(codes, (whole.astype(np.int64) - MIDDLE) @ basis)
    bound = 1.05 * code.longest  # an orthonormal turn keeps norms, and the basis is one up to rounding
    assert np.linalg.norm(codes, axis=1).max() <= bound and (2 * bound) ** 2 < 2**53  # twice: a center is taken off
    assert np.abs(basis).sum(axis=0).max() * MIDDLE < 2**53


def test_colors_are_turned_and_cosines_orthonormal_so_that_a_code_keeps_what_it_shows():
    assert np.allclose(TURN @ TURN.T, np.eye(3)) and np.allclose(cosines(9) @ cosines(9).T, np.eye(9))
    code = PhotoCode(make_schema(), 360, 0.06, 0.5)
    pixels = make_records(20).pixels
    every = np.zeros((20, 360), dtype=np.float32)
    every[:, code.flat_indices] = code.encode(pixels) / UNIT / code.weights
    assert np.abs(code.draw(every).astype(int) - pixels).max() <= 2
    gray = PhotoCode(pictures.make_schema(), 120, 0.06, 0.5)
    every = np.zeros((20, 120), dtype=np.float32)
    every[:, gray.flat_indices] = gray.encode(pictures.make_records(20).pixels) / UNIT / gray.weights
    assert np.abs(gray.draw(every).astype(int) - pictures.make_records(20).pixels).max() <= 2


def test_brightness_and_slow_cosines_come_first_and_weigh_least():
    code = PhotoCode(make_schema(), 360, 0.06, 1.0)
    assert code.flat_indices[0] == 0 and (np.diff(code.weights) >= -1e-12).all() and code.weights.max() == 1
    assert (code.flat_indices[:8] < 120).all()
    assert np.allclose(PhotoCode(make_schema(), 30, 0.06, 0.0).weights, 1)


def test_unpacked_moments_are_those_of_the_clipped_codes_and_the_last_is_of_all():
    records = make_records(200)
    counts, sums, squares, every = COLOR.unpack_all(COLOR.lattice_sum(records).numpy())
    codes = COLOR.code.encode(records.pixels)
    t = (codes - COLOR.center) / np.maximum(np.linalg.norm(codes - COLOR.center, axis=1), COLOR.radius)[:, None]
    for label in (0, 1):
        members = t[records.states[:, 0] == label]
        assert counts[label] == pytest.approx(len(members))
        assert np.allclose(sums[label], members.sum(axis=0), atol=len(members) * 2.0**-CODE_BITS)
        assert np.allclose(squares[label], members.T @ members, atol=0.02)
    assert np.allclose(every, squares.sum(axis=0))


def test_every_coordinate_is_named():
    names, vector = COLOR.coordinates(), COLOR.lattice_sum(make_records(100)).numpy()
    assert all(len(column) == COLOR.dim for column in names.values())
    assert vector[names["part"] == "count"].sum() == 100 * COLOR.count_step
    square = (names["part"] == "moment") & (names["row"] == names["column"])
    assert (vector[square] >= 0).all() and square.sum() == 3 * COLOR.size


def test_extremes_of_the_made_data_are_images_of_its_schema():
    assert {len(image) for image in colors.EXTREMES["picture"]} == {360}
