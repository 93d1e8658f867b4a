"""The terms of an account: read from the user, compared with what is open, fitted under a parent, changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, insert, or_, select, tuple_, update

from dpmodels import amounts
from dpmodels.errors import (
    AccountMissing,
    InvalidArgument,
    LedgerError,
    NotSigned,
    Unsuitable,
    refused,
    shortened,
)
from dpmodels.ledger import books, store
from dpmodels.ledger.approval import Approval
from dpmodels.ledger.database import lock
from dpmodels.ledger.records import CAP_TERMS, Account
from dpmodels.ledger.signed import Signatures
from dpmodels.privacy import Adjacency, PrivacyBudget, exact_decimal

ANOTHER = (
    "; open another by name: `nacre ledger open NAME --schema SCHEMA --epsilon EPSILON --delta DELTA`, and give runs "
    "--account NAME and, if their rows were charged to this one, --again REASON, since the two are not added up"
)
"""What helps where an account is of another unit than what is asked for."""


def new_account(name: str, dataset: str, cap: PrivacyBudget, terms: Mapping[str, Any]) -> Account:
    """Make an account from a user's terms; a Renyi filter gets its order here, from its cap alone.

    Raises:
        InvalidArgument: a term is unknown or impossible.
    """
    return _ordered(_valid({"name": name, "dataset": dataset, "cap": cap, **terms}))


def _ordered(account: Account) -> Account:
    """Set the order of an account without a parent: a Renyi filter's order follows from its cap alone."""
    if account.composition == "exact":
        return account.model_copy(update={"order": 0})
    from dpmodels.accounting.renyi import filter_order

    return account.model_copy(update={"order": filter_order(account.epsilon_cap, account.delta_cap)})


def open_account(connection: Connection, account: Account, approval: Approval | None = None) -> Account:
    """Open an account, or return it if it is open with these terms.

    Raises:
        LedgerError: as for ``known_account`` and ``_under_parent``.
        AccountMissing: it needs an officer's signature, and has none.
    """
    return known_account(connection, account) or _open(connection, [account], approval)[0]


def fitted(connection: Connection, account: Account) -> Account:
    """Return a new account as it would be opened, for whoever signs for it."""
    return _under_parent(connection, [account])[0]


def change(
    connection: Connection, name: str, changes: Mapping[str, Any], reason: str, approval: Approval | None
) -> Account:
    """Change an account's terms by an entry of the chain, and return the account.

    Raises:
        LedgerError: the new cap is below what is spent.
        NotSigned: more may be spent and no officer signed for that.
    """
    book = books.family(connection, [name], write=True).members[name]
    signatures = Signatures.read(connection)
    account, changed = book.account, with_changes(book.account, changes)
    if changed == account and name not in signatures.lacking:
        return account
    if (spent := books.limit(connection, replace(book, account=changed)).spent()) > changed.epsilon_cap:
        what = "releases that are not pure; its delta" if spent.is_infinite() else f"spent epsilon={spent}; its cap"
        raise LedgerError(f"account {name} has {what} cannot be below that")
    signed = signatures.proof(changed, approval)
    if signed is None:
        officer = signatures.asked(changed)[0][0][0].name
        fact = (
            f"account {name} may spend more, or is signed for by somebody else, only if {officer} signs: give --key "
            f"with the key of {officer}; nothing was changed"
        )
        raise NotSigned(name, fact, officer)
    times = len(store.read(connection, store.entries.c.account == name, store.entries.c.kind == "cap"))
    terms = {term: changed.terms[term] for term in CAP_TERMS}
    payload = {**terms, "reason": reason, "tally": book.tally.brief, **signed}
    store.append(connection, [store.Draft(name, name, "cap", times + 1, payload)])
    caps = {column: changed.row[column] for column in store.CAP_COLUMNS}
    connection.execute(update(store.accounts).where(store.accounts.c.name == name).values(caps))
    return changed


