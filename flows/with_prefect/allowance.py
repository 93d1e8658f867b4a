"""What a flow run may choose: the rules of the operator's own file, and how a value is held against them.

Whoever reaches the Prefect server may ask for a flow run with any parameters. So a parameter has the value of the
operator's file, or lies within a rule of that file, or the flow run is refused.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from dpmodels.errors import ParameterRefused
from dpmodels.frozen import Frozen
from dpmodels.hand_off.manifest import MANIFEST
from tasks.run.ready import fits
from tasks.run.store import NAME

MOST_LEAVES, LONGEST = 1000, 4096
_PATTERN = re.compile(r"[*?\[\]{}\x00-\x1f\x7f]")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

Keys = tuple[str, ...]


class Rule(Frozen):
    """Which values a free parameter may have; one kind of rule each.

    Attributes:
        within: folders, absolute or below NACRE_HOME; the value is a path below one of them, no link out of it.
        one_of: the values themselves.
        at_least, at_most: bounds of a number.
        longest: characters of a text that is declared in the hand-off.
        kind: a day, or the name of a run.
    """

    within: tuple[Path, ...] = ()
    one_of: tuple[StrictBool | StrictInt | StrictFloat | StrictStr, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    longest: int | None = Field(default=None, ge=1, le=LONGEST)
    kind: Literal["day", "run"] | None = None

    @property
    def is_number(self) -> bool:
        """Tell whether the rule is about a number."""
        return self.at_least is not None or self.at_most is not None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        kinds = [bool(self.within), bool(self.one_of), self.is_number, self.longest is not None, self.kind is not None]
        if sum(kinds) != 1:
            raise ValueError("must say one of: within, one_of, at_least and at_most, longest, kind")
        if not (-math.inf if self.at_least is None else self.at_least) <= (
            math.inf if self.at_most is None else self.at_most
        ):
            raise ValueError("must have at_least below at_most")
        return self

    def example(self, home: Path) -> Any:
        """Return a value that keeps the rule, to try a file of deployments with."""
        if self.within:
            return str(home / self.within[0] / "example")
        if self.one_of:
            return self.one_of[0]
        if self.is_number:
            bound = self.at_most if self.at_most is not None else self.at_least
            return int(bound) if bound is not None and bound == int(bound) else bound
        return "text" if self.longest else {"day": "2026-01-31", "run": "name"}[str(self.kind)]

    def checked(self, name: str, value: Any, home: Path) -> Any:
        """Return the value as the flow is given it.

        Raises:
            ParameterRefused: it breaks the rule.
        """
        if self.within:
            return _within(name, value, self.within, home)
        if self.one_of:
            if not any(type(one) is type(value) and one == value for one in self.one_of):
                raise ParameterRefused(name, f"must be one of: {', '.join(map(str, self.one_of))}")
        elif self.is_number:
            self._check_number(name, value)
        elif self.longest is not None:
            if not isinstance(value, str) or len(value) > self.longest or not value.isprintable():
                raise ParameterRefused(name, f"must be a text of at most {self.longest} characters, without controls")
        elif self.kind == "run":
            if not isinstance(value, str) or not re.fullmatch(NAME, value):
                raise ParameterRefused(name, "must be the name of a run")
        else:
            _check_day(name, value)
        return value

    def _check_number(self, name: str, value: Any) -> None:
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ParameterRefused(name, "must be a number")
        if self.at_least is not None and value < self.at_least:
            raise ParameterRefused(name, f"must be at least {self.at_least:g}")
        if self.at_most is not None and value > self.at_most:
            raise ParameterRefused(name, f"must be at most {self.at_most:g}")


def leaves(content: Mapping[str, Any], above: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield what a mapping of mappings holds, with the keys that lead to it; an empty mapping is a leaf."""
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*above, str(key)))
        else:
            yield (*above, str(key)), value


def permitted(
    fixed: Mapping[str, Any], rules: Mapping[str, Rule], request: Mapping[str, Any], home: Path
) -> dict[str, Any]:
    """Return the parameters of a flow run: those of the file, and of what was asked what its rules allow.

    What is asked as null is left out, and so has the value of the file.

    Raises:
        ParameterRefused: something else is asked.
    """
    constants, values = dict(leaves(fixed)), _copied(fixed)
    by_keys = {tuple(name.split(".")): rule for name, rule in rules.items()}
    asked_leaves = list(leaves(request))
    if len(asked_leaves) > MOST_LEAVES:
        raise ParameterRefused("parameters", f"must be {MOST_LEAVES} at most")
    for keys, value in asked_leaves:
        if value is None or value == {} or (keys in constants and _same(constants[keys], value)):
            continue
        name = shown(".".join(keys))
        if isinstance(value, str) and len(value) > LONGEST:
            raise ParameterRefused(name, f"must be {LONGEST} characters at most")
        rule = by_keys.get(keys)
        if rule is None:
            raise ParameterRefused(name, "is not free: the operator's file fixes it")
        _put(values, keys, rule.checked(name, value, home))
    return values


def shown(text: str) -> str:
    """Return what somebody else wrote as it may stand in a log: short, and nothing but printable characters."""
    return "".join(one if one.isprintable() else "?" for one in text[:100])


def _within(name: str, value: Any, folders: tuple[Path, ...], home: Path) -> str:
    """Return the real path of a value, absolute or below the home, if it is below a folder and no link leads out."""
    roots = " or ".join(map(str, folders))
    refusal = ParameterRefused(name, f"must be a plain path below {roots}, without links that lead out of it")
    if not isinstance(value, str) or not value or _PATTERN.search(value) or "://" in value or not fits(value):
        raise refusal
    parts = value.split("/")
    if any(part in ("", ".", "..") for part in parts[1 if value.startswith("/") else 0 :]):
        raise refusal
    path = home / value
    for folder in folders:
        root, real = os.path.realpath(home / folder), os.path.realpath(path)
        if not path.is_relative_to(home / folder) and not path.is_relative_to(root):
            continue
        if _is_below(real, root) and not any(not _is_below(link, root) for link in _links(real)):
            _check_no_hand_off(name, real, root)
            return real
    raise refusal


def _is_below(path: str, root: str) -> bool:
    return path != root and os.path.commonpath([path, root]) == root


def _links(folder: str) -> Iterator[str]:
    """Yield where every link in a folder leads."""
    for above, folders, files in os.walk(folder):
        for one in (*folders, *files):
            if os.path.islink(path := os.path.join(above, one)):
                yield os.path.realpath(path)


def _check_no_hand_off(name: str, path: str, root: str) -> None:
    """Refuse a new hand-off inside another one, which would no longer be what its manifest says."""
    above = PurePosixPath(path).relative_to(root).parents
    if name.endswith("out") and any(os.path.lexists(os.path.join(root, one, MANIFEST)) for one in above):
        raise ParameterRefused(name, "must not lie in another hand-off")


def _check_day(name: str, value: Any) -> None:
    try:
        if not isinstance(value, str) or not _DAY.fullmatch(value):
            raise ValueError
        date.fromisoformat(value)
    except ValueError:
        raise ParameterRefused(name, "must be a day, such as 2026-01-31") from None


def _same(one: Any, other: Any) -> bool:
    """Compare two values of JSON; YAML may have read a number of the file as whole."""
    numbers = (int, float)
    return one == other and (type(one) is type(other) or (type(one) in numbers and type(other) in numbers))


def _copied(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in content.items()}


def _put(values: dict[str, Any], keys: Keys, value: Any) -> None:
    for key in keys[:-1]:
        values = values.setdefault(key, {})
    values[keys[-1]] = value
