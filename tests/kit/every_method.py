"""What tests of all methods share, beside the quick settings and made data: fitting, and a tap.

A new method is one line in ``QUICK`` of ``dpmodels/methods/quick.py``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmodels.audit.data import data_of
from dpmodels.audit.made import firm, mails
from dpmodels.audit.tap import Tap, tapped
from dpmodels.methods.quick import QUICK, quick
from dpmodels.privacy import Released
from dpmodels.releases.release import Release
from dpmodels.releases.system import Craft, Generator

OF_TABLES = [method for method in QUICK if data_of(method) not in (mails, firm)]
"""The methods for tables, images among them; the others are for documents, and for trees of tables."""


def fit(method: str, release: Released[Release], folder: Path, seed: int = 0) -> Generator:
    """Fit a generator from the start."""
    place = folder / "checkpoint.safetensors"
    place.unlink(missing_ok=True)
    return quick(method).fit(release, Craft(seed=seed, checkpoint=place))


@pytest.fixture
def tap() -> Iterator[Tap]:
    """Put a tap where every mechanism draws."""
    with tapped() as tap:
        yield tap
