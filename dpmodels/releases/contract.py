"""The contract of a data set: everything public about it, and all that driver, ledger and hand-off may know of it.

A system knows the kind of contract that it is for, and reads more from it, such as the columns of a table.
"""

import json
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, PlainSerializer, PlainValidator

from dpmodels.contract.discovery import Discovery
from dpmodels.contract.documents import Documents
from dpmodels.contract.federation import Federation
from dpmodels.contract.schema import Schema
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit


class Contract(Protocol):
    """The public description of one data set: everything in it is public by declaration.

    Attributes:
        name: of the data set, under which an account is opened for it.
        unit, adjacency: whose presence is hidden, and how two neighboring data sets differ.
        part: for data that is a part of a larger whole, the kind of part, such as a night; empty for the whole.
        hash: SHA-256 of the whole contract.
    """

    name: str

    @property
    def unit(self) -> PrivacyUnit:
        """See above."""

    @property
    def adjacency(self) -> Adjacency:
        """See above."""

    @property
    def part(self) -> str:
        """See above."""

    @property
    def hash(self) -> str:
        """See above."""

    def to_yaml(self) -> str:
        """Write the contract as the YAML that reads back equal to it."""


KINDS: dict[str, type[BaseModel]] = {
    "table": Schema,
    "documents": Documents,
    "federation": Federation,
    "discovery": Discovery,
}
"""The kinds of contract by the word under which they are written down."""


def read_contract(written: Any) -> Contract:
    """Read a contract from ``{kind: content}``; a contract that was read already is returned as it is.

    Raises:
        ValueError: there is no such kind, or its content is not as it should be.
    """
    if isinstance(written, tuple(KINDS.values())):
        contract: Contract = written  # type: ignore[assignment]
        return contract
    if not isinstance(written, dict) or len(written) != 1 or next(iter(written)) not in KINDS:
        raise ValueError(f"must be a contract of one kind: {', '.join(KINDS)}")
    ((kind, content),) = written.items()
    return read_contract(KINDS[kind].model_validate_json(json.dumps(content)))


def write_contract(contract: Any) -> dict[str, Any]:
    """Write a contract as ``{kind: content}``."""
    (kind,) = [name for name, model in KINDS.items() if isinstance(contract, model)]
    return {kind: contract.model_dump(mode="json")}


AnyContract = Annotated[Contract, PlainValidator(read_contract), PlainSerializer(write_contract)]


def check_contract(contract: Contract, budget: PrivacyBudget) -> None:
    """Refuse a budget for another unit of privacy, or another adjacency, than the contract's.

    Raises:
        InvalidArgument: either differs.
    """
    if budget.adjacency != contract.adjacency:
        rule = f"be {contract.adjacency}, which is what the sensitivities are proved for"
        raise InvalidArgument("adjacency", budget.adjacency, rule)
    if budget.unit != contract.unit:
        raise Unsuitable(f"the budget's unit is {budget.unit} and the schema's {contract.unit}; make them one")


def check_kept_whole(unit: PrivacyUnit, adjacency: Adjacency) -> None:
    """Refuse a cut of the data by what rows hold, where it may spread a unit over parts that are charged as one.

    Raises:
        InvalidArgument: a unit has several rows, or a replaced one may move to another part.
    """
    if unit.max_rows > 1 or adjacency != Adjacency.ADD_OR_REMOVE_ONE:
        raise Unsuitable(
            f"parts that are cut by what rows hold do not keep {unit} whole under {adjacency}; take another method"
        )
