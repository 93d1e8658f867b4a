"""A training that dies right after its first checkpoint."""

from pathlib import Path

import pytest

from dpmodels.generators import loop


class Died(Exception):
    pass


def die_after_a_checkpoint(training: loop.TrainingLoop, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until the first checkpoint is whole, and no further."""
    save = loop.save_state

    def save_and_die(*args: object) -> None:
        save(*args)  # type: ignore[arg-type]
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_state", save_and_die)
        with pytest.raises(Died):
            training.train(checkpoint)
