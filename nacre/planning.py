"""What a synthesis would charge, without opening any data."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, Unpack

from dpmodels.contract.remarks import before_a_charge, is_of_dates
from dpmodels.contract.workload import named_pairs, weighed
from dpmodels.errors import in_words
from dpmodels.plural import counted
from flows.config import SynthesizeConfig
from flows.description import NOBODY_SIGNS, as_lines, describe_config, noise_of
from flows.in_short import plan_in_short
from flows.planning import MayOpen, beside, ledger_if_any
from flows.rows_of_users import noise_by_max_rows
from flows.settings import placed
from flows.start import preparation_of, refusal_of
from flows.widths import WITHIN, of_middle_rows
from nacre.given import SchemaLike, schema_file
from nacre.keywords import SynthesisSettings, takes_settings, terms_of
from nacre.notebook import facts_as_html
from nacre.words import argument, in_a_sentence

SHOWN = re.compile(r"a true 100 shows as (-?\d+) to (-?\d+)")
OFF = "a true count of 100 shows as {} to {} where noise is least, and as {} to {} where it is most, in 95 of 100 cases"
OFF_ALIKE = "a true count of 100 shows as {} to {} in 95 of 100 cases"
LONGEST_LINE = 160
"""Letters of a line of a plan that is shown in short."""
NOWHERE = Path("not-opened")  # a plan reads no data and hands nothing over


class Planned:
    """What would be charged: a terminal and a notebook show in short what one decides by; ``text`` has all of it.

    Attributes:
        facts: the description by name: the method, the event in words, the noise in units of the sums, and more.
        accepted: whether the account would accept the charge; None where the run itself would open one. A charge that
            would be refused has the sentence of ``synthesize`` in the fact ``answer``.
        max_rows: for a unit of a user, the noise of a count (``noise_stddev``, in rows) beside other values of
            ``max_rows``, and how many times that of one row it is (``relative``); empty for other units and for
            schemas with ``users``, where more rows cost no more.
        measures: how many columns, pairs and rows the schema says, in words; empty of what is no table.
    """

    def __init__(
        self,
        facts: Mapping[str, str],
        accepted: bool | None,
        max_rows: Sequence[Mapping[str, Any]] = (),
        measures: str = "",
    ) -> None:
        self.facts, self.accepted, self.max_rows = dict(facts), accepted, list(map(dict, max_rows))
        self.measures = measures

    @property
    def text(self) -> str:
        """All facts as ``nacre plan --details`` prints them, a line each."""
        return "\n".join(as_lines(self.facts))

    def __repr__(self) -> str:
        short = [(name, line) for name, text in self._in_short() for line in text.split("\n") if line]
        if not short:
            return self.text
        lines = [f"  {name:13} {shorten(line, LONGEST_LINE, placeholder=' …')}" for name, line in short]
        head = f"<nacre plan for {self.facts.get('data set')}: nothing is charged yet"
        return "\n".join(
            [head, *lines, f"  {'all':13} `print(plan)` has more, and `print(plan.text)` all {len(self.facts)} facts>"]
        )

    def __str__(self) -> str:
        """Write what `nacre plan` prints without `--details`."""
        short = plan_in_short(self.facts, "`nacre.synthesize`", whole="`.text` of the plan has them")
        return "\n".join(as_lines(short))

    def _repr_html_(self) -> str:
        """Show in short what one decides by, and all facts in a part that is folded until it is asked for."""
        short = {name: text for name, text in self._in_short() if text}
        whole = facts_as_html("all that a terminal prints", self.facts)
        folded = f"<details><summary>all {len(self.facts)} details</summary>{whole}</details>"
        return facts_as_html("plan: nothing is charged yet", short) + folded if short else whole

    def _in_short(self) -> Iterator[tuple[str, str]]:
        """Yield what is released, what it costs, what it may be off by, what to look at, and what comes next."""
        facts = self.facts
        if "target" not in facts:
            return
        yield "is released", f"a synthetic copy of {facts.get('data set')}, by {facts.get('method')}"
        yield "measures", self.measures
        yield "hides", facts.get("hides", "")
        yield "costs", facts.get("release and report") or f"{facts['target']}: {facts.get('in words')}"
        counts = {key: text for key, text in facts.items() if not key.startswith("report: ")}
        ends = [(int(low), int(high)) for text in counts.values() for low, high in SHOWN.findall(text)]
        if ends:
            near, far = min(ends, key=_width), max(ends, key=_width)
            yield "may be off by", OFF.format(*near, *far) if near != far else OFF_ALIKE.format(*near)
        yield WITHIN, "\n".join(as_lines(of_middle_rows(facts)))
        yield "stands out", facts.get("stands out", "")
        yield "caution", facts.get("caution", "")
        yield "account", facts.get("account", "")
        signer = facts.get("officer", "") if facts.get("officer") != NOBODY_SIGNS else ""
        call = f"`nacre.synthesize(data, schema, {facts['target']})`, with the same settings, charges this once"
        yield "next", facts.get("answer", "") if self.accepted is False else "\n".join(filter(None, [signer, call]))


def _width(ends: tuple[int, int]) -> int:
    return ends[1] - ends[0]


@takes_settings(SynthesizeConfig, "data", "schema")
def plan(schema: SchemaLike, epsilon: float, delta: float, **settings: Unpack[SynthesisSettings]) -> Planned:
    """Say what ``synthesize`` with these arguments would charge and how much noise it would add.

    Privacy: reads the schema and the ledger only, and writes nothing.

    Raises:
        NacreError: the schema has faults, or an argument is impossible.
    """
    may_open = MayOpen.YES if settings.pop("open", False) else MayOpen.FIRST
    with schema_file(schema) as file:
        terms = {**terms_of(settings), "schema": file, "target_epsilon": epsilon, "delta": delta}
        terms |= {"data": NOWHERE, "out": terms.get("out") or NOWHERE}
        config = SynthesizeConfig.build(placed(terms))
        prepared = preparation_of(config).prepare(config, "")
        refusal = refusal_of(config, prepared, may_open)
        facts, quote = describe_config(config, prepared=prepared, refusal=refusal)
        if said := [*filter(None, (facts.get("caution"), *_asked(prepared.contract), *_beside(config, prepared)))]:
            facts["caution"] = "\n".join(said)
        max_rows, measures = noise_by_max_rows(prepared.lines[0], noise_of), _measures(prepared.contract)
    if refusal is not None:
        facts["answer"] += f": {in_a_sentence(refusal, settings.get('home'), settings.get('ledger'))}"
        return Planned(facts, False, max_rows, measures)
    return Planned(facts, None if quote is None else quote.accepted, max_rows, measures)


def _measures(contract: Any) -> str:
    """Say how many columns of a table are measured, for which target and pairs first, and how many rows it declares."""
    if not contract.is_table:
        return ""
    names, asked = list(contract.modelled), len(named_pairs(weighed(contract), list(contract.modelled)))
    rows = contract.rows
    parts = (
        f"{len(names)} of {counted(len(contract.columns), 'column')}",
        f"target {contract.target}" if contract.target else "no target",
        f"{counted(asked, 'pair')} asked for by the workload" if asked else "",
        f"{_spanned(rows)} rows declared" if rows else "",
    )
    return "; ".join(filter(None, parts))


def _spanned(rows: Any) -> str:
    """Write between what the number of rows lies, or on which side of what."""
    if rows.min == rows.max:
        return f"{rows.min:,}"
    if None not in (rows.min, rows.max):
        return f"{rows.min:,} to {rows.max:,}"
    return f"at least {rows.min:,}" if rows.max is None else f"up to {rows.max:,}"


def _asked(contract: Any) -> Iterator[str]:
    """Yield what the lint says of a schema that nothing mends after a charge: times between dates, and zeros."""
    yield from filter(is_of_dates, getattr(contract, "remarks", ()))
    yield from before_a_charge(contract)


def _beside(config: SynthesizeConfig, prepared: Any) -> Iterator[str]:
    """Yield what other accounts of the data set, by other units, have spent, unless a reason is given already."""
    ledger = None if config.statement.again else ledger_if_any(config)
    if ledger is not None and prepared.lines:
        warnings = beside(ledger, prepared.contract.name, prepared.lines[0].budget)
        yield from (in_words(one, argument).removeprefix("warning: ") for one in warnings)
