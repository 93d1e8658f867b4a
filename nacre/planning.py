"""What a synthesis would charge, without opening any data."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from dpmodels.contract.remarks import before_a_charge, is_of_dates
from dpmodels.errors import in_words
from flows.config import SynthesizeConfig
from flows.description import NOBODY_SIGNS, as_lines, describe_config, noise_of
from flows.planning import MayOpen, beside, ledger_if_any
from flows.rows_of_users import noise_by_max_rows
from flows.settings import placed
from flows.start import preparation_of, refusal_of
from nacre.given import SchemaLike, schema_file
from nacre.keywords import SynthesisSettings, takes_settings, terms_of
from nacre.notebook import facts_as_html
from nacre.words import argument, in_a_sentence

SHOWN = re.compile(r"a true 100 shows as (-?\d+) to (-?\d+)")
OFF = "a true count of 100 shows as {} to {} where noise is least, and as {} to {} where it is most, in 95 of 100 cases"
OFF_ALIKE = "a true count of 100 shows as {} to {} in 95 of 100 cases"
NOWHERE = Path("not-opened")  # a plan reads no data and hands nothing over


class Planned:
    """What would be charged; a terminal prints it as text, and a notebook shows it as a table.

    Attributes:
        facts: the description by name: the method, the event in words, the noise in units of the sums, and more.
        accepted: whether the account would accept the charge; None where the run itself would open one. A charge that
            would be refused has the sentence of ``synthesize`` in the fact ``answer``.
        max_rows: for a unit of a user, the noise of a count (``noise_stddev``, in rows) beside other values of
            ``max_rows``, and how many times that of one row it is (``relative``); empty for other units and for
            schemas with ``users``, where more rows cost no more.
    """

    def __init__(
        self, facts: Mapping[str, str], accepted: bool | None, max_rows: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.facts, self.accepted, self.max_rows = dict(facts), accepted, list(map(dict, max_rows))

    def __repr__(self) -> str:
        return "\n".join(as_lines(self.facts))

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
        yield "hides", facts.get("hides", "")
        yield "costs", facts.get("release and report") or f"{facts['target']}: {facts.get('in words')}"
        counts = {key: text for key, text in facts.items() if not key.startswith("report: ")}
        ends = [(int(low), int(high)) for text in counts.values() for low, high in SHOWN.findall(text)]
        if ends:
            near, far = min(ends, key=_width), max(ends, key=_width)
            yield "may be off by", OFF.format(*near, *far) if near != far else OFF_ALIKE.format(*near)
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
        max_rows = noise_by_max_rows(prepared.lines[0], noise_of)
    if refusal is not None:
        facts["answer"] += f": {in_a_sentence(refusal, settings.get('home'), settings.get('ledger'))}"
        return Planned(facts, False, max_rows)
    return Planned(facts, None if quote is None else quote.accepted, max_rows)


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
