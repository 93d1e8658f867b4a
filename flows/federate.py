"""The stages of a federation, in their order: every client releases once; in paper mode rounds follow, inside."""

from collections.abc import Callable

from tasks.run.runs import inside, is_handed_over
from tasks.run.store import Handle, Run
from tasks.stages.federate import gather
from tasks.stages.federate import take_part as take_part
from tasks.stages.rounds import keep_inside, train_in_rounds


def gathered(run: Run, call: Callable[..., Handle]) -> Handle:
    """Have every client release once, unless that was done."""
    return run.finished("round") or call(gather, run)


def train_inside(run: Run, call: Callable[..., Handle]) -> Handle:
    """Train in rounds without a guarantee; the models stay in the sensitive zone, which may be deleted by now."""
    if is_handed_over(run):
        return Handle(path=inside(run))
    return call(keep_inside, run, call(train_in_rounds, run, gathered(run, call)))
