"""What a synthesis would charge, without opening any data."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from flows.config import SynthesizeConfig, placed
from flows.description import as_lines, describe_config
from nacre.given import SchemaLike, schema_file
from nacre.ledgers import Place, home_of, url_of

NOWHERE = Path("not-opened")  # a plan reads no data and hands nothing over


class Planned:
    """What would be charged; a terminal prints it as text, and a notebook shows it as a table.

    Attributes:
        facts: the description by name: the method, the event in words, the noise in units of the sums, and more.
        accepted: whether the account would accept the charge; None where no account is open yet.
    """

    def __init__(self, facts: Mapping[str, str], accepted: bool | None) -> None:
        self.facts, self.accepted = dict(facts), accepted

    def __repr__(self) -> str:
        return "\n".join(as_lines(self.facts))

    def _repr_html_(self) -> str:
        rows = (
            f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left;white-space:pre-line">{escape(text)}</td></tr>'
            for name, text in self.facts.items()
        )
        return f"<table><caption>plan: nothing is charged yet</caption><tbody>{''.join(rows)}</tbody></table>"


def plan(
    schema: SchemaLike,
    epsilon: float,
    delta: float,
    *,
    method: str | None = None,
    report_epsilon: float | None = None,
    account: str | None = None,
    allow_large_delta: bool = False,
    measurement: Mapping[str, Any] | None = None,
    home: Place | None = None,
    ledger: str | None = None,
) -> Planned:
    """Say what ``synthesize`` with these arguments would charge and how much noise it would add.

    Privacy: reads the schema and the ledger only, and writes nothing.

    Raises:
        NacreError: the schema has faults, or an argument is impossible.
    """
    terms: dict[str, Any] = dict(
        data=NOWHERE, out=NOWHERE, target_epsilon=epsilon, delta=delta, report_epsilon=report_epsilon
    )
    terms |= dict(account=account, allow_large_delta=allow_large_delta, method=method)
    terms |= dict(measurement=dict(measurement or {}), home=home_of(home), ledger=url_of(ledger))
    with schema_file(schema) as file:
        facts, quote = describe_config(SynthesizeConfig.build(placed({**terms, "schema": file})))
    return Planned(facts, None if quote is None else quote.accepted)
