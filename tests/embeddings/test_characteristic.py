"""The contract of the characteristic-function embedding: bounded, exact, and a function of the record alone."""

import math

import numpy as np
import pytest
import torch

from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import VALUE_BITS, Layout, ProductRows
from dpmodels.embeddings.characteristic import TURN, CharacteristicFunction, FrequencySpec
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.mechanisms.lattice import GRAIN_BITS
from dpmodels.privacy import PrivacyUnit
from tests.kit.errors import refused
from tests.kit.support import make_records, make_schema

LAYOUT = Layout.of(make_schema())
SPECS = [FrequencySpec(count=k, columns_per_frequency=c) for k in (1, 7, 64) for c in (0, 2)]


def embedding_of(spec: FrequencySpec, max_rows: int = 1, weight: float = 0.05) -> ConditionalEmbedding:
    return ConditionalEmbedding(CharacteristicFunction(spec, LAYOUT), LAYOUT, weight, max_rows)


def squared(vector: torch.Tensor) -> int:
    return sum(int(v) ** 2 for v in vector)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_no_record_moves_the_sum_by_more_than_its_bound_and_the_bound_is_tight(spec):
    embedding, records = embedding_of(spec), make_records(300)
    moved = [squared(embedding.lattice_sum(records.take(slice(i, i + 1)))) for i in range(len(records))]
    assert max(moved) <= embedding.l2_sensitivity**2
    assert math.sqrt(max(moved)) > 0.9999 * embedding.l2_sensitivity  # not wastefully loose: every record has norm ~1


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_bound_holds_for_every_phase_there_is(spec):
    """Every record's phases are some entries of the table, so bounding all entries bounds the worst record."""
    features = CharacteristicFunction(spec, LAYOUT)
    pairs = features._cos.astype(np.int64) ** 2 + features._sin.astype(np.int64) ** 2
    assert len(pairs) == TURN
    assert int(pairs.max()) * spec.count == features.squared_norm <= 2 ** (2 * GRAIN_BITS)


@pytest.mark.parametrize("weight", [0.05, 1.0])
def test_the_joint_sensitivity_is_the_square_root_of_one_plus_the_weight_squared(weight):
    embedding = embedding_of(SPECS[-1], weight=weight)
    assert embedding.l2_sensitivity / 2**GRAIN_BITS == pytest.approx(math.sqrt(1 + weight**2), rel=1e-4)
    assert embedding_of(SPECS[-1], 3, weight).l2_sensitivity == 3 * embedding.l2_sensitivity


def test_the_sum_does_not_depend_on_the_number_of_threads():
    embedding, records = embedding_of(FrequencySpec(count=129)), make_records(1000)
    expected, threads = embedding.lattice_sum(records), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch.equal(embedding.lattice_sum(records), expected)
    finally:
        torch.set_num_threads(threads)


def test_the_features_are_the_cosine_and_sine_of_the_projection():
    spec, records = FrequencySpec(count=50), make_records(40)
    features = CharacteristicFunction(spec, LAYOUT)
    design = LAYOUT.design(records)
    x = design.numpy() / 2.0**VALUE_BITS
    angles = x @ (features.phases * (2 * math.pi / TURN))
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(spec.count)
    actual = features.lattice_features(design).numpy() / 2.0**GRAIN_BITS
    assert np.abs(actual - expected).max() < 2 * math.pi / TURN  # half a phase step, and one lattice step


def rows_of(records: Records) -> ProductRows:
    """Write records as proposed rows that are certain."""
    probabilities: list[torch.Tensor | None] = []
    values: list[torch.Tensor | None] = []
    for block in LAYOUT.blocks:
        states = torch.from_numpy(records.states[:, block.column]).long()
        probabilities.append(torch.nn.functional.one_hot(states, block.states).float() if block.one_hot else None)
        value = torch.from_numpy(records.values[:, block.column]).float()
        values.append(value if block.continuous else None)
    return ProductRows(probabilities, values)


