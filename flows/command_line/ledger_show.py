"""Output of the ledger's commands: tables for people, JSON for programs, Parquet, one picture."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from dpmodels import amounts
from dpmodels.errors import ArtifactError, PathTaken
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Account, follow, lives
from dpmodels.ledger.store import Entry
from flows.charge_words import charge_in_words, one_of
from flows.command_line.console import note, print_facts, print_json, print_table
from flows.command_line.printing import echo
from flows.forecast import forecast
from flows.planning import beside


def show_accounts(ledger: Ledger, accounts: Iterable[Account], as_json: bool = False) -> None:
    """Print caps and balances; epsilons are at the cap's delta."""
    rows = [facts_of_account(ledger, account) for account in accounts]
    if as_json:
        return print_json(rows)
    table = _table("account", "cap", "spent", "remaining", "used", "charges")
    for row in rows:
        below = f" (of {row['parent']})" if row["parent"] else ""
        about = f"{row['dataset']}, by {row['unit']}, delta={amounts.written(row['delta'])}{_below(row['children'])}"
        table.add_row(f"{row['name']}{below}\n[dim]{escape(about)}[/dim]", *_amounts(row), str(row["charges"]))
    print_table(table)
    if any(map(_why, rows)):
        note("what remains is for one release, and more than cap - spent: releases together cost less than their sum")


def show_opened(ledger: Ledger, account: Account, as_json: bool) -> None:
    """Print an account that was opened, and warn of what another has spent on its data set by another unit."""
    show_accounts(ledger, [account], as_json)
    if account.name != account.dataset:
        note(f"account {account.name}, which pays for data set {account.dataset}")
    for warning in beside(ledger, account.dataset, account.cap):
        note(warning)


def show_account(ledger: Ledger, account: Account, as_json: bool) -> None:
    """Print one account and the state of each of its charges."""
    entries = ledger.entries(account=account.name)
    charges = [follow(life) for life in lives(entries).values()]
    declarations = {entry.charge: entry.content["declared"] for entry in entries if "declared" in entry.content}
    rows = [
        {
            "charge": reservation.key,
            "run": reservation.charge.run,
            "state": reservation.state,
            "epsilon": repr(reservation.charge.budget.epsilon),
            "mechanism": reservation.charge.mechanism,
            "charged": charge_in_words(reservation.charge.priced, one_of(reservation.charge.budget)),
            "declared": declarations.get(reservation.key, {}),
        }
        for reservation in charges
    ]
    if as_json:
        return print_json({**facts_of_account(ledger, account), "charged": rows})
    row = facts_of_account(ledger, account)
    cap, spent, remaining, used = _amounts(row)
    terms: dict[str, object] = {
        "account": account.name, "above it": account.parent, "data set": account.dataset, "unit": row["unit"],
        "officer": account.officer and f"{account.officer.name}, key {account.officer.public_key}",
        "owner": account.owner, "note": account.note, "composition": account.composition,
        "cap": f"epsilon={cap} at delta={amounts.written(row['delta'])}",
        "spent": f"{spent}, {used} of the cap (by RDP {amounts.spent(row['renyi_epsilon'])})",
        "remaining": f"{remaining}{_why(row)}", "maximum of one run": account.run_cap, "last day": account.expires,
    }  # fmt: skip
    print_facts("account", {term: str(value) for term, value in terms.items() if value})
    table = _table("charge", "run", "state", "epsilon", "mechanism")
    for row in rows:
        table.add_row(row["charge"][:12], *(row[key] for key in ("run", "state", "epsilon", "mechanism")))
    print_table(table)
    print_facts("charged", {row["charge"][:12]: row["charged"] for row in rows})
    declared = {
        row["charge"][:12]: "\n".join(map(": ".join, row["declared"].items())) for row in rows if row["declared"]
    }
    if declared:
        print_facts("declared by whoever ran", declared)


def show_entries(entries: list[Entry], as_json: bool) -> None:
    """Print entries of the chain."""
    if as_json:
        return print_json([_entry(entry) for entry in entries])
    table = _table("seq", "time (UTC)", "account", "kind", "charge", "run", "by", "hash")
    for entry in entries:
        charge = "" if entry.kind in ("open", "cap") else entry.charge[:12]
        time, by = entry.time[:16].replace("T", " "), entry.content.get("by", "")  # older entries do not say who
        table.add_row(str(entry.seq), time, entry.account, entry.kind, charge, entry.run, by, entry.hash[:8])
    print_table(table)


