"""The flows behind the deployments: a partition every night, fresh samples every week, and either when asked.

A flow run stands for one run of the pipeline, which it finds again by name: started again after a crash, an approval
or by mistake, it goes on with the same run and its one charge. Where the state lies is the worker's business and no
parameter: ``NACRE_HOME``, ``NACRE_LEDGER`` and ``NACRE_DASK`` of its environment.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import flow, runtime
from pydantic import Field

from dpmodels.errors import ArtifactError, InvalidArgument, NacreError
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.schema.lint import load_schema
from flows.artifacts import publish_blindness, publish_checks, publish_plan, publish_results
from flows.budget import key_of
from flows.config import SynthesizeConfig
from flows.ledger import HOME
from flows.partitions import check_nights
from flows.synthesize import pipeline, record, start
from tasks.budget import sealed_releases
from tasks.home import home_faults, ledger_of
from tasks.receive import sample_again
from tasks.sample import sample
from tasks.stage import as_task
from tasks.store import Handle, Run
from tasks.train import train
from tasks.validate import check_hand_off

GPU_DEPLOYMENT = "generate/gpu"
LEASE_SECONDS = 60  # how long a worker that died keeps its account busy; Prefect takes no less

Partitions = Annotated[
    Literal["disjoint", "sequential"],
    Field(
        description="disjoint: a night reads the records of its day by the schema's partition column, and is an "
        "account of its own under the parent; nights cost the largest, not the sum. sequential: a unit may be in "
        "several nights; all are charged to one account and add up."
    ),
]
TrainOn = Annotated[
    Literal["here", "nacre-gpu"],
    Field(description="Where to train and sample: on this worker, or in the pool that never sees the data."),
]
RunName = Annotated[str, Field(description="Name of a run under the worker's NACRE_HOME.")]


@flow(name="synthesize-table", persist_result=False, log_prints=False)
def synthesize_table(config: SynthesizeConfig, train_on: TrainOn = "here") -> str:
    """Make a synthetic copy of a table: one charge, however often this flow run is started."""
    return _carry_out(_own_name(), config, train_on)


@flow(name="synthesize-night", persist_result=False, log_prints=False)
def synthesize_night(
    config: SynthesizeConfig, partitions: Partitions, night: date | None = None, train_on: TrainOn = "here"
) -> str:
    """Make a synthetic copy of one night's partition: one charge a night, however often it is started.

    ``{night}`` in the paths of the data and of the hand-off stands for the night, by default the one before the day
    this flow run was scheduled for. A disjoint night reads the rows of that day by the schema's partition column, so
    its data may be one table for all nights; a sequential one reads whatever its path holds.
    """
    check_nights(config, load_schema(config.table_schema), partitions == "disjoint")
    day = (night or runtime.flow_run.scheduled_start_time.date() - timedelta(days=1)).isoformat()
    places = {name: Path(str(getattr(config, name)).replace("{night}", day)) for name in ("data", "out")}
    name = f"{key_of(config.privacy.account or '')}-{day}"
    return _carry_out(name, config.model_copy(update=places), train_on, day if partitions == "disjoint" else "")


@flow(name="resample", persist_result=False, log_prints=False)
def resample(run: RunName, out: Path, rows: int | None = None, seed: int | None = None) -> str:
    """Sample a finished run again, by default with the week's number as the seed: free, since its release is paid for.

    ``{week}`` in the path of the hand-off stands for the year and week this flow run was scheduled for.
    """
    week = runtime.flow_run.scheduled_start_time.strftime("%G%V")
    place = Path(str(out).replace("{week}", week)).absolute()
    again = sample_again(_run(run), _own_name(), place, rows, int(week) if seed is None else seed)
    pipeline(again, _as_task)
    publish_results(again)
    return again.name


@flow(name="validate-run", persist_result=False, log_prints=False)
def validate_run(run: RunName, public_key: Path | None = None) -> None:
    """Check a run's hand-off against its schema and its manifest, the whole ledger and every sealed release; free.

    Raises:
        ArtifactError: something is wrong; the artifact of the flow run names all of it.
    """
    found, home = _run(run), _home()
    ledger = ledger_of(found)
    verified = verify_hand_off(found.settings.out, public_key)
    broken = [f"the synthetic table breaks {rule}" for rule in check_hand_off(found.settings.out, None).broken]
    known = home_faults(home, found.ledger_url, ledger)
    faults = [*verified.faults, *broken, *ledger.verify(sealed_releases(ledger, home)), *map(str, known)]
    publish_checks(found, faults, verified.signature)
    if faults:
        raise ArtifactError(f"run {run} has {len(faults)} fault(s): {'; '.join(faults)}")


@flow(name="generate", persist_result=False, log_prints=False)
def generate(run: RunName) -> None:
    """Train and sample a run from its release alone, on a worker that must not be able to read anything sensitive.

    Raises:
        NacreError: this worker can.
    """
    found = _run(run)
    reachable = {str(path): os.access(path, os.R_OK) for path in (found.home / "sensitive", found.settings.data)}
    publish_blindness(found, reachable)
    if seen := [path for path, readable in reachable.items() if readable]:
        raise NacreError(f"this worker can read {', '.join(seen)}; the pool nacre-gpu must not mount it")
    release = found.finished("sanitize")
    if release is None:
        raise ArtifactError(f"run {run} has no sealed release yet")
    _as_task(sample, found, _as_task(train, found, release))


def _carry_out(name: str, config: SynthesizeConfig, train_on: str, partition: str = "") -> str:
    """Start the run of this name, or go on with it, alone on its account."""
    run = _find(name) or start(_at_home(config), name, partition)
    with _alone_on(run.settings.account):
        publish_plan(run, partition)
        record(run, True, lambda stage, *handles: _placed(train_on, run, stage, *handles))
        publish_results(run)
    return run.name


def _placed(train_on: str, run: Run, stage: Callable[..., Handle], *handles: Any) -> Handle:
    """Run a stage here, or have the pool without data access run it."""
    if train_on == "here" or stage not in (train, sample):
        return _as_task(stage, *handles)
    name = stage.policy.name  # type: ignore[attr-defined]
    if run.finished(name) is None:
        from prefect.deployments import run_deployment

        ended: Any = run_deployment(GPU_DEPLOYMENT, parameters={"run": run.name}, poll_interval=2)
        if not ended.state.is_completed():
            raise NacreError(f"{GPU_DEPLOYMENT} ended as {ended.state.name}; start this flow run again to go on")
    done = run.finished(name)
    if done is None:
        raise ArtifactError(
            f"{GPU_DEPLOYMENT} left no {name} in {run.released}; do both pools mount the released zone?"
        )
    return done


def _as_task(stage: Callable[..., Handle], *handles: Any) -> Handle:
    return as_task(stage)(*handles)


@contextmanager
def _alone_on(account: str) -> Iterator[None]:
    """Wait until no other flow run works for the account."""
    from prefect.client.orchestration import get_client
    from prefect.concurrency.sync import concurrency

    limit = f"nacre-account-{key_of(account)}"
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(limit, 1)
    # A lease that cannot be renewed ends nothing: the ledger, not this limit, is what keeps the cap.
    with concurrency(limit, lease_duration=LEASE_SECONDS, strict=True, raise_on_lease_renewal_failure=False):
        yield


def _find(name: str) -> Run | None:
    """Return the run of this name, if it was started before."""
    return _run(name) if Run(home=_home(), name=name).exists else None


def _run(name: str) -> Run:
    """Return a run, to work on with the ledger and the cluster of this worker's environment."""
    return Run.find(_home(), name, os.environ.get("NACRE_LEDGER"), os.environ.get("NACRE_DASK"))


def _own_name() -> str:
    return name_of(str(runtime.flow_run.id))


def name_of(flow_run: str) -> str:
    """Name the run of a flow run: always the same, and without the time that is part of the flow run's id."""
    return f"flow-{hashlib.sha256(flow_run.encode()).hexdigest()[:16]}"


def _home() -> Path:
    return Path(os.environ.get("NACRE_HOME", HOME)).absolute()


def _at_home(config: SynthesizeConfig) -> SynthesizeConfig:
    """Let the worker's environment say where state, ledger and cluster lie.

    Raises:
        InvalidArgument: a parameter of the flow run names a ledger or a cluster; whoever may ask for a run must not
            choose which account is charged, or whose answers are believed.
    """
    for name in ("ledger", "dask"):
        if (given := getattr(config.runtime, name)) is not None:
            raise InvalidArgument(f"runtime.{name}", given, f"be left out: set NACRE_{name.upper()} for the worker")
    places = {"home": _home(), "ledger": os.environ.get("NACRE_LEDGER"), "dask": os.environ.get("NACRE_DASK")}
    return config.model_copy(update={"runtime": config.runtime.model_copy(update=places)})
