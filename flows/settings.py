"""The settings of a configuration, one by one: where each stands, what gives it, and what it is called."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from flows.building import spoken
from flows.config import HandOverConfig, SynthesizeConfig
from flows.sections import HOME, Variable


class Setting(NamedTuple):
    """One field of the configuration: its name, its section, and pydantic's field."""

    name: str
    within: str
    field: FieldInfo

    @property
    def variable(self) -> str | None:
        """The environment variable that can give this setting, if there is one."""
        return next((one.name for one in self.field.metadata if isinstance(one, Variable)), None)


def settings_of(model: type[BaseModel] = SynthesizeConfig, within: str = "") -> Iterator[Setting]:
    """Yield every setting of a configuration, those of its sections included."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from settings_of(field.annotation, name)
        else:
            yield Setting(field.alias or name, within, field)


def setting(name: str) -> Setting:
    """Return the setting of this name."""
    return next(one for one in settings_of() if one.name == name)


def placed(values: Mapping[str, Any], model: type[BaseModel] = SynthesizeConfig) -> dict[str, Any]:
    """Put settings that are given by their bare names into their sections."""
    content: dict[str, Any] = {}
    for one in settings_of(model):
        if one.name in values:
            (content.setdefault(one.within, {}) if one.within else content)[one.name] = values[one.name]
    return content


def values_of(config: HandOverConfig) -> dict[str, Any]:
    """Return the settings of a configuration by their bare names; the inverse of ``placed``."""
    parts = (config, *(part for _, part in config if isinstance(part, BaseModel)))
    return {name: value for part in parts for name, value in part if not isinstance(value, BaseModel)}


def from_environment(name: str) -> str | None:
    """Return the value of a setting in the environment, or None where the environment has none."""
    return os.environ.get(setting(name).variable or "") or None


def home_here() -> Path:
    """Return where this worker keeps its state, by its environment."""
    return Path(from_environment("home") or HOME).absolute()


def key_of(option: str) -> str:
    """Return an option as the key of a file, with its section; what the worker's environment says, as its variable."""
    name = option.replace("-", "_")
    one = next((one for one in settings_of() if name in (one.name, spoken(one.name))), None)
    if one is None:
        return name
    return one.variable or ".".join(filter(None, [one.within, one.name]))
