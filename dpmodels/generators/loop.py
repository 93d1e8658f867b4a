"""The one training loop of released objects: to the last step, with checkpoints, progress and a cosine schedule.

What a step does is the subclass's: PEARL's two players in reconstruction.py, closed-form moments in moment_matching.py.
A resumed training goes on exactly where the killed one was, if its steps are a function of (seed, step).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dpmodels.errors import ArtifactError
from dpmodels.frozen import Frozen
from dpmodels.generators.checkpoint import Part, load_state, save_state
from dpmodels.late import Tensor, torch

Progress = Callable[[int, int, float], None]
"""Called with (steps done, steps in all, loss)."""

REPORT_EVERY = 20
"""Steps between two progress reports; reading the loss off a GPU more often would hold it up."""


class LoopSpec(Frozen):
    """Training hyper-parameters; none of them can change what was charged."""

    steps: Annotated[int, Field(ge=1)]
    checkpoint_every: Annotated[int, Field(ge=1)]


class TrainingLoop(ABC):
    """Steps that have been taken, and the one that ends the training; a subclass may bring the end forward."""

    def __init__(self, spec: LoopSpec) -> None:
        self.loop, self.step, self.end = spec, 0, spec.steps

    @abstractmethod
    def descend(self) -> Tensor:
        """Take one step and return its loss, detached."""

    @abstractmethod
    def parts(self) -> Mapping[str, Part]:
        """Name all that a checkpoint holds."""

    @property
    def decay(self) -> float:
        """Return the part of a learning rate that is left at this step."""
        return 0.5 * (1 + math.cos(math.pi * self.step / self.loop.steps))

    def improve(self, optimizer: "torch.optim.Optimizer", learning_rate: float, objective: Tensor) -> None:
        """Take one step of an optimiser, at a learning rate that decays with the steps."""
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * self.decay
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(objective)
        optimizer.step()

    def train(self, checkpoint: Path | None, progress: Progress | None = None) -> None:
        """Train to the end, from the checkpoint if there is one.

        Raises:
            ArtifactError: the loss is no longer a number, or the checkpoint is damaged or of other settings.
        """
        settings = {"spec": self.loop.model_dump_json()}
        if checkpoint and checkpoint.exists():
            state = load_state(checkpoint, self.parts(), expect=settings)
            self.step, self.end = int(state["step"]), int(state["end"])
        while self.step < self.end:
            loss = self.descend()
            self.step += 1
            last = self.step == self.end
            if progress is not None and (last or self.step % REPORT_EVERY == 0):
                progress(self.step, self.end, loss.item())
            if last or self.step % self.loop.checkpoint_every == 0:
                if not math.isfinite(loss.item()):
                    raise ArtifactError(f"training diverged at step {self.step}; lower the learning rate")
                if checkpoint:
                    save_state(checkpoint, self.parts(), {"step": str(self.step), "end": str(self.end), **settings})
