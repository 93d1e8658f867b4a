"""Train: fit a generator to the release. Reads nothing of the sensitive zone and charges nothing."""

from importlib.metadata import version

from dpmodels.artifact import write_whole
from dpmodels.methods.registry import create, training_of
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from tasks.engine.progress import progress_bar
from tasks.run.ready import pick_device
from tasks.run.store import Handle, Made, Run
from tasks.stages.stage import stage


@stage("train", sensitive=False)
def train(run: Run, release: Handle) -> Handle:
    """Train, or go on training from the last checkpoint."""
    checkpoint = run.released / "checkpoint.safetensors"
    if handle := run.finished("train"):
        checkpoint.unlink(missing_ok=True)  # that it was deleted may have been forgotten with the power
        return handle
    settings = run.settings
    released = read_release(release.path)
    line = released.value.line
    with progress_bar("train") as tick:
        craft = Craft(
            seed=settings.seed,
            device=pick_device(settings.device),
            checkpoint=checkpoint,
            progress=lambda step, steps, loss: tick(step, steps, f"loss {loss:+.5f}"),
        )
        model = create(line.method, line.measurement, settings.training).fit(released, craft)
    write_whole(run.place("train"), model.save)
    checkpoint.unlink(missing_ok=True)
    # all settings are written down: a later version may have other defaults
    spec = training_of(line.method).model_validate(settings.training)
    origin = Made(nacre_version=version("nacre"), seed=settings.seed, settings=spec.model_dump(mode="json"))
    return run.finish("train", made=origin)
