"""What travels between server and clients in rounds without a guarantee, as safetensors: models, and nothing else.

Privacy: none. Such a file is as sensitive as the records that its models were trained on.
"""

import json
from collections.abc import Mapping
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from dpmodels.errors import ArtifactError, FileDamaged
from dpmodels.late import Tensor
from dpmodels.methods.federations.rounds import Server, Update

KEY = "nacre"


def write_update(update: Update) -> bytes:
    """Write a client's update."""
    facts = {"client": update.client, "architecture": update.architecture, "records": update.records}
    return _write(update.weights, facts)


def read_update(content: bytes) -> Update:
    """Read a client's update; whether it fits the server is for ``fault_of`` to say.

    Raises:
        ArtifactError: it is no update.
    """
    weights, facts = _read(content)
    try:
        return Update(str(facts["client"]), facts["architecture"], int(facts["records"]), weights)
    except (KeyError, TypeError, ValueError):
        raise ArtifactError("a client's update is not as nacre writes it") from None


def write_server(server: Server) -> bytes:
    """Write the server's state after a round."""
    tensors = {f"{name}/{key}": tensor for name, model in server.models.items() for key, tensor in model.items()}
    return _write(tensors, {"round": server.round, "architectures": list(server.models)})


def read_server(content: bytes) -> Server:
    """Read the server's state back.

    Raises:
        ArtifactError: it is damaged.
    """
    tensors, facts = _read(content)
    models = {
        name: {key.removeprefix(f"{name}/"): tensor for key, tensor in tensors.items() if key.startswith(f"{name}/")}
        for name in facts["architectures"]
    }
    return Server(int(facts["round"]), models)


def _write(tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> bytes:
    return save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata={KEY: json.dumps(facts)})


def _read(content: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        size = int.from_bytes(content[:8], "little")
        facts = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][KEY])
        return load(content), dict(facts)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError):
        raise FileDamaged("a file of models", "its round must make it again") from None
