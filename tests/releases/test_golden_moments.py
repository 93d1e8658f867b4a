"""Moments of federations planned before ``floor``: text and hash stay, and they are read and drawn as they were."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpmodels.methods.registry import system_of
from dpmodels.privacy import Sensitive
from dpmodels.releases.formats import read_plan
from dpmodels.releases.plan import Plan
from dpmodels.releases.release import read_release
from tests.kit.support import desk_in
from tests.releases.make_golden_moments import GOLDEN, MADE, NEGATIVES, facts_of, make_points, system_for

FACTS = json.loads((GOLDEN / "facts.json").read_text())


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_golden_release_is_read_as_it_was(name):
    found = facts_of(GOLDEN / f"{name}.parquet")
    assert {key: found[key] for key in ("sha256", "plan_sha256")} == {
        key: FACTS[name][key] for key in ("sha256", "plan_sha256")
    }
    for key in ("log_shares", "means", "inverses", "log_volumes"):
        assert np.allclose(found[key], FACTS[name][key], rtol=1e-10, atol=0), key


@pytest.mark.parametrize("name", sorted(MADE))
def test_an_old_plan_is_written_as_it_was_keeps_its_hash_and_is_still_drawn(name, tmp_path):
    text = pq.read_schema(GOLDEN / f"{name}.parquet").metadata[b"nacre.plan"]
    old, line = json.loads(text), read_plan(text).release
    moments = line.measurement["moments"] if name == "both" else line.measurement
    assert moments["floor"] is None and line.former is None
    again = Plan(lines=(line,)).model_dump_json()
    assert json.loads(again) == old and "floor" not in again and read_plan(again).release == line
    assert line.hash == FACTS[name]["plan_sha256"]
    public = NEGATIVES if name == "both" else None
    system = system_of(line.method, line.measurement, public=public)
    release = read_release(system.measure(Sensitive([make_points(50)]), line, desk_in(tmp_path, line)).value)
    assert release.value.line == line


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_new_plan_names_its_floor(name):
    old = read_plan(pq.read_schema(GOLDEN / f"{name}.parquet").metadata[b"nacre.plan"]).release
    line = system_for(name).plan(old.contract, old.budget)
    assert line.hash != old.hash and line.event == old.event and line.fingerprint == old.fingerprint
    moments = line.measurement["moments"] if name == "both" else line.measurement
    assert moments["floor"] and read_plan(Plan(lines=(line,)).model_dump_json()).release == line
