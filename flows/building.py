"""Build a configuration of a file and of options, and say what is wrong with either in words that can be acted on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from dpmodels.errors import InvalidArgument, Unsuitable, rule_of
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import YamlFault, read_yaml
from dpmodels.similar import near

M = TypeVar("M", bound=BaseModel)

NOTHING_LEAVES = (
    "be left out: models that are trained in rounds have no price, so nothing of them is handed over; they stay in the "
    "sensitive zone, where the run leaves a page on them"
)
SPOKEN = {"target_epsilon": "epsilon"}
"""Settings that have a shorter name on the command line and in Python."""
Location = tuple[int | str, ...]


def spoken(name: str) -> str:
    """Return the name of a setting on the command line and in Python."""
    return SPOKEN.get(name, name)


def build(
    model: type[M],
    options: Mapping[str, Any],
    file: Path | None,
    names: frozenset[str] | None,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> M:
    """Merge defaults with a configuration file, and both with options, which win; ``names`` are those of the options.

    Raises:
        InvalidArgument: a setting is unknown, missing or impossible.
    """
    merged = _merge({**defaults, **(_read(file) if file else {})}, options)
    try:
        return model.model_validate(merged)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        missing = [fault["loc"] for fault in faults if fault["type"] == "missing"]
        if len(missing) == len(faults):
            raise Unsuitable(_missing(missing, names, file)) from None
        first = next(fault for fault in faults if fault["type"] != "missing")
        is_option = first["type"] != "extra_forbidden" and _holds(options, first["loc"])
        name = spoken(str(first["loc"][-1])) if is_option else _dotted(first["loc"])
        raise InvalidArgument(name, first["input"], _rule(model, first)) from None


BUDGETS = {"target_epsilon": "--epsilon 1", "delta": "--delta 1e-6"}
"""Examples of the settings that say what a run spends."""


def _missing(locations: list[Location], options: frozenset[str] | None, file: Path | None) -> str:
    """Say which settings are missing, as they are named on the command line, or else in a configuration file."""
    optional = [loc for loc in locations if options is None or loc[-1] in options]
    names = [f"--{spoken(str(loc[-1])).replace('_', '-')}" if loc in optional else _dotted(loc) for loc in locations]
    what = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) + (" is" if len(names) == 1 else " are")
    where = f" ({', '.join(map(_dotted, optional))} in a configuration file)" if optional else f" in {file}"
    drafted = ": `nacre schema init DATA` drafts a schema" if any(loc[-1] == "schema" for loc in locations) else ""
    spent = [written for key, written in BUDGETS.items() if key in [loc[-1] for loc in optional]]
    example = f"; write, for instance, {' '.join(spent)} (docs/which-epsilon.md)" if spent else ""
    return f"{what} missing{where}; there is no default{drafted}{example}"


def _holds(options: Mapping[str, Any], location: Location) -> bool:
    """Tell whether a setting was given as an option, and not in a file."""
    content: Any = options
    for key in location:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content is not None


def _dotted(location: Location) -> str:
    return ".".join(map(str, location))


def _rule(model: type[BaseModel], fault: Any) -> str:
    """Say what is wrong with a setting; for an unknown setting, name the settings that its section has."""
    if fault["type"] != "extra_forbidden":
        return rule_of(fault)
    if fault["loc"][-1] == "allow_unprotected_models":
        return NOTHING_LEAVES
    for name in fault["loc"][:-1]:
        model = cast(type[BaseModel], model.model_fields[str(name)].annotation)
    key = str(fault["loc"][-1])
    sections = [
        name for name, field in model.model_fields.items() if key in getattr(field.annotation, "model_fields", ())
    ]
    if sections:
        return f"stand under `{sections[0]}`, as in `{sections[0]}: {{{key}: ...}}`"
    names = [field.alias or name for name, field in model.model_fields.items()]
    return f"{rule_of(fault)} here; there are {', '.join(names)}{near(key, names)}"


def _read(file: Path) -> dict[str, Any]:
    try:
        content = read_yaml(read_at_most(file, LARGEST_YAML).decode())
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument("config", file, "be a readable file of UTF-8 text") from None
    except YamlFault as fault:
        once = f"name {fault.twice} once; it is there again in line {fault.line}"
        rule = once if fault.twice else f"be YAML; see line {fault.line or 1}: {fault.problem}"
        raise InvalidArgument("config", file, rule) from None
    if not isinstance(content, dict):
        raise InvalidArgument("config", file, "be a mapping of settings")
    return content


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``over`` into ``base``, mapping by mapping; an option that is None was not given."""
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, dict):
            merged[key] = _merge(base.get(key) or {}, value)
        elif value is not None:
            merged[key] = value
    return merged
