"""The contract of a federation: what it says of a client, and what it refuses."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from dpmodels.contract.federation import Federation
from dpmodels.privacy import Adjacency
from dpmodels.releases.contract import read_contract, write_contract

SHA = "0" * 64


def federation(*sizes: int | None, **given: Any) -> Federation:
    """Return the contract of clients named a, b, ... that hold as many records."""
    clients = [{"name": chr(97 + place), "size": size} for place, size in enumerate(sizes or (30, 40))]
    content = {"name": "clinics", "clients": clients, "features": 8, "classes": ["no", "yes"], "negatives": 50}
    return Federation.model_validate({**content, "extractor": SHA, "auxiliary": SHA, **given})


def test_a_client_is_a_data_set_of_its_own_in_the_same_contract():
    whole = federation()
    client = whole.of("b")
    assert (client.name, client.client, client.part, client.size) == ("clinics.b", "b", "client", 40)
    assert (whole.client, whole.part, whole.size) == ("", "", 70)
    assert client.of("a") == whole.of("a") and client.clients == whole.clients
    assert len({whole.hash, client.hash, whole.of("a").hash}) == 3
    assert read_contract(write_contract(client)) == client
    assert Federation.model_validate(yaml.safe_load(client.to_yaml())) == client


def test_public_sizes_hide_a_record_by_replacing_it_and_private_ones_by_adding_it():
    assert federation().adjacency == Adjacency.REPLACE_ONE
    private = federation(None, None, most_records=90)
    assert private.adjacency == private.of("a").adjacency == Adjacency.ADD_OR_REMOVE_ONE
    assert (private.of("a").size, private.of("a").most, private.most) == (None, 90, 180)
    assert federation().of("a").most == 30


@pytest.mark.parametrize(
    "given",
    [
        {"name": "clinics.z"},
        {"name": "clinics.a.b"},
        {"clients": [{"name": "a"}, {"name": "a"}]},
        {"clients": [{"name": "a", "size": 3}, {"name": "b"}]},
        {"clients": [{"name": "a.b"}]},
        {"clients": []},
        {"clients": [{"name": "a", "size": 31}], "most_records": 30},
        {"classes": ["no", "no"]},
        {"classes": ["no"]},
        {"auxiliary": "beef"},
        {"epsilon": 1},
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(given):
    with pytest.raises(ValidationError):
        federation(**given)


def test_there_is_no_contract_of_a_client_that_does_not_take_part():
    with pytest.raises(ValidationError):
        federation().of("z")
