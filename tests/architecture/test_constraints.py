"""What ``constraints.txt`` pins is what is installed, and everything that is installed for nacre is pinned."""

from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from supply.installed import PROJECT, ROOT, closure

PINNED = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
UNPINNED = ("federated",)
"""Extras whose packages need other versions than those that are pinned; they are installed by themselves."""
PINS = {canonicalize_name(name): version for name, version in (line.split("==") for line in PINNED)}


def installed(name: str) -> str | None:
    """Return the installed version, without the label of a build such as torch's for the CPU."""
    try:
        return Version(distribution(name).version).public
    except PackageNotFoundError:
        return None


def test_what_is_installed_is_what_was_pinned() -> None:
    other = {name: (version, installed(name)) for name, version in PINS.items()}
    assert {name: pair for name, pair in other.items() if pair[1] not in (pair[0], None)} == {}


def test_everything_that_nacre_needs_is_pinned() -> None:
    needed = {canonicalize_name(name) for name in closure("dev")}
    assert {"torch", "prefect", "great-expectations", "mpmath", "pytest"} <= needed
    assert needed - set(PINS) == set()


def test_every_pin_keeps_to_the_range_that_the_package_states() -> None:
    stated = [Requirement(line) for line in PROJECT["dependencies"]]
    extras = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name not in UNPINNED}
    stated += [Requirement(line) for lines in extras.values() for line in lines]
    named = {each for each in stated if each.name != "nacre"}
    assert [str(each) for each in named if not each.specifier.contains(PINS[canonicalize_name(each.name)])] == []


def test_no_pin_names_a_place_a_hash_or_a_package_of_cuda() -> None:
    assert [line for line in PINNED if set("@/ +") & set(line)] == []
    assert [name for name in PINS if name.startswith(("nvidia", "cuda", "triton"))] == []


def test_the_tests_of_a_file_share_a_worker(request: pytest.FixtureRequest) -> None:
    """A version of pytest that pytest-xdist does not know lays every test out by itself, and says nothing."""
    if not request.config.getoption("loadgroup", False):
        pytest.skip("laid out by make test alone")
    assert request.node.nodeid.endswith("@tests/architecture/test_constraints.py")
