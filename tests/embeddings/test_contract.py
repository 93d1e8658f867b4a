"""What every embedding promises, said once: a new feature map is one file there and one line in ``CASES`` here."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmodels.audit.made import colors, pictures
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Embedding, Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, FrequencySpec
from dpmodels.embeddings.fourier import FourierFeatures, FourierSpec
from dpmodels.embeddings.image_moments import DIRECTION_BITS, ClipSpec, ImageCode, ImageMoments
from dpmodels.embeddings.interactions import Interactions, JointTable
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.embeddings.moments import Moments, band
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.photo_moments import PhotoCode, PhotoMoments
from dpmodels.embeddings.pixels import ImageLayout, PixelFunction, PixelSpec
from dpmodels.embeddings.residuals import Residuals
from dpmodels.embeddings.summation import transform_sum
from dpmodels.privacy import Sensitive
from dpmodels.report.charged import ScoreMeasurement, ScoreTables
from dpmodels.report.scorers import Scorer, fit_scorer
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Threads
from tests.kit.support import make_records, make_schema


def characteristic(max_rows: int) -> Embedding:
    layout = Layout.of(make_schema())
    return ConditionalEmbedding(CharacteristicFunction(FrequencySpec(count=40), layout), layout, 0.05, max_rows)


def fourier(max_rows: int) -> Embedding:
    layout = Layout.of(make_schema())
    return ConditionalEmbedding(FourierFeatures(FourierSpec(count=40, bandwidth=0.5), layout), layout, 0.05, max_rows)


def moments(max_rows: int) -> Embedding:
    return Moments(Partition.fine(make_schema(), 16), 3, 5, max_rows)


def neighbours(max_rows: int) -> Embedding:
    return Moments(Partition.fine(make_schema(), 16), 3, 5, max_rows, band(len(make_schema().modelled) - 1, 1))


def residuals(max_rows: int) -> Embedding:
    return Residuals(Partition.fine(make_schema(), 16), 1 << 18, 1 << 20, max_rows, None, (8, 3))


def weighed_residuals(max_rows: int) -> Embedding:
    weights = np.array([[1, 3, 1, 1], [3, 1, 2, 1], [1, 2, 1, 10], [1, 1, 10, 1]])
    return Residuals(Partition.fine(make_schema(), 16), 1 << 18, 1 << 20, max_rows, None, (8, 3), weights)


def interactions(max_rows: int) -> Embedding:
    partition = Partition.fine(make_schema(), 16)
    columns = (0, 1, 3)
    groups = tuple(partition.groups(column, np.ones(partition.sizes[column], dtype=np.int64), 4) for column in columns)
    return Interactions(partition, [JointTable(columns, groups)], [1 << 20], max_rows)


def one_way(max_rows: int) -> Embedding:
    return Moments(Partition.fine(make_schema(), 64, conditional=False), 7, 0, max_rows)


def image_moments(max_rows: int) -> Embedding:
    code = ImageCode(pictures.make_schema(), 12, 1.5, 1.0)
    identity = np.eye(code.dim, dtype=np.int64) << DIRECTION_BITS
    clip = ClipSpec(identity, np.zeros((2, code.dim), dtype=np.int64), 10**5, 0.15, 0.6)
    return ImageMoments(code, clip, max_rows, pooled=False)


def photo_moments(max_rows: int) -> Embedding:
    code = PhotoCode(colors.make_schema(), 12, 0.06, 0.5)
    return PhotoMoments(code, 2, np.full(12, 9), 10**5, (0.15, 0.6), max_rows)


def pixels_of(schema: Schema, max_rows: int) -> Embedding:
    layout = ImageLayout.of(schema)
    return ConditionalEmbedding(PixelFunction(PixelSpec(count=40), layout), layout, 0.05, max_rows)


def pixels(max_rows: int) -> Embedding:
    return pixels_of(pictures.make_schema(), max_rows)


def color_pixels(max_rows: int) -> Embedding:
    return pixels_of(colors.make_schema(), max_rows)


@cache
def scorers() -> list[Scorer]:
    return [fit_scorer(kind, make_records(300, seed=1), make_schema(), 20) for kind in ("logistic", "trees")]


def scores(max_rows: int) -> Embedding:
    unit = {"user": "patient", "max_rows": max_rows} if max_rows > 1 else "record"
    return ScoreTables(ScoreMeasurement(), make_schema(unit=unit)).embedding(scorers())


CASES: dict[str, tuple[Callable[[int], Embedding], Callable[[int], Records]]] = {
    "characteristic function": (characteristic, make_records),
    "fourier features": (fourier, make_records),
    "moments": (moments, make_records),
    "moments of neighbouring columns": (neighbours, make_records),
    "residuals": (residuals, make_records),
    "one-way moments": (one_way, make_records),
    "interactions": (interactions, make_records),
    "scores on the real rows": (scores, make_records),
    "image moments": (image_moments, pictures.make_records),
    "photo moments": (photo_moments, colors.make_records),
    "characteristic function of ink": (pixels, pictures.make_records),
    "characteristic function of colors": (color_pixels, colors.make_records),
}
SCHEMAS = {
    image_moments: pictures.make_schema,
    photo_moments: colors.make_schema,
    pixels: pictures.make_schema,
    color_pixels: colors.make_schema,
}
every = pytest.mark.parametrize(("make", "records"), CASES.values(), ids=CASES.keys())


def total(embedding: Embedding, *batches: Records) -> np.ndarray:
    return transform_sum(embedding, Sensitive(batches)).reveal()


def norm(vector: np.ndarray) -> float:
    return float(np.sqrt(float(sum(int(x) ** 2 for x in vector))))


@every
def test_the_sum_is_the_same_bits_for_every_split_and_order(make, records):
    embedding, rows = make(1), records(5000)  # more than any embedding holds at once
    whole = total(embedding, rows)
    assert whole.dtype == np.int64 and whole.shape == (embedding.dim,)
    order = np.random.default_rng(0).permutation(5000)
    for chunks in (1, 7, 64):
        assert np.array_equal(total(embedding, *map(rows.take, np.array_split(order, chunks))), whole)


@every
def test_the_sum_is_the_same_bits_for_every_number_of_threads_compiled_or_not(make, records, tmp_path):
    embedding, rows = make(1), records(600 if make in SCHEMAS else 40_000)
    codec = Codec(SCHEMAS.get(make, make_schema)())
    whole = total(embedding, *map(rows.take, np.array_split(np.arange(len(rows)), 64)))  # too small to be compiled for
    for part, index in enumerate(np.array_split(np.arange(len(rows)), [len(rows) // 2, len(rows) - 9])):
        with pa.ipc.new_file(tmp_path / f"{part}.arrow", codec.arrow_schema) as file:
            file.write_batch(codec.to_arrow(rows.take(index)))
    for threads in (1, 2, 5):
        table = EncodedTable(tmp_path, codec.schema, Threads(threads))
        assert np.array_equal(transform_sum(embedding, Sensitive(table)).reveal(), whole)


@every
def test_neighbours_differ_by_exactly_the_features_of_one_record(make, records):
    embedding, rows = make(1), records(40)
    one = total(embedding, rows.take(slice(17, 18)))
    rest = rows.take(np.delete(np.arange(40), 17))
    assert np.array_equal(total(embedding, rows) - total(embedding, rest), one)


@every
def test_no_record_found_by_climbing_passes_the_bound_and_users_of_m_rows_have_m_times_it(make, records):
    embedding, rng = make(1), np.random.default_rng(0)
    singles = [records(60).take(slice(i, i + 1)) for i in range(60)]
    record = max(singles, key=lambda one: norm(total(embedding, one)))
    reached = norm(total(embedding, record))
    for _ in range(150):
        other = nudged(record, rng)
        if (found := norm(total(embedding, other))) >= reached:
            record, reached = other, found
    assert 0.9 * embedding.l2_sensitivity < reached <= embedding.l2_sensitivity
    assert make(3).l2_sensitivity == 3 * embedding.l2_sensitivity


def nudged(record: Records, rng: np.random.Generator) -> Records:
    """Return the record with one value, state or patch of pixels changed, within what the schema allows."""
    if record.pixels is not None:
        pixels = record.pixels.copy()
        places = rng.integers(0, pixels.shape[1], 20)
        pixels[0, places] = rng.choice([0, 128, 255], 20)
        return Records(record.states, record.values, pixels)
    states, values = record.states.copy(), record.values.copy()
    column = int(rng.integers(states.shape[1]))
    modelled = list(Codec(make_schema()).columns.values())[column]
    states[0, column] = rng.integers(modelled.states)
    values[0, column] = rng.random() if states[0, column] == 0 and hasattr(modelled, "points") else 0.0
    return Records(states, values)


@every
def test_every_coordinate_has_a_name(make, records):
    embedding = make(1)
    assert {len(names) for names in embedding.coordinates().values()} == {embedding.dim}
    assert isinstance(embedding.lattice_sum(records(3)), torch.Tensor)
