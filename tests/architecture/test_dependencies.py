"""The page of dependencies names every package that pyproject.toml does, and says truly where each is imported."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.architecture.shape import nodes

ROOT = Path(__file__).parents[2]
OWN = ("dpmodels", "tasks", "flows", "nacre", "deployments")
NAMES = {
    "yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn", "dp_accounting": "dp-accounting",
    "xgboost": "xgboost-cpu", "pydantic_core": "pydantic", "markupsafe": "jinja2", "uvicorn": "prefect",
    "starlette": "prefect", "pkcs11": "python-pkcs11",
}  # fmt: skip
"""Names under which a package is imported, where they are others than those of its project, or of a part of it."""
UNNAMED = {"sentence_transformers"}
"""An optional package that the page names in its text."""
NETWORK = {"socket", "http", "urllib", "ssl", "ftplib", "smtplib", "requests", "httpx", "aiohttp", "websockets"}
CONNECTS = {"flows/with_prefect/server.py", "flows/with_prefect/api_process.py", "flows/lineage.py"}
"""The one asks whether the Prefect server that it started on this machine is up; the other is that server. The third
sends lineage, only where the operator of a worker names a server."""
READS_URLS = {
    "dpmodels/reading/data_files.py",
    "dpmodels/tokens.py",
    "flows/with_prefect/assets.py",
    "tasks/run/lineage.py",
}
"""They take URIs apart or write them, by ``urllib.parse``; Arrow, fsspec and Prefect's client connect."""


def page() -> dict[str, list[str]]:
    """Return the rows of the page's table by package."""
    lines = (ROOT / "docs" / "dependencies.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def named() -> dict[str, str]:
    """Return every package that pyproject.toml names, and with which extra it comes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"base": project["dependencies"], **project["optional-dependencies"]}
    whole = [(re.split(r"[\[<>=!~ ;]", line)[0], extra) for extra, some in groups.items() for line in some]
    return {name: extra for name, extra in reversed(whole) if name != "nacre"}


@cache
def imports() -> dict[str, set[str]]:
    """Return for every imported module the files that import it."""
    found = defaultdict(set)
    for room in OWN:
        for file in (ROOT / room).rglob("*.py"):
            for node in nodes(file):
                several = node.names if isinstance(node, ast.Import) else []
                modules = [each.name for each in several]
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                for module in modules:
                    found[module.partition(".")[0]].add(str(file.relative_to(ROOT)))
    return found


def test_the_page_names_every_dependency_with_its_extra() -> None:
    assert {name: row[0] for name, row in page().items()} == named()


def test_every_import_is_of_a_package_that_the_page_names_and_where_it_says() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    places = {name: [] if row[-1] == "nowhere" else row[-1].split(", ") for name, row in page().items()}
    met = defaultdict(set)
    for module, files in imports().items():
        if module in sys.stdlib_module_names or module in OWN:
            continue
        if module in UNNAMED:
            assert module.replace("_", "-") in text
            continue
        name = NAMES.get(module, module)
        for file in files:
            within = [place for place in places[name] if file.startswith((f"{place}/", f"{place}.py"))]
            assert within, f"{file} imports {module}, and the page does not say so"
            met[name] |= set(within)
    assert {name: set(some) for name, some in places.items() if some} == met


def test_our_own_code_opens_no_connection() -> None:
    found = {file for module in NETWORK for file in imports()[module]}
    assert found == CONNECTS | READS_URLS
