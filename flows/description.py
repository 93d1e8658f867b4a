"""What an officer reads before signing: one description of a plan, for the terminal, Prefect's pages and Python.

A description is a mapping from names to facts, all of them public. The three places differ in the layout alone.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from dpmodels import amounts
from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon
from dpmodels.accounting.events import (
    Event,
    priced,
)
from dpmodels.accounting.meaning import in_words, right_guesses
from dpmodels.accounting.prv import PRV_ERROR, prv_epsilon
from dpmodels.contract.columns import Integer, Number
from dpmodels.contract.federation import ROUNDS, SCORES, STAYS_INSIDE
from dpmodels.contract.remarks import is_declared
from dpmodels.errors import NacreError
from dpmodels.escapes import escaped
from dpmodels.ledger.records import Quote
from dpmodels.methods.parts.pair_noise import measure_of
from dpmodels.methods.registry import of_kind, system_of
from dpmodels.pages.asked.open_points import lines as asked_of
from dpmodels.pages.card_words import SMALL, delta_warning
from dpmodels.pages.glance import warnings_of
from dpmodels.pages.notes import together
from dpmodels.plural import counted
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import joint_cost
from dpmodels.releases.plan import Line
from dpmodels.releases.system import System
from dpmodels.report.charged import Scores
from dpmodels.report.terms import cautions
from flows.charge_words import charge_in_words, hidden, one_of, promised
from flows.config import Charged
from flows.kinds.prepared import Prepared
from flows.planning import cautions_about, cautions_of, delta_over_rows, whole_budget
from flows.rows_of_users import COUNTS, noise_by_max_rows, table_of
from flows.start import pays_not, preparation_of, quote_of
from flows.widths import as_facts, planned_widths
from tasks.kinds.protocol import kind_of_line
from tasks.run.accounts import officer_of, quote
from tasks.run.store import Run

OF_WHOM = {
    "deep-candidate": "sentences in a document",
    "document-sketch": "sentences in a document",
    "discovery": "records that have a value in common",
    "federated-heads": "records of a client",
    "federated-both": "records of a client",
    "federated-moments": "records of all clients together",
}
"""What must be so many for a release to stand out of its noise, where it is not units of all the data."""
ENOUGH, MUCH_NOISE = 2, 5_000
"""Times as many units as noise amounts to, below which a public number of rows is warned of; how many without one."""
IN_95_OF_100 = 1.96  # standard deviations of Gaussian noise
REFUSED = "would be REFUSED"
MEANS = (
    "how far off the mean and the 99 % quantile of a column are depends on its values, so it is unknown until "
    "released; the report says it where counts were released. Bounds that are too wide make it worse"
)
NOBODY_SIGNS = "nobody must sign"
NOISE = "noise_stddev of the "
"""What a plan's facts call each noise that figures are made of."""
SHARES = ("at most 1", "the clip norm is 1", "in units of one record")


def describe_config(
    config: Charged, explain: bool = False, prepared: Prepared | None = None, refusal: NacreError | None = None
) -> tuple[dict[str, str], Quote | None]:
    """Describe what a run of a configuration would charge, and return the quote of its account.

    Where it is to be explained, the figures of other accountants stand beside the price. ``prepared`` is what the
    configuration was prepared to be, where that was done, and ``refusal`` what the accounts would refuse the run with.
    """
    prepared = prepared or preparation_of(config).prepare(config, "")
    if not prepared.lines:
        return describe_uncharged(prepared.contract), None
    quote, signer = quote_of(config, prepared)
    where = f"on this machine, device {config.runtime.device}"
    facts = describe(prepared.lines, quote, None if prepared.clients else signer, where, prepared.system)
    if refusal is not None:
        none_pays = {"account": "none is open that would pay"} if pays_not(quote, refusal) else {}
        facts |= none_pays | {"answer": REFUSED}
    facts |= as_fact("becomes public", rows_made_public(prepared.contract, prepared.settings.get("unlisted", {})))
    by_rows = noise_by_max_rows(prepared.lines[0], noise_of)
    facts |= as_fact("max_rows", table_of(by_rows, str(prepared.contract.unit.user)))
    beside = {"other accountants": other_accountants(prepared.lines)} if explain else {}
    return facts | beside | _declared(config.statement.said, bool(signer)), quote


def other_accountants(lines: Sequence[Line]) -> str:
    """Say what Renyi divergences and Opacus' accountant find that a run costs, or each client, beside the price."""
    clients = lines[0].contract.whole is not lines[0].contract
    texts = [f"{name}: {_found(cost)}" for name, cost in costs_by_accountant(lines).items()]
    return "\n".join(["at the same delta" + (", for each client" if clients else ""), *texts])


