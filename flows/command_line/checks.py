"""What a check of a table against its schema prints."""

from rich.markup import escape
from rich.table import Table

from dpmodels.contract.implications import HELD
from dpmodels.gate.expectations import Gate, Verdicts
from dpmodels.gate.policies import Following
from dpmodels.gate.suite import dropped_from, names_tell
from dpmodels.plural import listed
from flows.command_line.console import print_json, print_table
from flows.command_line.printing import echo


def held_to(gate: Verdicts) -> str:
    """Say which rules a table was held to, and how that was decided where its columns decided it."""
    if gate.raw:
        are_known = not isinstance(gate, Gate) or names_tell(gate.schema)
        why = ": it has every column of the schema" if are_known else "; --synthetic is for synthetic ones"
        return f"held to the rules for raw tables, as a run's data is{why}"
    names = sorted(dropped_from(gate.schema)) if isinstance(gate, Gate) else ()
    form = f"; it is read with {gate.form.in_words}, as `text` in the schema says" if gate.form else ""
    return "held to the rules for synthetic tables" + (
        f", which have no {', '.join(names)}{form}" if names else f"; --raw is for raw ones{form}"
    )


def show_gate(gate: Verdicts, as_json: bool = False) -> None:
    """Print the result of every expectation, broken ones first, and what a run leaves out or changes of raw rows."""
    echo(held_to(gate), err=True)
    if as_json:
        counts = [{"expectation": None, "column": one.name, "rule": one.text, "success": True} for one in gate.policies]
        return print_json([*gate.results(), *counts])
    table = Table(title=f"{gate.contract.name}: expectations", title_justify="left")
    for heading in ("about", "rule", "rows that fail", "verdict"):
        table.add_column(heading, justify="right" if heading == "rows that fail" else "left", overflow="fold")
    for outcome in gate.by_severity:
        rule = outcome.rule
        names = " and ".join(name for name in rule.columns if not name.startswith(HELD))
        about = names or ("each row" if rule.columns else "the table")
        failed = f"{outcome.failed} of {outcome.checked}" if rule.columns else ""
        table.add_row(
            escape(about),
            escape(outcome.text),
            failed,
            "holds" if outcome.passed else "[red]broken[/red]",
        )
    print_table(table)
    following = dict[str, list[str]]()
    for policy in gate.policies:
        if isinstance(policy, Following):
            following.setdefault(listed(policy.of, "and"), []).append(policy.name)
        else:
            echo(policy)
    for of, broken in following.items():
        echo(f"{listed(broken, 'and')}: broken too, following from {of}: mend that first, and look again")
