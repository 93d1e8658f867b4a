"""Sanitize: the stage that measures the data under a charge, and reserves the report's charged section with it."""

from contextlib import nullcontext
from pathlib import Path

from dpmodels.artifact import check_free, prepare_places
from dpmodels.releases.draw import Desk, check_line
from dpmodels.report.charged import Scores
from tasks.engine.engines import open_engine
from tasks.engine.progress import progress_bar
from tasks.kinds.protocol import kind_of_line
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
    """Measure the encoded data once, inside one ledger charge; everything public is checked before the charge."""
    settings = run.settings
    check_ready(settings.device, settings.out, settings.signing_key)
    return measure(run, ingested.path)


def measure(run: Run, encoded: Path | None = None) -> Handle:
    """Measure what a run's line names, inside one ledger charge; everything public is checked before the charge.

    Raises:
        NacreError: something public would make it fail, or the ledger refuses; nothing is charged then.
    """
    line, report, settings = run.plan.release, run.plan.report, run.settings
    kind = kind_of_line(line)
    system = kind.system(run)
    check_line(system, line)
    if report is not None:
        check_line(Scores.reading(report), report)
    dask, device = (run.dask, pick_device(settings.device)) if kind.SYNTHESIZED else (None, "cpu")
    watched = nullcontext(None) if encoded is None else progress_bar("sanitize")
    with watched as tick, open_engine(settings.threads, dask) as engine:
        if encoded is not None:
            check_room(system.held_bytes(system.of(line)), line.method, encoded)
            keep_place(run, engine)
        records = kind.records(run, encoded, engine)
        desk = desk_of(run, device=device, progress=tick)
        with nullcontext() if desk.held() else not_charged_since(run, encoded):
            reserve_run(run, desk)
        system.measure(records, line, desk)
    return seal(run)


def seal(run: Run) -> Handle:
    """Record that a run's release is in place, and have the home remember what paid for it."""
    desk = desk_of(run)
    remember(run.home, run.ledger_url, desk.ledger)
    reservation = desk.held()
    return run.finish("sanitize", reservation.artifact_hash if reservation else "")


def reserve_run(run: Run, desk: Desk) -> None:
    """Charge the run, if the ledger is the one that the home knows and no file, nor a link, is where the release goes.

    The home remembers the charge before anything is drawn: a ledger that is lost meanwhile is missed.
    """
    check_home(run.home, run.ledger_url, desk.ledger)
    reservation = desk.held()
    if reservation is None:  # another run of the same may have been charged, and cut off, since this one was started
        parties = [(party.settings, party.plan.lines) for party in run.parties]
        refuse_paid(run.home, desk.ledger, run.ledger_url, parties)
    if reservation is None or reservation.state == "reserved":
        prepare_places(desk.staged, desk.released)
        check_free(desk.staged, desk.released)
    with naming_paid(run.home, desk.ledger, run.ledger_url):
        reserve(run)
    remember(run.home, run.ledger_url, desk.ledger)