def _found(cost: Decimal | float | str) -> str:
    if isinstance(cost, float):
        return f"epsilon={cost:.4f}, within {PRV_ERROR}"
    return cost if isinstance(cost, str) else f"epsilon={cost}"


def costs_by_accountant(lines: Sequence[Line]) -> dict[str, Decimal | float | str]:
    """Return the epsilon that each accountant finds, by its name; of one that finds none, why it does not."""
    plan, *others = lines
    clients = plan.contract.whole is not plan.contract
    events = [line.event for line in ([plan] if clients else [plan, *others])]
    delta = plan.budget.delta_exact
    costs: dict[str, Decimal | float | str] = {"charged": spent_epsilon(events, delta)}
    if delta:
        costs["by Renyi divergences"] = renyi_epsilon(events, delta)
        try:
            costs["by Opacus' PRV accountant"] = prv_epsilon(events, float(delta))
        except NacreError as why:
            costs["by Opacus' PRV accountant"] = f"not known: {why}"
    return costs


def describe_run(run: Run) -> dict[str, str]:
    """Describe what a run charges, before or after it was charged."""
    if (contract := run.plan.about) and contract.kind == "federation":
        return describe_uncharged(contract.whole) | run.settings.declared.said
    signer, settings = officer_of(run), run.settings
    where = f"on this machine, device {settings.device}"
    if settings.train_on != "here":
        where = f"by the {settings.train_on}, which never sees the data"
    lines, system = run.plan.lines, None
    if run.plan.contract.kind == "each document":
        system = kind_of_line(run.plan.release).system(run)
    facts = describe(lines, quote(run), signer[0].name if signer else "", where, system)
    facts |= as_fact("becomes public", rows_made_public(run.plan.contract, settings.unlisted))
    return facts | _declared(settings.declared.said, signer is not None)


def describe(
    lines: Sequence[Line],
    quote: Quote | None,
    signer: str | None = None,
    where: str = "",
    system: System[Any] | None = None,
) -> dict[str, str]:
    """Say in words what a plan's lines charge, whom their noise hides and how large it is, and the account's quote."""
    plan, *others = lines
    contract = plan.contract.whole
    facts = {"data set": contract.name, "method": plan.method, "hides": hidden(plan.budget)}
    alone = "scores alone: " if plan.method == SCORES else ""
    price = {f"{alone}{name}": text for name, text in _priced(plan, noise_of(plan)).items()}
    noise = {name: price.pop(name) for name in [*price] if NOISE in name}
    facts |= price | as_facts(planned_widths(plan)) | noise
    facts |= as_fact("delta", _fits(plan))
    facts |= _least(plan, system)
    columns = contract.columns.values() if contract.is_table else ()
    if any(isinstance(column, Integer | Number) for column in columns):
        facts["means"] = MEANS
    if plan.family:
        facts["parts"] = f"each {plan.family} is charged on its own, in parallel, so together they cost what one costs"
    cautions_of_plan = [*_cautions(plan)]
    facts |= as_fact("caution", (one for one in cautions_of_plan if not is_declared(one)))
    facts |= as_fact("note", together(one for one in cautions_of_plan if is_declared(one)))
    if contract is not plan.contract:
        facts["clients"] = "\n".join(line.contract.name for line in lines)
        facts["trust"] = str(plan.measurement.get("trust", "local"))
        others = []
    for line in others:
        facts |= {f"report: {name}": text for name, text in _priced(line, Scores.reading(line).noise(line)).items()}
        events, delta = [plan.event, line.event], plan.budget.delta
        both = spent_epsilon(events, plan.budget.delta_exact)
        right = in_words(right_guesses(events, float(both), delta))
        bets = f"{right} of even bets are won at most by this noise"
        facts["release and report"] = f"epsilon={both} together, delta={delta}; {bets}"
    facts |= _discovered([plan, *others])
    cap = whole_budget([plan, *others])
    facts |= _account(quote) if quote else _opens(contract.name, cap.epsilon_exact, cap.delta_exact)
    if signer is not None:
        facts["officer"] = f"{signer} must sign before anything is charged" if signer else NOBODY_SIGNS
    if where and not plan.family and plan.contract.kind != "discovery":
        facts["training"] = f"from the release alone, so it costs nothing more; {where}"
    return facts


def _cautions(plan: Line) -> Iterator[str]:
    """Yield what a budget hardly promises any more, and what a plan does not promise of what is made of it."""
    yield from cautions_of(plan.budget.epsilon, plan.budget.delta, plan)
    if plan.family:
        yield from cautions(plan)
    else:
        of_rows = filter(None, [delta_over_rows(plan)])
        yield from (*cautions_about(plan.contract.whole, of_dates=False), *of_rows)