def show_forecast(ledger: Ledger, name: str, epsilon: float, delta: float, times: int, as_json: bool) -> bool:
    """Print what ``times`` releases (Gaussian, or pure at delta 0) would cost together; return whether they fit."""
    foreseen, before = forecast(ledger, name, epsilon, delta, times), ledger.balance(name)
    facts = {key: str(value) if isinstance(value, Decimal) else value for key, value in foreseen.items()}
    fits: bool = foreseen["fits"]
    if as_json:
        print_json(facts)
        return fits
    why = amounts.composes(before.cap, before.spent_epsilon, before.remaining_epsilon)
    noise = foreseen["noise_multiplier"]
    facts |= {
        "spent_before": amounts.spent(before.spent_epsilon),
        "spent_after": amounts.spent(foreseen["spent_after"]),
        "cap": amounts.written(foreseen["cap"]),
        "remaining_before": amounts.remaining(before.remaining_epsilon) + (f", in one release; {why}" if why else ""),
    }
    facts |= {"noise_multiplier": facts.pop("noise_multiplier") if noise is None else f"{noise:.4g}"}
    print_facts("plan", {key: str(value) for key, value in facts.items()})
    return fits


def show_recovered(rows: list[dict[str, str]], as_json: bool) -> None:
    """Print the state of every charge that was open, before and after the recovery, and what the charge needs."""
    if as_json:
        return print_json(rows)
    if not rows:
        echo("every charge is committed or voided")
        return
    table = _table("charge", "run", "was", "is", "next")
    for row in rows:
        table.add_row(row["charge"][:12], row["run"], row["was"], row["is"], row["next"])
    print_table(table)


def export_ledger(ledger: Ledger, target: Path) -> dict[str, object]:
    """Write the chain to Parquet, or the chain and the accounts to JSON; return its length and its newest hash.

    Raises:
        ArtifactError: the file exists, or has another ending.
    """
    if target.exists():
        raise PathTaken(target, "already exists and is not overwritten")
    rows = [entry.model_dump() for entry in ledger.entries()]
    if target.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole = {"seq": pa.int64(), "attempt": pa.int64()}
        schema = pa.schema([(name, whole.get(name, pa.string())) for name in Entry.model_fields])
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), target)
    elif target.suffix == ".json":
        accounts = [facts_of_account(ledger, account) for account in ledger.accounts()]
        target.write_text(json.dumps({"format": 1, "accounts": accounts, "entries": rows}, indent=1), encoding="utf-8")
    else:
        raise ArtifactError(f"{target} must end in .parquet or .json")
    return {"entries": len(rows), "newest_hash": rows[-1]["hash"] if rows else ""}


def facts_of_account(ledger: Ledger, account: Account) -> dict[str, Any]:
    """Return an account and its balance, ready for JSON; amounts are decimals written out."""
    balance = ledger.balance(account.name)
    amounts = balance.model_dump(mode="json", exclude={"account"})
    terms = account.model_dump(mode="json", exclude={"cap"})
    return {**terms, "unit": str(account.cap.unit), "adjacency": account.cap.adjacency.value, **amounts,
            "used": balance.used}  # fmt: skip


def _entry(entry: Entry) -> dict[str, Any]:
    return {**entry.model_dump(exclude={"payload"}), "content": entry.content}


def _amounts(row: dict[str, Any]) -> list[str]:
    """Show cap, spent, remaining and the share used; the spent epsilon is rounded up, the remaining one down."""
    spent, remaining = amounts.spent(row["spent_epsilon"]), amounts.remaining(row["remaining_epsilon"])
    return [amounts.written(row["cap"]), spent, remaining, f"{row['used']:.0%}"]


def _why(row: dict[str, Any]) -> str:
    """Say why what remains of an account is not what its cap is above what it spent; empty where it is."""
    why = amounts.composes(row["cap"], row["spent_epsilon"], row["remaining_epsilon"])
    return f", in one release; {why}" if why else ""


def _below(children: Sequence[str]) -> str:
    """Say whose charges an account has beside its own, which alone are counted; empty where none lie below it."""
    return f"; spent by the heaviest of the {len(children)} accounts below it" if children else ""


def _table(*columns: str) -> Table:
    """Return a table that breaks long words on a narrow terminal instead of cutting them off."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
