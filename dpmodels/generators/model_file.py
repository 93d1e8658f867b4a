"""One file for every trained generator: its tensors, and in the header what they mean; nothing is ever unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import FileDamaged
from dpmodels.late import Tensor

About = Schema | Documents | Tree
ABOUT: dict[str, type[About]] = {"schema": Schema, "documents": Documents, "tree": Tree}
"""The contracts that a generator can be about, by the key of the header that holds one."""


def write_model(path: Path, kind: str, contract: About, tensors: Mapping[str, Tensor], **facts: Any) -> None:
    """Write a generator of one kind; the same content gives the same bytes."""
    from safetensors.torch import save_file

    (about,) = (key for key, model in ABOUT.items() if isinstance(contract, model))
    facts |= {"kind": kind, about: contract.model_dump(mode="json")}
    whole = {key: tensor.cpu().contiguous() for key, tensor in tensors.items()}
    save_file(whole, path, metadata={"nacre": json.dumps(facts)})  # safetensors writes several in no fixed order


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read facts (the contract under ``schema``) and tensors back.

    Raises:
        FileDamaged: the file is missing, or no model is in it.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["nacre"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
        (about,) = facts.keys() & ABOUT
        facts["schema"] = ABOUT[about].model_validate_json(json.dumps(facts.pop(about)))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as fault:
        raise FileDamaged(f"generator {path.name}", "train it again") from fault
    return facts, tensors
