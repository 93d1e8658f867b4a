"""Sanitize: the stage that measures the data, under a charge; a charged section of the report is reserved with it."""

from dpmodels.accounting.ledger import Charge, Ledger
from dpmodels.privacy import Sensitive
from dpmodels.synthesizers.base import Plan
from dpmodels.synthesizers.private_training import PrivateTraining
from dpmodels.synthesizers.registry import create
from tasks.encoded import EncodedTable
from tasks.engine import open_engine
from tasks.progress import progress_bar
from tasks.stage import stage
from tasks.store import Handle, Run, Settings
from tasks.train import pick_device


@stage("sanitize", sensitive=True)
def sanitize(run: Run, ingested: Handle) -> Handle:
    """Measure the encoded table once, inside one ledger charge."""
    plan, settings, ledger = run.plan, run.settings, Ledger(run.ledger)
    system = create(plan.method, plan.measurement, settings.training)
    charge, *others = charges_of(run)
    if others:  # all or none, before anything is drawn
        ledger.reserve(charge, *others)
    with progress_bar("sanitize") as tick, open_engine(settings.threads, settings.dask) as engine:
        if isinstance(system, PrivateTraining):
            system = system.watched(tick)
        released = system.measure(
            Sensitive(EncodedTable(ingested.path, plan.table, engine)),
            plan,
            ledger=ledger,
            charge=charge,
            staged=run.sensitive / "release.parquet",
            released=run.released / "release.parquet",
            device=pick_device(settings.device),
        )
    return run.finish("sanitize", released.value)


def charges_of(run: Run) -> list[Charge]:
    """Write the lines of a run's plan down as charges: the release, then the report if it is charged."""
    lines = [run.plan, *([run.report_plan] if run.report_plan else [])]
    return [charge_of(run.name, plan, run.settings) for plan in lines]


def charge_of(run_name: str, plan: Plan, settings: Settings) -> Charge:
    """Write one line of a plan down as the charge that the ledger decides on."""
    return Charge(
        account=settings.account,
        dataset=plan.table.name,
        mechanism=plan.method,
        event=plan.event,
        budget=plan.budget,
        plan_hash=plan.hash,
        schema_hash=plan.table.hash,
        run=run_name,
    )
