"""What a plan says to a program: facts by the names of identifiers, and numbers as numbers.

It is the description of flows/description.py in another form, of public inputs alone; whole sentences stand in lists.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmodels.accounting.meaning import right_guesses
from dpmodels.contract.federation import ROUNDS, STAYS_INSIDE
from dpmodels.errors import NacreError
from dpmodels.ledger.records import Quote
from dpmodels.methods.tables.asked_widths import GROUPS
from dpmodels.releases.discoveries import joint_cost
from dpmodels.releases.plan import REPORT, Line
from dpmodels.report.charged import Scores
from dpmodels.report.terms import cautions
from flows.config import Charged
from flows.description import (
    as_lines,
    costs_by_accountant,
    few_rows,
    least_units,
    noise_of,
    rows_made_public,
    units_of,
)
from flows.kinds.prepared import Prepared
from flows.planning import cautions_about, cautions_of, delta_over_rows, ledger_if_any, whole_budget
from flows.rows_of_users import noise_by_max_rows
from flows.start import pays_not
from flows.widths import planned_widths


def figures_of(
    config: Charged,
    prepared: Prepared,
    facts: Mapping[str, str],
    quote: Quote | None,
    refusal: NacreError | None = None,
) -> dict[str, Any]:
    """Return the figures of what a run would charge; ``facts`` are its description, and ``quote`` its account's.

    ``refusal`` is the error with which the accounts would refuse it.
    """
    contract, lines = prepared.contract, list(prepared.lines)
    figures: dict[str, Any] = {"data_set": contract.name, "method": lines[0].method if lines else ROUNDS}
    if lines:
        figures |= _price(prepared, lines) | _size(prepared, lines[0]) | _account(config, prepared, quote)
        if "other accountants" in facts:
            figures["other_accountants"] = _costs(lines)
        figures["max_rows"] = noise_by_max_rows(lines[0], noise_of)
        figures["widths"] = [{"groups": GROUPS, **one._asdict()} for one in planned_widths(lines[0])]
        if refusal is not None:
            opens = figures["account_opens"] and not pays_not(quote, refusal)
            figures |= {"account_opens": opens, "accepted": False, "refusal": str(refusal)}
    else:  # a federation that draws nothing, which protects nobody
        figures |= {"epsilon": None, "delta": None, "charges": [], "accepted": None}
    figures["clients"] = list(prepared.clients)
    figures["cautions"] = list(_cautions(prepared, lines))
    figures["becomes_public"] = list(rows_made_public(contract, prepared.settings.get("unlisted", {})))
    return figures | {"declared": config.statement.said, "description": as_lines(facts)}


def _price(prepared: Prepared, lines: Sequence[Line]) -> dict[str, Any]:
    """Return what all of it costs together, with what the schema was discovered with, and each charge by itself.

    Clients are disjoint, so a federation costs what one of them does.
    """
    plan, budget = lines[0], lines[0].budget
    charged = lines[:1] if prepared.clients else lines
    epsilon, delta = budget.epsilon, budget.delta
    if len(charged) > 1 or plan.contract.discovered:
        total, delta = joint_cost([line.event for line in charged], budget.delta, plan.contract)
        epsilon = float(total)
    names = list(prepared.clients) or [line.name for line in lines]
    return {
        "unit": str(budget.unit),
        "adjacency": str(budget.adjacency),
        "epsilon": epsilon,
        "delta": delta,
        "charges": [_charge(name, line) for name, line in zip(names, lines, strict=True)],
        "discoveries": [
            {"run": one.run, "account": one.account, "epsilon": one.epsilon, "delta": one.delta}
            for one in plan.contract.discovered
        ],
    }


def _charge(name: str, line: Line) -> dict[str, Any]:
    budget = line.budget
    noise = Scores.reading(line).noise(line) if name == REPORT else noise_of(line)
    return {
        "name": name,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "right_guesses": right_guesses([line.event], budget.epsilon, budget.delta),
        "noise_stddev": [{"of": what, "value": value} for what, value in noise.items()],
    }


def _size(prepared: Prepared, plan: Line) -> dict[str, Any]:
    """Return of how many units less than noise would come, and how many rows there are by the schema."""
    least, contract = least_units(plan, prepared.system), prepared.contract
    rows = contract.rows if contract.is_table else None
    return {
        "units": units_of(plan),
        "units_at_least": None if least is None else math.ceil(least),
        "rows_at_least": rows.min if rows else None,
        "rows_at_most": rows.max if rows else None,
    }


def _account(config: Charged, prepared: Prepared, quote: Quote | None) -> dict[str, Any]:
    """Return what the account says; one that is not open yet opens with the run's budget as its cap."""
    if quote is None:
        cap = whole_budget(prepared.lines[:1] if prepared.clients else prepared.lines)
        account, opens, limits = prepared.contract.name, True, (cap.epsilon, cap.delta)
        spent: dict[str, Any] = {"spent_before": 0.0, "spent_after": None, "accepted": None}
    else:
        account, opens, limits = quote.account, quote.opens, (float(quote.cap), float(quote.delta))
        before, after = float(quote.spent_before), float(quote.spent_after)
        spent = {"spent_before": before, "spent_after": after, "accepted": quote.accepted}
    ledger = ledger_if_any(config)
    officer = ledger.officer(account) if ledger is not None and not opens else None
    terms = {"account": account, "account_opens": opens, "cap_epsilon": limits[0], "cap_delta": limits[1]}
    return terms | spent | {"officer": officer[0].name if officer else None}


def _costs(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return what each accountant finds; no number of one that finds none."""
    costs = costs_by_accountant(lines).items()
    return [{"accountant": name, "epsilon": None if isinstance(cost, str) else float(cost)} for name, cost in costs]


def _cautions(prepared: Prepared, lines: Sequence[Line]) -> Iterator[str]:
    method = lines[0].method if lines else ROUNDS
    if method in STAYS_INSIDE:
        yield STAYS_INSIDE[method]
    if lines:
        yield from cautions_of(lines[0].budget.epsilon, lines[0].budget.delta, lines[0])
        yield from cautions(lines[0]) if lines[0].family else cautions_about(prepared.contract)
    of_rows = (said for line in lines[:1] for said in (few_rows(line, prepared.system), delta_over_rows(line)))
    yield from filter(None, of_rows)
