"""What a deployed flow run leaves in Prefect's UI: all of it public."""

import base64
import json
import os
from datetime import date

from dpmodels.ledger.ledger import Ledger
from dpmodels.synthesizers.registry import create
from flows.budget import key_of, named_accounts
from flows.ledger_show import draw_burn_down
from flows.show import charge_in_words
from tasks.accounts import account_to_open, charges_of, quote
from tasks.home import ledger_of
from tasks.store import Run

MAX_NIGHTS = 1000


def publish_plan(run: Run, partition: str) -> None:
    """Leave what the run will charge, what its account says to it, and how many more like it would fit."""
    from prefect.artifacts import create_table_artifact

    line, settings, ledger = run.plan.release, run.settings, ledger_of(run)
    said, report = quote(run), run.plan.report
    facts = {
        "run": run.name,
        "data set": line.contract.name,
        "method": line.method,
        "unit, adjacency": f"{line.budget.unit}, {line.budget.adjacency}",
        "target": f"epsilon={line.budget.epsilon}, delta={line.budget.delta}",
        **({"target of the report": f"epsilon={report.budget.epsilon}"} if report else {}),
        "charge": charge_in_words(line.event),
        "account": f"{settings.account}, cap epsilon={said.cap} at delta={said.delta}",
        "spent": f"epsilon={said.spent_before} before, {said.spent_after} after",
        "answer": "accepted" if said.accepted else "REFUSED",
        "partitions": explain(ledger, run, partition),
    }
    noise = create(line.method, line.measurement, settings.training).noise(line)
    facts |= {f"noise_stddev of the {name}": f"{value:.4g}" for name, value in noise.items()}
    table = [{"what": what, "value": value} for what, value in facts.items()]
    key = f"plan-{key_of(named_accounts(run)[0])}"
    create_table_artifact(key=key, table=table, description=f"plan of run {run.name}")


def explain(ledger: Ledger, run: Run, partition: str) -> str:
    """Say how this run and others like it add up."""
    name, opens = run.settings.account, run.settings.opens
    if partition and opens:
        return (
            f"disjoint: {name} pays for this partition alone; under {opens.parent} partitions cost the "
            "largest of them, so any number of them fits"
        )
    more = nights_that_fit(ledger, run)
    return f"sequential: runs on {name} add up; after this one {more}{'+' * (more == MAX_NIGHTS)} like it fit"


def nights_that_fit(ledger: Ledger, run: Run) -> int:
    """Count how many more releases like this run's would fit after it, up to a thousand; nothing is written."""
    from dpmodels.accounting.events import ComposedEvent

    planned, *others = charges_of(run)
    events, asked = [planned.event], planned.budget.epsilon
    for other in others:
        events, asked = [*events, other.event], asked + other.budget.epsilon
    first_opens = account_to_open(run.settings, run.plan.release.contract.name)
    counted = ledger.find(planned.key) is not None  # then the balance holds this run already

    def fit(more: int) -> bool:
        releases = more + (not counted)
        delta = min(0.5, planned.budget.delta * len(events) * releases)
        whole = planned.budget.model_copy(update={"epsilon": min(1000.0, asked * releases), "delta": delta})
        event = ComposedEvent(events=tuple(events) * releases)
        forecast = planned.model_copy(update={"event": event, "budget": whole, "run": "forecast"})
        return ledger.quote(forecast, first_opens=first_opens).accepted

    low, high = 0, MAX_NIGHTS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fit(middle) else (low, middle - 1)
    return low


def publish_results(run: Run) -> None:
    """Leave the account's burn-down, the way to the report, and a sheet of samples where they are pictures."""
    from prefect.artifacts import create_image_artifact, create_link_artifact

    settings, ledger = run.settings, ledger_of(run)
    if settings.account in named_accounts(run):  # a partition's account has one charge, and nothing to burn down
        picture = base64.b64encode(draw_burn_down(ledger, ledger.account(settings.account)).encode()).decode()
        create_image_artifact(
            key=f"burn-down-{key_of(settings.account)}",
            image_url=f"data:image/svg+xml;base64,{picture}",
            description=f"what remained of account {settings.account}, {date.today()}",
        )
    create_link_artifact(
        key=f"report-{key_of(named_accounts(run)[0])}",
        link=(settings.out / "report.html").as_uri(),
        link_text=f"report of run {run.name}",
        description=f"hand-off: {settings.out}",
    )
    report = json.loads((settings.out / "report.json").read_text(encoding="utf-8"))
    if report.get("sample_sheet"):
        create_image_artifact(
            key=f"samples-{key_of(named_accounts(run)[0])}",
            image_url=report["sample_sheet"],
            description=f"synthetic samples of run {run.name}",
        )


def publish_checks(run: Run, faults: list[str], signature: str) -> None:
    """Leave what a validation found."""
    from prefect.artifacts import create_table_artifact

    table = [{"fault": fault} for fault in faults] or [{"fault": "none"}]
    description = f"hand-off and ledger of run {run.name}; signature: {signature}"
    create_table_artifact(key=f"checks-{key_of(named_accounts(run)[0])}", table=table, description=description)


def publish_blindness(run: Run, reachable: dict[str, bool]) -> None:
    """Leave what a worker that must see nothing sensitive can see."""
    from prefect.artifacts import create_table_artifact

    table = [{"path": path, "readable": "yes" if readable else "no"} for path, readable in reachable.items()]
    believed = "yes, and written: mount it read-only" if os.access(run.control, os.W_OK) else "yes, read-only"
    table.append({"path": str(run.control), "readable": believed})
    description = f"what the worker that trained run {run.name} can read of the sensitive zone"
    create_table_artifact(key=f"blind-{key_of(run.plan.release.contract.name)}", table=table, description=description)
