"""A run that is killed where it hurts."""

from pathlib import Path

# what is being done when the power goes: the module that calls it, and the name it calls
MOMENTS = {
    "ingest": ("tasks.kinds.tables", "transform_encode"),
    "sanitize: summing": ("dpmodels.releases.steps", "transform_sum"),
    "sanitize: drawing": ("dpmodels.releases.draw", "measure_gaussian"),
    "sanitize: publishing": ("dpmodels.artifact", "publish"),
    "train": ("dpmodels.generators.loop", "save_state"),
    "sample": ("tasks.stages.sample", "write_parts"),
    "validate": ("tasks.stages.validate", "render"),
    "evaluate": ("tasks.stages.evaluate", "evaluate_run"),
    "publish": ("dpmodels.hand_off.writer", "replace_folder"),
}


def only_run(folder: Path) -> str:
    (run,) = (folder / "home" / "released").iterdir()
    return run.name
