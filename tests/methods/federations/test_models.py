"""Models of every architecture, and their contrastive pre-training on public records."""

import math
from typing import get_args

import numpy as np
import pytest
import torch

from dpmodels.generators.randomness import stream
from dpmodels.methods.federations.models import Architecture, ModelSpec, build, loaded, state_of
from dpmodels.methods.federations.pretraining import PretrainingSpec, contrast, pretrain, view
from dpmodels.methods.federations.rounds import predict
from tests.kit.parties import SPEC, make_examples

ARCHITECTURES = get_args(Architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("inputs", [(1, 8, 8), (3, 32, 32)])
def test_logits_of_a_record_depend_on_it_alone(architecture, inputs):
    spec = ModelSpec(inputs=inputs, classes=7, width=8)
    model = build(architecture, spec, 0)
    rows = torch.randn(6, *inputs, generator=torch.Generator().manual_seed(0))
    assert model.extractor(rows).shape == (6, spec.features) and model(rows).shape == (6, 7)
    alone = torch.cat([model.train()(row[None]) for row in rows])
    assert torch.allclose(model.eval()(rows), alone, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_seed_makes_the_weights_and_leaves_the_global_state_alone(architecture):
    before = torch.get_rng_state()
    first, second, other = (state_of(build(architecture, SPEC, seed)) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)
    again = loaded(architecture, SPEC, other)
    assert all(torch.equal(again.state_dict()[name], other[name]) for name in other)


def test_every_architecture_has_weights_of_its_own_and_a_head_in_common():
    shapes = {
        name: {key: tuple(w.shape) for key, w in state_of(build(name, SPEC, 0)).items()} for name in ARCHITECTURES
    }
    assert {own["head.weight"] for own in shapes.values()} == {(SPEC.classes, SPEC.features)}
    assert len({tuple(sorted(own.items())) for own in shapes.values()}) == len(ARCHITECTURES)


def test_the_contrast_is_the_cross_entropy_of_finding_the_other_view():
    rows = np.random.default_rng(0).standard_normal((6, 5))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = 0.0
    for i in range(6):
        odds = [math.exp(unit[i] @ unit[j] / 0.5) for j in range(6)]
        wanted -= math.log(odds[(i + 3) % 6] / (sum(odds) - odds[i])) / 6
    assert contrast(torch.from_numpy(rows), 0.5).item() == pytest.approx(wanted)


@pytest.mark.parametrize("architecture", ["resnet8", "mlp"])
def test_pre_training_finds_views_again_and_the_seed_decides(architecture):
    rows = make_examples(120).inputs if architecture == "resnet8" else make_examples(120).inputs.flatten(1)
    spec = SPEC if architecture == "resnet8" else ModelSpec(inputs=(64,), classes=4, width=4)
    settings, losses = PretrainingSpec(steps=40, batch_size=64, mirror=False), []
    first = pretrain(architecture, spec, rows, settings, 0, lambda step, steps, loss: losses.append(loss))
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1
    short = settings.model_copy(update={"steps": 2})
    again = [pretrain(architecture, spec, rows, short, seed) for seed in (0, 0, 1)]
    assert all(torch.equal(again[0][name], again[1][name]) for name in first)
    assert any(not torch.equal(again[0][name], again[2][name]) for name in first)
    assert np.isfinite(predict(loaded(architecture, spec, first), rows)).all()


def test_views_change_images_and_keep_what_settings_keep():
    rows = make_examples(20).inputs
    still = PretrainingSpec(crop=1.0, brightness=0.0, mirror=False)
    assert torch.allclose(view(rows, still, stream(0, 0)), rows, atol=1e-5)
    assert not torch.allclose(view(rows, still.model_copy(update={"crop": 0.5}), stream(0, 0)), rows, atol=0.1)
    mirrored = view(rows, still.model_copy(update={"mirror": True}), stream(0, 0))
    both = torch.stack([(mirrored - rows).abs().amax((1, 2, 3)), (mirrored - rows.flip(3)).abs().amax((1, 2, 3))])
    assert both.min(dim=0).values.max() < 1e-4 and (both[0] > 1e-3).any() and (both[1] > 1e-3).any()


def test_a_tables_view_takes_columns_of_other_records():
    rows = torch.arange(4000.0).view(1000, 4)
    seen = view(rows, PretrainingSpec(columns=0.4), stream(0, 0))
    changed = seen != rows
    assert (seen % 4 == rows % 4).all() and 0.35 < changed.float().mean() < 0.45
