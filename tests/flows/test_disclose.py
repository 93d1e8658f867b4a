"""Records of a hand-off: in the words of a registry and of a catalog, and nothing that the hand-off does not say."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmodels.hand_off.manifest import read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from tests.hand_off.make_golden import GOLDEN
from tests.kit.manifests import UNCHARGED
from tests.kit.support import run_cli

TABLE, USERS = GOLDEN / "FORMAT-11" / "contract", GOLDEN / "FORMAT-11" / "contract-users"
EVERY = [
    TABLE,
    USERS,
    GOLDEN / "FORMAT-8" / "discovered",
    GOLDEN / "FORMAT-7" / "laid-out-embedded",
    GOLDEN / "FORMAT-7" / "laid-out-federation",
    GOLDEN / "FORMAT-2" / "fitted-elsewhere",
]
PROGRAM = shutil.which("mlcroissant")
FIRST_RECORDS = """
import os, sys
import mlcroissant
for place in sys.argv[1:]:
    os.chdir(place)
    record = mlcroissant.Dataset("croissant.json")
    read = [next(iter(record.records(one.uuid))) for one in record.metadata.record_sets]
    print(f"{place}: {len(read)}")
"""
"""Validate records, and read the first one of every set, as the commands of mlcroissant do."""
ANSWERS = ("--curator", "City of Ghent", "--region", "Belgium", "--why", "See the DPIA", "--use", "To plan beds")
LISTED = {
    "data_product_type": {"Synthetic data", "Dataset", "Machine learning model"},
    "variant_name": {"Pure DP", "Approximate DP"},
    "model_name": {"Central", "Federated"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static"},
    "access_type": {"Non-interactive"},
}
"""Fields of which the registry lists the values, and those of the values that a hand-off of ours can have."""
DETAILS = {f"{name}_details" for name in ("model_name", "release_type", "data_source_type", "access_type")}
SECTIONS = {
    "basic": {"name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description"}
    | {"publication_date"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name", "actors", "release_type", "data_source_type", "access_type", *DETAILS},
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "registry_authors"},
}
"""The registry's fields that are filled in; it takes no others than its own."""


def disclosed(hand_off: Path, out: Path, *words: object) -> tuple[dict[str, Any], dict[str, Any], str]:
    code, said, err = run_cli("disclose", hand_off, "--out", out, *(words or ANSWERS))
    assert code == 0, err
    (record,) = out.glob("*.yaml")
    return yaml.safe_load(record.read_text()), json.loads((out / "croissant.json").read_text()), said + err


@pytest.mark.parametrize("hand_off", EVERY, ids=lambda folder: folder.name)
def test_a_record_is_as_the_registry_asks_and_says_what_was_spent(tmp_path: Path, hand_off: Path) -> None:
    record, _, said = disclosed(hand_off, tmp_path / "records")
    assert "TODO" not in said and "TODO" not in str(record)
    assert record.keys() == {"url_slug", "status", "tier", "deployment"} and record["tier"] == 3
    deployment = record["deployment"]
    assert {name: set(section) for name, section in deployment.items()} == SECTIONS
    fields = {name: one for section in deployment.values() for name, one in section.items()}
    assert all(fields[name] in values for name, values in LISTED.items())
    assert all(isinstance(fields[name], list) for name in ("data_curators", "registry_authors"))
    assert all(isinstance(one, str) and one for name, one in fields.items() if type(one) not in (list, dict))
    spent, parameters = read_manifest(hand_off).whole_cost, deployment["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == float(spent.epsilon) and parameters.get("delta", 0) == spent.delta
    assert (deployment["dp_variant"]["variant_name"] == "Pure DP") == (spent.delta == 0)
    assert verify_hand_off(hand_off).faults == []  # nothing was written there


def test_what_only_a_person_knows_is_asked_for(tmp_path: Path) -> None:
    record, _, said = disclosed(TABLE, tmp_path / "records", "--curator", "City of Ghent")
    assert record["deployment"]["basic"]["data_product_region"] == "TODO"
    assert record["deployment"]["basic"]["intended_use"] == "To plan beds."  # as was declared
    assert said.splitlines()[-1].endswith("only a person can answer: region, why")


def test_a_catalog_finds_every_file_with_its_digest_and_every_column(tmp_path: Path) -> None:
    _, croissant, _ = disclosed(USERS, tmp_path / "records")
    manifest = read_manifest(USERS)
    files = {one["@id"]: one for one in croissant["distribution"]}
    assert {name: one["sha256"] for name, one in files.items()} == manifest.artifacts
    assert all((tmp_path / "records" / one["contentUrl"]).resolve() == (USERS / name) for name, one in files.items())
    parents, children = croissant["recordSet"]
    assert (parents["name"], children["name"]) == ("parents", "children")
    (source,) = {one["source"]["fileObject"]["@id"] for one in parents["field"]}
    assert source == "synthetic/parents/part-00000.parquet"
    elsewhere = disclosed(USERS, tmp_path / "again", *ANSWERS, "--url", "https://data.example/shop/")[1]
    assert elsewhere["distribution"][0]["contentUrl"].startswith("https://data.example/shop/checks.html")


def test_what_is_not_as_it_was_handed_over_is_not_disclosed(tmp_path: Path) -> None:
    shutil.copytree(TABLE, tmp_path / "own")
    (tmp_path / "own" / "schema.yaml").write_text("name: other")
    for folder, told in ((tmp_path / "own", "was changed"), (UNCHARGED, "without a price"), (tmp_path, "no manifest")):
        code, _, err = run_cli("disclose", folder, "--out", tmp_path / "records", "--home", tmp_path / "home")
        assert code == 1 and told in err and not (tmp_path / "records").exists()


@pytest.mark.skipif(PROGRAM is None, reason="mlcroissant is not installed")
def test_mlcroissant_reads_every_record(tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(len(EVERY))]
    listed = [len(disclosed(hand_off, place)[1]["recordSet"]) for hand_off, place in zip(EVERY, places, strict=True)]
    command = [Path(str(PROGRAM)).with_name("python"), "-c", FIRST_RECORDS, *places]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{place}: {number}" for place, number in zip(places, listed, strict=True)]
