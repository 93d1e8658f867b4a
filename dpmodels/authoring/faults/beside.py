"""What is wrong with a column beside the keys that cannot be read: its other keys are held against each other too."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dpmodels.authoring.column import COLUMN
from dpmodels.contract.base import ColumnFaults


def faults_beside(columns: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name what is wrong with the readable keys of columns of which others cannot be read, by their places."""
    for name, keys in columns.items():
        if isinstance(keys, dict) and (unread := _unread(keys)):
            for key, message in _together({key: value for key, value in keys.items() if key not in unread}):
                if key.partition(".")[0] not in unread:
                    yield f"columns.{name}.{key}", message


def _unread(keys: Mapping[str, Any]) -> set[str]:
    """Return the keys of a column that are no keys, or hold what none of their kind does."""
    return {str(error["loc"][1]) for error in _errors(keys) if len(error["loc"]) > 1}


def _together(keys: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for error in _errors(keys):
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ColumnFaults):
            yield from cause.faults


def _errors(keys: Mapping[str, Any]) -> list[ErrorDetails]:
    try:
        COLUMN.validate_python(dict(keys))
    except ValidationError as error:
        return error.errors(include_url=False)
    return []
