"""Models that travel read back as they were, and anything else is refused in one sentence."""

import json

import pytest
import torch
from safetensors.torch import save

from dpmodels.errors import ArtifactError
from dpmodels.methods.federations.messages import read_server, read_update, write_server, write_update
from dpmodels.methods.federations.models import build, state_of
from dpmodels.methods.federations.rounds import Server, Update
from tests.kit.parties import SPEC

WEIGHTS = state_of(build("resnet8", SPEC, 1))


def same(first, second) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_an_update_and_a_server_of_two_architectures_come_back() -> None:
    update = read_update(write_update(Update("north", "resnet8", 12, WEIGHTS)))
    assert (update.client, update.architecture, update.records) == ("north", "resnet8", 12)
    assert same(update.weights, WEIGHTS)
    other = state_of(build("shufflenet", SPEC, 2))
    server = read_server(write_server(Server(7, {"resnet8": WEIGHTS, "shufflenet": other})))
    assert server.round == 7 and list(server.models) == ["resnet8", "shufflenet"]
    assert same(server.models["resnet8"], WEIGHTS) and same(server.models["shufflenet"], other)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"Quillfeather" * 9,
        (10**12).to_bytes(8, "little") + b"{}",
        save({"w": torch.ones(2)}),
        save({"w": torch.ones(2)}, metadata={"nacre": json.dumps([1])}),
        save({"w": torch.ones(2)}, metadata={"nacre": json.dumps({"client": "a", "records": "many"})}),
        write_update(Update("a", "mlp", 3, {"w": torch.ones(4)}))[:-3],
    ],
)
def test_what_is_no_update_is_refused_and_not_quoted(content: bytes) -> None:
    with pytest.raises(ArtifactError) as error:
        read_update(content)
    assert "Quillfeather" not in str(error.value)