def _declared(said: Mapping[str, str], signed: bool) -> dict[str, str]:
    """Repeat what is declared, and say what the pages ask for beside it; to an officer each in its line."""
    missing = [f"{one.title}: {one.option}".replace("`", "") for one in asked_of(said) if one.state]
    if not missing or not (signed or said):
        return dict(said)
    if not signed:
        return {**said, "not declared": ", ".join(dict.fromkeys(one.rpartition(": ")[2] for one in missing))}
    of_all = f"{len(missing)} of {len(asked_of(said))} answers that the pages ask for; `nacre fit` adds more later"
    return {**said, "not declared": "\n".join([of_all, *missing])}


def describe_uncharged(contract: Any) -> dict[str, str]:
    """Say of a federation that draws nothing that it charges nothing, and that this protects nobody."""
    return {
        "data set": contract.name,
        "method": ROUNDS,
        "charge": "nothing: the algorithm asks for no certainty scores, so none are drawn, and no account is charged",
        "caution": STAYS_INSIDE[ROUNDS],
        "clients": "\n".join(client.name for client in contract.clients),
    }


def rows_made_public(contract: Contract, unlisted: Mapping[str, int]) -> Iterator[str]:
    """Say which public rows beside a tree are handed over as they are, and how many columns of their files are not.

    The names of these columns are not said: nobody declared them public, and a name may be a value.
    """
    for name, table in contract.public.items() if contract.kind == "tree" else ():
        left_out = f"; {counted(unlisted[name], 'column')} of its file left out" if unlisted.get(name) else ""
        yield f"{name}: {counted(table.size, 'row')} as they are, of {', '.join(table.columns)}{left_out}"


def as_fact(name: str, sentences: Iterable[str]) -> dict[str, str]:
    """Return a fact of a line for each sentence; none where there are no sentences."""
    text = "\n".join(sentences)
    return {name: text} if text else {}


def _discovered(lines: Sequence[Line]) -> dict[str, str]:
    """Say what the schema was discovered with, which was charged before, and what everything costs together."""
    discoveries, (plan, *_) = lines[0].contract.discovered, lines
    if not discoveries:
        return {}
    events: list[Event] = [line.event for line in lines]
    total, delta = joint_cost(events, plan.budget.delta, plan.contract)
    events += [event for one in discoveries for event in one.events]
    right = in_words(right_guesses(events, float(total), delta))
    charges = [
        f"epsilon={one.epsilon}, delta={one.delta}, charged to {one.account} before, {one.run}" for one in discoveries
    ]
    whole = f"epsilon={total} together, delta={delta}; {right} of even bets are won at most by this noise"
    return {"schema discovered with": "\n".join(charges), "in all": f"{whole}. The hand-off states this price"}


def noise_of(plan: Line) -> Mapping[str, float]:
    """Return the noise of a plan; what is released for each document is chosen and has none."""
    system = _system(plan)
    return system.noise(plan) if system else {}


def _system(plan: Line) -> System[Any] | None:
    """Make the system of a plan; None where it needs public files that the plan names by their hash."""
    return None if plan.method in of_kind("each document") else system_of(plan.method, plan.measurement)


def _least(plan: Line, system: System[Any] | None) -> dict[str, str]:
    """Say of how many units less than noise would come, where public inputs alone tell."""
    least = least_units(plan, system)
    if least is None:
        return {}
    rows, whom = plan.budget.unit.max_rows, f"{least:,.0f} {units_of(plan)}"
    if rows > 1 and plan.contract.whole.makes_rows_alone:
        whom = f"{rows * least:,.0f} rows, of {whom} if each has {rows}"
    text = f"only with more than about {whom}: what is released of fewer is mostly noise, and "
    text += "what is made of it says next to nothing"
    return as_fact("stands out", [text, *filter(None, [few_rows(plan, system)])])


def least_units(plan: Line, system: System[Any] | None = None) -> float | None:
    """Return of about how many units less than noise would come; None where public inputs do not tell.

    ``system`` is that of the plan, where it is made with public files and not of the plan alone.
    """
    system = system or _system(plan)
    return system.least_units(plan) if system and plan.method != SCORES else None


def units_of(plan: Line) -> str:
    """Name what must be so many for a release to stand out of its noise."""
    units = f"users ({plan.budget.unit.user})" if plan.budget.unit.user else f"{plan.budget.unit.kind}s"
    return OF_WHOM.get(plan.method, units)


