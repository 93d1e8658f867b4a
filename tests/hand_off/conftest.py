import shutil
from pathlib import Path

import pytest

from tests.kit.manifests import CHARGED


@pytest.fixture
def hand_off(tmp_path: Path) -> Path:
    """Return a hand-off with a charged report that a test may change."""
    shutil.copytree(CHARGED, tmp_path / "own")
    (tmp_path / "own" / "manifest.sig").unlink()
    return tmp_path / "own"
