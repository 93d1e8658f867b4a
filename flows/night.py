"""The flow of a night: it makes a synthetic copy of one day's partition, as a run of its own."""

from datetime import date, timedelta
from typing import Literal

from dpmodels.authoring.lint import load_schema
from flows.config import SynthesizeConfig
from flows.partitions import NIGHT, check_nights
from flows.table import TrainOn, take_to_hand_off
from flows.with_prefect.budget import key_of
from flows.with_prefect.worker import deployed, scheduled

Partitions = Literal["disjoint", "sequential"]


@deployed("synthesize-night")
def synthesize_night(
    config: SynthesizeConfig,
    partitions: Partitions,
    night: date | None = None,
    train_on: TrainOn = "here",
    wait_hours: float = 24,
) -> str:
    """Make a synthetic copy of one night's partition: one charge a night, however often it is started.

    ``{night}`` in the place of the data, in its query and in the path of the hand-off stands for the night, by default
    the one before the day this flow run was scheduled for. A disjoint night reads the rows of that day by the schema's
    partition column, so its data may be one table for all nights; a sequential one reads whatever its place holds.

    Args:
        config: the tables, the budget of a night, the method and the hand-offs; places hold {night}.
        partitions: disjoint: a night reads the records of its day by the schema's partition column, and is an account
            of its own under the parent; nights cost the largest, not the sum. sequential: a unit may be in several
            nights; all are charged to one account and add up.
        night: the day to make, such as 2026-01-31; by default the one before the day this flow run is scheduled for.
        train_on: where to train and sample: here, on this worker, or train-worker, by a process that never sees the
            data.
        wait_hours: how long to wait for a train worker.
    """
    check_nights(config, load_schema(config.table_schema), partitions == "disjoint")
    day = (night or scheduled().date() - timedelta(days=1)).isoformat()
    read = {name: getattr(config, name).replace(NIGHT, day) for name in ("data", "query", "parents")}
    settings = {**read, "out": config.out.replace(NIGHT, day)}
    name = f"{key_of(config.privacy.account or '')}-{day}"
    partition = day if partitions == "disjoint" else ""
    return take_to_hand_off(name, config.model_copy(update=settings), train_on, partition, wait_hours)
