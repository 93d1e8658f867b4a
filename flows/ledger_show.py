"""What the ledger's commands print and write: tables for people, JSON for programs, Parquet, one picture."""

import json
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpmodels.errors import ArtifactError
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Account, follow, lives
from dpmodels.ledger.store import Entry

console = Console()
POINTS = 300  # of a burn-down


def show_accounts(ledger: Ledger, accounts: Iterable[Account], as_json: bool = False) -> None:
    """Print caps and balances; epsilons are at the cap's delta."""
    rows = [_account(ledger, account) for account in accounts]
    if as_json:
        return _echo(rows)
    table = _table("account", "cap", "spent", "remaining", "used", "charges")
    for row in rows:
        below = f" (of {row['parent']})" if row["parent"] else ""
        about = f"{row['dataset']}, by {row['unit']}, delta={_short(row['delta'])}"
        table.add_row(f"{row['name']}{below}\n[dim]{escape(about)}[/dim]", *_amounts(row), str(row["charges"]))
    console.print(table)


def show_account(ledger: Ledger, account: Account, as_json: bool) -> None:
    """Print one account and how far each of its charges went."""
    charges = [follow(life) for life in lives(ledger.entries(account=account.name)).values()]
    rows = [
        {
            "charge": held.key,
            "run": held.charge.run,
            "state": held.state,
            "epsilon": repr(held.charge.budget.epsilon),
            "mechanism": held.charge.mechanism,
        }
        for held in charges
    ]
    if as_json:
        return _echo({**_account(ledger, account), "charged": rows})
    row = _account(ledger, account)
    cap, spent, remaining, used = _amounts(row)
    terms: dict[str, object] = {
        "account": account.name, "above it": account.parent, "data set": account.dataset, "unit": row["unit"],
        "officer": account.officer and f"{account.officer.name}, key {account.officer.public_key}",
        "owner": account.owner, "note": account.note, "composition": account.composition,
        "cap": f"epsilon={cap} at delta={_short(row['delta'])}",
        "spent": f"{spent}, {used} of the cap (by RDP {_rounded(row['renyi_epsilon'], ROUND_CEILING)})",
        "remaining": remaining, "maximum of one run": account.run_cap, "last day": account.expires,
    }  # fmt: skip
    table = Table(show_header=False)
    for term, value in terms.items():
        if value:
            table.add_row(term, escape(str(value)))
    console.print(table)
    table = _table("charge", "run", "state", "epsilon", "mechanism")
    for row in rows:
        table.add_row(row["charge"][:12], *(row[key] for key in ("run", "state", "epsilon", "mechanism")))
    console.print(table)


def show_entries(entries: list[Entry], as_json: bool) -> None:
    """Print entries of the chain."""
    if as_json:
        return _echo([_entry(entry) for entry in entries])
    table = _table("seq", "time (UTC)", "account", "kind", "charge", "run", "hash")
    for entry in entries:
        charge = "" if entry.kind in ("open", "cap") else entry.charge[:12]
        time = entry.time[:16].replace("T", " ")
        table.add_row(str(entry.seq), time, entry.account, entry.kind, charge, entry.run, entry.hash[:8])
    console.print(table)


def show_forecast(ledger: Ledger, name: str, epsilon: float, delta: float, times: int, as_json: bool) -> bool:
    """Print what some releases would cost together, Gaussian ones or at delta 0 pure ones; return whether they fit."""
    from dpmodels.accounting.calibration import gaussian_noise_multiplier
    from dpmodels.accounting.events import ComposedEvent, GaussianEvent, PureEvent
    from dpmodels.ledger.ledger import Charge
    from flows.synthesize import make_budget

    account, before = ledger.account(name), ledger.balance(name)
    single = make_budget(epsilon, delta, account.cap.unit).model_copy(update={"adjacency": account.cap.adjacency})
    z = gaussian_noise_multiplier(single) if delta else None
    each = GaussianEvent(noise_multiplier=z) if z else PureEvent(epsilon=epsilon)
    event = ComposedEvent(events=(each,) * times)
    whole = single.model_copy(update={"epsilon": min(1000.0, epsilon * times), "delta": min(0.5, delta * times)})
    charge = Charge(
        account=name, dataset=account.dataset, mechanism="plan", event=event, budget=whole,
        plan_hash="plan", schema_hash="plan", run="plan",
    )  # fmt: skip
    quote = ledger.quote(charge)
    facts = {
        "account": quote.account,
        "releases": times,
        "noise_multiplier": z,
        "spent_before": str(before.spent_epsilon),
        "spent_after": str(quote.spent_after),
        "cap": str(quote.cap),
        "remaining_before": str(before.remaining_epsilon),
        "fits": quote.accepted,
    }
    if as_json:
        _echo(facts)
    else:
        table = Table(title="plan", show_header=False, title_justify="left")
        for key, value in facts.items():
            table.add_row(key, str(value))
        console.print(table)
    return quote.accepted