def few_rows(plan: Line, system: System[Any] | None = None) -> str:
    """Say that the rows that there may be by the schema hardly stand out of the noise; nothing where they do."""
    contract, least = plan.contract.whole, least_units(plan, system)
    low, most = (contract.rows.min, contract.rows.max) if contract.is_table and contract.rows else (0, None)
    if least is None or (ENOUGH * least <= most if most else least < MUCH_NOISE):
        return ""
    if most is None:
        much = (
            f"noise amounts to about {least:,.0f} {units_of(plan)}: unless there are known to be many more, spend more"
        )
        known = " or leave out columns; if there are, write `rows: {min: ...}` in the schema" * contract.is_table
        return "" if low >= ENOUGH * least else much + known
    fewer = "fewer than the" if most <= least else "hardly more than the"
    said = f"by the schema (rows: max) there are at most {most:,} rows, {fewer} {least:,.0f} that noise amounts to"
    return f"{said}: spend more, or leave out columns, or expect that the synthetic rows say next to nothing"


def describe_least(plan: Line) -> str:
    """Say of how many units less than noise would come, in one line."""
    return "; ".join(as_lines(_least(plan, None)))


def warnings_in(report: Mapping[str, Any]) -> list[str]:
    """Return what a publishable report warns of but for the whole release: dropped clients, a large delta, columns."""
    dropped = [one for one in report.get("clients", ()) if one["dropped"]]
    of_clients = [f"client {one['name']} was dropped: {one['dropped']}" for one in dropped]
    return [*of_clients, *filter(None, [_large_delta(report)]), *warnings_of(report)]


def _large_delta(report: Mapping[str, Any]) -> str:
    """Warn of a delta that is large for the noisy number of records, as statement and data sheet do."""
    privacy = report.get("privacy", {})
    whole = {"delta": privacy.get("total_delta", privacy.get("delta")), "unit": privacy.get("unit", "")}
    return delta_warning({"hand_off": whole, "content": {"counted": report.get("released_records")}})


def as_lines(facts: Mapping[str, str]) -> list[str]:
    """Lay facts out as lines of plain text; a fact of several lines stays on several lines."""
    return [f"{name}: {line}" for name, text in facts.items() for line in text.split("\n")]


def as_markdown(facts: Mapping[str, str]) -> str:
    """Lay facts out as a list in Markdown."""
    texts = {plain(name): plain(text) for name, text in facts.items()}
    return "\n".join(f"- **{name}**: " + text.replace("\n", "  \n  ") for name, text in texts.items())


def plain(text: str) -> str:
    """Write text so that Markdown shows its signs as they are, and a browser obeys none."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", escaped(text))


def _priced(line: Line, noise: Mapping[str, float]) -> dict[str, str]:
    """Say what one line of a plan charges, as a target, as events, and as noise."""
    budget = line.budget
    facts = {
        "target": f"epsilon={budget.epsilon}, delta={budget.delta}",
        "in words": promised(line),
        "charge": charge_in_words(priced(line.event, line.family), one_of(budget)),
    }
    return facts | {f"{NOISE}{name}": "; ".join(_felt(name, noise)) for name in noise}


def _fits(line: Line) -> Iterator[str]:
    """Say how many units delta fits where a schema does not say how many there are at most, and how it may say so."""
    budget, contract = line.budget, line.contract.whole
    if not budget.delta or (contract.is_table and contract.rows is not None and contract.rows.max is not None):
        return
    declare = "; declare `rows: {min: , max: }` in the schema, if that number is public, to be told whether it is large"
    has_rows = contract.is_table and not budget.unit.user
    yield f"fits up to {SMALL / budget.delta:,.0f} {budget.unit.kind}s{declare * has_rows}"


def _felt(name: str, noise: Mapping[str, float]) -> Iterator[str]:
    """State a noise_stddev, and what it does to a count of 100 or how it compares with what one record adds."""
    yield f"{(stddev := noise[name]):.4g}"
    yield from filter(None, [measure_of(name, noise)])
    if name.startswith(COUNTS):
        off = IN_95_OF_100 * stddev
        yield f"a true 100 shows as {math.floor(100 - off)} to {math.ceil(100 + off)} in 95 of 100 cases"
    elif any(share in name for share in SHARES):
        yield f"{stddev:.3g} times what one record adds at most"


def _opens(account: str, cap: Decimal, delta: Decimal) -> dict[str, str]:
    return {"account": f"{account}, opens with this run, {_cap(cap, delta)}"}


def _cap(cap: Decimal, delta: Decimal) -> str:
    return f"cap epsilon={amounts.written(cap)} at delta={amounts.written(delta)}"


def _account(quote: Quote) -> dict[str, str]:
    answer = "would be accepted" if quote.accepted else REFUSED
    if quote.opens:
        return _opens(quote.account, quote.cap, quote.delta) | {"answer": answer}
    return {
        "account": f"{quote.account}, {_cap(quote.cap, quote.delta)}",
        "spent": f"epsilon={amounts.spent(quote.spent_before)} before, {amounts.spent(quote.spent_after)} after",
        "answer": answer if quote.state == "new" else f"accepted before, and {quote.state}",
    }
