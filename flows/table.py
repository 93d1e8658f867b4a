"""The flow of one table: one run of the pipeline, and one charge, however often the flow run is started.

A flow run has one run of the pipeline, which it finds again by name. Started again after a crash, after an approval or
by mistake, it goes on with the same run and its one charge.
"""

from collections.abc import Callable
from typing import Any, Literal

from flows.config import SynthesizeConfig
from flows.planning import MayOpen
from flows.synthesize import record, start
from flows.with_prefect.artifacts import publish_plan, publish_results
from flows.with_prefect.recorded import run_stage
from flows.with_prefect.worker import alone_on, check_pool, deployed, find_here, have_generated, own_name, placed_here
from tasks.sample import sample
from tasks.store import Handle, Run
from tasks.train import train

TrainOn = Literal["here", "nacre-gpu"]


@deployed("synthesize-table")
def synthesize_table(config: SynthesizeConfig, train_on: TrainOn = "here") -> str:
    """Make a synthetic copy of a table: one charge, however often this flow run is started.

    Args:
        config: the table, the budget, the method and the hand-off.
        train_on: where to train and sample: here, on this worker, or nacre-gpu, the pool that never sees the data.
    """
    return take_to_hand_off(own_name(), config, train_on)


def take_to_hand_off(name: str, config: SynthesizeConfig, train_on: str, partition: str = "") -> str:
    """Start the run of this name, or go on with it."""
    run = find_here(name) or start(placed_here(config), name, partition, may_open=MayOpen.NO)
    return go_on(run, train_on, partition)


def go_on(run: Run, train_on: str = "here", partition: str = "") -> str:
    """Take a run to its hand-off, while no other flow run works for its account."""
    if train_on != "here" and not run.finished("sanitize"):
        check_pool()
    run.settle(run.settings.model_copy(update={"train_on": train_on}))
    with alone_on(run.settings.account):
        publish_plan(run, partition)
        record(run, True, lambda stage, *handles: _placed(run, stage, *handles))
        publish_results(run)
    return run.name


def _placed(run: Run, stage: Callable[..., Handle], *handles: Any) -> Handle:
    """Run a stage here, or have the pool without data access run it."""
    if run.settings.train_on == "here" or stage not in (train, sample):
        return run_stage(stage, *handles)
    return have_generated(run, stage.policy.name)  # type: ignore[attr-defined]
