"""A base installation, made without a network: the wheel, and links to what its dependencies installed here."""

from importlib.metadata import distribution
from pathlib import Path

from supply.installed import closure
from tests.kit.wheels import unpacked_wheel


def base_installation(folder: Path) -> Path:
    """Return a folder that stands for site-packages and holds what ``pip install nacre`` would put there."""
    installed = unpacked_wheel(folder)
    for name in closure(""):
        found = distribution(name)
        for part in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (installed / part).exists():
                (installed / part).symlink_to(Path(str(found.locate_file(part))))
    return installed
