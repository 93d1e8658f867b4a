"""The options of a synthesis, made from its configuration, and options that several commands share."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from dpmodels.errors import without_commas
from flows.building import spoken
from flows.config import HandOverConfig, SynthesizeConfig
from flows.settings import Setting, placed, setting, settings_of

WIDE = 100_000
"""Width that is assumed without a terminal, so large that piped lines are never broken."""


def option(name: str, words: str = "") -> Any:
    """Return the option of one setting, described in the configuration's words or in the given ones."""
    return _option(setting(name), words)


def _option(one: Setting, words: str = "") -> Any:
    flag, default = f"--{one.name.replace('_', '-')}", one.field.default
    flags = list(dict.fromkeys([f"--{spoken(one.name).replace('_', '-')}", flag]))
    if default is True:
        flags = [f"{flag}/--no-{flag[2:]}"]
    help_text = words or f"{one.field.description}{_default(one)}"
    kind = NUMBER if one.field.annotation in (float, float | None) else {}
    return typer.Option(*flags, envvar=one.variable, help=help_text, **kind)


def number(text: str) -> float:
    """Read a number of the command line.

    Raises:
        BadParameter: it is none.
    """
    try:
        return float(text)
    except ValueError:
        meant = f"; write {number}" if (number := _meant(text)) else ""
        raise typer.BadParameter(f"must be a number, such as 1 or 0.5 or 1e-5{meant}") from None


def _meant(text: str) -> str:
    """Return the number that a text may mean with a comma, a percent sign or a power; empty for any other text."""
    if match := re.fullmatch(r"10\^(-?\d{1,3})", text):
        return f"1e{match[1]}"
    if match := re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?%", text):
        return f"{float(match[1]) / 100:g}"
    return without_commas(text)


NUMBER: Any = {"parser": number, "metavar": "<float>"}
"""What an option that is a number is made with, so that its error is in plain words."""


def _default(one: Setting) -> str:
    """Return the default as the help shows it; empty for None, whose meaning the description states."""
    default = one.field.default
    if one.field.is_required():
        return " (needed, here or in --config)"
    if default is None or default is False or default == "":
        return ""
    return f" (default: {'on' if default is True else default})"


Home = Annotated[Path | None, option("home")]
Url = Annotated[str | None, option("ledger")]
Dask = Annotated[str | None, option("dask")]
Prefect = Annotated[bool | None, option("prefect")]
QueryText = Annotated[str, option("query")]
AllowLargeDelta = Annotated[bool | None, option("allow_large_delta")]
OtherDevice = Annotated[str | None, option("device", "Another device: auto, cpu, cuda. (default: as begun)")]
OtherOut = Annotated[str | None, option("out", "Another place for the hand-off. (default: as begun)")]
NewOut = Annotated[Path | None, option("out")]
Federated = Annotated[Path, typer.Argument(help="YAML: the clients, their data, public records, the budget.")]
SchemaFile = Annotated[Path | None, option("schema", "Schema of the table (YAML).")]
Open = Annotated[
    bool, typer.Option("--open", help="Open the data set's account with this run's budget as the cap, if it has none.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Also say what other accountants find: Renyi's, Opacus' PRV.")]
Details = Annotated[bool, typer.Option("--details", help="Show all of the plan, with each charge and each noise.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
FailOnChecks = Annotated[
    bool, typer.Option("--fail-on-checks", help="Exit with 3 if the report warns of anything, or a check fails.")
]
Data = Annotated[str, typer.Argument(help=setting("data").field.description)]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML with any of these and the model's settings.")]
TestRows = Annotated[str | None, typer.Option("--test", help="Real rows kept from the synthesis.")]
LeNet = Annotated[Path | None, typer.Option(help="LeNet-5 weights (safetensors) for the features of 28 x 28 images.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Threads. (default: one a core, at most 8)")]


def takes_settings(
    command: Callable[..., None],
    model: type[HandOverConfig] = SynthesizeConfig,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> Callable[..., None]:
    """Give a command that takes a configuration one option for each setting that fits on a command line.

    ``defaults`` are of settings that this command does not need. Its further parameters are options of their own.
    """
    extras = list(inspect.signature(command).parameters.values())[1:]

    def parsed(config: Path | None, **options: Any) -> None:
        further = {one.name: options.pop(one.name) for one in extras}
        command(model.build(placed(options, model), config, defaults), **further)

    parameters = [*_parameters(model, defaults), *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in extras)]
    parsed.__name__, parsed.__doc__ = command.__name__, command.__doc__
    parsed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    parsed.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return parsed


def _parameters(model: type[HandOverConfig], defaults: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters that typer reads: positional settings, named settings, and the configuration file."""
    kind = inspect.Parameter.KEYWORD_ONLY
    for one in settings_of(model):
        if one.name in ("data", "release", "documents"):
            read = typer.Argument(help=one.field.description)
            annotation: Any = Path if one.name == "release" else str
            yield inspect.Parameter(one.name, kind, annotation=Annotated[annotation, read])
        elif one.field.annotation != dict[str, Any] and one.name not in model.WITHOUT:
            annotation = one.field.annotation
            if get_origin(annotation) is Literal:  # what stands for none is not typed
                annotation = Literal[tuple(filter(None, get_args(annotation)))]
            described = _option(one, one.field.description or "" if one.name in defaults else "")
            yield inspect.Parameter(one.name, kind, default=None, annotation=Annotated[annotation | None, described])
    yield inspect.Parameter("config", kind, default=None, annotation=ConfigFile)


TEXT = 'How a .csv file writes numbers and dates: {decimal: ",", date_format: "%d.%m.%Y"}.'
