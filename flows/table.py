"""The flow of one table: one run of the pipeline, and one charge, however often the flow run is started.

A flow run has one run of the pipeline, which it finds again by name. Started again after a crash, after an approval or
by mistake, it goes on with the same run and its one charge.
"""

from collections.abc import Callable
from typing import Any, Literal

from dpmodels.errors import NacreError
from flows.config import Charged, SynthesizeConfig
from flows.planning import MayOpen
from flows.start import start
from flows.synthesize import record
from flows.with_prefect.artifacts import publish_plan, publish_results
from flows.with_prefect.assets import publish_assets
from flows.with_prefect.recorded import run_stage
from flows.with_prefect.worker import alone_on, deployed, find_here, name_flow_run, own_name, placed_here
from tasks.run.apart import is_alive, wait_for
from tasks.run.at_work import at_work
from tasks.run.store import Handle, Run
from tasks.stages.sample import sample
from tasks.stages.train import train

TrainOn = Literal["here", "train-worker"]
WAIT_HOURS = 24.0


@deployed("synthesize-table")
def synthesize_table(config: SynthesizeConfig, train_on: TrainOn = "here", wait_hours: float = WAIT_HOURS) -> str:
    """Make a synthetic copy of a table: one charge, however often this flow run is started.

    Args:
        config: the table, the budget, the method and the hand-off.
        train_on: where to train and sample: here, on this worker, or train-worker, by a process that never sees the
            data.
        wait_hours: how long to wait for a train worker.
    """
    return take_to_hand_off(own_name(), config, train_on, wait_hours=wait_hours)


def take_to_hand_off(
    name: str, config: Charged, train_on: str = "here", partition: str = "", wait_hours: float = WAIT_HOURS
) -> str:
    """Start the run of this name, or go on with it."""
    run = find_here(name) or start(placed_here(config), name, partition, may_open=MayOpen.NO)
    return go_on(run, train_on, partition, wait_hours)


def go_on(run: Run, train_on: str = "here", partition: str = "", wait_hours: float = WAIT_HOURS) -> str:
    """Take a run to its hand-off, while no other flow run works for its account.

    Raises:
        NacreError: nobody is there to train it; nothing was charged.
    """
    if train_on != "here" and not run.finished("sanitize") and not is_alive(run.home):
        raise NacreError(
            "no train worker was heard of: start one where the data cannot be read (nacre train-worker), or set "
            "`train_on` to `here`; nothing was charged"
        )
    name_flow_run(run)
    run.settle(run.settings.model_copy(update={"train_on": train_on}))
    with alone_on(run.settings.account or run.plan.contract.name), at_work(run):
        publish_plan(run, partition)
        record(run, True, lambda stage, *handles: _placed(run, wait_hours, stage, *handles))
        publish_results(run)
        publish_assets(run)
    return run.name


def _placed(run: Run, wait_hours: float, stage: Callable[..., Handle], *handles: Any) -> Handle:
    """Run a stage here, or wait until a process without the data has run it."""
    if run.settings.train_on == "here" or stage not in (train, sample):
        return run_stage(stage, *handles)
    return wait_for(run, stage.policy.name, wait_hours)  # type: ignore[attr-defined]
