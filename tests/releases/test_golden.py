"""What was paid for lasts: releases and a hand-off of every published format are read, exactly, by this version.

The files are made once (``tests/releases/make_golden.py``) and never again. A fitter may get better, so a generator's
hash beside a release says only what the version that made it would have fitted.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import create_model

from dpmodels.codec.embedded import codec_of
from dpmodels.errors import ArtifactError
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec
from dpmodels.methods.quick import QUICK, quick
from dpmodels.methods.registry import METHODS, create, of_kind
from dpmodels.methods.trained import p3gm
from dpmodels.privacy import Released
from dpmodels.releases.draw import read
from dpmodels.releases.release import FORMAT, Release, read_release
from dpmodels.releases.steps import Choose, Keep, Sum, Train
from dpmodels.releases.system import Craft
from dpmodels.releases.walk import values_of
from dpmodels.report.charged_facts import charged_facts
from tests.kit.every_method import fit
from tests.kit.support import run_cli
from tests.releases.make_golden import GOLDEN, RESIDUALS, facts_of, make_release, marginals_of, sha256

FORMATS = sorted(GOLDEN.iterdir())
FACTS = {folder: json.loads((folder / "facts.json").read_text()) for folder in [*FORMATS, RESIDUALS]}
RELEASES = [pytest.param(folder, name, id=f"{folder.name}-{name}") for folder in FACTS for name in FACTS[folder]]
METHODS_RELEASES = [each for each in RELEASES if each.values[1] != "report"]
golden_formats = pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)


def footer(path: Path) -> dict[bytes, bytes]:
    return dict(pq.read_schema(path).metadata)


def test_there_is_a_golden_release_of_every_method_in_the_format_that_is_written():
    (newest,) = [folder for folder in FORMATS if folder.name == f"FORMAT-{FORMAT}"]
    assert FACTS[newest].keys() == {*of_kind("table"), "report"}
    size = sum(path.stat().st_size for path in GOLDEN.rglob("*"))
    assert size < 26_500 * len(FACTS[newest])  # bytes, for each method


@pytest.mark.parametrize(("folder", "name"), RELEASES)
def test_a_release_is_read_exactly(folder, name):
    path = folder / f"{name}.parquet"
    assert facts_of(path).items() <= FACTS[folder][name].items()


@pytest.mark.parametrize(("folder", "name"), METHODS_RELEASES)
def test_its_programme_reads_every_value_and_every_choice_of_it(folder, name):
    release = read_release(folder / f"{name}.parquet").value
    answers = list(values_of(read(quick(name), release)))
    values = [vector for step, vector in answers if isinstance(step, Sum | Train)]
    chosen = [vector for step, vector in answers if isinstance(step, Choose | Keep)]
    assert np.array_equal(np.concatenate(values), release.vector)
    assert np.array_equal(np.concatenate([*chosen, release.chosen[:0]]), release.chosen)
    assert bool(chosen) == (name in ("privbayes", "nacre-images", "nacre-photos", "document-moments"))


@pytest.mark.parametrize(("folder", "name"), METHODS_RELEASES)
def test_a_version_with_other_defaults_reads_it_to_the_same_bits(tmp_path, monkeypatch, folder, name):
    """Whatever shapes a measurement or its reading is a parameter of the plan, so no default of a version is asked."""
    release, own = read_release(folder / f"{name}.parquet"), METHODS[name].measurement
    stated = read_anew(name, release, tmp_path)
    numbers = {key: field for key, field in own.model_fields.items() if isinstance(field.default, int | float)}
    others: dict[str, Any] = {key: (field.annotation, field.default + 1) for key, field in numbers.items()}
    if "sgd" in own.model_fields:
        others["sgd"] = (SgdSpec | None, SgdSpec(steps=7))
    other = create_model("Other", __base__=own, **others)
    monkeypatch.setitem(METHODS, name, replace(METHODS[name], measurement=other))
    monkeypatch.setattr(p3gm, "SUITED", {key: {"directions": 3, "least_variance": 9.0} for key in p3gm.SUITED})
    assert others and read_anew(name, release, tmp_path) == stated


def read_anew(name: str, release: Released[Release], folder: Path) -> tuple[Any, str]:
    """Read a release with the measurement's model as the registry has it; return marginals and the generator's hash."""
    system = create(name, {}, QUICK[name].training)
    (folder / "checkpoint").unlink(missing_ok=True)
    system.fit(release, Craft(checkpoint=folder / "checkpoint")).save(folder / "model")
    counted = system.marginals(release.value)
    columns = counted.columns if counted else {}
    pooled = {key: (one.pooled.tolist(), one.pooled_stddev.tolist()) for key, one in columns.items()}
    return pooled, sha256((folder / "model").read_bytes())


@pytest.mark.parametrize(("folder", "name"), METHODS_RELEASES)
def test_what_it_states_is_what_it_stated(folder, name):
    release, stated = read_release(folder / f"{name}.parquet").value, FACTS[folder][name]["marginals"]
    found = marginals_of(name, release)
    assert (found is None) == (stated is None)
    if found and stated:
        assert found["columns"].keys() == stated["columns"].keys()
        assert found["records"] == pytest.approx(stated["records"], rel=1e-9, abs=1e-9)
        for column, one in stated["columns"].items():
            for key, numbers in one.items():
                assert found["columns"][column][key] == pytest.approx(numbers, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("folder", "name"), METHODS_RELEASES)
def test_a_generator_is_fitted_to_it_that_makes_rows_of_its_schema(tmp_path, folder, name):
    release = read_release(folder / f"{name}.parquet")
    model, codec = fit(name, release, tmp_path), codec_of(release.value.line.contract)
    (made,) = model.sample(50, seed=0)
    table = codec.decode(made)
    assert len(made) == 50 and table.schema.equals(codec.output_schema)
    assert codec.decode(codec.encode(table)).equals(table)  # each value is one that is allowed
    assert quick(name).noise(release.value.line)


@golden_formats
def test_charged_scores_say_what_they_said(folder):
    release, stated = read_release(folder / "report.parquet").value, FACTS[folder]["report"]["report"]
    found = charged_facts(release)
    for key in ("records", "records_stddev", "noise_stddev_of_a_count", "rows_trained_on", "synthetic_rows_tested_on"):
        assert found[key] == pytest.approx(stated[key], rel=1e-9)
    assert [one["model"] for one in found["classifiers"]] == [one["model"] for one in stated["classifiers"]]


@golden_formats
def test_a_hand_off_is_verified_with_its_signers_key(folder):
    found = verify_hand_off(folder / "hand-off", folder / "signer.pub")
    assert (found.faults, found.files) == ([], 5) and found.signature.startswith("by the key you named, ")
    assert run_cli("verify", folder / "hand-off", "--public-key", folder / "signer.pub")[0] == 0


def renumbered(source: Path, target: Path, number: bytes) -> Path:
    """Write a release again, as if its format had this number."""
    table = pq.read_table(source)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"nacre.format": number}), target)
    return target


def test_a_release_says_its_format_and_one_that_does_not_is_of_the_first(tmp_path):
    make_release("moments", tmp_path / "new.parquet")
    assert footer(tmp_path / "new.parquet")[b"nacre.format"] == str(FORMAT).encode()
    old = GOLDEN / "FORMAT-1" / "moments.parquet"
    assert b"nacre.format" not in footer(old)
    numbered = renumbered(old, tmp_path / "numbered.parquet", b"1")
    here, there = read_release(old).value, read_release(numbered).value
    assert here.line == there.line and np.array_equal(here.vector, there.vector)


@pytest.mark.parametrize("number", [b"3", b"10", b"9" * 5000])
def test_a_release_of_a_later_format_is_refused_whatever_else_it_holds(tmp_path, number):
    path = renumbered(GOLDEN / "FORMAT-1" / "moments.parquet", tmp_path / "r.parquet", number)
    with pytest.raises(ArtifactError, match=f"format {number.decode()[:9]}, .*use a newer nacre") as refused:
        read_release(path)
    assert ". " not in str(refused.value).replace("r.parquet", "")
    pq.write_table(pa.table({"other": [1]}).replace_schema_metadata({b"nacre.format": number}), path)
    with pytest.raises(ArtifactError, match="use a newer nacre"):
        read_release(path)


@pytest.mark.parametrize("number", [b"", b"one", b"-1", b"\xff"])
def test_a_format_that_is_no_number_is_no_release(tmp_path, number):
    path = renumbered(GOLDEN / "FORMAT-1" / "moments.parquet", tmp_path / "r.parquet", number)
    with pytest.raises(ArtifactError, match="is not a nacre release"):
        read_release(path)


@pytest.mark.parametrize("key", [b"nacre.chosen", b"nacre.plan", b"nacre.ledger_entry"])
def test_a_footer_that_was_changed_is_one_sentence_that_quotes_nothing(tmp_path, key):
    table = pq.read_table(GOLDEN / "FORMAT-1" / "nacre.parquet")
    metadata = {**table.schema.metadata, key: b"\xff{Zebulon-Quillfeather"}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "r.parquet")
    with pytest.raises(ArtifactError, match="is not as nacre writes a release") as told:
        read_release(tmp_path / "r.parquet")
    assert "Zebulon" not in str(told.value)
