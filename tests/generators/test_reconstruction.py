import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, FrequencySpec
from dpmodels.errors import ArtifactError, FileDamaged, InvalidArgument
from dpmodels.generators.critic import FrequencyCritic
from dpmodels.generators.load import load_generator
from dpmodels.generators.networks import NetworkSpec, TabularGenerator
from dpmodels.generators.reconstruction import Reconstruction, Target, TrainingSpec
from dpmodels.methods.registry import METHODS
from tests.kit.dying import die_after_a_checkpoint
from tests.kit.errors import refused
from tests.kit.mixtures import network
from tests.kit.support import make_records, make_schema

LAYOUT = Layout.of(make_schema())
FEATURES = CharacteristicFunction(FrequencySpec(count=48), LAYOUT)
SPEC = TrainingSpec(
    steps=9, batch_size=32, frequencies_per_step=16, checkpoint_every=4, network=NetworkSpec(hidden_dim=16)
)


def target(noise: float = 0.0) -> Target:
    records = make_records(400)
    features = FEATURES.lattice_features(LAYOUT.design(records)).double() * 48**0.5 / 2**24
    classes = torch.from_numpy(records.labels(LAYOUT.class_column))
    mean = torch.stack([features[classes == label].mean(0) for label in (0, 1)])
    return Target(torch.complex(mean[:, :48], mean[:, 48:]).to(torch.complex64), torch.full((2,), noise))


def training(spec: TrainingSpec = SPEC) -> Reconstruction:
    return Reconstruction(
        FEATURES, target(), spec, lambda: TabularGenerator(spec.network, LAYOUT), seed=5, device="cpu"
    )


def test_a_resumed_training_ends_where_an_uninterrupted_one_does(tmp_path, monkeypatch):
    straight, broken = training().run(tmp_path / "a.safetensors"), training()
    die_after_a_checkpoint(broken, tmp_path / "b.safetensors", monkeypatch)
    assert broken.step == 4
    resumed = training().run(tmp_path / "b.safetensors")
    for (name, a), b in zip(straight.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    training().run(path)
    with pytest.raises(ArtifactError, match="another spec"):
        training(SPEC.model_copy(update={"steps": 10})).run(path)
    path.write_bytes(path.read_bytes()[:100])
    with refused(FileDamaged, file="checkpoint c.safetensors"):
        training().run(path)


def test_training_lowers_the_distance_to_the_release(tmp_path):
    losses: list[float] = []
    spec = SPEC.model_copy(update={"steps": 200, "batch_size": 256, "critic": False})
    training(spec).run(tmp_path / "d.safetensors", lambda step, steps, loss: losses.append(loss))
    assert losses[-1] < 0.3 * losses[0]


def test_training_touches_no_global_randomness(tmp_path):
    before = torch.get_rng_state()
    training().run(tmp_path / "e.safetensors")
    assert torch.equal(before, torch.get_rng_state())


def test_the_loss_is_unbiased_in_the_batch_size():
    """A perfect generator has expected loss 0 however small the batch; the plug-in loss would not."""
    loop = training(SPEC.model_copy(update={"batch_size": 8}))
    loop.generator.eval()  # with fixed statistics the two half batches are independent
    index = torch.arange(48)
    with torch.no_grad():
        z = torch.randn(20_000, SPEC.network.latent_dim, generator=torch.Generator().manual_seed(1))
        own = [FEATURES.expectation(loop.generator(z, torch.full((20_000,), c)), index).mean(0) for c in (0, 1)]
        loop.target = Target(torch.stack(own), torch.zeros(2))
        draws = torch.stack([loop._residuals(index, torch.Generator().manual_seed(s)).mean() for s in range(600)])
    assert abs(draws.mean()) < 4 * draws.std() / 600**0.5 + 1e-4


def test_the_critic_finds_the_frequencies_that_differ_and_stays_within_its_cap():
    relative = torch.randn(5, 400, generator=torch.Generator().manual_seed(0))
    critic = FrequencyCritic(relative, max_divergence=0.5)
    index = torch.arange(400)
    assert torch.allclose(critic(index), torch.ones(400))
    residual = relative[0].abs()  # only large frequencies of the first coordinate tell the two apart
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.05, maximize=True)
    for _ in range(200):
        optimizer.zero_grad()
        (critic(index) @ residual).backward()
        optimizer.step()
    weights = critic(index).detach()
    assert weights.mean() == pytest.approx(1.0, abs=1e-5)
    assert weights @ residual > 1.1 * residual.sum()
    assert weights.log().var(correction=0) <= 0.5 * 1.01
    assert critic.log_sigma[0] == critic.log_sigma.max()


def test_sampling_is_seeded_and_follows_the_released_counts():
    first, again, other = ([*network().sample(20_000, seed)] for seed in (1, 1, 2))
    assert sum(map(len, first)) == 20_000
    assert all(np.array_equal(a.states, b.states) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0].states, other[0].states)
    assert all((batch.states[:, -1] == 0).all() for batch in first)  # a negative noisy count is a share of 0
    assert network().default_rows() == 25


def test_categories_are_sampled_not_the_most_likely_one():
    (batch,) = network().sample(5000, 0)
    ward = np.bincount(batch.states[:, 1], minlength=3)
    assert (ward > 200).all()


def test_a_model_survives_its_file_and_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    network().save(path)
    (a,), (b,) = network().sample(100, 1), load_generator(path).sample(100, 1)
    assert np.array_equal(a.states, b.states) and np.array_equal(a.values, b.values)
    path.write_bytes(b"not a generator")
    with refused(FileDamaged, file="generator m.safetensors"):
        load_generator(path)


def test_zero_rows_are_refused():
    with refused(InvalidArgument, name="rows", value=0):
        next(network().sample(0, 1))


def test_sizes_that_a_header_states_take_no_memory(tmp_path: Path) -> None:
    """Whoever trained it writes the header; a kilobyte of it may not be a network of gigabytes."""
    from safetensors.torch import save_file

    sizes = {"latent_dim": 8192, "hidden_dim": 8192}
    facts = {"kind": "network", "schema": make_schema().model_dump(mode="json"), "network": sizes}
    save_file({"class_counts": torch.zeros(2)}, tmp_path / "g", metadata={"nacre": json.dumps(facts)})
    with refused(FileDamaged, file="generator g") as refusal:
        load_generator(tmp_path / "g", make_schema())
    assert "other sizes" in str(refusal.value.__cause__)
    with pytest.raises(ArtifactError, match="of a kind that the run's method does not make"):
        load_generator(tmp_path / "g", make_schema(), METHODS["nacre"].generators)
    with pytest.raises(ValidationError):
        NetworkSpec(hidden_dim=8193)
