"""The wheel, built from a copy of the sources and unpacked: what an installed nacre is made of."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("nacre", "dpmodels", "tasks", "flows", "deployments")


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel and return the folder that stands for site-packages."""
    source, wheels, installed = folder / "source", folder / "wheels", folder / "installed"
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", wheels, source], check=True)
    (wheel,) = wheels.iterdir()
    zipfile.ZipFile(wheel).extractall(installed)
    return installed


def write_project(folder: Path) -> Path:
    """Write a Prefect project as there are many: with folders of its own that are called as ours are."""
    for name in ("flows", "tasks", "deployments"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"MINE = {name!r}\n")
    (folder / "dpmodels.py").write_text("raise ImportError('an installed nacre imported dpmodels by its short name')\n")
    return folder
