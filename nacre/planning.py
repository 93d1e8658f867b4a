"""What a synthesis would charge, without opening any data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from flows.config import SynthesizeConfig
from flows.description import as_lines, describe_config
from flows.settings import placed
from nacre.given import SchemaLike, schema_file
from nacre.keywords import SynthesisSettings, takes_settings, terms_of
from nacre.notebook import facts_as_html

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
        return facts_as_html("plan: nothing is charged yet", self.facts)


@takes_settings(SynthesizeConfig, "data", "schema")
def plan(schema: SchemaLike, epsilon: float, delta: float, **settings: Unpack[SynthesisSettings]) -> Planned:
    """Say what ``synthesize`` with these arguments would charge and how much noise it would add.

    Privacy: reads the schema and the ledger only, and writes nothing.

    Raises:
        NacreError: the schema has faults, or an argument is impossible.
    """
    settings.pop("open", None)  # a plan opens no account
    with schema_file(schema) as file:
        terms = {**terms_of(settings), "schema": file, "target_epsilon": epsilon, "delta": delta}
        terms |= {"data": NOWHERE, "out": terms.get("out") or NOWHERE}
        facts, quote = describe_config(SynthesizeConfig.build(placed(terms)))
    return Planned(facts, None if quote is None else quote.accepted)
