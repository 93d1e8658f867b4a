"""The contract of a data set: everything public about it, and all that driver, ledger and hand-off may know of it.

A system knows the kind of contract that it is for, and reads more from it, such as the columns of a table.
"""

import json
from typing import Annotated, Any, get_args

from pydantic import PlainSerializer, PlainValidator

from dpmodels.contract.discovery.discovery import Discovery
from dpmodels.contract.documents import Documents
from dpmodels.contract.federation import Federation
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit

Contract = Schema | Tree | Documents | Federation | Discovery
"""Everything public about one data set; each model says these of itself, so nobody asks which of them it is.

name, part, hash: of the data set, under which its account is opened; for a part, such as a night, the kind of part; the
    SHA-256 of the whole contract.
unit, adjacency: whose presence is hidden, and how two neighboring data sets differ.
kind: of data, by which methods say what they are for; ``about``: the same in words, of a few kinds together.
client, whole: a client of a federation, and the contract of the federation.
flat: the contract of the records that are encoded.
is_table, users, image, partition, discovered, workload, sources, makes_rows_alone, remarks: of tables; what is no table
    has none.
"""
KINDS: dict[str, type[Contract]] = {model.written: model for model in get_args(Contract)}
"""The models by the word under which they are written down."""


def read_contract(written: Any) -> Contract:
    """Read a contract from ``{kind: content}``; a contract that was read already is returned as it is.

    Raises:
        ValueError: there is no such kind, or its content is not as it should be.
    """
    if isinstance(written, Contract):
        return written
    if not isinstance(written, dict) or len(written) != 1 or next(iter(written)) not in KINDS:
        raise ValueError(f"must be a contract of one kind: {', '.join(KINDS)}")
    ((kind, content),) = written.items()
    return read_contract(KINDS[kind].model_validate_json(json.dumps(content)))


def table_of(contract: Contract) -> Schema:
    """Return the schema of a table.

    Raises:
        ArtifactError: the contract is about something else.
    """
    if not contract.is_table:
        raise ArtifactError(f"{contract.name} is about {contract.about}, and this needs the schema of a table")
    return contract


def tree_of(contract: Contract) -> Tree:
    """Return the contract of a tree of tables.

    Raises:
        ArtifactError: the contract is about something else.
    """
    if contract.kind != "tree":
        raise ArtifactError(f"{contract.name} is about {contract.about}, and this needs the schema of a tree of tables")
    return contract


def write_contract(contract: Contract) -> dict[str, Any]:
    """Write a contract as ``{kind: content}``."""
    return {contract.written: contract.model_dump(mode="json")}


AnyContract = Annotated[Contract, PlainValidator(read_contract), PlainSerializer(write_contract)]


def check_contract(contract: Contract, budget: PrivacyBudget) -> None:
    """Refuse a budget for another unit of privacy, or another adjacency, than the contract's.

    Raises:
        InvalidArgument, Unsuitable: either differs.
    """
    if budget.adjacency != contract.adjacency:
        rule = f"be {contract.adjacency}, which is what the sensitivities are proved for"
        raise InvalidArgument("adjacency", budget.adjacency, rule)
    if budget.unit != contract.unit:
        raise Unsuitable(f"the budget's unit is {budget.unit} and the schema's {contract.unit}; make them one")


def check_kept_whole(unit: PrivacyUnit, adjacency: Adjacency) -> None:
    """Refuse a cut of the data by what rows hold, where it may spread a unit over parts that are charged as one.

    Raises:
        Unsuitable: a unit has several rows, or a replaced one may move to another part.
    """
    if unit.max_rows > 1 or adjacency != Adjacency.ADD_OR_REMOVE_ONE:
        raise Unsuitable(
            f"parts that are cut by what rows hold do not keep {unit} whole under {adjacency}; take another method"
        )
