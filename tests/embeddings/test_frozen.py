"""Frozen features: bounded, a function of one record alone, and the same under the hash that names them."""

import numpy as np
import torch

from dpmodels.embeddings import frozen
from dpmodels.embeddings.frozen import FrozenFeatures, digest_of, transform_frozen
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import Z_BITS
from tests.kit.parties import FEATURES, SPEC, make_examples, make_features


def norms(z: np.ndarray) -> np.ndarray:
    return (z.astype(object) ** 2).sum(axis=1)


def test_whatever_a_record_holds_its_norm_is_bounded():
    inputs = make_examples(30).inputs.clone()
    inputs[0], inputs[1], inputs[2], inputs[3] = torch.nan, torch.inf, 1e30, 0
    z = make_features().whole(inputs)
    assert z.shape == (30, FEATURES) and max(norms(z)) <= 4**Z_BITS
    assert not z[0].any()


def test_neither_neighbors_nor_the_place_of_a_record_change_its_bits():
    features, inputs = make_features(), make_examples(150).inputs
    whole = features.whole(inputs)
    for rows in (torch.arange(149, -1, -1), torch.arange(3, 80), torch.tensor([149])):
        assert np.array_equal(features.whole(inputs[rows]), whole[rows.numpy()])
    hostile = inputs.clone()
    hostile[::2] = torch.nan
    assert np.array_equal(features.whole(hostile)[1::2], whole[1::2])


def test_a_network_that_looks_at_other_records_gets_one_at_a_time():
    class Centered(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(dim=0)).flatten(1) + x.flatten(1).sum(dim=1, keepdim=True)

    features = FrozenFeatures(Centered(), np.zeros(64), np.eye(64), 100.0)
    inputs = make_examples(70).inputs
    assert np.array_equal(features.whole(inputs)[5:6], features.whole(inputs[5:6]))


def test_the_hash_names_weights_and_map():
    features = make_features()
    assert features.sha256 == make_features().sha256 != make_features(seed=1).sha256
    wider = FrozenFeatures(features.network, features.mean, features.turn, features.radius * 2)
    assert wider.sha256 != features.sha256
    z = np.arange(6).reshape(2, 3)
    assert digest_of(z) != digest_of(z.reshape(3, 2))


def test_points_carry_the_labels_and_no_record_makes_no_point():
    own = make_examples(9)
    (points,) = transform_frozen(make_features(), Sensitive(own)).reveal()
    assert np.array_equal(points.label, own.labels.numpy())
    assert make_features().whole(own.inputs[:0]).shape == (0, FEATURES)
    assert frozen.BLOCK > 1 and SPEC.features >= FEATURES
