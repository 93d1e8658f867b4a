"""A network of the operator's, from the worker's file to a verified hand-off; and what no flow run can choose."""

import json
from pathlib import Path

import pytest
import yaml

from dpmodels.audit.made import pictures
from dpmodels.errors import InvalidArgument, ParameterRefused
from dpmodels.generators.operators import network as operator_network
from dpmodels.ledger.ledger import Ledger
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from flows.with_prefect.allowance import Rule, permitted
from tasks.run.networks import listed
from tests.kit.support import make_schema, run_cli, synthesize_words, write_clinic

SOURCE = "from tests.kit.operator_networks import Convolution\n\n\nclass Net(Convolution):\n    pass\n"
SETTINGS = {
    "dp-gan": {"critic": "mine", "gan": {"latent": 4, "hidden": 16, "critic_steps": 2}},
    "p3gm": {"decoder": "mine", "directions": 4, "vae": {"hidden": 8, "imitation_steps": 10}},
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch) -> Path:
    """Return the operator's module, which the worker's file lists as ``mine``."""
    module, file = tmp_path / "networks_of_the_operator.py", tmp_path / "networks.yaml"
    module.write_text(SOURCE)
    file.write_text("mine: networks_of_the_operator:Net\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NACRE_NETWORKS", str(file))
    return module


def words(folder: Path, method: str, **changes: object) -> list[object]:
    """Write a table and a configuration; return the words that synthesize it."""
    write_clinic(folder, 150)
    measurement = {**SETTINGS[method], "sgd": {"steps": 6, "sampling_probability": 0.2}, **changes}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": {"method": method, "measurement": measurement}}))
    return synthesize_words(folder)


@pytest.mark.parametrize("method", SETTINGS)
@pytest.mark.nightly_if("dp-gan")
def test_it_is_planned_run_and_verified_and_the_manifest_binds_its_source(tmp_path, module, method, monkeypatch):
    line = words(tmp_path, method)
    code, out, err = run_cli("plan", *[word for word in line[1:] if word != "--no-prefect"])
    assert code == 0, err
    assert not (tmp_path / "home" / "ledger.sqlite").exists()
    code, _, err = run_cli(*line)
    assert code == 0, err
    monkeypatch.delenv("NACRE_NETWORKS")  # a recipient has no code
    code, out, err = run_cli("verify", tmp_path / "out")
    assert code == 3 and "budget: epsilon=" in out and "signature: none" in out, out + err  # nothing else is amiss
    (plan,) = (tmp_path / "home" / "control").rglob("plan.json")
    measurement = json.loads(plan.read_text())["lines"][0]["measurement"]
    (network,) = (measurement[key] for key in ("critic", "decoder") if key in measurement)
    assert network["alias"] == "mine" and len(network["sha256"]) == 64
    assert "networks_of_the_operator" not in "".join(
        path.read_text(errors="ignore") for path in (tmp_path / "out").rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("schema", [make_schema(), pictures.make_schema()], ids=["table", "images"])
@pytest.mark.nightly_if("images")  # beside a table
def test_the_class_of_the_page_is_planned(module, monkeypatch, schema):
    page = (Path(__file__).parents[2] / "docs" / "operator-networks.md").read_text()
    module.write_text(page.partition("```python\n")[2].partition("```")[0])
    monkeypatch.setattr(operator_network, "listing", lambda: {"page": f"{module.stem}:ConvCritic"})
    line = create("dp-gan", {"critic": "page"}, {}).plan(schema, PrivacyBudget(epsilon=1.0, delta=1e-5))
    assert line.measurement["critic"]["alias"] == "page"


def test_a_run_that_was_cut_off_goes_on_with_the_same_source_alone(tmp_path, module, monkeypatch):
    def cut(self, rows, real=DpSgd.train):
        for step in real(self, rows):
            yield step
            if step == 5:
                raise RuntimeError("cut off")

    line = words(tmp_path, "dp-gan")
    with monkeypatch.context() as patch:
        patch.setattr(DpSgd, "train", cut)
        assert run_cli(*line)[0] == 1
    (run,) = (path.parent.name for path in (tmp_path / "home" / "control").rglob("plan.json"))
    ledger = tmp_path / "home" / "ledger.sqlite"
    kinds = [entry.kind for entry in Ledger(ledger).entries()]
    assert kinds == ["open", "reserve", "draw"]
    module.write_text(SOURCE + "# another source\n")
    code, _, err = run_cli("resume", run, "--home", tmp_path / "home", "--no-prefect")
    assert code == 1 and "another source here than in the plan" in " ".join(err.split())
    assert "Traceback" not in err and [entry.kind for entry in Ledger(ledger).entries()] == kinds
    module.write_text(SOURCE)
    assert run_cli("resume", run, "--home", tmp_path / "home", "--no-prefect")[0] == 0
    assert [entry.kind for entry in Ledger(ledger).entries()] == [*kinds, "draw", "seal", "commit"]


@pytest.mark.parametrize("name", ["os:system", "networks_of_the_operator:Net", "networks_of_the_operator", "yours"])
def test_a_configuration_that_names_code_or_an_unlisted_alias_is_refused_and_nothing_is_spent(tmp_path, module, name):
    code, _, err = run_cli(*words(tmp_path, "dp-gan", critic=name))
    assert code == 1 and "NACRE_NETWORKS" in err and "Traceback" not in err
    assert not list((tmp_path / "home").rglob("plan.json"))


def test_a_flow_run_chooses_among_the_aliases_that_its_deployment_frees(tmp_path):
    name = "config.model.measurement.critic"
    fixed = {"config": {"model": {"method": "dp-gan", "measurement": {"critic": "mine"}}}}

    def critic(value: object, rules: dict[str, Rule]) -> object:
        asked = {"config": {"model": {"measurement": {"critic": value}}}}
        return permitted(fixed, rules, asked, tmp_path)["config"]["model"]["measurement"]["critic"]

    rules = {name: Rule(one_of=("mine", "ours"))}
    assert critic("ours", rules) == "ours"
    for value in ("os:system", "theirs", {"alias": "mine", "sha256": "0" * 64}):
        for allowed in ({}, rules):
            with pytest.raises(ParameterRefused):
                critic(value, allowed)


@pytest.mark.parametrize(
    "content", ["- mine\n", "mine: [os, system]\n", "mine: os\n", "mine: os:system()\n", "mine: a b:C\n", "mine: {\n"]
)
def test_a_file_that_names_no_classes_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setenv("NACRE_NETWORKS", str(tmp_path / "networks.yaml"))
    with pytest.raises(InvalidArgument) as missing:
        listed()
    (tmp_path / "networks.yaml").write_text(content)
    with pytest.raises(InvalidArgument) as error:
        listed()
    assert missing.value.name == error.value.name == "NACRE_NETWORKS"
    monkeypatch.delenv("NACRE_NETWORKS")
    assert listed() == {}
