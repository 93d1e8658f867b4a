"""The round of a federation: each client releases once, and the server takes what was released.

A client's stage is the only one that opens data, and opens that of its own run alone.
"""

from collections.abc import Callable

from dpmodels.artifact import write_text
from dpmodels.contract.dropped import UNPLANNED
from dpmodels.errors import NacreError, Unsuitable
from tasks.kinds.clients import Work, run_clients
from tasks.kinds.federation import Round, create, examples, is_central, parties_of, release_of
from tasks.run.accounts import desk_of
from tasks.run.home import ledger_of
from tasks.run.lock import waited_for
from tasks.run.store import Handle, Run
from tasks.stages.sanitize import measure
from tasks.stages.stage import stage


@stage("client", sensitive=True)
def take_part(run: Run) -> Handle:
    """Release what one client's line says, inside one charge of its own account; all else is checked before it."""
    with waited_for(run):  # a process that outlived its server: each would find the charge in the other's hands
        if handle := run.finished("sanitize"):
            return handle
        if not run.plan.lines:
            examples(run)  # nothing is released of them, and still they must be what the contract says
            return Handle(path=run.control)
        if is_central(run.plan.release):
            name = run.settings.federation
            raise Unsuitable(f"the noise of this client's federation is drawn by its aggregator; resume {name}")
        return measure(run)


@stage("round", sensitive=True)
def gather(run: Run) -> Handle:
    """Have every client take part, and take what they released; whoever releases nothing usable is dropped.

    One process at a time does so: two that drop different clients would not agree on whose sums were added.

    Raises:
        NacreError: fewer clients are left than were asked for; resuming tries those that were dropped again.
    """
    with waited_for(run):
        if handle := run.finished("round"):
            return handle
        if run.plan.lines and is_central(run.plan.release):
            from tasks.stages.aggregate import gather_sums

            ended = gather_sums(run)
        else:
            ended = ask_clients(run, take_part, _fault)
        hashes = {client: _hash(party) for client, party in parties_of(run).items() if client in ended.taken}
        write_text(run.place("round"), ended.model_copy(update={"taken": hashes}).model_dump_json(indent=1))
        return run.finish("round")


def ask_clients(run: Run, work: Work, fault: Callable[[Run], str]) -> Round:
    """Have every client do its work, say what is wrong with what it left, and give dropped clients' charges back.

    Raises:
        NacreError: fewer clients are left than were asked for.
    """
    terms, parties = run.settings.training, parties_of(run)
    reasons = run_clients(list(parties.values()), work, terms["workers"], terms["patience"])
    faults = {client: reasons[party.name] or fault(party) for client, party in parties.items()}
    dropped = {client: why for client, why in faults.items() if why}
    if len(parties) - len(dropped) < terms["least_clients"]:
        causes = "; ".join(f"{client}: {reason}" for client, reason in dropped.items())
        raise NacreError(
            f"only {len(parties) - len(dropped)} of {len(parties)} clients took part ({causes}); mend this and resume"
        )
    for client in dropped:
        give_back(parties[client], "the client was dropped before anything was drawn")
    return Round(taken={client: "" for client in parties if client not in dropped}, dropped=dropped)


def _fault(party: Run) -> str:
    """Say what is wrong with a client's release, if anything is: it must be the sealed one, and one of its line."""
    if not party.plan.lines:
        return ""
    try:
        release, reservation = release_of(party), desk_of(party).held()
        if release.value.line != party.plan.release or reservation is None or reservation.artifact_hash != _hash(party):
            return UNPLANNED
        create(release.value.line.method, release.value.line.measurement).answers(release.value)
    except NacreError:
        return UNPLANNED
    return ""


def give_back(party: Run, why: str) -> None:
    """Void the charge of a client, if it was charged and its draw has not begun."""
    reservation = desk_of(party).held() if party.plan.lines else None
    if reservation is not None and reservation.state == "reserved":
        ledger_of(party).void(reservation.key, why)


def _hash(party: Run) -> str:
    handle = party.finished("sanitize")
    return handle.sha256 if handle else ""