def show_recovered(found: list[dict[str, str]], as_json: bool) -> None:
    """Print where every charge that was open stood, stands, and what it needs."""
    if as_json:
        return _echo(found)
    if not found:
        typer.echo("every charge is committed or voided")
        return
    table = _table("charge", "run", "was", "is", "next")
    for row in found:
        table.add_row(row["charge"][:12], row["run"], row["was"], row["is"], row["next"])
    console.print(table)


def export_ledger(ledger: Ledger, target: Path) -> None:
    """Write the chain to Parquet, or with the accounts to JSON.

    Raises:
        ArtifactError: the file exists, or has another ending.
    """
    if target.exists():
        raise ArtifactError(f"{target} already exists and is not overwritten")
    rows = [entry.model_dump() for entry in ledger.entries()]
    if target.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole = {"seq": pa.int64(), "attempt": pa.int64()}
        schema = pa.schema([(name, whole.get(name, pa.string())) for name in Entry.model_fields])
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), target)
    elif target.suffix == ".json":
        accounts = [_account(ledger, account) for account in ledger.accounts()]
        target.write_text(json.dumps({"format": 1, "accounts": accounts, "entries": rows}, indent=1), encoding="utf-8")
    else:
        raise ArtifactError(f"{target} must end in .parquet or .json")


def draw_burn_down(ledger: Ledger, account: Account) -> str:
    """Draw what remained of a cap after each entry that changed it, as an SVG."""
    steps = ledger.history(account.name, POINTS)
    top = max([cap for _, _, cap in steps] + [account.epsilon_cap])
    width, height, left = 640, 280, 56

    def place(index: int, value: Decimal) -> str:
        x = left + (width - left - 16) * index / max(1, len(steps) - 1)
        return f"{x:.1f},{24 + (height - 64) * float(1 - max(value, Decimal(0)) / top):.1f}"

    spent = " ".join(place(index, cap - used) for index, (_, used, cap) in enumerate(steps))
    caps = " ".join(place(index, cap) for index, (_, _, cap) in enumerate(steps))
    first, last = steps[0][0][:10], steps[-1][0][:10]
    label = f"{account.name}: epsilon not yet spent, at delta={account.delta_cap}"
    escaped = label.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12"><text x="{left}" y="14">{escaped}</text>'
        f'<path d="M{left} 24V{height - 40}H{width - 16}" fill="none" stroke="#888"/>'
        f'<polyline points="{caps}" fill="none" stroke="#b00" stroke-dasharray="4 3"/>'
        f'<polyline points="{spent}" fill="none" stroke="#06c" stroke-width="2"/>'
        f'<text x="4" y="30">{_short(top)}</text><text x="4" y="{height - 40}">0</text>'
        f'<text x="{left}" y="{height - 22}">{first}</text>'
        f'<text x="{width - 16}" y="{height - 22}" text-anchor="end">{last}</text></svg>\n'
    )


def _account(ledger: Ledger, account: Account) -> dict[str, Any]:
    """Return an account and its balance, ready for JSON; amounts are decimals written out."""
    balance = ledger.balance(account.name)
    amounts = balance.model_dump(mode="json", exclude={"account"})
    terms = account.model_dump(mode="json", exclude={"cap"})
    return {**terms, "unit": str(account.cap.unit), "adjacency": account.cap.adjacency.value, **amounts,
            "used": balance.used}  # fmt: skip


def _entry(entry: Entry) -> dict[str, Any]:
    return {**entry.model_dump(exclude={"payload"}), "content": entry.content}


def _amounts(row: dict[str, Any]) -> list[str]:
    """Show cap, spent, remaining and the share used; what is spent is rounded up, what remains down."""
    spent, remaining = _rounded(row["spent_epsilon"], ROUND_CEILING), _rounded(row["remaining_epsilon"], ROUND_FLOOR)
    return [_short(row["cap"]), spent, remaining, f"{row['used']:.0%}"]


def _rounded(amount: object, rounding: str) -> str:
    return f"{Decimal(str(amount)).quantize(Decimal('0.0001'), rounding).normalize():f}"


def _table(*columns: str) -> Table:
    """Return a table that breaks long words where the terminal is narrow, and cuts nothing off."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _short(amount: object) -> str:
    value = Decimal(str(amount))
    return f"{value.normalize():f}" if value > 1 else str(value)


def _echo(value: object) -> None:
    typer.echo(json.dumps(value, indent=1))