@pytest.mark.parametrize("columns", [0, 2])
def test_the_expectation_of_certain_rows_is_the_feature_itself(columns):
    spec, records = FrequencySpec(count=50, columns_per_frequency=columns), make_records(40)
    features = CharacteristicFunction(spec, LAYOUT)
    measured = features.lattice_features(LAYOUT.design(records)).double() / 2.0**GRAIN_BITS * math.sqrt(spec.count)
    expected = features.expectation(rows_of(records), torch.arange(spec.count))
    assert torch.allclose(expected.real.double(), measured[:, :50], atol=1e-3)
    assert torch.allclose(expected.imag.double(), measured[:, 50:], atol=1e-3)


def test_the_expectation_is_the_mean_over_sampled_categories():
    features = CharacteristicFunction(FrequencySpec(count=20), LAYOUT)
    randomness = torch.Generator().manual_seed(0)
    p = [torch.softmax(torch.randn(1, b.states, generator=randomness), 1) for b in LAYOUT.blocks]
    rows = ProductRows(
        [q if b.one_hot else None for q, b in zip(p, LAYOUT.blocks, strict=True)],
        [torch.full((1,), 0.3) if b.continuous else None for b in LAYOUT.blocks],
    )
    draws, records = 40_000, make_records(1)
    states = np.zeros((draws, records.states.shape[1]), dtype=np.int32)
    values = np.zeros(states.shape)
    for q, b in zip(p, LAYOUT.blocks, strict=True):
        states[:, b.column] = torch.multinomial(q[0], draws, replacement=True, generator=randomness).numpy()
        if b.continuous:
            values[:, b.column] = np.where(states[:, b.column] == 0, 0.3, 0.0)
    sampled = features.lattice_features(LAYOUT.design(Records(states, values))).double().mean(0)
    sampled *= math.sqrt(20) / 2.0**GRAIN_BITS
    expected = features.expectation(rows, torch.arange(20))[0]
    assert torch.allclose(sampled[:20], expected.real.double(), atol=0.03)
    assert torch.allclose(sampled[20:], expected.imag.double(), atol=0.03)


def test_frequencies_come_from_the_public_seed_alone():
    one, same = (CharacteristicFunction(FrequencySpec(count=9), LAYOUT) for _ in range(2))
    other = CharacteristicFunction(FrequencySpec(count=9, seed=1), LAYOUT)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    one.check(same.fingerprint())
    with pytest.raises(ArtifactError, match="other frequencies"):
        one.check(other.fingerprint())


def test_a_layout_without_a_class_has_one_block_and_keeps_the_target():
    unconditional = Layout.of(make_schema(target="age"))
    assert (unconditional.classes, unconditional.class_column) == (1, None)
    assert len(unconditional.blocks) == len(LAYOUT.blocks) + 1
    embedding = ConditionalEmbedding(CharacteristicFunction(SPECS[0], unconditional), unconditional, 0.1, 1)
    _, counts = embedding.unpack(embedding.lattice_sum(make_records(77)).numpy())
    assert counts == pytest.approx([77.0])


def test_counts_and_coordinates_are_where_they_are_said_to_be():
    embedding, records = embedding_of(FrequencySpec(count=3)), make_records(100)
    vector = embedding.lattice_sum(records).numpy()
    _, counts = embedding.unpack(vector)
    sick = records.states[:, -1].sum()
    assert counts == pytest.approx([100 - sick, sick])
    names = embedding.coordinates()
    assert all(len(column) == embedding.dim == len(vector) for column in names.values())
    place = [i for i in range(embedding.dim) if (names["class"][i], names["part"][i]) == (1, "count")]
    assert [vector[i] / embedding.count_step for i in place] == [sick]


def test_the_unit_bounds_the_rows_that_are_summed():
    assert make_schema(unit={"user": "patient", "max_rows": 4}).unit == PrivacyUnit(user="patient", max_rows=4)


def test_a_count_weight_of_nothing_is_refused():
    with refused(InvalidArgument, name="count_weight"):
        embedding_of(SPECS[0], weight=1e-12)
