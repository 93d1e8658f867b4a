"""The artifacts that a deployed flow run leaves in Prefect's UI, all of them public."""

import base64
import json
import os
from datetime import date

from flows.burn_down import draw_burn_down
from flows.description import describe_run
from flows.partitions import explain
from flows.with_prefect.budget import key_of, named_accounts
from tasks.home import ledger_of
from tasks.store import Run


def publish_plan(run: Run, partition: str) -> None:
    """Publish what the run will charge, the quote of its account, and how many more runs like it would fit."""
    from prefect.artifacts import create_table_artifact

    facts = {"run": run.name, **describe_run(run), "partitions": explain(ledger_of(run), run, partition)}
    table = [{"what": what, "value": value} for what, value in facts.items()]
    create_table_artifact(key=f"plan-{_key(run)}", table=table, description=f"plan of run {run.name}")


def _key(run: Run) -> str:
    """Return the key of a run's artifacts, from its account, or from its data set where another ledger has paid."""
    return key_of((named_accounts(run) or [run.plan.release.contract.name])[0])


def publish_results(run: Run) -> None:
    """Publish the account's burn-down, a link to the report, and for images a sheet of samples."""
    from prefect.artifacts import create_image_artifact, create_link_artifact

    settings, ledger = run.settings, ledger_of(run)
    if settings.account in named_accounts(run):  # a partition's account has a single charge
        picture = base64.b64encode(draw_burn_down(ledger, ledger.account(settings.account)).encode()).decode()
        create_image_artifact(
            key=f"burn-down-{key_of(settings.account)}",
            image_url=f"data:image/svg+xml;base64,{picture}",
            description=f"what remained of account {settings.account}, {date.today()}",
        )
    create_link_artifact(
        key=f"report-{_key(run)}",
        link=(settings.out / "report.html").as_uri(),
        link_text=f"report of run {run.name}",
        description=f"hand-off: {settings.out}",
    )
    report = json.loads((settings.out / "report.json").read_text(encoding="utf-8"))
    if report.get("sample_sheet"):
        create_image_artifact(
            key=f"samples-{_key(run)}",
            image_url=report["sample_sheet"],
            description=f"synthetic samples of run {run.name}",
        )


def publish_checks(run: Run, faults: list[str], signature: str) -> None:
    """Publish what a validation found."""
    from prefect.artifacts import create_table_artifact

    table = [{"fault": fault} for fault in faults] or [{"fault": "none"}]
    description = f"hand-off and ledger of run {run.name}; signature: {signature}"
    create_table_artifact(key=f"checks-{_key(run)}", table=table, description=description)


def publish_blindness(run: Run, reachable: dict[str, bool]) -> None:
    """Publish which sensitive places a worker can reach that must reach none."""
    from prefect.artifacts import create_table_artifact

    table = [{"path": path, "readable": "yes" if readable else "no"} for path, readable in reachable.items()]
    believed = "yes, and written: mount it read-only" if os.access(run.control, os.W_OK) else "yes, read-only"
    table.append({"path": str(run.control), "readable": believed})
    description = f"what the worker that trained run {run.name} can read of the sensitive zone"
    create_table_artifact(key=f"blind-{key_of(run.plan.release.contract.name)}", table=table, description=description)
