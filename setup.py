"""Build the wheel with one top-level package: dpmodels, tasks, flows and deployments are installed inside nacre.

Many a Prefect project has folders called ``flows`` and ``tasks``. Beside them ours could not be imported, or would hide
them. So the sources keep their short names, and the copy that goes into the wheel says ``nacre.flows`` for ``flows``:
in every import, and in the names that Prefect imports a flow by. An editable install is the checkout, as it is.
"""

import ast
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

INSIDE = ("dpmodels", "tasks", "flows", "deployments")


class BuildInside(build_py):
    """Build the packages as they are, then move them into nacre."""

    def run(self) -> None:
        """Build, and rewrite what was built unless it is the checkout itself."""
        super().run()
        if not self.editable_mode:
            move_inside(Path(self.build_lib))


class OneName(egg_info):
    """Say of the package what will be true of the wheel: it has one top-level name."""

    def run(self) -> None:
        """Write the metadata."""
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text("nacre\n", encoding="utf-8")


def move_inside(built: Path) -> None:
    """Move what was built into the package nacre and let it call itself by its new names."""
    for name in INSIDE:
        shutil.rmtree(built / "nacre" / name, ignore_errors=True)  # of a build before this one
        shutil.move(built / name, built / "nacre" / name)
    for file in (built / "nacre").rglob("*.py"):
        file.write_text(renamed(file.read_text(encoding="utf-8")), encoding="utf-8")
    deployments = built / "nacre" / "deployments" / "prefect.yaml"
    text = deployments.read_text(encoding="utf-8")
    deployments.write_text(text.replace("entrypoint: flows.", "entrypoint: nacre.flows."), encoding="utf-8")


def renamed(source: str) -> str:
    """Return a module's text with every import of ours by its new name; nothing else is touched.

    Raises:
        ValueError: ``import flows.config``, which binds the old name; write ``from flows import config``.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _ours(node.module):
            _replace(lines, node.lineno, node.col_offset, f"from {node.module}", f"from nacre.{node.module}")
        for alias in node.names if isinstance(node, ast.Import) else ():
            if not _ours(alias.name):
                continue
            if alias.asname is None and "." in alias.name:
                raise ValueError(f"line {node.lineno}: import {alias.name} binds {alias.name.split('.')[0]}")
            bound = "" if alias.asname else f" as {alias.name}"
            _replace(lines, alias.lineno, alias.col_offset, alias.name, f"nacre.{alias.name}{bound}")
    return "".join(lines)


def _ours(module: "str | None") -> bool:
    return (module or "").split(".")[0] in INSIDE


def _replace(lines: "list[str]", number: int, column: int, old: str, new: str) -> None:
    before, after = lines[number - 1][:column], lines[number - 1][column:]
    if not after.startswith(old):
        raise ValueError(f"line {number} should read {old}")
    lines[number - 1] = before + new + after[len(old) :]


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildInside, "egg_info": OneName})
