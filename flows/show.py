"""What the command line prints: tables for people, all of it public."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dpmodels.accounting.ledger import Ledger
from dpmodels.accounting.records import Account, Quote
from dpmodels.synthesizers.base import Plan
from dpmodels.synthesizers.registry import create
from tasks.store import Run

console = Console()


def show_plan(plan: Plan, quote: Quote | None) -> None:
    """Print the charge, the noise, and what the account says to it."""
    facts = {
        "data set": plan.table.name,
        "method": plan.method,
        "unit, adjacency": f"{plan.budget.unit}, {plan.budget.adjacency}",
        "target": f"epsilon={plan.budget.epsilon}, delta={plan.budget.delta}",
        "charge": f"Gaussian, noise_multiplier={plan.noise_multiplier:.6f}",
    }
    noise = create(plan.method, plan.measurement, {}).noise(plan)
    facts |= {f"noise_stddev of the {name}": f"{value:.4g}" for name, value in noise.items()}
    if quote is None:
        facts["account"] = "not open: the first run opens it, with this budget as the cap"
    else:
        facts["account"] = f"{quote.account}, cap epsilon={quote.cap} at delta={quote.delta}"
        facts["spent"] = f"epsilon={quote.spent_before} before, {quote.spent_after} after"
        facts["answer"] = "would be accepted" if quote.accepted else "would be REFUSED"
    _print_facts("plan", facts)


def show_hand_off(run: Run) -> None:
    """Print where everything is."""
    facts = {
        "run": run.name,
        "synthetic table": str(run.settings.out / "synthetic"),
        "report": str(run.settings.out / "report.html"),
        "manifest": str(run.settings.out / "manifest.json"),
        "ledger": f"{run.ledger} (account {run.settings.account})",
    }
    internal = run.sensitive / "internal-report.json"
    if internal.exists():
        facts["internal report"] = f"{internal} (sensitive: stays inside)"
    _print_facts("hand-off", facts)


def show_accounts(ledger: Ledger, accounts: Iterable[Account]) -> None:
    """Print caps and balances; epsilons are at the cap's delta."""
    table = Table("account", "data set", "unit", "delta", "cap", "spent", "by RDP", "remaining", "charges")
    for account in accounts:
        b = ledger.balance(account.name)
        table.add_row(
            account.name,
            account.dataset,
            str(account.cap.unit),
            *(f"{x.normalize():f}" if x > 1 else str(x) for x in (b.delta, b.cap, b.spent_epsilon, b.renyi_epsilon)),
            str(b.remaining_epsilon),
            str(b.charges),
        )
    console.print(table)


def show_charges(ledger: Ledger, name: str) -> None:
    """Print the entries of one account."""
    table = Table("seq", "time", "kind", "charge", "run")
    for entry in ledger.entries(account=name):
        key = entry.charge
        held = ledger.find(key) if entry.kind != "open" else None
        table.add_row(str(entry.seq), entry.time, entry.kind, key[:12], held.charge.run if held else "")
    console.print(table)


def sealed_releases(ledger: Ledger, home: Path) -> dict[str, Path]:
    """Return where each committed charge's release should lie, for the releases this home still keeps."""
    keys = {entry.charge for entry in ledger.entries() if entry.kind == "commit"}
    held = {key: ledger.find(key) for key in keys}
    paths = {key: home / "released" / one.charge.run / "release.parquet" for key, one in held.items() if one}
    return {key: path for key, path in paths.items() if path.parent.exists()}


def _print_facts(title: str, facts: dict[str, str]) -> None:
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)
