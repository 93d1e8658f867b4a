"""What a lint says of a schema: its faults, and, where there is none, what is to be looked at before a charge."""

from pathlib import Path

from dpmodels.authoring.lint import lint, read
from dpmodels.contract.remarks import before_a_charge
from dpmodels.errors import SchemaFault


def faults_and_cautions(path: str | Path) -> tuple[list[SchemaFault], list[str]]:
    """Return the faults of a contract's file, by line, and sentences on what is no fault of one that has none."""
    if faults := lint(path):
        return faults, []
    contract = read(path)[0]
    return [], [*getattr(contract, "remarks", ()), *before_a_charge(contract)]
