"""Networks and optimizer state in one safetensors file, written atomically; nothing is ever unpickled."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError, FileDamaged
from dpmodels.late import Tensor, nn, torch

Part: TypeAlias = "nn.Module | torch.optim.Optimizer"
Network = TypeVar("Network", bound="nn.Module")


def save_state(path: Path, parts: Mapping[str, Part], metadata: Mapping[str, str]) -> None:
    """Write every part's tensors under its name; the file is either the old one or the new one, never half."""
    from safetensors.torch import save_file

    tensors = {f"{name}/{key}": t.contiguous() for name, part in parts.items() for key, t in _tensors(part).items()}
    write_whole(path, lambda part: save_file(tensors, part, metadata=dict(metadata)))


def load_state(path: Path, parts: Mapping[str, Part], *, expect: Mapping[str, str]) -> dict[str, str]:
    """Restore every part in place and return the metadata.

    Raises:
        ArtifactError: the file is damaged, or was written with other settings than ``expect``.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            stored = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as fault:
        raise FileDamaged(f"checkpoint {path.name}", "delete it to train again") from fault
    for key, value in expect.items():
        if metadata.get(key) != value:
            raise ArtifactError(f"checkpoint {path.name} was written with another {key}; delete it to train again")
    try:
        for name, part in parts.items():
            _restore(part, under(f"{name}/", stored))
    except (RuntimeError, ValueError, KeyError, TypeError) as fault:
        raise ArtifactError(f"checkpoint {path.name} does not fit its network; delete it to train again") from fault
    return metadata


def filled(build: Callable[[], Network], tensors: Mapping[str, Tensor]) -> Network:
    """Build a network with these weights, once one that takes no memory has shown that they are its weights.

    Raises:
        ValueError: they are not; whoever wrote the sizes of the network may have written anything.
    """
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in build().state_dict().items()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise ValueError("the weights are those of a network of other sizes")
    network = build()
    network.load_state_dict(dict(tensors))
    return network


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}


def _tensors(part: Part) -> dict[str, Tensor]:
    if isinstance(part, nn.Module):
        return part.state_dict()
    return {f"{i}/{key}": t for i, state in part.state_dict()["state"].items() for key, t in state.items()}


def _restore(part: Part, tensors: dict[str, Tensor]) -> None:
    if isinstance(part, nn.Module):
        part.load_state_dict(tensors)
        return
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split("/")
        state.setdefault(int(index), {})[name] = tensor
    part.load_state_dict({"state": state, "param_groups": part.state_dict()["param_groups"]})
