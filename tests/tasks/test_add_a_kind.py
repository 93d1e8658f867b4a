"""The kind of docs/add-a-kind.md, taken from the page as it is: one module, and a line for it and for its method."""

import csv
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.methods.kinds import KINDS, Kind
from dpmodels.methods.registry import METHODS, Method
from dpmodels.methods.tables.moments import MomentsMeasurement
from tests.kit.support import run_cli, synthesize_words, write_clinic, write_key

PAGE = Path(__file__).parents[2] / "docs" / "add-a-kind.md"


@pytest.fixture
def counts(monkeypatch) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    module = ModuleType("tasks.kinds.counts")
    monkeypatch.setitem(sys.modules, "tasks.kinds.counts", module)
    exec(compile(source, str(PAGE), "exec"), module.__dict__)
    (lines,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {"Kind": Kind, "Method": Method, "MomentsMeasurement": MomentsMeasurement, "MixtureSpec": MixtureSpec}
    kind, method = (eval(f"{{{line}}}", names | module.__dict__)["counts"] for line in lines.splitlines())
    monkeypatch.setitem(KINDS, "counts", kind)
    monkeypatch.setitem(METHODS, "counts", method)


def test_the_kind_of_the_page_goes_from_a_file_to_a_verified_hand_off(tmp_path, counts):
    write_clinic(tmp_path)
    (tmp_path / "config.yaml").write_text("{}")
    key, public_key = write_key(tmp_path / "sign.pem")
    words = synthesize_words(tmp_path, method="counts")
    code, out, err = run_cli("plan", *words[1:])
    assert code == 0 and "method: counts" in out, err
    code, _, err = run_cli(*words, "--signing-key", key)
    assert code == 0, err
    code, out, _ = run_cli("verify", tmp_path / "out", "--public-key", public_key)
    assert code == 0 and "VERIFIED" in out
    assert run_cli("ledger", "verify", "--home", tmp_path / "home")[0] == 0
    header, *rows = csv.reader((tmp_path / "out" / "counts.csv").read_text().splitlines())
    assert header[0] == "column" and len(rows) > 3
    assert not (tmp_path / "out" / "synthetic").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "noisy counts of every column" in page and rows[0][2] in page
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert 0.99 < float(manifest["spent"]["epsilon"]) <= 1


def test_a_file_of_another_kind_among_them_is_a_fault(tmp_path, counts, monkeypatch):
    write_clinic(tmp_path)
    (tmp_path / "config.yaml").write_text("{}")
    assert run_cli(*synthesize_words(tmp_path, method="counts"))[0] == 0
    monkeypatch.delitem(KINDS, "counts")
    code, out, err = run_cli("verify", tmp_path / "out")
    assert code == 1 and "counts.csv is no file that nacre hands over" in out + err
