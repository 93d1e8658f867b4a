"""Sanitize: the stage that measures the data, under a charge; a charged section of the report is reserved with it."""

from pathlib import Path

from dpmodels.artifact import check_free
from dpmodels.evaluation.published.charged import Scores
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.privacy import Sensitive
from dpmodels.releases.paid import check_plan
from dpmodels.synthesizers.registry import create
from tasks.accounts import charges_of, reserve
from tasks.encoded import EncodedTable
from tasks.engine import open_engine
from tasks.home import check_home, ledger_of, remember
from tasks.progress import progress_bar
from tasks.ready import check_ready, pick_device
from tasks.stage import stage
from tasks.store import Handle, Run


@stage("sanitize", sensitive=True)
def sanitize(run: Run, ingested: Handle) -> Handle:
    """Measure the encoded table once, inside one ledger charge; whatever is public is checked before it is made."""
    plan, settings, ledger = run.plan, run.settings, ledger_of(run)
    system = create(plan.method, plan.measurement, settings.training)
    check_ready(settings.device, settings.out, settings.signing_key)
    check_plan(system, plan)
    if run.report_plan is not None:
        check_plan(Scores.of(run.report_plan), run.report_plan)
    with progress_bar("sanitize") as tick, open_engine(settings.threads, run.dask) as engine:
        places = {"staged": run.sensitive / "release.parquet", "released": run.place("sanitize")}
        charge = _reserve(run, ledger, **places)
        system.measure(
            Sensitive(EncodedTable(ingested.path, plan.table, engine)),
            plan,
            ledger=ledger,
            charge=charge,
            **places,
            device=pick_device(settings.device),
            progress=tick,
        )
    remember(run.home, run.ledger_url, ledger)
    held = ledger.find(charge.key)
    return run.finish("sanitize", held.artifact_hash if held else "")


def _reserve(run: Run, ledger: Ledger, staged: Path, released: Path) -> Charge:
    """Charge the run, if the ledger is the one that the home knows and the place of the release is free."""
    check_home(run.home, run.ledger_url, ledger)
    held = ledger.find(charges_of(run)[0].key)
    if held is None or held.state == "reserved":
        check_free(staged, released)
    return reserve(run)
