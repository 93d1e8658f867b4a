"""The synthesis flow: ingest -> sanitize -> train -> sample (-> score) -> validate -> hand-off.

The pipeline is written once; it runs as plain Python, or with every stage as a task of one Prefect flow run.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmodels.errors import InvalidArgument, Unsuitable
from flows.building import NOTHING_LEAVES
from flows.config import SynthesizeConfig
from flows.lineage import told
from flows.start import start as start
from flows.with_prefect.approval import ask_approver
from flows.with_prefect.budget import balances, publish_budget
from tasks.kinds.protocol import direct_kind_of, kind_of_line
from tasks.run.at_work import at_work
from tasks.run.in_memory import forget_given
from tasks.run.ready import pick_device
from tasks.run.receive import redirected
from tasks.run.recover import recover
from tasks.run.remove import withdraw
from tasks.run.runs import stays_inside
from tasks.run.store import Handle, Run
from tasks.stages.evaluate import evaluate
from tasks.stages.ingest import ingest
from tasks.stages.publish import publish
from tasks.stages.sample import sample
from tasks.stages.sanitize import sanitize
from tasks.stages.score import score
from tasks.stages.train import train
from tasks.stages.validate import validate


def pipeline(run: Run, call: Callable[..., Handle]) -> Handle:
    """Run every stage that has not finished yet; ``call`` decides how a stage is run."""
    with told(run, call) as noted:
        return _stages(run, noted)


def _stages(run: Run, call: Callable[..., Handle]) -> Handle:
    if run.settings.federation or stays_inside(run):
        from flows import federate  # it needs torch, which not every installation has

        return federate.train_inside(run, call) if run.settings.clients else call(federate.take_part, run)
    release = product = released(run, call)
    if direct_kind_of(run.plan.release) is None:
        product = call(sample, run, call(train, run, release))
    if run.plan.report is not None:
        call(score, run, product)
    report = call(validate, run, release, product)
    compared = run.settings.internal_report and kind_of_line(run.plan.release).COMPARED
    if compared and (run.sensitive / "encoded").exists():  # the sensitive zone may be deleted by now
        call(evaluate, run, Handle(path=run.sensitive / "encoded"), product)
    handed_over = call(publish, run, release, product, report)
    forget_given(run)
    return handed_over


def released(run: Run, call: Callable[..., Handle]) -> Handle:
    """Measure the data, or have each client of a federation measure its own, unless that was done."""
    if not run.settings.clients:
        return run.finished("sanitize") or call(sanitize, run, call(ingest, run))
    from flows import federate

    return federate.gathered(run, call)


def synthesize(config: SynthesizeConfig) -> Run:
    """Start a new run and take it to its hand-off."""
    return carry_out(start(config), config.runtime.prefect)


def find(
    home: Path,
    name: str,
    ledger: str | None,
    dask: str | None,
    *,
    device: str | None = None,
    out: str | Path | None = None,
) -> Run:
    """Return a run that was started before, to go on with it; a new device or hand-off folder enters its settings.

    Raises:
        NacreError: there is no run of this name, or no such device, or nothing that is handed over.
    """
    run = Run.find(home, name, ledger, dask)
    if run.plan.contract.kind == "discovery":
        raise Unsuitable(
            f"run {name} discovers what a schema lacks: give `nacre schema discover` again with the same draft, "
            "epsilon and delta; it goes on where it stopped, without a second charge"
        )
    changes: dict[str, Any] = {"device": pick_device(device)} if device else {}
    if out and stays_inside(run):
        raise InvalidArgument("out", out, NOTHING_LEAVES)
    if out:
        changes |= redirected(run, out)
    if changes:
        run.settle(run.settings.model_copy(update=changes))
    return run


def carry_out(run: Run, prefect: bool, begun: Callable[[], object] = tuple) -> Run:
    """Run the remaining stages of a run, as plain calls or as the tasks of one flow run.

    ``begun`` is called once what the run reads was not refused, before anything is charged. If it raises, nobody wants
    the run, which is withdrawn.
    """
    refusals = list[BaseException]()
    begun = _noting(begun, refusals)
    try:
        return _carried_out(run, prefect, begun)
    finally:
        if refusals:
            withdraw(run)


def _carried_out(run: Run, prefect: bool, begun: Callable[[], object]) -> Run:
    """Run the remaining stages, as ``carry_out`` does."""
    with at_work(run):
        if prefect:
            from flows.with_prefect.recorded import run_as_flow

            run_as_flow(run, lambda lasting, call: record(run, lasting, _telling(begun, call)))
        else:
            recover(run)
            for party in run.parties:
                ask_approver(party, lasting_server=False)
            pipeline(run, _telling(begun, lambda stage, *handles: stage(*handles)))
    return run


def _noting(begun: Callable[[], object], refusals: list[BaseException]) -> Callable[[], object]:
    """Have an error of a call noted before it is raised."""

    def calling() -> None:
        try:
            begun()
        except BaseException as refusal:
            refusals.append(refusal)
            raise

    return calling


def _telling(begun: Callable[[], object], call: Callable[..., Handle]) -> Callable[..., Handle]:
    """Have whoever waits for it know when the first stage begins that reads no raw data."""
    waiting = [begun]

    def calling(stage: Callable[..., Handle], *handles: Any) -> Handle:
        if waiting and stage is not ingest:
            waiting.pop()()
        return call(stage, *handles)

    return calling


def record(run: Run, lasting_server: bool, call: Callable[..., Handle]) -> None:
    """Ask the account's officer if it has one, run the pipeline, and tell Prefect what became of the budget."""
    recover(run)
    before = balances(run)
    try:
        for party in run.parties:
            ask_approver(party, lasting_server)
        pipeline(run, call)
    finally:
        publish_budget(run, before)
