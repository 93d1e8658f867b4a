"""Sanitize: the stage that measures the data under a charge, and reserves the report's charged section with it."""

from contextlib import nullcontext

from dpmodels.artifact import check_free
from dpmodels.methods.registry import create
from dpmodels.privacy import Sensitive
from dpmodels.releases.draw import Desk, check_line
from dpmodels.report.charged import Scores
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import open_engine
from tasks.engine.progress import progress_bar
from tasks.run.accounts import desk_of, reserve
from tasks.run.bucket import keep_place
from tasks.run.contents import not_charged_since
from tasks.run.home import check_home, remember
from tasks.run.memory import check_room
from tasks.run.ready import check_ready, pick_device
from tasks.run.store import Handle, Run
from tasks.run.unfinished import naming_paid, refuse_paid
from tasks.stages.stage import stage


@stage("sanitize", sensitive=True)
def sanitize(run: Run, ingested: Handle) -> Handle:
    """Measure the encoded table once, inside one ledger charge; everything public is checked before the charge."""
    line, report, settings = run.plan.release, run.plan.report, run.settings
    system = create(line.method, line.measurement, settings.training)
    check_ready(settings.device, settings.out, settings.signing_key)
    check_line(system, line)
    check_room(system.held_bytes(system.of(line)), line.method, ingested.path)
    if report is not None:
        check_line(Scores.reading(report), report)
    with progress_bar("sanitize") as tick, open_engine(settings.threads, run.dask) as engine:
        keep_place(run, engine)
        desk = desk_of(run, device=pick_device(settings.device), progress=tick)
        with nullcontext() if desk.held() else not_charged_since(run, ingested.path):
            reserve_run(run, desk)
        system.measure(Sensitive(EncodedTable(ingested.path, line.contract, engine)), line, desk)
    remember(run.home, run.ledger_url, desk.ledger)
    held = desk.held()
    return run.finish("sanitize", held.artifact_hash if held else "")


def reserve_run(run: Run, desk: Desk) -> None:
    """Charge the run, if the ledger is the one that the home knows and no file is where the release will be.

    The home remembers the charge before anything is drawn: a ledger that is lost meanwhile is missed.
    """
    check_home(run.home, run.ledger_url, desk.ledger)
    held = desk.held()
    if held is None:  # another run of the same may have been charged, and cut off, since this one was started
        parties = [(party.settings, party.plan.lines) for party in run.parties]
        refuse_paid(run.home, desk.ledger, run.ledger_url, parties)
    if held is None or held.state == "reserved":
        check_free(desk.staged, desk.released)
    with naming_paid(run.home, desk.ledger, run.ledger_url):
        reserve(run)
    remember(run.home, run.ledger_url, desk.ledger)
