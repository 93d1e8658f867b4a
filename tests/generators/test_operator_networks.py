"""Networks that an operator brings: who names them, what is refused, and what a plan binds."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dpmodels.audit.made import pictures
from dpmodels.contract.schema import Schema
from dpmodels.errors import ArtifactError, InvalidArgument, NacreError, Unsuitable
from dpmodels.generators.load import load_generator
from dpmodels.generators.operators.network import OperatorNetwork, bound
from dpmodels.methods.registry import create, system_of
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.draw import check_line
from dpmodels.releases.system import Craft
from tests.kit import support
from tests.kit.operator_networks import listing
from tests.kit.support import make_records, make_schema

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
SGD = {"steps": 4, "sampling_probability": 0.2}
GAN = {"latent": 4, "hidden": 16, "critic_steps": 2, "generator_batch": 8}
VAE = {"hidden": 8, "imitation_steps": 20, "draws": 2}
METHODS = {
    "dp-gan": {"sgd": SGD, "gan": GAN},
    "dpkg": {
        "clusters": 2,
        "iterations": 1,
        "sgd": {**SGD, "groups": "layers-biases", "bounds": "quantile"},
        "gan": GAN,
    },
    "dp-vae": {"latent": 4, "sgd": SGD, "vae": VAE},
    "dp-gm": {"latent": 4, "clusters": 2, "iterations": 1, "sgd": SGD, "vae": VAE},
    "p3gm": {"directions": 4, "sgd": SGD, "vae": VAE},
}
DATA = {"table": (make_schema(), make_records), "images": (pictures.make_schema(), pictures.make_records)}


def with_network(method: str, alias: str, **changes: object):
    part = "critic" if "gan" in METHODS[method] else "decoder"
    return create(method, {**METHODS[method], part: alias, **changes}, {})


@pytest.fixture
def own(tmp_path: Path, monkeypatch) -> Path:
    """Return the module of an operator, with a class ``Net``."""
    module = tmp_path / "brought_by_operator.py"
    module.write_text("from tests.kit.operator_networks import Layers\n\n\nclass Net(Layers):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return module


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize(
    ("method", "alias"),
    [
        ("dp-gan", "convolution"),
        ("dpkg", "recurrent"),
        ("dp-gan", "layers"),
        ("dp-gan", "attention"),
        ("dp-vae", "recurrent"),
        ("dp-gm", "convolution"),
        ("p3gm", "convolution"),
        ("p3gm", "layers"),
    ],
)
@pytest.mark.nightly_if(
    "dp-gan-convolution-table",
    "dp-vae-recurrent-images",
    "dp-gm-convolution-images",
    "dp-gan-layers-*",
    "dp-gan-attention-images",
    "dp-vae-*-table",
    "dp-gm-*-table",
    "p3gm-layers-*",
    "dpkg-*-table",
    "p3gm-convolution-table",
)
def test_it_is_planned_charged_once_trained_saved_and_sampled(tmp_path, method, alias, kind):
    schema, make = DATA[kind]
    with listing():
        system = with_network(method, alias)
        line = system.plan(schema, BUDGET)
        release, ledger = support.measured(system, tmp_path / "run", line, make(150))
        assert [entry.kind for entry in ledger.entries()] == ["open", "reserve", "draw", "seal", "commit"]
        model = system.fit(release, Craft())
        model.save(tmp_path / "model")
        first, again = (next(iter(m.sample(40, seed=1))) for m in (model, load_generator(tmp_path / "model")))
    assert (first.states == again.states).all() and len(first.states) == 40
    plain = create(method, METHODS[method], {}).plan(schema, BUDGET)
    assert line.event == plain.event and line.hash != plain.hash


def fitted(folder: Path, method: str):
    """Return a method with a convolution, its release, and where its model was saved."""
    with listing():
        system = with_network(method, "convolution")
        release, _ = support.measured(system, folder / "run", system.plan(make_schema(), BUDGET), make_records(150))
        system.fit(release, Craft()).save(folder / "model")
    return system, release, folder / "model"


def test_a_gan_is_fitted_and_sampled_where_nobody_has_its_critic(tmp_path):
    system, release, model = fitted(tmp_path, "dp-gan")
    system.fit(release, Craft())
    assert len(next(iter(load_generator(model).sample(9, seed=1))).states) == 9


@pytest.mark.parametrize("what", ["release", "model"])
def test_a_decoder_is_asked_for_where_it_is_fitted_or_sampled(tmp_path, what, own):
    system, release, model = fitted(tmp_path, "dp-vae")

    def call() -> object:
        return system.of(release.value.line) and (
            system.fit(release, Craft()) if what == "release" else load_generator(model)
        )

    with pytest.raises(InvalidArgument) as error:
        call()
    assert (error.value.name, error.value.value) == ("network", "convolution")
    if what == "model":
        with listing(convolution="brought_by_operator:Net"), pytest.raises(ArtifactError, match="another source"):
            call()


@pytest.mark.parametrize(
    ("alias", "words"),
    {
        "normalized": "BatchNorm1d, which Opacus refuses; use GroupNorm or LayerNorm",
        "lstm": "LSTM, which Opacus refuses; use DPLSTM of opacus.layers",
        "centered": "mixes records: its output",
        "centered-when-large": "mixes records: its output",
        "running": "remembers the records",
        "remembering": "remembers the records",
        "drawing": "draws at random",
        "secret": "gradient by record cannot be told",
        "beside": "gradient by record cannot be told",
        "unused": "weights that its output does not use",
        "bare": "weights beside its layers",
        "dropped": "has dropout",
        "wide": r"return \[records, 1\] of float32",
        "failing": r"fails on public random records \(RuntimeError: no such layer\)",
    }.items(),
)
def test_a_network_that_does_not_treat_each_record_by_itself_is_refused_before_a_plan(alias, words):
    with listing(), pytest.raises(Unsuitable, match=words):
        with_network("dp-gan", alias).plan(make_schema(), BUDGET)


@pytest.mark.parametrize("name", ["os:system", "tests.kit.operator_networks:Layers", "a/b", "", "a" * 65, 3, "ümlaut"])
def test_a_configuration_names_no_code(name):
    with listing(), pytest.raises(InvalidArgument) as error:
        with_network("dp-gan", name)
    assert error.value.name.startswith("critic")


def test_what_the_file_does_not_list_is_refused_and_a_slip_is_named():
    with listing(), pytest.raises(InvalidArgument) as error:
        with_network("dp-gan", "recurent").plan(make_schema(), BUDGET)
    assert (error.value.name, error.value.value) == ("network", "recurent")
    assert error.value.rule.endswith("did you mean `recurrent`?")
    with pytest.raises(InvalidArgument) as error:
        with_network("dp-gan", "recurrent").plan(make_schema(), BUDGET)
    assert "NACRE_NETWORKS" in error.value.rule


def test_a_plan_holds_the_alias_and_the_digest_and_a_changed_source_is_refused_before_a_draw(tmp_path, own):
    with listing(mine="brought_by_operator:Net"):
        system = with_network("dp-gan", "mine")
        line = system.plan(make_schema(), BUDGET)
        assert line.measurement["critic"] == bound(OperatorNetwork(alias="mine")).model_dump()
        again = create("dp-gan", line.measurement, {})
        check_line(again, line)
        own.write_text(own.read_text() + "\n# the same class, by another source\n")
        with pytest.raises(ArtifactError, match="another source here than in the plan"):
            check_line(again, line)
        changed = system.plan(make_schema(), BUDGET)
        assert changed.measurement["critic"]["sha256"] != line.measurement["critic"]["sha256"]
        assert changed.hash != line.hash


def test_what_runs_is_the_source_that_was_hashed_whatever_was_imported_before(own):
    import brought_by_operator

    from dpmodels.generators.operators.network import class_of

    own.write_text("class Net:\n    mark = 2\n")
    with listing(mine="brought_by_operator:Net"):
        assert class_of(bound(OperatorNetwork(alias="mine"))).mark == 2
    assert not hasattr(brought_by_operator.Net, "mark")
    sys.modules.pop("brought_by_operator")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module:Net", "cannot be loaded"),
        ("brought_by_operator:Other", "cannot be loaded .KeyError"),
        ("math:cos", "cannot be loaded"),
        ("brought_by_operator:number", "fails on public random records|no torch.nn.Module"),
    ],
)
def test_a_line_of_the_file_that_leads_nowhere_is_named(own, target, words):
    own.write_text("def number(**_):\n    return 1\n")
    with listing(mine=target), pytest.raises(NacreError, match=words):
        with_network("dp-gan", "mine").plan(make_schema(), BUDGET)


def test_first_weights_are_those_of_the_public_seed_and_nothing_else_is_seeded():
    import torch

    with listing():
        system = with_network("dp-vae", "convolution")
        design = system.of(system.plan(make_schema(), BUDGET))
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        from dpmodels.generators.operators.modules import OperatorModule

        one, two = (OperatorModule(*design.operator) for _ in range(2))
        assert torch.equal(before, torch.random.get_rng_state())
        other = OperatorModule(*design.operator._replace(seed=1))
    pairs = list(zip(one.parameters(), two.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs) and not all(torch.equal(a, c) for a, _, c in pairs)


def test_a_penalty_on_the_slope_is_refused_and_so_is_a_missing_opacus(monkeypatch):
    with listing(), pytest.raises(Unsuitable, match=r"set gan\.penalty to 0"):
        with_network("dp-gan", "layers", gan={**GAN, "penalty": 1.0}).plan(make_schema(), BUDGET)
    monkeypatch.setattr("dpmodels.late.find_spec", lambda name: None if name == "opacus" else find_spec(name))
    with listing(), pytest.raises(NacreError, match=r"pip install 'nacre\[opacus\]'"):
        with_network("dp-gan", "layers").plan(make_schema(), BUDGET)


def test_a_plan_without_a_network_is_the_plan_that_it_was():
    for method, settings in METHODS.items():
        measurement = system_of(method, settings).plan(make_schema(), BUDGET).measurement
        assert not {"critic", "decoder"} & measurement.keys(), method
    assert isinstance(DATA["images"][0], Schema)