def open_missing(connection: Connection, accounts: Sequence[Account], alone: bool = False) -> frozenset[str]:
    """Open the accounts whose names are not open, first the one that is above others of them, and return these names.

    Accounts that are open are kept, whatever their terms. ``alone`` opens a new budget in an empty ledger only.

    Raises:
        LedgerError: a scope is open under another name, or as for ``_under_parent``.
        AccountMissing: the ledger is not empty, or no officer signed.
    """
    open_accounts = store.standing(connection, [account.name for account in accounts])
    missing = [account for account in accounts if account.name not in open_accounts]
    names = frozenset(account.name for account in missing)
    budgets = [account for account in missing if not account.parent]
    if alone and budgets:
        store.hold_end(connection)  # of two that find no account, the second waits here and then finds the first's
        if connection.execute(select(store.accounts.c.name).limit(1)).first():
            raise _not_first(budgets[0])
    if len(missing) < 2:
        for account in missing:
            open_account(connection, account)
        return names
    table = store.accounts.c
    of_parent = select(table.name, table.dataset, table.unit, table.adjacency)
    datasets = {account.dataset for account in missing}
    scope_owners = {tuple(scope): name for name, *scope in connection.execute(of_parent) if scope[0] in datasets}
    for account in missing:
        name = scope_owners.setdefault(account.scope, account.name)
        if name != account.name:
            raise _second_budget(account, name)
    parent_names = {account.parent for account in missing}
    above = [account for account in missing if account.name in parent_names]
    for together in (above, [account for account in missing if account not in above]):
        if together:
            _open(connection, together)
    return names


def _open(connection: Connection, accounts: Sequence[Account], approval: Approval | None = None) -> list[Account]:
    """Open accounts that are not open yet, all of them under one parent or all without a parent."""
    time, signatures = store.now(), Signatures.read(connection)
    placed = _under_parent(connection, accounts)
    signed = [_approved(signatures, account, approval) for account in placed]
    opened = [account.model_copy(update={"created": time}) for account in placed]
    inserted = insert(store.accounts).returning(store.accounts.c.name)
    connection.execute(inserted, [account.row for account in opened]).all()
    drafts = (
        store.Draft(each.name, each.name, "open", 1, {**each.terms, **proof}, each.created)
        for each, proof in zip(opened, signed, strict=True)
    )
    store.append(connection, drafts)
    return opened


def known_account(connection: Connection, requested: Account) -> Account | None:
    """Return the account if it is open already.

    Raises:
        LedgerError: its name is open with other terms, or its scope under another name.
    """
    table = store.accounts.c
    same = or_(table.name == requested.name, tuple_(table.dataset, table.unit, table.adjacency) == requested.scope)
    for name in connection.execute(select(table.name).where(same)).scalars().all():
        account = books.book(connection, name).account
        set_later = {
            "created": account.created,
            "order": account.order,
            "officer": requested.officer or account.officer,
        }
        if account == (asked_for := requested.model_copy(update=set_later)):
            return account
        if name == requested.name:
            raise LedgerError(f"account {name} is already open with other terms: {_differences(account, asked_for)}")
        raise _second_budget(requested, name)
    return None


def _differences(account: Account, other: Account) -> str:
    """Say which terms an account has, and which others were asked for."""
    terms, others = _in_words(account), _in_words(other)
    differing = [name for name in terms if terms[name] != others[name]]
    standing, requested = (
        " and ".join(f"{name}={each[name]}" if each[name] else f"no {name}" for name in differing)
        for each in (terms, others)
    )
    can_change = {"epsilon", "delta", "run_cap", "expires"} & {*differing}
    remedy = f"; `nacre ledger cap {account.name}` changes a cap" if can_change else ""
    remedy = ANOTHER if {"unit", "adjacency"} & {*differing} else remedy
    return f"it has {standing}, and {requested} was asked for{remedy}"


