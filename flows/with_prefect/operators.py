"""The operator's file of deployments: what is offered, what is fixed, what may be chosen, and within what.

A worker believes this file and not the server's copy of it.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from dpmodels.errors import InvalidArgument, Unsuitable, rule_of
from dpmodels.files import read_at_most
from dpmodels.frozen import Frozen
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import YamlFault, read_yaml
from flows.settings import home_here
from flows.with_prefect.allowance import Keys, Rule, leaves, permitted

SHIPPED = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
FLOWS = (
    "flows.night.synthesize_night",
    "flows.resample.resample",
    "flows.table.synthesize_table",
    "flows.documents.embed_document_set",
    "flows.federation.federate_clients",
    "flows.validate.validate_run",
)
"""Every flow that a deployment may run; no file and no server can name another."""
PACKAGE = __name__.removesuffix("flows.with_prefect.operators")
"""What our packages are inside of: ``nacre.`` where nacre is installed."""
POOL = "nacre-cpu"
_NEVER = "config.runtime."
_TEXTS = "config.statement."
_AGAIN = "config.statement.again"


class Schedule(Frozen):
    """When a deployment runs by itself."""

    cron: str
    timezone: str = "UTC"
    active: bool = False
    slug: str


class WorkPool(Frozen):
    """The pool whose workers run a deployment."""

    name: str = POOL


class Deployment(Frozen):
    """One deployment: a flow, its parameters that are fixed, and what a flow run may choose."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")
    entrypoint: Literal[FLOWS]  # type: ignore[valid-type]
    description: str = ""
    tags: tuple[str, ...] = ()
    work_pool: WorkPool = WorkPool()
    schedules: tuple[Schedule, ...] = ()
    parameters: dict[str, Any] = Field(default_factory=dict)
    allow: dict[str, Rule] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_the_sources(cls, content: Any) -> Any:
        """Take an entry point by its name in an installed nacre and in the sources alike."""
        entry = content.get("entrypoint") if isinstance(content, Mapping) else None
        return {**content, "entrypoint": entry.removeprefix("nacre.")} if isinstance(entry, str) else content

    @model_validator(mode="after")
    def _frees_nothing_that_must_be_fixed(self) -> Self:
        for name, rule in self.allow.items():
            if name.startswith(_NEVER):
                raise ValueError(f"must not free {name}: keys, devices and places of state are the worker's own")
            if name == _AGAIN:
                raise ValueError(
                    f"must not free {name}: whoever gives a reason there is charged for the same data again"
                )
            if "*" in name:
                raise ValueError(f"must name every client, and not {name}: each name that is free is a new account")
            if name == "config.query" and not rule.one_of:
                raise ValueError("must list every query that config.query may be, by one_of")
            if rule.longest is not None and not name.startswith(_TEXTS):
                raise ValueError(f"must not free {name} as a text; only what a hand-off declares is one")
        return self

    @property
    def flow(self) -> Any:
        """The flow itself, imported from this installation."""
        module, _, name = f"{PACKAGE}{self.entrypoint}".rpartition(".")
        return getattr(import_module(module), name)

    @property
    def full_name(self) -> str:
        """The name by which Prefect knows the deployment."""
        return f"{self.flow.name}/{self.name}"

    def permitted(self, request: Mapping[str, Any], home: Path) -> dict[str, Any]:
        """Return the parameters of a flow run of which those of a request were asked for.

        Raises:
            ParameterRefused: one of them is neither what the file says nor within what it allows.
        """
        return permitted(self.parameters, self.allow, request, home)

    def check(self) -> None:
        """Hold parameters and rules against the flow.

        Raises:
            Unsuitable: something does not fit, or is neither fixed nor free though the flow needs it.
        """
        from prefect.exceptions import ParameterTypeError

        values = dict(self.parameters)
        for name, rule in self.allow.items():
            _fill(values, tuple(name.split(".")), rule.example(home_here()))
        parameters = self.flow.parameters.model_dump()["properties"]
        if unknown := values.keys() - parameters.keys():
            raise Unsuitable(f"{min(unknown)} must be left out: its flow has {', '.join(parameters)}")
        try:
            with _unlogged():
                self.flow.validate_parameters(values)
        except ParameterTypeError as error:
            if not isinstance(cause := error.__context__, ValidationError):
                raise Unsuitable("its parameters must be values, and no references to blocks") from None
            where = " under `parameters`, or free under `allow`" if cause.errors()[0]["type"] == "missing" else ""
            raise Unsuitable(_sentence(cause) + where) from None

    def form(self) -> dict[str, Any]:
        """Return the JSON schema of what may be chosen, for Prefect's form: it shows, and decides nothing."""
        schema = self.flow.parameters.model_dump()
        free = [tuple(name.split(".")) for name in self.allow]
        fixed = {keys for keys, _ in leaves(self.parameters)}
        return _part(schema, schema.get("definitions", {}), free, fixed, self.allow, ())


