"""The parts of a VAE: the divergence of a mixture, the likelihood of a head, and the start of a decoder."""

import numpy as np
import pytest
import torch

from dpmodels.audit.made import pictures
from dpmodels.codec.encode import Records
from dpmodels.embeddings.image_moments import BASIS_BITS
from dpmodels.embeddings.vectors import SCALE_BINS, Vectors, clip, transform_scales, transform_vectors
from dpmodels.generators.heads import CellHead, ValueHead, head_of
from dpmodels.generators.vae import Decoder, Prior, VaeSpec, imitate
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import Z_BITS
from tests.kit.support import make_records, make_schema

R = 1 << Z_BITS


def randomness(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mixture() -> Prior:
    means = torch.tensor([[[0.0, 0.0], [3.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
    covariances = torch.tensor([[1.0, 0.3], [0.3, 0.5]]).expand(2, 2, 2, 2)
    return Prior(torch.tensor([[0.25, 0.75], [0.5, 0.5]]), means, covariances)


def test_the_divergence_of_one_component_is_that_of_two_gaussians():
    prior, y = mixture(), torch.tensor([1])
    mean, log_variance = torch.tensor([[0.2, -0.4]]), torch.tensor([[-1.0, 0.3]])
    q = torch.distributions.MultivariateNormal(mean[0], torch.diag(log_variance.exp()[0]))
    p = torch.distributions.MultivariateNormal(prior.means[1, 0], torch.tensor([[1.0, 0.3], [0.3, 0.5]]))
    wanted = torch.distributions.kl_divergence(q, p)
    assert torch.allclose(prior.divergence(mean, log_variance, y), wanted, atol=1e-5)


def test_the_divergence_of_a_mixture_is_equation_six():
    prior, y = mixture(), torch.tensor([0])
    mean, log_variance = torch.tensor([[1.0, 0.1]]), torch.tensor([[-0.5, -0.2]])
    q = torch.distributions.MultivariateNormal(mean[0], torch.diag(log_variance.exp()[0]))
    covariance = torch.tensor([[1.0, 0.3], [0.3, 0.5]])
    each = [
        torch.distributions.kl_divergence(q, torch.distributions.MultivariateNormal(m, covariance))
        for m in prior.means[0]
    ]
    wanted = -torch.log(0.25 * torch.exp(-each[0]) + 0.75 * torch.exp(-each[1]))
    assert torch.allclose(prior.divergence(mean, log_variance, y), wanted, atol=1e-5)


def test_the_prior_is_sampled_as_the_mixture_it_is():
    z = mixture().sample(torch.zeros(20000, dtype=torch.int64), randomness())
    assert abs(float((z[:, 0] > 1.5).float().mean()) - 0.75 * 0.933 - 0.25 * 0.067) < 0.02
    z = mixture().sample(torch.ones(20000, dtype=torch.int64), randomness())
    assert np.allclose(np.cov(z.T.numpy()), [[1.0, 0.3], [0.3, 0.5]], atol=0.04)


@pytest.mark.parametrize("numbers", ["cells", "values"])
def test_a_head_prefers_the_record_it_decodes_to_and_draws_records_of_the_schema(numbers):
    vectors = Vectors(make_schema(), 16, 0.4, numbers)
    rows = transform_vectors(vectors, Sensitive([make_records(50)])).reveal()
    head = head_of(vectors)
    assert isinstance(head, CellHead if numbers == "cells" else ValueHead)
    out = torch.zeros(50, head.outputs)
    if isinstance(head, CellHead):
        starts = torch.tensor([0, *np.cumsum(head.sizes)[:-1]])
        out.scatter_(1, rows.target + starts, 20.0)
    else:
        out = 20 * torch.from_numpy(rows.design)
        out[:, head.value_columns] /= 20
    own = head.loss(out[:, None], rows.target)[:, 0]
    other = head.loss(out[:, None], rows.target.roll(1, 0))[:, 0]
    assert float(own.max()) < 0.1 and float(other.mean()) > 5
    drawn = head.draw(out, torch.from_numpy(rows.label), randomness())
    assert isinstance(drawn, Records)
    assert np.array_equal(drawn.states, make_records(50).states)


def test_no_record_or_image_has_a_vector_beyond_the_bound():
    for vectors, records in (
        (Vectors(make_schema(), 16, 0.4, "cells"), make_records(200)),
        (Vectors(make_schema(), 16, 0.4, "values"), make_records(200)),
        (Vectors(pictures.make_schema(), 16, 0.1), pictures.make_records(100)),
    ):
        design = transform_vectors(vectors, Sensitive([records])).reveal().design
        for scales in (np.ones(vectors.dim), np.full(vectors.dim, 0.01)):
            norms = (vectors.bounded(design, scales).astype(object) ** 2).sum(axis=1)
            assert max(norms) <= R**2
    assert max((clip(np.array([[3e5, 4e5], [0.3, 0.4]]), 0.5).astype(object) ** 2).sum(axis=1)) <= R**2


def test_images_are_turned_exactly_so_that_no_vector_depends_on_those_beside_it():
    vectors, records = Vectors(pictures.make_schema(), 16, 0.1), pictures.make_records(300)
    turned = vectors._turned(vectors.design(records).astype(np.float32), np.ones(vectors.dim))
    whole = records.pixels.astype(np.int64) @ np.ldexp(vectors.basis, BASIS_BITS).astype(np.int64)
    assert np.array_equal(turned, np.ldexp(whole, -BASIS_BITS) / 255)


def test_one_record_moves_the_histograms_of_scale_by_one_bin_a_column():
    vectors, records = Vectors(make_schema(), 16, 0.4, "values"), make_records(100)
    counts = [
        transform_scales(transform_vectors(vectors, Sensitive([records.take(slice(0, n))])), vectors).reveal()
        for n in (99, 100)
    ]
    moved = counts[1] - counts[0]
    assert moved.sum() == (moved > 0).sum() == vectors.values.sum()
    assert float(np.linalg.norm(moved)) <= vectors.scale_sensitivity
    assert len(moved) == vectors.scale_dim


def test_the_scale_covers_the_bulk_of_a_column():
    vectors = Vectors(make_schema(), 16, 0.4, "values")
    histograms = np.zeros((int(vectors.values.sum()), SCALE_BINS), dtype=np.int64)
    histograms[:, 0], histograms[:, 6] = 20, 80  # four fifths lie between 1/16 sqrt(1/2) and 1/16 of the middle
    scales = vectors.scales(histograms.ravel())
    assert np.allclose(scales[vectors.values], 1 / 16) and (scales[~vectors.values] == 1).all()


def test_a_decoder_learns_to_imitate_before_it_sees_data():
    prior, decoder, spec = Prior.standard(1, 2), Decoder(2, 1, 3, 16), VaeSpec(imitation_steps=300)
    decoder.start(0)

    def log_shares(z):
        return torch.log_softmax(torch.stack([2 * z[:, 0], z[:, 1], 0 * z[:, 0]], dim=1), dim=1)

    imitate(decoder, prior, [3], log_shares, spec)
    z, y = prior.sample(torch.zeros(500, dtype=torch.int64), randomness(9)), torch.zeros(500, dtype=torch.int64)
    assert float((decoder(z, y).detach().softmax(1) - log_shares(z).exp()).abs().mean()) < 0.03
