"""The lint of a schema from Python: what ``nacre schema lint`` prints, as sentences."""

import os
from collections.abc import Sequence
from dataclasses import replace

from dpmodels.authoring.cautions import faults_and_cautions
from dpmodels.errors import in_words
from nacre.calls import call_of
from nacre.given import SchemaLike, load_schema, schema_file
from nacre.notebook import facts_as_html
from nacre.words import argument, of_frames


class Linted:
    """What is wrong with a schema, or what is to be looked at before a charge; a terminal shows a line for each.

    Attributes:
        faults: sentences on what keeps a run from using it, at most twenty; empty of a schema that can be used.
        cautions: sentences on what is no fault, and yet not what most would expect; empty of a schema with faults.
    """

    def __init__(self, faults: Sequence[str], cautions: Sequence[str]) -> None:
        self.faults, self.cautions = list(faults), list(cautions)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {line}" for name, text in self._facts().items() for line in text.split("\n"))

    def _repr_html_(self) -> str:
        return facts_as_html("schema", self._facts())

    def _facts(self) -> dict[str, str]:
        facts = {"faults": "\n".join(self.faults) or "none", "cautions": "\n".join(self.cautions)}
        return {name: text for name, text in facts.items() if text}


def lint(schema: SchemaLike) -> Linted:
    """Say what is wrong with a schema and, where nothing is, what to look at before a charge; reads no data.

    Faults are returned, where ``load_schema`` and ``synthesize`` raise them.

    Raises:
        NacreError: there is no such file.
    """
    with schema_file(schema) as file:
        if not file.exists():
            load_schema(schema)  # raises, with the name of the file that was probably meant
        faults, cautions = faults_and_cautions(file)
    if not isinstance(schema, str | os.PathLike):  # whose lines nobody has seen
        faults = [replace(fault, line=0) for fault in faults]
    return Linted(
        *([in_words(of_frames(str(one)), argument, call_of) for one in several] for several in (faults, cautions))
    )