def read_deployments(file: Path) -> dict[str, Deployment]:
    """Read a file of deployments, by the names that Prefect knows them by, and hold each against its flow.

    Raises:
        Unsuitable: the file cannot be read, or a deployment does not fit.
    """
    by_name: dict[str, Deployment] = {}
    for number, entry in enumerate(_entries(file)):
        name = entry.get("name", number) if isinstance(entry, Mapping) else number
        try:
            one = Deployment.model_validate(entry)
            one.check()
        except ValidationError as fault:
            raise Unsuitable(f"{file}: deployment {name}: {_sentence(fault)}") from None
        except Unsuitable as fault:
            raise Unsuitable(f"{file}: deployment {name}: {fault.fact}") from None
        if one.full_name in by_name:
            raise Unsuitable(f"{file}: deployment {one.name} stands there twice")
        by_name[one.full_name] = one
    return by_name


def _entries(file: Path) -> list[Any]:
    """Read the list of deployments in a file; what is in them is looked at afterwards.

    Raises:
        InvalidArgument, Unsuitable: it cannot be read, or has no such list.
    """
    try:
        content = read_yaml(read_at_most(file, LARGEST_YAML).decode())
    except YamlFault as fault:
        raise Unsuitable(f"{file} is no YAML that is read here: {fault}") from None
    except (OSError, ValueError):
        raise InvalidArgument("file", file, "be a text file that can be read") from None
    entries = content.get("deployments") if isinstance(content, Mapping) else None
    if not isinstance(entries, list):
        rule = "have a readable list of deployments under `deployments`, as `nacre deploy --show` prints one"
        raise InvalidArgument("file", file, rule)
    return entries


def _sentence(fault: ValidationError) -> str:
    """Say what pydantic found wrong first, by its key, and with no value: a file may hold what nobody shall read."""
    first = fault.errors(include_url=False)[0]
    keys = [str(key) for key in first["loc"]]
    if "one_of" in keys:  # pydantic names each kind that a value of the list could be
        return f"{'.'.join(keys[: keys.index('one_of') + 1])} must be a list of texts, numbers, true or false"
    name = ".".join(key for key in keys if key != "[key]")
    return f"{name} must {rule_of(first)}" if name else f"it must {rule_of(first)}"


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep Prefect's log line about parameters that do not fit from the terminal: it repeats all of them."""
    log = logging.getLogger("prefect.flows")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _fill(values: dict[str, Any], keys: Keys, value: Any) -> None:
    """Put a value where a file has none."""
    above = values
    for key in keys[:-1]:
        above[key] = dict(above.get(key) or {})
        above = above[key]
    if above.get(keys[-1]) is None:
        above[keys[-1]] = value


def _part(
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any],
    free: list[Keys],
    fixed: set[Keys],
    rules: Mapping[str, Rule],
    above: Keys,
) -> dict[str, Any]:
    """Return the part of a schema that leads to the wanted parameters, what is needed first, with its rules."""
    properties: dict[str, Any] = {}
    for key in dict.fromkeys(keys[0] for keys in free):
        here, below = (*above, key), [keys[1:] for keys in free if keys[0] == key and len(keys) > 1]
        part = _resolved(schema.get("properties", {}).get(key, {}), definitions)
        if below:
            properties[key] = _part(part, definitions, below, fixed, rules, here)
            continue
        words = {name: part[name] for name in ("title", "description", "position") if name in part}
        properties[key] = {"title": key, **words, **_shape(rules[".".join(here)])}
    needed = [key for key in schema.get("required", ()) if key in properties and (*above, key) not in fixed]
    first = sorted(properties, key=lambda key: key not in needed and not properties[key].get("required"))
    placed = {key: {**properties[key], "position": position} for position, key in enumerate(first)}
    order = {name: schema[name] for name in ("title", "description", "position") if name in schema}
    return {**order, "type": "object", "properties": placed, "required": needed}


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to the definition of a section; what is said beside it is kept."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return {**definitions[name], **schema} if name else schema


def _shape(rule: Rule) -> dict[str, Any]:
    """Say in JSON schema what a rule allows; null leaves a parameter to the file."""
    if rule.one_of:
        return {"enum": list(rule.one_of)}
    if rule.is_number:
        bounds = {"minimum": rule.at_least, "maximum": rule.at_most}
        return {"type": "number", **{name: bound for name, bound in bounds.items() if bound is not None}}
    if rule.within:
        return {"type": "string", "examples": [f"{rule.within[0]}/…"]}
    return {"type": "string", **({"format": "date"} if rule.kind == "day" else {})}


def folders_of(deployments: Mapping[str, Deployment]) -> Iterator[Path]:
    """Yield the folders below NACRE_HOME that the rules name."""
    for one in deployments.values():
        for rule in one.allow.values():
            yield from (folder for folder in rule.within if not folder.is_absolute())
