"""Keys of a column that are none, by what they are meant for: what else is wrong with the column follows from them."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from dpmodels.authoring.headings import MEANT, folded
from dpmodels.authoring.meant import OF_TEXT
from dpmodels.contract.columns import Boolean, Categorical, Datetime, Derived, Identifier, Image, Integer, Number
from dpmodels.contract.discovery.discovery import columns_of
from dpmodels.plain_yaml import Place
from dpmodels.similar import close_match

KINDS: dict[str, type[BaseModel]] = {
    "categorical": Categorical,
    "boolean": Boolean,
    "integer": Integer,
    "number": Number,
    "datetime": Datetime,
    "identifier": Identifier,
    "image": Image,
    "derived": Derived,
}
KEYS = frozenset(key for kind in KINDS.values() for key in kind.model_fields)
"""The keys of columns of any type: one that another type has is not misspelt."""
CALLED = {"decimals": "round"}
"""Keys of a schema for what a data dictionary calls otherwise."""


def misspelt_keys(column: Any) -> dict[str, str]:
    """Return the keys of a column that are no keys, each with the one that is meant."""
    kind = KINDS.get(str(column.get("type"))) if isinstance(column, Mapping) else None
    if kind is None:
        return {}
    unknown = [key for key in column if isinstance(key, str) and key not in {*KEYS, *OF_TEXT, "confirm"}]
    absent = [key for key in kind.model_fields if key not in column]
    meant = dict[str, str]()
    for key in unknown:
        needed = [one for one in absent if one not in meant.values() and kind.model_fields[one].is_required()]
        others = [one for one in absent if one not in (*meant.values(), *needed)]
        called = MEANT.get(folded(key), "")
        called = CALLED.get(called, called)
        match = called if called in (*needed, *others) else close_match(key, needed) or close_match(key, others)
        meant |= {key: match} if match else {}
    left = [key for key in unknown if key not in meant]
    needed = [one for one in absent if one not in meant.values() and kind.model_fields[one].is_required()]
    return meant | ({left[0]: needed[0]} if len(left) == len(needed) == 1 else {})


def misspelt_in(data: Mapping[str, Any]) -> dict[Place, str]:
    """Return the places of misspelt keys of a schema's file, each with the key that is meant."""
    return {
        (*place, key): meant
        for column, place in columns_of(data).values()
        for key, meant in misspelt_keys(column).items()
    }


def explained_by(misspelt: Mapping[Place, str], data: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the places of keys that are missing for another reason: a misspelt key, or a list of values."""
    for place, meant in misspelt.items():
        yield (*place[:-1], meant)
    for column, place in columns_of(data).values():
        if isinstance(column, Mapping) and isinstance(column.get("values"), list) and "values" not in _keys(column):
            yield from ((*place, key) for key in ("min", "max"))


def _keys(column: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of a column's type; of none that there is all."""
    kind = KINDS.get(str(column.get("type")))
    return tuple(kind.model_fields) if kind else tuple(KEYS)
