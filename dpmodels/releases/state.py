"""The state of an unfinished draw: kept in the sensitive zone beside the staged artifact, whole or absent.

The state is bound to one charge and one plan. A resumed draw goes on from it and so is the same draw: released vectors
are not drawn again, steps are neither repeated nor lost, and the key of the randomness stays the same. The state is
deleted when the draw ends; until then it is as sensitive as the data, because the key in it undoes the noise.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmodels.artifact import sync, write_whole
from dpmodels.errors import ArtifactError
from dpmodels.late import Tensor, torch

STATE_FORMAT = "2"
"""The state's format; the first one named no format and kept the index of each choice, not the option."""


class DrawState:
    """The released vectors and the training states of one draw."""

    def __init__(self, folder: Path, charge: str, plan: str) -> None:
        self.path = folder / f"draw-{charge}.safetensors"
        self.owner = {"charge": charge, "plan": plan, "format": STATE_FORMAT}
        self.tensors: dict[str, Tensor] = self._read() if self.path.exists() else {}

    def vectors(self) -> list[NDArray[np.int64]]:
        """Return the vectors released so far, in order."""
        count = sum(name.startswith("look/") for name in self.tensors)
        return [self.tensors[f"look/{index}"].numpy() for index in range(count)]

    def training(self, index: int) -> dict[str, Tensor]:
        """Return the state of one training, empty if it has not begun."""
        prefix = f"training/{index}/"
        return {name.removeprefix(prefix): t for name, t in self.tensors.items() if name.startswith(prefix)}

    def keep_vector(self, vector: NDArray[np.int64]) -> None:
        """Add a released vector."""
        self._write({f"look/{len(self.vectors())}": torch.from_numpy(vector)})

    def keep_training(self, index: int, tensors: Mapping[str, Tensor]) -> None:
        """Replace the state of one training."""
        self._write({f"training/{index}/{name}": tensor.detach().cpu().clone() for name, tensor in tensors.items()})

    def end(self) -> None:
        """Delete the state for good; the draw is complete, and what is in the state would undo its noise."""
        if self.path.exists():
            self.path.unlink()
            sync(self.path.parent)

    def _write(self, tensors: Mapping[str, Tensor]) -> None:
        from safetensors.torch import save_file

        self.tensors |= tensors
        write_whole(self.path, lambda part: save_file(self.tensors, part, metadata=self.owner))

    def _read(self) -> dict[str, Tensor]:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path, framework="pt") as file:
                owner, found = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except SafetensorError as fault:
            raise ArtifactError(f"the state {self.path.name} of an unfinished draw is damaged") from fault
        if owner is not None and owner.get("format") != STATE_FORMAT:
            raise ArtifactError(
                f"the unfinished draw in {self.path.name} was begun by another version, which keeps its steps "
                "otherwise; resume the run with that version, nothing of it is lost"
            )
        if owner != self.owner:
            raise ArtifactError(f"the state {self.path.name} belongs to another charge or plan")
        return found
