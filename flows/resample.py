"""The flow that samples a finished run again: free, since its release is paid for."""

from dpmodels.files import Place
from flows.synthesize import pipeline
from flows.with_prefect.artifacts import publish_results
from flows.with_prefect.assets import publish_assets
from flows.with_prefect.recorded import run_stage
from flows.with_prefect.worker import deployed, name_flow_run, own_name, run_here, scheduled
from tasks.run.at_work import at_work
from tasks.run.receive import sample_again


@deployed("resample")
def resample(run: str, out: Place, rows: int | None = None, seed: int | None = None) -> str:
    """Sample a finished run again, by default with the week's number as the seed: free, since its release is paid for.

    ``{week}`` in the path of the hand-off stands for the year and week this flow run was scheduled for.

    Args:
        run: name of a finished run under the worker's NACRE_HOME, such as 20260131-0a1b2c3d4e.
        out: folder or URI of the hand-off, new or empty, such as /srv/nacre/hand-offs/week-{week}.
        rows: synthetic rows, such as 10000; by default the released, noisy number of records.
        seed: of the drawing of rows, such as 7; by default the number of the week.
    """
    week = scheduled().strftime("%G%V")
    target = out.replace("{week}", week)
    again = sample_again(run_here(run), own_name(), target, rows, int(week) if seed is None else seed)
    name_flow_run(again)
    with at_work(again):
        pipeline(again, run_stage)
        publish_results(again)
        publish_assets(again)
    return again.name
