"""Runs that were paid for and not handed over: going on with one costs nothing, starting it anew costs as much again.

A run's control folder holds the file ``begun`` from the run's creation to its hand-off, and ``delivered`` from then
on. So a run that was cut off can be told from one whose hand-off was taken elsewhere.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from dpmodels import amounts
from dpmodels.errors import (
    ArtifactError,
    BudgetExhausted,
    DataError,
    NacreError,
    PaidBefore,
    PaidRelease,
    PaidUnfinished,
)
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Charge, Quote
from dpmodels.reading.data_files import is_local, is_uri
from dpmodels.releases.plan import Line
from tasks.run.accounts import charge_of, charges_of
from tasks.run.contents import contents_of
from tasks.run.home import ledger_of
from tasks.run.in_memory import GIVEN
from tasks.run.lock import is_at_work
from tasks.run.runs import is_handed_over, resume_command
from tasks.run.settings import Settings
from tasks.run.source import files_of
from tasks.run.store import BEGUN, Run

MOST_NAMED, MOST_COMPARED = 3, 20


def refuse_paid(home: Path, ledger: Ledger, url: str, terms: Sequence[tuple[Settings, Sequence[Line]]]) -> None:
    """Refuse to start what an unfinished run of this home was charged for; ``terms`` are those of its parties.

    The same are account, files of the data and plan. Rows that are given in memory have all one place.

    Raises:
        PaidUnfinished: there is such a run, and the operator did not say why it is to be charged again.
    """
    again, same = terms[0][0].again, _identity(home, terms)
    for run in () if again else _cut_off(home, url):
        parties = [(party.settings, party.plan.lines) for party in run.parties]
        if _identity(home, parties) == same and _accounts(ledger, run):
            paid = f"run {run.name} was charged to account {terms[0][0].account} for this plan on this data"
            said = f"{paid} and is unfinished: `{resume_command(run)}` goes on with it"
            raise PaidUnfinished(run.name, terms[0][0].account, said)


def released_before(run: Run, ledger: Ledger, settings: Settings, lines: Sequence[Line]) -> str:
    """Say which run of this home has released what a run is about to, and what another charge means; or nothing.

    ``settings`` and ``lines`` are what the run is to be. Rows in memory may be those of any file: none are compared.
    """
    charges = [charge_of(run.name, line, settings.account) for line in lines]
    if settings.again or settings.clients or not charges:
        return ""
    (same,) = _identity(run.home, [(settings, lines)])
    for name in islice(_sealed(ledger, charges[0]), MOST_COMPARED):
        with suppress(NacreError, ValueError, OSError):  # it is damaged, removed, or of another home
            other = Run(home=run.home, name=name, ledger_url=run.ledger_url)
            (before,) = _identity(run.home, [(other.settings, other.plan.lines)])
            if before == same or (GIVEN in (before[1], same[1]) and before[-1] == same[-1]):
                free = f"`nacre sample {name} --rows ROWS --out FILE --home {run.home}`"
                more = "" if charges[0].part else f"; to draw more rows from it, for nothing: {free}"
                paid = f"run {name} of account {charges[0].account} has released the same plan"
                return f"{paid}; a second charge {_adding(ledger.quote(*charges))}{more}"
    return ""


def refuse_same(run: Run, said: str) -> None:
    """Refuse to charge a run that has read what a finished run of this home released by the same plan.

    The hashes that both ingests left in the sensitive zone tell whether that is so; where those of the other are
    deleted, nothing is refused. ``said`` is what ``released_before`` said of it.

    Raises:
        PaidBefore: there is such a run.
    """
    mine, charge = contents_of(run), charges_of(run)[0]
    for name in islice(_sealed(ledger_of(run), charge), MOST_COMPARED):
        with suppress(OSError, ValueError, ArtifactError):
            if name != run.name and contents_of(run.model_copy(update={"name": name})) & mine:
                raise PaidBefore(name, charge.account, said)


def _adding(quote: Quote) -> str:
    spent = f"epsilon={amounts.spent(quote.spent_before)} is spent, with it epsilon={amounts.spent(quote.spent_after)}"
    return f"tells more of everybody in the data, and adds up: {spent} of the cap of {amounts.written(quote.cap)}"


def _sealed(ledger: Ledger, charge: Charge) -> Iterator[str]:
    """Yield the runs that an account has paid for with the plan of a charge, the newest first."""
    yield from (run for run, plan_hash in _paid(ledger, charge.account) if plan_hash == charge.plan_hash)


def _paid(ledger: Ledger, account: str) -> Iterator[tuple[str, str]]:
    """Yield the runs whose releases an account has paid for, with the hashes of their plans, the newest first."""
    with suppress(NacreError):  # there is no such account yet
        entries = ledger.entries(account=account)
        sealed = {entry.charge for entry in entries if entry.kind == "commit"}
        for entry in reversed(entries):
            if entry.charge in sealed and entry.run:
                yield entry.run, entry.content["plan_hash"]


def _free(home: Path, ledger: Ledger, url: str, account: str) -> PaidRelease | None:
    """Return the newest release that an account paid for, and that this home has; None where there is none."""
    for name, _ in islice(_paid(ledger, account), MOST_COMPARED):
        with suppress(NacreError, ValueError, OSError):  # it is damaged, removed, or of another home
            run = Run(home=home, name=name, ledger_url=url)
            release = None if run.settings.clients or run.settings.federation else run.finished("sanitize")
            if release and run.finished("train"):
                return PaidRelease(name, str(release.path), str(home))
    return None


@contextmanager
def naming_paid(home: Path, ledger: Ledger, url: str) -> Iterator[None]:
    """Have a cap's refusal name the runs of its account that are paid for, and what can be had of them for nothing."""
    try:
        yield
    except BudgetExhausted as refusal:
        paid = (run.name for run in _cut_off(home, url) if refusal.account in _accounts(ledger, run))
        raise refusal.beside(list(islice(paid, MOST_NAMED)), _free(home, ledger, url, refusal.account)) from None


