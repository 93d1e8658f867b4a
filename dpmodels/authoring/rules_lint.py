"""Faults of a schema's rules, and of the keys of a column together, that stand beside those of single keys."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpmodels.authoring.column import COLUMN
from dpmodels.authoring.faults.beside import faults_beside
from dpmodels.authoring.faults.misspelt import misspelt_keys
from dpmodels.contract.columns import Modelled, derived_faults
from dpmodels.contract.constraints import Constraint, constraint_faults, name_fault
from dpmodels.contract.implications import is_implication
from dpmodels.contract.partition import Partition, partition_faults
from dpmodels.contract.workload import Tables, workload_faults
from dpmodels.limits import MOST_RULES

WORKLOAD: TypeAdapter[Any] = TypeAdapter(tuple[Tables, ...])
PARTITION: TypeAdapter[Any] = TypeAdapter(Partition)
Faults = Iterator[tuple[str, str]]


def rule_faults(data: Mapping[str, Any]) -> Faults:
    """Name what is wrong with constraints, partition and workload of a schema whose columns have faults of their own.

    A rule about a column that cannot be read yet is held to the names in it alone.
    """
    raw = data.get("columns")
    if not isinstance(raw, dict) or not all(isinstance(name, str) for name in raw):
        return
    columns = {name: _read(COLUMN, _unmarked(column)) for name, column in raw.items()}
    readable = {name: column for name, column in columns.items() if column is not None}
    yield from _of_constraints(data.get("constraints"), columns)
    unread = [name for name, column in columns.items() if column is None and not misspelt_keys(raw[name])]
    yield from faults_beside({name: _unmarked(raw[name]) for name in unread})
    if len(readable) == len(columns):
        yield from derived_faults(readable)
    partition = data.get("partition")
    part = _read(PARTITION, {"column": partition} if isinstance(partition, str) else partition)
    if part is not None and columns.get(part.column, part) is not None and isinstance(data.get("unit"), str):
        yield from partition_faults(part, readable, data.get("target"), None)
    workload = _read(WORKLOAD, data.get("workload"))
    if workload is not None:
        modelled = [name for name, column in columns.items() if column is None or isinstance(column, Modelled)]
        kinds = {name: getattr(column, "type", "") for name, column in columns.items()}
        yield from workload_faults(workload, modelled, data.get("target"), kinds)


def _unmarked(column: Any) -> Any:
    """Return a column of a draft as it is once its suggestion is taken."""
    return {key: value for key, value in column.items() if key != "confirm"} if isinstance(column, dict) else column


def _read(model: TypeAdapter[Any], content: Any) -> Any:
    """Return what a part of a file says; None if it has faults, which are listed elsewhere."""
    try:
        return model.validate_python(content)
    except ValidationError:
        return None


def _of_constraints(texts: Any, columns: Mapping[str, Any]) -> Faults:
    """Name what is wrong with constraints; contradictions between several only where every column can be read."""
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return
    if len(texts) > MOST_RULES:  # which is a fault, and to look at each would cost a minute
        return
    unread = [name for name, column in columns.items() if column is None]
    if not unread:
        yield from constraint_faults(texts, columns)
        return
    named = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in unread))
    for index, text in enumerate(texts):
        follows = is_implication(text)
        pair = None if follows else Constraint.parse(text)
        if not named.search(text) or (pair is None and not follows):
            yield from ((f"constraints.{index}", message) for _, message in constraint_faults([text], columns))
        elif pair is not None and (fault := name_fault(pair, columns)):
            yield f"constraints.{index}", f"`{text}` {fault}"
