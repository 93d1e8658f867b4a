"""Which distributions an installation of nacre brings, read from pyproject.toml and from what is installed."""

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(name: str, extra: str) -> list[Requirement]:
    """Return what a distribution asks for with an extra, or without one; nacre's own are read from the checkout."""
    if name != "nacre":
        lines = distribution(name).requires or []
    else:
        lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    stated = [Requirement(line) for line in lines]
    return [each for each in stated if each.marker is None or each.marker.evaluate({"extra": extra})]


def closure(extra: str) -> set[str]:
    """Return every distribution that nacre needs with an extra, of those that are installed, by its canonical name."""
    return {name for name, _ in graph(extra)} - {"nacre"}


@cache
def graph(extra: str) -> dict[tuple[str, str], set[str]]:
    """Return by distribution and extra, from nacre on, the installed distributions that it asks for."""
    needed, todo = dict[tuple[str, str], set[str]](), [("nacre", ""), ("nacre", extra)]
    while todo:
        name, asked = node = todo.pop()
        if node in needed:
            continue
        try:
            stated = requirements(name, asked)
        except PackageNotFoundError:
            continue
        needed[node] = {canonicalize_name(each.name) for each in stated}
        todo += [(canonicalize_name(each.name), one) for each in stated for one in ("", *each.extras)]
    there = {name for name, _ in needed}
    return {node: names & there for node, names in needed.items()}
