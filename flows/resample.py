"""The flow that samples a finished run again: free, since its release is paid for."""

from pathlib import Path

from flows.synthesize import pipeline
from flows.with_prefect.artifacts import publish_results
from flows.with_prefect.recorded import run_stage
from flows.with_prefect.worker import RunName, deployed, own_name, run_here, scheduled
from tasks.receive import sample_again


@deployed("resample")
def resample(run: RunName, out: Path, rows: int | None = None, seed: int | None = None) -> str:
    """Sample a finished run again, by default with the week's number as the seed: free, since its release is paid for.

    ``{week}`` in the path of the hand-off stands for the year and week this flow run was scheduled for.
    """
    week = scheduled().strftime("%G%V")
    place = Path(str(out).replace("{week}", week)).absolute()
    again = sample_again(run_here(run), own_name(), place, rows, int(week) if seed is None else seed)
    pipeline(again, run_stage)
    publish_results(again)
    return again.name
