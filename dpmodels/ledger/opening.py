"""The terms of an account: read from the user, compared with what is open, fitted under a parent, changed."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, insert, or_, select, tuple_

from dpmodels.errors import InvalidArgument, LedgerError, Unsuitable, rule_of
from dpmodels.ledger import books, store
from dpmodels.ledger.records import Account
from dpmodels.privacy import PrivacyBudget, exact_decimal


def new_account(name: str, dataset: str, cap: PrivacyBudget, terms: Mapping[str, Any]) -> Account:
    """Make an account of a user's terms; a Renyi filter gets its order here, from its cap alone.

    Raises:
        InvalidArgument: a term is unknown or impossible.
    """
    account = _valid({"name": name, "dataset": dataset, "cap": cap, **terms})
    if account.composition == "exact":
        return account
    from dpmodels.accounting.renyi import filter_order

    return account.model_copy(update={"order": filter_order(account.epsilon_cap, account.delta_cap)})


def open_account(connection: Connection, wanted: Account) -> Account:
    """Open an account, or return it if it is open with these terms.

    Raises:
        LedgerError: as for ``known_account`` and ``under_parent``.
    """
    known = known_account(connection, wanted)
    if known is not None:
        return known
    opened = under_parent(connection, wanted).model_copy(update={"created": store.now()})
    connection.execute(insert(store.accounts).values(opened.row))
    store.append(connection, wanted.name, wanted.name, "open", 1, opened.terms, time=opened.created)
    return opened


def open_first(connection: Connection, wanted: Account | None) -> None:
    """Open an account unless one of its name is open, whatever that one's terms are."""
    if wanted is not None and store.account_row(connection, wanted.name) is None:
        open_account(connection, wanted)


def known_account(connection: Connection, wanted: Account) -> Account | None:
    """Return the account if it is open already.

    Raises:
        LedgerError: its name is open with other terms, or its scope under another name.
    """
    table = store.accounts.c
    same = or_(table.name == wanted.name, tuple_(table.dataset, table.unit, table.adjacency) == wanted.scope)
    for name in connection.execute(select(table.name).where(same)).scalars().all():
        known = books.book(connection, name).account
        set_later = {"created": known.created, "order": known.order, "officer": wanted.officer or known.officer}
        if known == wanted.model_copy(update=set_later):
            return known
        if name == wanted.name:
            raise LedgerError(f"account {name} is already open with other terms; `nacre ledger cap` changes a cap")
        raise LedgerError(
            f"data set {wanted.dataset} already has account {name} for this unit and adjacency; "
            "a second account would be a second budget"
        )
    return None


def under_parent(connection: Connection, account: Account) -> Account:
    """Fit a new account under its parent, whose composition it takes over.

    Raises:
        LedgerError: the parent is not open, hides another unit or adjacency, or has children of another partition.
    """
    if not account.parent:
        return account
    parent = books.book(connection, account.parent).account
    if parent.scope[1:] != account.scope[1:]:
        raise LedgerError(f"account {account.name} must have the unit and adjacency of its parent {parent.name}")
    for name in store.children(connection, parent.name):
        if (sibling := books.book(connection, name).account).partition != account.partition:
            raise LedgerError(
                f"account {parent.name} has children that are told apart otherwise ({sibling.name}): a record may be "
                f"in one of them and in {account.name} as well. Let runs add up in {parent.name} itself (sequential)"
            )
    return account.model_copy(update={"composition": parent.composition, "order": parent.order})


def with_changes(account: Account, changes: Mapping[str, Any]) -> Account:
    """Return the account with another epsilon, delta, run_cap, expires or officer.

    Raises:
        InvalidArgument: a term is unknown or impossible.
    """
    if unknown := set(changes) - {"epsilon", "delta", "run_cap", "expires", "officer"}:
        raise Unsuitable(f"an account has no {unknown.pop()}; change epsilon, delta, run_cap, expires or officer")
    cap = account.cap.model_dump() | {key: changes[key] for key in ("epsilon", "delta") if key in changes}
    rest = {key: changes[key] for key in ("run_cap", "expires", "officer") if key in changes}
    return _valid({**account.model_dump(), "cap": cap, **rest})


def _valid(terms: Mapping[str, Any]) -> Account:
    try:
        account = Account.model_validate(dict(terms))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidArgument(".".join(map(str, first["loc"])), first["input"], rule_of(first)) from None
    if account.run_cap is not None and exact_decimal(account.run_cap) > account.epsilon_cap:
        raise InvalidArgument("run_cap", account.run_cap, "not be above the cap")
    return account
