"""The artifacts that a deployed flow run leaves in Prefect's UI, all of them public."""

import base64
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from dpmodels.escapes import escaped
from dpmodels.pages.drawing import standalone
from dpmodels.pages.glance import IN_SHORT, glance, worst_first
from dpmodels.pages.multiples import column_figure
from flows.burn_down import draw_burn_down
from flows.description import as_markdown, describe_run, plain, warnings_in
from flows.partitions import explain
from flows.with_prefect.budget import key_of, named_accounts
from tasks.run.home import ledger_of
from tasks.run.runs import stays_inside
from tasks.run.store import Run

MOST_PICTURES = 12
"""Columns that the report's artifact draws, the worst first."""


def publish_plan(run: Run, partition: str) -> None:
    """Publish what the run will charge, the quote of its account, and how many more runs like it would fit."""
    from prefect.artifacts import create_table_artifact

    facts = {"run": run.name, **describe_run(run), "partitions": explain(ledger_of(run), run, partition)}
    table = [{"what": plain(what), "value": plain(value)} for what, value in facts.items()]  # cells are Markdown
    create_table_artifact(key=f"plan-{_key(run)}", table=table, description=f"plan of run {plain(run.name)}")


def _key(run: Run) -> str:
    """Return the key of a run's artifacts, from its account, or from its data set where another ledger has paid."""
    return key_of((named_accounts(run) or [run.plan.contract.name])[0])


def publish_results(run: Run) -> None:
    """Publish the account's burn-down, the report in short with its pictures, and for images a sheet of samples."""
    from prefect.artifacts import create_image_artifact, create_markdown_artifact

    settings, ledger = run.settings, ledger_of(run)
    if settings.account in named_accounts(run):  # a partition's account has a single charge
        picture = base64.b64encode(escaped(draw_burn_down(ledger, ledger.account(settings.account))).encode()).decode()
        create_image_artifact(
            key=f"burn-down-{key_of(settings.account)}",
            image_url=f"data:image/svg+xml;base64,{picture}",
            description=f"what remained of account {plain(settings.account)}, {date.today()}",
        )
    if stays_inside(run):
        return
    report = json.loads((settings.out / "report.json").read_text(encoding="utf-8"))
    create_markdown_artifact(
        key=f"report-{_key(run)}",
        markdown=report_in_short(report, settings.out),
        description=f"report of run {run.name}; the whole one is in the hand-off",
    )
    if report.get("sample_sheet"):
        create_image_artifact(
            key=f"samples-{_key(run)}",
            image_url=report["sample_sheet"],
            description=f"synthetic samples of run {run.name}",
        )


def report_in_short(report: Mapping[str, Any], out: Path) -> str:
    """Lay a publishable report out in Markdown that needs no other file: the headline, what came of it, pictures."""
    worst = worst_first(report.get("columns", ()))
    columns = [*worst, *(one for one in report.get("columns", ()) if one not in worst)][:MOST_PICTURES]
    facts = glance(report) | {f"warning {n}": text for n, text in enumerate(warnings_in(report), 1)}
    title, headline = f"# Synthetic {plain(report['data_set'])}", plain(facts.pop(IN_SHORT, ""))
    parts = [title, *([f"**{headline}**"] if headline else []), as_markdown(facts | {"hand-off": f"{out}/report.html"})]
    for number, figure in enumerate(map(column_figure, columns), 1):
        parts += [f"### {plain(figure.title)}", f"![column {number}]({standalone(figure)})"]
    return "\n\n".join(parts)


def publish_checks(run: Run, faults: list[str], signature: str) -> None:
    """Publish what a validation found."""
    from prefect.artifacts import create_table_artifact

    table = [{"fault": plain(fault)} for fault in faults] or [{"fault": "none"}]
    description = plain(f"hand-off and ledger of run {run.name}; signature: {signature}")
    create_table_artifact(key=f"checks-{_key(run)}", table=table, description=description)
