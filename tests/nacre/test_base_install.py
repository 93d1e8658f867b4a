"""What ``pip install nacre`` alone can do, and how it says what it cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpmodels.late import EXTRAS
from dpmodels.methods.registry import of_kind
from tests.kit.support import write_clinic
from tests.kit.wheels import ROOT
from tests.nacre.base_install import base_installation
from tests.releases.make_golden import GOLDEN

pytestmark = pytest.mark.processes

LATE = set(EXTRAS) - {"pandas"}  # which pyarrow imports by itself, where there is one
CAP = ("--epsilon", 3, "--delta", 1e-5)
PLAN = ("--target-epsilon", 1, "--delta", 1e-5, "--out", "out", "--home", "home", "--schema", "clinic.yaml")

ONE_AFTER_ANOTHER = f"""
import ast, importlib, sys
app = importlib.import_module(sys.argv[1] + ".command_line.app")
for words in map(ast.literal_eval, sys.argv[2:]):
    sys.argv = ["nacre", *map(str, words)]
    try:
        app.main()
    except SystemExit as end:
        assert end.code in (None, 0, 3 if words[0] == "verify" else 0), words
    assert not (found := {LATE!r} & set(sys.modules)), (words, found)
"""
"""Run commands in one process, and after each look for packages that it had no need of."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_installation(tmp_path_factory.mktemp("base"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_clinic(tmp_path)
    shutil.copytree(GOLDEN / "FORMAT-1" / "hand-off", tmp_path / "hand-off")
    return tmp_path


def run(installed: Path, place: Path, *words: object, status: int = 0) -> str:
    """Run Python with the base installation alone; return standard output, or standard error if it is to fail."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", *map(str, words)]
    done = subprocess.run(
        command, cwd=place, env=environment | {"PYTHONPATH": str(installed)}, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status == 1 else done.stdout


def nacre(installed: Path, place: Path, *words: object, status: int = 0) -> str:
    return run(installed, place, "-m", "nacre", *words, status=status)


def test_none_of_the_extras_is_there(installed: Path, place: Path) -> None:
    code = f"from importlib.util import find_spec\nprint([name for name in {sorted(EXTRAS)} if find_spec(name)])"
    assert run(installed, place, "-c", code) == "[]\n"


def test_it_helps_and_can_be_imported(installed: Path, place: Path) -> None:
    assert "synthesize" in nacre(installed, place, "--help")
    code = "import nacre\nfor name in nacre.__all__:\n    getattr(nacre, name)\nprint(nacre.__file__)"
    assert run(installed, place, "-c", code).startswith(str(installed))


def test_schemas_are_drafted_and_checked(installed: Path, place: Path) -> None:
    words = ("schema", "init", "clinic.parquet"), ("schema", "lint", "clinic.yaml")
    said = run(installed, place, "-c", ONE_AFTER_ANOTHER, "nacre.flows", *words)
    assert "ward" in said and "no faults" in said


@pytest.mark.nightly
def test_every_method_plans(installed: Path, place: Path) -> None:
    others = ("nacre-images", "nacre-photos", "nacre-tree", "document-moments")
    methods = [method for method in of_kind("table") if method not in others]
    words = [("plan", "clinic.parquet", *PLAN, "--method", method, "--report-epsilon", 0.1) for method in methods]
    said = run(installed, place, "-c", ONE_AFTER_ANOTHER, "nacre.flows", *words)
    assert said.count("report: charge") == len(methods)


def test_the_ledger_is_kept(installed: Path, place: Path) -> None:
    opened = ("ledger", "open", "clinic", "--schema", "clinic.yaml", *CAP, "--home", "home")
    looked = [("ledger", verb, "--home", "home") for verb in ("show", "verify")]
    said = run(
        installed, place, "-c", ONE_AFTER_ANOTHER, "nacre.flows", opened, *looked, ("plan", "clinic.parquet", *PLAN)
    )
    assert "clinic" in said and "whole" in said and "would be accepted" in said


def test_a_hand_off_is_verified(installed: Path, place: Path) -> None:
    assert nacre(installed, place, "verify", "hand-off", status=3).startswith("CONSISTENT ONLY")
    code = "import nacre; print(nacre.verify('hand-off').faults)"
    assert run(installed, place, "-c", code) == "[]\n"
    code = (
        "import nacre; page = nacre.Result('hand-off')._repr_html_(); print('epsilon=' in page, 'first rows' in page)"
    )
    assert run(installed, place, "-c", code) == "True True\n"


def test_what_it_lacks_is_said_in_one_sentence_before_anything_is_charged(installed: Path, place: Path) -> None:
    said = nacre(installed, place, "synthesize", "clinic.parquet", *PLAN, status=1)
    assert said.endswith("which a base installation lacks: pip install 'nacre[validate]'\n") and said.count("\n") == 1
    assert not (place / "home").exists() and not (place / "out").exists()
    assert "pip install 'nacre[validate]'" in nacre(installed, place, "validate", "hand-off", status=1)
    assert "pip install 'nacre[prefect]'" in nacre(installed, place, "deploy", status=1)
    code = (
        "import nacre\ntry:\n    nacre.synthesize('clinic.parquet', 'clinic.yaml', epsilon=1, delta=1e-5)\n"
        "except nacre.NacreError as error:\n    print(error)"
    )
    assert "pip install 'nacre[" in run(installed, place, "-c", code)


def test_where_everything_is_installed_a_light_command_imports_none_of_it(place: Path) -> None:
    light = [
        ("--help",),
        ("schema", "init", "clinic.parquet"),
        ("schema", "lint", "clinic.yaml"),
        ("plan", "clinic.parquet", *PLAN),
        ("ledger", "open", "clinic", "--schema", "clinic.yaml", *CAP, "--home", "home"),
        ("ledger", "show", "--home", "home"),
        ("verify", "hand-off"),
    ]
    command = [sys.executable, "-c", ONE_AFTER_ANOTHER, "flows", *map(str, light)]
    done = subprocess.run(
        command, cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
