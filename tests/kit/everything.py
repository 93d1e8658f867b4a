"""Text in which every value of a table can be recognized."""

from pathlib import Path


def everything(folder: Path) -> str:
    """Return all text that a run left outside the sensitive zone and the data."""
    home = folder / "home"
    files = [path for path in [*home.rglob("*"), *(folder / "out").rglob("*")] if path.is_file()]
    return "".join(path.read_bytes().decode("latin-1") for path in files if home / "sensitive" not in path.parents)
