"""Exact comparisons by ``nacre report`` and ``nacre compare``, for the operator inside the sensitive zone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from dpmodels.authoring.lint import read
from dpmodels.comparison.report import Options
from dpmodels.comparison.standing import show
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import FileMissing, SchemaError, Unsuitable
from flows.command_line.console import console, exit_on, print_json, print_table
from flows.command_line.printing import echo
from tasks.engine.engines import cores
from tasks.run.store import Run
from tasks.run.table_inputs import is_path
from tasks.stages.evaluate import Place, compare, evaluate_again

SENSITIVE = "exact figures of the real rows: they stay inside"
NO_TABLE = "only tables are exported or compared: the report of a hand-off judges it"
BESIDE = "real rows: what as many other real rows give in the place of synthetic ones; the nearer to it, the better"
BEST = "; *: the best of its line, in which what is beyond the real rows is level with them"
CHOOSING = "to choose among runs, seeds or settings by them is a release that nobody charged"


def show_internal(
    run: Run,
    test: str | None,
    lenet: Path | None,
    jobs: int | None,
    real_rows: bool,
    as_json: bool,
    fail_on_checks: bool,
) -> None:
    """Evaluate a run with every metric and print what its checks found."""
    _check_there(test, lenet)
    target = evaluate_again(run, test, lenet, jobs, real_rows)
    facts = json.loads(target.read_text(encoding="utf-8"))
    if as_json:
        print_json(facts)
    else:
        _print_edges(facts.get("edges", []))
        _print_checks({"verdict": facts["checks"]}, findings=True)
        _print_unfinished(facts["metrics"])
        console.print(f"internal report: {target.with_suffix('.html')} ({SENSITIVE}; {CHOOSING})", soft_wrap=True)
    exit_on(fail_on_checks and _any_fails(facts))


def show_comparison(
    tables: Sequence[str],
    real: str,
    test: str | None,
    schema: Path,
    out: Path,
    jobs: int | None,
    lenet: Path | None,
    as_json: bool,
    fail_on_checks: bool,
) -> None:
    """Compare tables with the real rows and print the figures side by side."""
    _check_there(*tables, real, test, lenet)
    folders = Place(sensitive=out)
    options = Options(workers=jobs or min(8, cores()), lenet=lenet)
    target = compare(folders, tables, real, test, _contract_of(schema), options)
    text = target.read_text(encoding="utf-8")
    facts = json.loads(text)
    if as_json:
        echo(text)
    else:
        _print_comparison(facts, target)
    exit_on(fail_on_checks and any(map(_any_fails, facts["tables"].values())))


def _contract_of(path: Path) -> Schema | Tree:
    """Read the schema of a table or of a tree of tables."""
    contract, faults = read(path)
    if contract is None:
        raise SchemaError(str(path), faults)
    if contract.kind == "tree" or contract.is_table:
        return contract
    raise Unsuitable(f"{path} describes {contract.about}; {NO_TABLE}")


def _any_fails(facts: dict[str, Any]) -> bool:
    return any(check["holds"] is False for check in facts["checks"])


def _print_comparison(facts: dict[str, Any], target: Path) -> None:
    names = list(facts["tables"])
    table = Table(title=f"{facts['data_set']}: {SENSITIVE}", title_justify="left")
    for header in ("score", "better", "real rows", *map(escape, names)):
        table.add_column(header, justify="left" if header in ("score", "better") else "right")
    for line in facts["scores"]:
        figures = (_figure(line, name) for name in names)
        table.add_row(escape(line["score"]), line["better"], show(line["real"]), *figures)
    print_table(table)
    console.print(BESIDE + (BEST if len(names) > 1 else ""), soft_wrap=True)
    _print_checks({name: facts["tables"][name]["checks"] for name in names}, findings=False)
    for name in names:
        _print_failing(name, facts["tables"][name]["checks"])
    _print_unfinished_of_all({name: facts["tables"][name]["metrics"] for name in names})
    for name, verdict in facts["verdicts"].items():
        console.print(f"{name}: {verdict}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"page: {target.with_suffix('.html')} ({SENSITIVE}; {CHOOSING})", soft_wrap=True)


def _figure(line: dict[str, Any], name: str) -> str:
    """Write a table's figure, with a star where it is the best of its line."""
    figure = show(line["tables"][name])
    return f"[bold]* {figure}[/]" if name in line["best"] else figure


def _print_failing(name: str, checks: list[dict[str, Any]]) -> None:
    for check in checks:
        if check["holds"] is False:
            said = f"{name}: {check['name']} fails: {check['finding']}"
            console.print(said, markup=False, highlight=False, soft_wrap=True)


def _check_there(*data: str | Path | None) -> None:
    for one in data:
        if one is not None and is_path(str(one)) and not Path(one).exists():
            raise FileMissing(f"{one} does not exist")


def _print_checks(columns: dict[str, list[dict[str, Any]]], findings: bool) -> None:
    table = Table(title="checks", title_justify="left")
    for header in ("check", *columns, *(("finding",) if findings else ())):
        table.add_column(header)
    words = {True: "[green]holds[/]", False: "[red]fails[/]", None: "unknown"}
    for checks in zip(*columns.values(), strict=True):
        says = (checks[0]["finding"],) if findings else ()
        table.add_row(checks[0]["name"], *(words[one["holds"]] for one in checks), *says)
    print_table(table)


def _print_edges(edges: list[dict[str, Any]]) -> None:
    for one in edges:
        means = f"{one['mean_real']:.3f} real, {one['mean_synthetic']:.3f} synthetic"
        distance = f"total variation {one['total_variation']:.3f}"
        console.print(f"{one['table']} per {one['parent']}: {means}, {distance}", markup=False)


def _print_unfinished(metrics: dict[str, Any], name: str = "") -> None:
    for metric, outcome in metrics.items():
        if outcome["status"] != "done":
            console.print(
                f"{name + ': ' if name else ''}{metric} {outcome['status']}: {outcome['reason']}", markup=False
            )


def _print_unfinished_of_all(metrics: dict[str, dict[str, Any]]) -> None:
    """Say once what came to no result in any table, and by table the rest."""
    first, *others = metrics.values()
    everywhere = {
        name: outcome
        for name, outcome in first.items()
        if all(_unfinished(outcome) == _unfinished(one.get(name, {})) for one in (first, *others))
    }
    _print_unfinished(everywhere)
    for table, outcomes in metrics.items():
        _print_unfinished({name: one for name, one in outcomes.items() if name not in everywhere}, table)


def _unfinished(outcome: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(outcome.get(key, "")) for key in ("status", "reason"))
