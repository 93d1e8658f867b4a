"""The flow of the pool that never sees the data: train and sample from what was released."""

import os

from dpmodels.errors import ArtifactError, NacreError
from flows.with_prefect.artifacts import publish_blindness
from flows.with_prefect.recorded import run_stage
from flows.with_prefect.worker import deployed, run_here
from tasks.sample import sample
from tasks.train import train


@deployed("generate")
def generate(run: str) -> None:
    """Train and sample a run from its release alone, on a worker that must not be able to read anything sensitive.

    Args:
        run: name of a run whose release is sealed, such as 20260131-0a1b2c3d4e.

    Raises:
        NacreError: this worker can.
    """
    found = run_here(run)
    places = (found.home / "sensitive", found.settings.data, found.settings.parents)
    reachable = {str(path): os.access(path, os.R_OK) for path in places if path}
    publish_blindness(found, reachable)
    if seen := [path for path, readable in reachable.items() if readable]:
        raise NacreError(f"this worker can read {', '.join(seen)}; the pool nacre-gpu must not mount it")
    release = found.finished("sanitize")
    if release is None:
        raise ArtifactError(f"run {run} has no sealed release yet")
    run_stage(sample, found, run_stage(train, found, release))
