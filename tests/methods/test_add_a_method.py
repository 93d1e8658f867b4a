"""The method of docs/add-a-method.md, taken from the page as it is: one file, and one line in the registry."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from dpmodels.methods.registry import METHODS, Method
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from tests.kit.support import make_records, make_schema, measured, run_cli, synthesize_words, write_clinic

PAGE = Path(__file__).parents[2] / "docs" / "add-a-method.md"


@pytest.fixture
def independent(monkeypatch) -> type:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    module = ModuleType("independent")
    monkeypatch.setitem(sys.modules, "independent", module)
    exec(compile(source, str(PAGE), "exec"), module.__dict__)
    line = Method(module.Independent, module.CellSettings, module.NoSettings, generators={"mixture"})
    monkeypatch.setitem(METHODS, "independent", line)
    return module.Independent


def test_the_method_of_the_page_goes_from_a_file_to_a_verified_hand_off(tmp_path, independent):
    write_clinic(tmp_path)
    (tmp_path / "config.yaml").write_text("{}")
    code, _, err = run_cli(*synthesize_words(tmp_path, method="independent"))
    assert code == 0, err
    assert run_cli("verify", tmp_path / "out")[0] == 3
    assert run_cli("ledger", "verify", "--home", tmp_path / "home")[0] == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"] == "independent" and 0.99 < float(manifest["spent"]["epsilon"]) <= 1
    assert pq.read_table(tmp_path / "out" / "synthetic").num_rows > 0


def test_it_learns_what_it_measures(tmp_path, independent):
    plan = independent().plan(make_schema(), PrivacyBudget(epsilon=50, delta=1e-5))
    records = make_records(5000)
    release, _ = measured(independent(), tmp_path / "run", plan, records)
    model = independent().fit(release, Craft())
    made = next(model.sample(5000, 1))
    assert abs(made.states.mean(axis=0) - records.states.mean(axis=0)).max() < 0.05
