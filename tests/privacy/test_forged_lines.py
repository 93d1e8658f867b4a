"""Lines that somebody wrote into a file, with the hash of a line that was paid for or the name of another stage."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpmodels.errors import ArtifactError
from dpmodels.releases.plan import Line
from dpmodels.releases.release import read_release, write_release
from flows.synthesize import start
from tasks.run.refit import start_fit
from tasks.run.store import Run
from tests.kit.configurations import config
from tests.kit.support import write_clinic
from tests.releases.make_golden import GOLDEN


def forged_release(folder: Path, **changes: object) -> Path:
    release = read_release(GOLDEN / "FORMAT-1" / "pearl.parquet").value
    line: Line = release.line.model_copy(update=changes)
    columns = {"look": np.ones(len(release.vector), dtype=np.int64)}
    write_release(folder / "forged.parquet", line, release.entry, columns, release.vector, release.chosen)
    return folder / "forged.parquet"


@pytest.mark.parametrize("name", ["report", "x"])
def test_a_release_whose_line_is_no_release_is_not_fitted(tmp_path, name):
    """As the line of a report it would have its run call the stage that holds rows against scores."""
    write_clinic(tmp_path)
    given = start(config(tmp_path)).settings
    wished = given.model_copy(update={"account": "", "opens": None, "training": {}, "out": tmp_path / "fitted"})
    run = Run(home=tmp_path / "home", name="again")
    with pytest.raises(ArtifactError, match="is no line of a release"):
        start_fit(run, forged_release(tmp_path, name=name), wished)
    assert not run.exists


def test_a_release_as_it_was_written_is_still_fitted(tmp_path):
    write_clinic(tmp_path)
    given = start(config(tmp_path)).settings
    wished = given.model_copy(update={"account": "", "opens": None, "training": {}, "out": tmp_path / "fitted"})
    run = Run(home=tmp_path / "home", name="again")
    start_fit(run, forged_release(tmp_path), wished)
    assert run.exists and json.loads((run.control / "plan.json").read_text())["lines"][0]["name"] == "release"
