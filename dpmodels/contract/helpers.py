"""Columns that are modeled for the sake of others alone: computed as rows are read, and left out when they are written.

What follows from one, such as an amount from its share, is handed over; whoever receives it cannot reckon it again.
"""

from typing import Any

from dpmodels.contract.columns import helpers
from dpmodels.contract.identifiers.identifier import Identifier
from dpmodels.contract.schema import LEFT_OUT, Schema, columns_in

BY_NAME = Identifier(type="identifier", keep="text:derived")


def helpers_of(contract: Any) -> frozenset[str]:
    """Name the helpers of a contract, which only tables have."""
    return helpers(contract.columns) if contract.is_table else frozenset()


def without_helpers(contract: Any) -> Any:
    """Return the contract that a table keeps which was handed over: what follows from helpers is known by name alone.

    Its rules on helpers were kept before these were left out.
    """
    names = helpers_of(contract)
    if not names:
        return contract
    follows = {name for name, one in contract.derived.items() if names & {*one.operands}}
    columns = contract.columns | dict.fromkeys(names, LEFT_OUT) | dict.fromkeys(follows, BY_NAME)
    rules = tuple(text for text in contract.constraints if not names & columns_in(text, contract.columns))
    fields = {name: getattr(contract, name) for name in Schema.model_fields}
    return Schema.model_construct(**{**fields, "columns": columns, "constraints": rules})
