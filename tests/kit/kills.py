"""A run that is killed where it hurts."""

from pathlib import Path

MOMENTS = {
    "ingest": ("tasks.kinds.tables", "transform_encode"),
    "sanitize: drawing": ("dpmodels.releases.draw", "measure_gaussian"),
    "train": ("dpmodels.generators.loop", "save_state"),
    "evaluate": ("tasks.stages.evaluate", "evaluate_run"),
    "publish": ("dpmodels.hand_off.writer", "replace_folder"),
}
"""What is being done when the power goes: the module that calls it, and the name it calls."""


def only_run(folder: Path) -> str:
    (run,) = (folder / "home" / "released").iterdir()
    return run.name
