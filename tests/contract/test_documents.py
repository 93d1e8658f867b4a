"""The contract of documents: what it says of the unit, and what it refuses."""

import pytest
import yaml
from pydantic import ValidationError

from dpmodels.authoring.lint import lint, load_contract, load_schema
from dpmodels.contract.documents import Documents
from dpmodels.errors import Unsuitable
from dpmodels.privacy import Adjacency
from dpmodels.releases.contract import read_contract, write_contract

HASHED = {"name": "hashed", "dim": 32}


def documents(**given) -> Documents:
    return Documents.model_validate({"name": "mails", "text": "body", "encoder": HASHED, **given})


@pytest.mark.parametrize(
    ("given", "unit", "adjacency", "part"),
    [
        ({}, "document", Adjacency.ADD_OR_REMOVE_ONE, ""),
        ({"protects": "sentence"}, "sentence", Adjacency.REPLACE_ONE, "document"),
        ({"protects": "sentence", "user": "who"}, "sentence", Adjacency.REPLACE_ONE, "user"),
        ({"protects": "user", "user": "who", "most_documents": 3}, "user:who:3", Adjacency.ADD_OR_REMOVE_ONE, ""),
    ],
)
def test_the_unit_decides_adjacency_and_parts(given, unit, adjacency, part):
    contract = documents(**given)
    assert (contract.unit.code, contract.adjacency, contract.part) == (unit, adjacency, part)
    assert read_contract(write_contract(contract)) == contract
    assert Documents.model_validate(yaml.safe_load(contract.to_yaml())) == contract


@pytest.mark.parametrize(
    "given",
    [
        {"embedding": "vector"},
        {"text": ""},
        {"text": "", "embedding": "vector"},
        {"encoder": {"name": "given", "dim": 3}},
        {"label": "kind"},
        {"label": "kind", "classes": ["a", "a"]},
        {"protects": "user"},
        {"most_documents": 2},
        {"id": "body"},
        {"encoder": {"name": "hashed", "dim": 32, "sha256": "beef"}},
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(given):
    with pytest.raises(ValidationError):
        documents(**given)


def test_a_file_is_read_by_what_it_holds(tmp_path):
    file = tmp_path / "mails.yaml"
    file.write_text(documents().to_yaml())
    assert load_contract(file) == documents() and lint(file) == []
    with pytest.raises(Unsuitable, match=r"mails.yaml describes documents; this needs the schema of a table"):
        load_schema(file)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("text: body", "texts: body", "line 2: texts: is no key here; did you mean `text`?"),
        ("dim: 32", "dims: 32", "line 5: encoder.dims: is no key here; did you mean `dim`?"),
        ("text: body", "text: body\nlanguage: English", "line 3: language: must be written as"),
        ("text: body", "text: body\nlabel: kind", "`label` and `classes` come together"),
    ],
)
def test_the_faults_of_a_file_have_their_lines(tmp_path, old, new, fault):
    file = tmp_path / "mails.yaml"
    file.write_text(documents().to_yaml().replace(old, new))
    assert any(fault in str(each) for each in lint(file)), lint(file)
