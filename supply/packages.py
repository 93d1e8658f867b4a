"""Build the sdist and the wheel of a release into ``dist``, and try the wheel where no source tree is in reach.

    python -m supply.packages [FOLDER]

The wheel must hold the product's packages with their data files and nothing else, and the wheel that is built of the
sdist the same bytes. It is installed without dependencies into an environment that sees those of this one; there it
prints its version and its help, plans, makes a hand-off of a small table, and verifies it. No network is needed.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from sysconfig import get_path
from typing import Any

from supply.installed import PROJECT, ROOT

PACKAGES = ("nacre", "dpmodels", "tasks", "flows", "deployments")
LEFT_OUT = {"deployments/Dockerfile", "deployments/compose.yaml", "deployments/ledger-roles.sql"}
"""Whoever runs containers takes these from the repository."""
SDIST = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"}
SCHEMA = """\
name: packaged
columns:
  ward: {type: categorical, values: [east, west]}
  age: {type: integer, min: 0, max: 99}
"""
RUN = "table.csv --schema schema.yaml --epsilon 1 --delta 1e-5 --home home --out hand-off"
CONSISTENT = 3
"""The exit status of ``nacre verify`` for a hand-off that nobody has signed."""


def run(command: Sequence[str | Path], status: int = 0, **options: Any) -> str:
    """Run a command to its end and return what it printed.

    Raises:
        SystemExit: it ended with another status; the message has all that it printed.
    """
    done: subprocess.CompletedProcess[str] = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def tracked() -> list[str]:
    """Return the files of the checkout that git knows, so that what an earlier build left is in no package."""
    return [name for name in run(["git", "ls-files", "-z"], cwd=ROOT).split("\0") if (ROOT / name).is_file()]


def build(source: Path, kind: str, out: Path) -> Path:
    """Build ``sdist`` or ``wheel`` with the backend that pyproject.toml names."""
    out.mkdir(parents=True, exist_ok=True)
    call = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
    printed = run([sys.executable, "-c", call], cwd=source)
    return out / printed.splitlines()[-1]


def members(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel by their names."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def product(files: list[str]) -> set[str]:
    """Return the files that are shipped: modules, and the data files beside them."""
    return {name for name in files if name.split("/")[0] in PACKAGES} - LEFT_OUT


def compare(what: str, there: set[str], wanted: set[str]) -> None:
    """Refuse a package that lacks a file or has one too many.

    Raises:
        SystemExit: with the names of those files.
    """
    if there != wanted:
        raise SystemExit(f"{what} lacks {sorted(wanted - there)} and should not hold {sorted(there - wanted)}")


def packages(scratch: Path, dist: Path) -> tuple[Path, Path]:
    """Build both packages of what git knows, and hold them to what they must contain."""
    files, source = tracked(), scratch / "source"
    for name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    sdist, wheel = build(source, "sdist", dist), build(source, "wheel", dist)
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch, filter="data")
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in names if name.startswith("nacre.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    compare("the sdist", names - made, SDIST | product(files))
    content = members(wheel)
    metadata = {name for name in content if name.split("/")[0].endswith(".dist-info")}
    moved = {name if name.startswith("nacre/") else f"nacre/{name}" for name in product(files)}
    compare("the wheel", set(content) - metadata, moved)
    again = members(build(scratch / sdist.name.removesuffix(".tar.gz"), "wheel", scratch / "again"))
    compare("the wheel that is built of the sdist", set(again), set(content))
    if differing := sorted(name for name in content if content[name] != again[name]):
        raise SystemExit(f"the wheel that is built of the sdist differs from the other in {differing}")
    return sdist, wheel


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel alone into a new environment, let it see what is installed here, and return its programs."""
    venv.create(folder, symlinks=True)
    programs = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet"]
    run([*pip, "--no-deps", "--no-index", wheel])
    seen = [path for path in sys.path if path.endswith("site-packages")]
    Path(get_path("purelib", vars={"base": str(folder)})).joinpath("dependencies.pth").write_text("\n".join(seen))
    return programs


def attempt(programs: Path, folder: Path) -> None:
    """Run the installed nacre as its user would, where no source tree is in reach.

    Raises:
        SystemExit: a command did not end as it should.
    """
    (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    rows = [f"{'east' if at % 3 else 'west'},{at % 90}" for at in range(600)]
    (folder / "table.csv").write_text("\n".join(["ward,age", *rows, ""]), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NACRE_"))}
    for line, status, text in (
        ("--version", 0, f"nacre {PROJECT['version']}\n"),
        ("--help", 0, "synthesize"),
        ("deploy --show", 0, "entrypoint: nacre.flows."),
        (f"plan {RUN}", 0, "stands out"),
        (f"synthesize {RUN} --no-prefect", 0, "next: nacre verify"),
        ("verify hand-off", CONSISTENT, "CONSISTENT ONLY"),
    ):
        printed = run([programs / "nacre", *line.split()], status, cwd=folder, env=environment)
        if text not in printed:
            raise SystemExit(f"nacre {line} does not say {text!r}:\n{printed}")


def main() -> None:
    """Build both packages, try the wheel, and print where they lie."""
    dist = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        made = packages(scratch, dist)
        outside = scratch / "outside"
        outside.mkdir()
        attempt(install(made[1], scratch / "environment"), outside)
    print(*made, sep="\n")


if __name__ == "__main__":
    main()
