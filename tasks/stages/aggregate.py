"""Central trust: clients hand their exact sums to a trusted aggregator, which adds them up and draws one noise for all.

The aggregator is the process of the federation's run. It reads every client's exact sums, which say as much as the
records may; they lie in the run's sensitive folder, and are deleted once the noise is drawn. No record leaves a client.
The folder of the sums is opened and closed by the aggregator alone: a client's process that outlived its aggregator
finds it closed, and can leave its sum nowhere.

    the aggregator   open the folder of the sums
    each client      reserve its own charge, then leave the exact sum with the aggregator
    the aggregator   write down whose sums it adds -> announce the draw in every account -> draw once -> seal and commit
                     the one release in every account

Every client is charged the same Gaussian, once, before it is drawn; a client without a sum gets its charge back.
"""

import os
import shutil
from contextlib import nullcontext, suppress
from pathlib import Path

from dpmodels.artifact import write_text
from dpmodels.contract.dropped import UNPLANNED
from dpmodels.errors import NacreError, Unsuitable
from dpmodels.releases.draw import Desk, check_line
from dpmodels.statistics.class_moments import transform_all_moments
from dpmodels.statistics.partial_sums import load_sums, transform_keep
from tasks.engine.engines import Threads
from tasks.kinds.clients import run_clients
from tasks.kinds.federation import Round, create, federation_of, parties_of, records, system
from tasks.run.accounts import desk_of
from tasks.run.contents import not_charged_since
from tasks.run.folders import make_private
from tasks.run.lock import waited_for
from tasks.run.store import Handle, Run
from tasks.stages.federate import ask_clients, give_back
from tasks.stages.sanitize import reserve_run, seal
from tasks.stages.stage import stage

SUMS = "sums"
CLOSED = "this client's aggregator takes no more sums; start a new run of the federation"


@stage("client", sensitive=True)
def hand_in(run: Run) -> Handle:
    """Charge a client's account, and leave the exact sum of its records with the aggregator.

    Raises:
        Unsuitable: the aggregator has closed the folder of the sums; the client is not charged, or no longer.
    """
    path = _place(run)
    with waited_for(run):
        if path.exists() or run.finished("sanitize"):
            return Handle(path=path)
        line, measured = run.plan.release, system(run)
        check_line(measured, line)
        total = transform_all_moments(measured.of(line), records(run, None, Threads(1)))
        if not path.parent.exists():
            raise Unsuitable(CLOSED)
        desk = desk_of(run)
        with nullcontext() if desk.held() else not_charged_since(run):
            reserve_run(run, desk)
        try:
            transform_keep(total, path)
        except FileNotFoundError:
            give_back(run, "its aggregator had closed the round before it could hand in its sum")
            raise Unsuitable(CLOSED) from None
        return Handle(path=path)


def gather_sums(run: Run) -> Round:
    """Have every client hand in its sum, and release their total; whose sums it is of is settled before the draw.

    Raises:
        NacreError: fewer clients are left than were asked for; resuming tries those that were dropped again.
    """
    settled, parties = run.place("round"), parties_of(run)
    if not settled.exists():
        make_private(run.sensitive / SUMS)
        write_text(settled, ask_clients(run, hand_in, _fault).model_dump_json(indent=1))
    ended = Round.model_validate_json(settled.read_text(encoding="utf-8"))
    clients, terms = [parties[client] for client in ended.taken], run.settings.training
    lost = [] if clients[0].finished("sanitize") else [party for party in clients if not _place(party).exists()]
    if lost:  # somebody deleted the sensitive folder before the draw
        make_private(run.sensitive / SUMS)
        run_clients(lost, hand_in, terms["workers"], terms["patience"])
    release_together(clients)
    _close(run.sensitive / SUMS)
    return ended


def _close(folder: Path) -> None:
    """Delete the exact sums; the folder is moved away first, so that nothing can be left in it while it is emptied."""
    closed = folder.with_name(f".closed-{folder.name}")
    shutil.rmtree(closed, ignore_errors=True)
    with suppress(FileNotFoundError):
        os.replace(folder, closed)
    shutil.rmtree(closed, ignore_errors=True)


def release_together(parties: list[Run]) -> None:
    """Draw one noise for the sums of some clients, charged to each; called again after a failure, it goes on.

    The first client's charge carries the draw. The accounts of the others seal and commit a copy of the same bytes.

    Privacy: every charge was reserved by its client. The draw is announced in all accounts before it begins, so that
        none can be given back once there is noise; and there is one draw, whose state is kept until it is sealed.

    Raises:
        Unsuitable: a charge was given back after its client's sum was settled; nothing was announced nor drawn.
    """
    lead, *others = parties
    desks = [desk_of(party) for party in parties]
    if any(_state(desk) == "voided" for desk in desks):
        name = federation_of(lead).name
        raise Unsuitable(f"the charge of a client whose sum run {name} adds was given back; start a new run")
    for desk in desks:
        _announce(desk)
    if not lead.finished("sanitize"):
        line = lead.plan.release
        method = create(line.method, line.measurement)
        sums = load_sums([_place(party) for party in parties], method.of(line).dim)
        method.measure(sums, line, desks[0])
        seal(lead)
    content = lead.read("sanitize")

    def copy(part: Path, _: str) -> None:
        part.write_bytes(content)

    for party, desk in zip(others, desks[1:], strict=True):
        if not party.finished("sanitize"):
            desk.ledger.release(desk.charge, staged=desk.staged, released=desk.released, draw=copy)
            seal(party)


def _announce(desk: Desk) -> None:
    if _state(desk) in ("reserved", "voided", ""):  # the ledger refuses the last two, whoever was quicker
        desk.ledger.begin_draw(desk.charge.key)


def _state(desk: Desk) -> str:
    reservation = desk.held()
    return reservation.state if reservation else ""


def _fault(party: Run) -> str:
    """Say what is wrong with a client's exact sum or its charge, if anything is."""
    line = party.plan.release
    try:
        load_sums([_place(party)], create(line.method, line.measurement).of(line).dim)
    except NacreError:
        return UNPLANNED
    return UNPLANNED if _state(desk_of(party)) in ("", "voided") else ""


def _place(party: Run) -> Path:
    """Return where the aggregator finds a client's exact sum."""
    return federation_of(party).sensitive / SUMS / f"{party.name}.npy"