def _cut_off(home: Path, url: str) -> Iterator[Run]:
    """Yield the runs of a home that pay for themselves, were not handed over, and that no process works on."""
    for mark in sorted(home.glob(f"control/*/{BEGUN}")):
        with suppress(NacreError, ValueError, OSError):  # it is damaged, or of another ledger or version
            run = Run(home=home, name=mark.parent.name, ledger_url=url)
            settings, kind = run.settings, run.plan.contract.kind
            if settings.federation or settings.paid_by or settings.fits or kind == "discovery":
                continue
            if run.ledger and not is_at_work(run) and not is_handed_over(run):
                yield run


def _accounts(ledger: Ledger, run: Run) -> set[str]:
    """Return the accounts that a run was charged to, with those above them."""
    names = set[str]()
    with suppress(NacreError):
        for charge in charges_of(run):
            reservation, name = ledger.find(charge.key), charge.account
            while reservation and reservation.state != "voided" and name and name not in names:
                names.add(name)
                name = ledger.account(name).parent
    return names


def _known_by(data: str, query: str = "") -> object:
    """Return what tells data apart: files on this machine by themselves, whatever leads to them; copies are others."""
    with suppress(DataError):
        if files := files_of(data) if data and not query and is_local(data) else []:
            return {identity for file in files for identity in file.identities}
    if query or not data:
        return data
    return data.partition("?")[0].rstrip("/") if is_uri(data) else os.path.realpath(data)


def _identity(home: Path, parties: Sequence[tuple[Settings, Sequence[Line]]]) -> list[Any]:
    """Return of each party its account, what tells its data apart, its query, its users and its plan."""
    inside = f"{home / 'sensitive'}{os.sep}"
    data = [GIVEN if one.data.startswith(inside) else _known_by(one.data, one.query) for one, _ in parties]
    rest = [(one.query, _known_by(one.parents), [line.hash for line in lines]) for one, lines in parties]
    return [(one.account, rows, *more) for (one, _), rows, more in zip(parties, data, rest, strict=True)]
