"""Sanitize: the only stage that draws noise, and the only one that is charged."""

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
    plan, settings = run.plan, run.settings
    system = create(plan.method, plan.measurement, settings.training)
    with progress_bar("sanitize") as tick, open_engine(settings.threads, settings.dask) as engine:
        if isinstance(system, PrivateTraining):
            system = system.watched(tick)
        released = system.measure(
            Sensitive(EncodedTable(ingested.path, plan.table, engine)),
            plan,
            ledger=Ledger(run.ledger),
            charge=charge_of(run.name, plan, settings),
            staged=run.sensitive / "release.parquet",
            released=run.released / "release.parquet",
            device=pick_device(settings.device),
        )
    return run.finish("sanitize", released.value)


def charge_of(run_name: str, plan: Plan, settings: Settings) -> Charge:
    """Write a plan down as the charge that the ledger decides on."""
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
