"""One file for every trained generator: its tensors, and in the header what they mean; nothing is ever unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmodels.errors import ArtifactError
from dpmodels.late import Tensor
from dpmodels.schema.schema import Schema


def write_model(path: Path, kind: str, schema: Schema, tensors: Mapping[str, Tensor], **facts: Any) -> None:
    """Write a generator of one kind; the same content gives the same bytes."""
    from safetensors.torch import save_file

    facts |= {"kind": kind, "schema": schema.model_dump(mode="json")}
    whole = {key: tensor.cpu().contiguous() for key, tensor in tensors.items()}
    # under one key, because safetensors writes several in no fixed order
    save_file(whole, path, metadata={"nacre": json.dumps(facts)})


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read facts (``schema`` as a Schema) and tensors back.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["nacre"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
        facts["schema"] = Schema.model_validate_json(json.dumps(facts["schema"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as fault:
        raise ArtifactError(f"generator {path.name} is missing or damaged; train it again") from fault
    return facts, tensors
