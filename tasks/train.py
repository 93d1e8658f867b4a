"""Train: fit a generator to the release. Reads nothing of the sensitive zone and charges nothing."""

from dpmodels.errors import InvalidArgument
from dpmodels.synthesizers.base import read_release
from dpmodels.synthesizers.registry import create
from tasks.progress import progress_bar
from tasks.stage import stage
from tasks.store import Handle, Run


@stage("train", sensitive=False)
def train(run: Run, release: Handle) -> Handle:
    """Train, or go on training from the last checkpoint."""
    if done := run.finished("train"):
        return done
    settings = run.settings
    released = read_release(release.path)
    plan = released.value.plan
    checkpoint = run.released / "checkpoint.safetensors"
    with progress_bar("train") as tick:
        model = create(plan.method, plan.measurement, settings.training).fit(
            released,
            seed=settings.seed,
            device=pick_device(settings.device),
            checkpoint=checkpoint,
            progress=lambda step, steps, loss: tick(step, steps, f"loss {loss:+.5f}"),
        )
    model.save(run.released / "generator.safetensors")
    checkpoint.unlink(missing_ok=True)
    return run.finish("train", run.released / "generator.safetensors")


def pick_device(device: str) -> str:
    """Return the torch device to use; ``auto`` takes a GPU where there is one.

    Raises:
        InvalidArgument: a device that this machine lacks.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidArgument("device", device, "be auto or cpu: there is no usable GPU here")
    return device