def _in_words(account: Account) -> dict[str, str]:
    """Return an account's terms as a person gave them."""
    amounts_of = {"epsilon": amounts.written(account.epsilon_cap), "delta": amounts.written(account.delta_cap)}
    about = {"dataset": account.dataset, "unit": str(account.cap.unit), "adjacency": str(account.cap.adjacency)}
    names = ("owner", "note", "parent", "run_cap", "expires", "composition", "partition")
    rest = {name: "" if (value := getattr(account, name)) is None else shortened(value) for name in names}
    return {**amounts_of, **about, **rest, "officer": account.officer.name if account.officer else ""}


def _approved(signatures: Signatures, account: Account, approval: Approval | None) -> dict[str, Any]:
    """Return the signature of a new account as its entry keeps it; empty where nobody must sign.

    Raises:
        AccountMissing: the ledger has an officer, and none signed for this account.
    """
    signed = signatures.proof(account, approval)
    if signed is None:
        officer = signatures.asked(account)[0][0][0].name
        raise AccountMissing(
            account.name,
            account.dataset,
            f"this ledger has an officer, {officer}, who opens it: `nacre ledger open {account.name} --schema SCHEMA "
            f"--epsilon {account.epsilon_cap} --delta {account.delta_cap} --key KEY.pem`",
        )
    return signed


def _not_first(account: Account) -> AccountMissing:
    return AccountMissing(
        account.name,
        account.dataset,
        "another account was opened meanwhile, and only the first run of a home opens one by itself: "
        f"`nacre ledger open {account.name} --schema SCHEMA --epsilon EPSILON --delta DELTA` opens it",
    )


def _second_budget(account: Account, name: str) -> LedgerError:
    return LedgerError(
        f"data set {account.dataset} already has account {name} for this unit and adjacency; "
        "a second account would be a second budget, so runs are charged to that one"
    )


def _under_parent(connection: Connection, accounts: Sequence[Account]) -> list[Account]:
    """Fit new accounts under their parent, whose composition they inherit.

    Raises:
        LedgerError: the parent is not open, has another unit or adjacency, or has children of another partition; or
            the accounts have more than one parent.
    """
    above, partition = accounts[0].parent, accounts[0].partition
    if any((account.parent, account.partition) != (above, partition) for account in accounts):
        raise LedgerError("accounts that are opened together are children of one account, told apart in one way")
    if not above:
        return [_ordered(_possible(account)) for account in accounts]
    lock(connection, [above])  # so that no other child is opened at once with another partition
    parent = books.book(connection, above).account
    for account in accounts:
        if parent.scope[1:] != account.scope[1:]:
            raise LedgerError(f"account {account.name} must have the unit and adjacency of its parent {parent.name}")
    if partition and parent.cap.adjacency != Adjacency.ADD_OR_REMOVE_ONE:
        raise LedgerError(
            f"account {accounts[0].name} is a partition by {partition}, and under {parent.cap.adjacency} a record may "
            "move from one partition to another, which changes both; partitions need add_or_remove_one"
        )
    siblings = store.children(connection, [above]).get(above, [])[:1]  # all siblings have the same partition
    for sibling in books.books(connection, siblings).values():
        if sibling.account.partition != partition:
            raise LedgerError(
                f"account {parent.name} has children that are told apart otherwise ({sibling.account.name}): a record "
                f"may be in one of them and in {accounts[0].name} as well. Let runs add up in {parent.name} itself "
                "(sequential)"
            )
    parent_terms = {"composition": parent.composition, "order": parent.order}
    return [_possible(account.model_copy(update=parent_terms)) for account in accounts]


def with_changes(account: Account, changes: Mapping[str, Any]) -> Account:
    """Return the account with another epsilon, delta, run_cap, expires or officer.

    Raises:
        Unsuitable: a term is unknown or impossible.
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
        raise refused(error) from None
    return _possible(account)


def _possible(account: Account) -> Account:
    """Refuse terms that contradict each other."""
    if account.composition == "renyi_filter" and account.cap.delta == 0:
        raise InvalidArgument("delta", account.cap.delta, "be above 0 in a Renyi filter; exact composition takes 0")
    if account.run_cap is not None and exact_decimal(account.run_cap) > account.epsilon_cap:
        raise InvalidArgument("run_cap", account.run_cap, "not be above the cap")
    return account
