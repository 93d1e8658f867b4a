"""The configuration of a run, written once: what to protect, how to model it, and where to compute.

The command line's options, the keys of ``--config``, the form of a Prefect deployment and the defaults of Python's
``nacre.synthesize`` are all made from these models, so a field that is added here appears in all of them. The runtime
section never changes privacy.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from dpmodels.errors import InvalidArgument, Unsuitable, rule_of
from dpmodels.files import Place, read_at_most
from dpmodels.ledger.declared import Declaration, Said
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import YamlFault, read_yaml

HOME = Path(".nacre")


@dataclass(frozen=True)
class Variable:
    """The environment variable from which a setting is taken if it is given nowhere else."""

    name: str


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _has_no_null(cls, value: Any) -> Any:
        """Refuse the letter that ends a name for the system; YAML can write it."""
        if isinstance(value, str | Path) and "\0" in str(value):
            raise ValueError("must not hold the letter NUL")
        return value


class PrivacyConfig(_Model):
    """The budget asked for and the account that pays."""

    target_epsilon: float = Field(description="Epsilon to spend, 0.001 to 1000.", examples=[1.0])
    delta: float = Field(description="Delta, above 0 and below 1; never from the row count.", examples=[1e-6])
    report_epsilon: float | None = Field(
        default=None,
        description="Spend this on scores on the real rows, for the report, at the same delta. (default: none)",
        examples=[0.1],
    )
    allow_large_delta: bool = Field(
        default=False, description="Take a delta above 0.001, the share that may leak whole."
    )
    account: str | None = Field(
        default=None, description="Account that pays. (default: the data set's)", examples=["visits"]
    )


class ModelConfig(_Model):
    """The method and its settings; only ``measurement`` is in the plan, and ``training`` is free."""

    method: str | None = Field(
        default=None, description="Synthesis method. (default: nacre, or nacre-images)", examples=["nacre"]
    )
    measurement: dict[str, Any] = Field(
        default={}, description="Settings of the method that are part of the plan.", examples=[{"fine_cells": 512}]
    )
    training: dict[str, Any] = Field(
        default={}, description="Settings of the generator, which cost nothing.", examples=[{"steps": 400}]
    )


class RuntimeConfig(_Model):
    """Where and how to compute, and who vouches for it."""

    home: Annotated[Path, Variable("NACRE_HOME")] = Field(default=HOME, description="State: ledger, zones, runs.")
    ledger: Annotated[str | None, Variable("NACRE_LEDGER")] = Field(
        default=None,
        description="PostgreSQL URL without a password (use ~/.pgpass). (default: in the home)",
        examples=["postgresql://nacre@ledger.example/nacre"],
    )
    dask: Annotated[str | None, Variable("NACRE_DASK"), BeforeValidator(lambda url: None if url == "none" else url)] = (
        Field(
            default=None,
            description="Scheduler (tcp://…, tls://…) in the sensitive zone, whose workers sum, or none.",
            examples=["tls://scheduler.example:8786"],
        )
    )
    device: str = Field(default="auto", description="auto, cpu or cuda.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Seeds training and sampling only, never the noise.")
    batch_rows: int = Field(
        default=65_536, ge=1, description="Raw rows a thread holds at a time; with threads, the memory."
    )
    threads: int = Field(default=0, ge=0, le=1024, description="Threads that read, encode and sum; 0 for one a core.")
    prefect: bool = Field(default=True, description="Run as a Prefect flow.")
    internal_report: bool = Field(
        default=True, description="Compare exactly with the real rows, for the operator, in the sensitive zone."
    )
    signing_key: Annotated[Path | None, Variable("NACRE_SIGNING_KEY")] = Field(
        default=None,
        description="ed25519 private key (PEM or pkcs11: URI) that signs the manifest; its passphrase is asked for.",
        examples=["/etc/nacre/sign.pem"],
    )
    approval_hours: float = Field(default=24, gt=0, description="How long a flow run waits for its account's officer.")


class StatementConfig(Declaration):
    """What the operator says of the hand-off, word for word in the ledger, the manifest and the pages; all public."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
    purpose: Said = Field(
        default="", description="What the hand-off is for, in a sentence; public, kept for ever.", examples=["Teaching"]
    )
    recipient: Said = Field(
        default="", description="Who gets the hand-off; public, kept for ever.", examples=["University of Ghent"]
    )
    license: Said = Field(
        default="", description="Under which terms it is handed over; public.", examples=["CC BY 4.0"]
    )
    retention: Said = Field(
        default="",
        description="How long the sensitive zone is kept; public.",
        examples=["The sensitive zone is deleted after 30 days."],
    )
    again: Said = Field(
        default="",
        description="Why data is charged again: to another account, or beside a paid run that is unfinished; public.",
        examples=["A copy for another study, agreed by the board"],
    )


class HandOverConfig(_Model):
    """What is asked of everything that ends in a hand-off."""

    WITHOUT: ClassVar[frozenset[str]] = frozenset()
    """Settings that change nothing here, so they are no options of the command."""
    OPTIONS: ClassVar[frozenset[str] | None] = None
    """Settings that are options of the command, where it takes the others from its file alone."""

    out: Place = Field(
        description="Hand-off: a folder, or the URI of a place in an object store; new or empty.",
        examples=["/srv/nacre/hand-offs/visits"],
    )
    statement: StatementConfig = StatementConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    @classmethod
    def build(cls, options: Mapping[str, Any], file: Path | None = None) -> Self:
        """Merge a configuration file with options; an option that was given wins.

        Raises:
            InvalidArgument, Unsuitable: a setting is unknown, missing or impossible.
        """
        merged = _merge(_read(file) if file else {}, options)
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            faults = error.errors(include_url=False)
            missing = [fault["loc"] for fault in faults if fault["type"] == "missing"]
            if len(missing) == len(faults):
                raise Unsuitable(_missing(missing, cls.OPTIONS, file)) from None
            first = next(fault for fault in faults if fault["type"] != "missing")
            is_option = first["type"] != "extra_forbidden" and _holds(options, first["loc"])
            name = spoken(str(first["loc"][-1])) if is_option else _dotted(first["loc"])
            raise InvalidArgument(name, first["input"], _rule(cls, first)) from None


class SampledConfig(HandOverConfig):
    """What is asked of everything whose hand-off is sampled."""

    rows: int | None = Field(
        default=None,
        ge=1,
        description="Synthetic rows. (default: the released, noisy number of records)",
        examples=[10_000],
    )


class SynthesizeConfig(SampledConfig):
    """Everything that a synthesis needs."""

    data: Place = Field(
        description="Path, pattern or URI of Parquet, CSV, Arrow or JSON lines; of a database with --query; or images.",
        examples=["/srv/nacre/visits.parquet"],
    )
    query: str = Field(
        default="",
        description="SQL whose answer is the table; DATA is the URL of the database.",
        examples=["select * from visits"],
    )
    parents: Place = Field(
        default="",
        description="Table of one row a user, where DATA holds the users' rows (`users` in the schema).",
        examples=["/srv/nacre/customers.parquet"],
    )
    table_schema: Path = Field(
        alias="schema", description="Schema of the table (YAML).", examples=["/srv/nacre/visits.yaml"]
    )
    format: Literal["", "csv", "arrow", "jsonl"] = Field(
        default="", description="csv, arrow or jsonl: the table in one such file too, beside its Parquet."
    )
    privacy: PrivacyConfig
    model: ModelConfig = ModelConfig()
    report: dict[str, Any] = Field(
        default={}, description="Which scores a charged section of the report has.", examples=[{"cells": 12}]
    )


class FitterConfig(_Model):
    """The settings of a release's fitter; its method, and what that measured, are in the release."""

    training: dict[str, Any] = Field(default={}, description="Settings of the generator, which cost nothing.")


class FitConfig(SampledConfig):
    """Everything that may be chosen once a release is paid for."""

    WITHOUT = frozenset({"again"})

    release: Path = Field(description="A release: a run's release.parquet, from this home or from elsewhere.")
    model: FitterConfig = FitterConfig()


class ColumnsConfig(_Model):
    """What a contract of documents says, for those who have not written one; each default is the contract's."""

    name: str | None = Field(
        default=None, description="Name of the data set. (default: that of the file)", examples=["letters"]
    )
    id: str | None = Field(
        default=None, description="Column of the document's id, which is public. (default: id)", examples=["id"]
    )
    text: str | None = Field(default=None, description="Column of the text. (default: text)", examples=["text"])
    embedding: str | None = Field(
        default=None, description="Column of sentence embeddings, instead of a text.", examples=["embedding"]
    )
    user: str | None = Field(
        default=None, description="Column of the user; one user's documents add up.", examples=["author"]
    )
    most_documents: int | None = Field(
        default=None, ge=1, description="Most documents of a user. (default: 1)", examples=[3]
    )
    language: str | None = Field(
        default=None, description="Of the text, a code such as en. (default: en)", examples=["en"]
    )
    most_sentences: int | None = Field(
        default=None, description="Most sentences of a document. (default: 200)", examples=[200]
    )
    encoder: str | None = Field(
        default=None, description="wordllama, hashed, or a folder. (default: wordllama)", examples=["wordllama"]
    )
    dim: int | None = Field(default=None, description="Size of an embedding. (default: the encoder's)", examples=[64])


class PureConfig(_Model):
    """The pure budget asked for and the account that pays; delta is 0."""

    target_epsilon: float = Field(description="Epsilon for each document (or user), 0.001 to 100.", examples=[5.0])
    account: str | None = Field(
        default=None, description="Account that pays. (default: the data set's)", examples=["letters"]
    )


class EmbeddingModelConfig(_Model):
    """How candidates are made and what is released of a document; all of it is part of the plan."""

    method: str = Field(default="document-sketch", description="document-sketch or deep-candidate.")
    recipe: dict[str, Any] = Field(
        default={}, description="How candidates are made of the public documents.", examples=[{"candidates": 2000}]
    )
    measurement: dict[str, Any] = Field(
        default={}, description="Settings of the method that are part of the plan.", examples=[{}]
    )


class EmbedConfig(HandOverConfig):
    """Everything that embedding documents needs."""

    WITHOUT = frozenset({"dask", "device", "seed", "batch_rows", "threads", "internal_report"})

    documents: Path = Field(
        description="Documents, private: Parquet, CSV, Arrow or JSON lines, one file or a folder.",
        examples=["/srv/nacre/letters.parquet"],
    )
    candidates: Path = Field(
        description="PUBLIC documents with the same columns, of which all that helps is made.",
        examples=["/srv/nacre/public.parquet"],
    )
    contract: Path | None = Field(
        default=None,
        description="Contract of the documents (YAML), instead of columns.",
        examples=["/srv/nacre/letters.yaml"],
    )
    columns: ColumnsConfig = ColumnsConfig()
    privacy: PureConfig
    model: EmbeddingModelConfig = EmbeddingModelConfig()


class ClientPrivacyConfig(_Model):
    """The budget of each client, and the account above those of the clients."""

    target_epsilon: float = Field(description="Epsilon of each client, 0.001 to 1000.", examples=[1.0])
    delta: float = Field(description="Delta of each client, above 0 and below 1; never from a size.", examples=[1e-6])
    allow_large_delta: bool = Field(
        default=False, description="Take a delta above 0.001, the share that may leak whole."
    )
    account: str | None = Field(
        default=None, description="Account above the clients'. (default: the data set's)", examples=["hospitals"]
    )


class FederationModelConfig(_Model):
    """What each client releases; all but the sharpness is part of the plan, the extractor by its hash."""

    method: str | None = Field(
        default=None,
        description="federated-heads, federated-moments, or federated-both of them. (default: the first; in paper mode "
        "the certainty scores alone)",
        examples=["federated-heads"],
    )
    trust: Literal["local", "central"] = Field(
        default="local", description="central: an aggregator that sees exact sums draws one noise for all clients."
    )
    measurement: dict[str, Any] = Field(
        default={}, description="Settings of the method that are part of the plan.", examples=[{"score_share": 0.2}]
    )
    extractor: dict[str, Any] = Field(
        default={}, description="How the public extractor is made.", examples=[{"features": 64}]
    )
    sharpness: float | None = Field(
        default=None, ge=0, le=1000, description="Power of certainties. (default: 8; in paper mode 1)", examples=[8.0]
    )
    training: dict[str, Any] = Field(
        default={}, description="Of paper mode: how models are trained and distilled.", examples=[{"drawn": 10}]
    )
    architectures: dict[str, Literal["resnet8", "mobilenet", "shufflenet", "mlp"]] = Field(
        default={},
        description="Of paper mode: by client, if it trains another architecture than the extractor's.",
        examples=[{"north": "mlp"}],
    )


NOTHING_LEAVES = (
    "be left out: models that are trained in rounds have no price, so nothing of them is handed over; they stay in the "
    "sensitive zone, where the run leaves a page on them"
)


class RoundConfig(_Model):
    """How the clients run on this machine, and whether they release once or train in rounds without a guarantee."""

    mode: Literal["private", "paper"] = Field(
        default="private", description="private: one release a client. paper: rounds of models WITHOUT any guarantee."
    )
    algorithm: Literal["fedavg", "fedprox", "feddf", "fedbe", "fedaux"] = Field(
        default="fedaux", description="Of paper mode."
    )
    rounds: int = Field(default=10, ge=1, le=10_000, description="Of paper mode.")
    participation: float = Field(default=0.4, gt=0, le=1, description="Share of clients in each round of paper mode.")
    workers: str = Field(default="auto", description="dask: a process for each client; here; auto.")
    patience: float = Field(default=600, gt=0, description="Seconds after which a client is late and is dropped.")
    least_clients: int = Field(default=1, ge=1, description="Fewer that took part make no classifier.")
    judge: Path | None = Field(
        default=None,
        description="PUBLIC labeled records that classifiers are judged by.",
        examples=["/srv/nacre/labeled.parquet"],
    )


class FederateConfig(HandOverConfig):
    """Everything that a federation needs."""

    OPTIONS = frozenset({"out", "home", "ledger", "prefect"})

    out: Place = Field(
        default="",
        description="Hand-off: a folder, or the URI of a place in an object store; new or empty. None in paper mode.",
        examples=["/srv/nacre/hand-offs/hospitals"],
    )
    name: str = Field(description="Name of the federation.", examples=["hospitals"])
    clients: dict[str, Path] = Field(
        min_length=2,
        description="By client, its own data: Parquet, CSV, Arrow or JSON lines.",
        examples=[{"north": "/srv/north.parquet", "south": "/srv/south.parquet"}],
    )
    sizes: dict[str, int] = Field(
        default={}, description="Sizes of all clients, if these are public.", examples=[{"north": 9000, "south": 7000}]
    )
    most_records: int = Field(default=20_000, ge=1, description="Most records of a client.")
    public: Path = Field(
        description="PUBLIC records with the same inputs, and with none of a client's.",
        examples=["/srv/nacre/public.parquet"],
    )
    classes: list[str] = Field(description="The classes of records, by name.", examples=[["ill", "well"]])
    records: dict[str, Any] = Field(
        description="label and inputs: columns; shape: of images.",
        examples=[{"label": "outcome", "inputs": ["age", "dose"]}],
    )
    privacy: ClientPrivacyConfig
    model: FederationModelConfig = FederationModelConfig()
    round: RoundConfig = RoundConfig()

    @model_validator(mode="after")
    def _leaves_by_mode(self) -> Self:
        """Have a place for the hand-off named, but in paper mode, where nothing is handed over."""
        if self.round.mode == "paper" and self.out:
            raise InvalidArgument("out", self.out, NOTHING_LEAVES)
        if self.round.mode == "private" and not self.out:
            raise Unsuitable("--out is missing (out in a configuration file); there is no default")
        return self

    @field_validator("classes", mode="before")
    @classmethod
    def _by_name(cls, classes: Any) -> Any:
        """Take whole numbers for the names that labels of whole numbers have."""
        if not isinstance(classes, list):
            return classes
        return [str(name) if isinstance(name, int) and not isinstance(name, bool) else name for name in classes]


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


SPOKEN = {"target_epsilon": "epsilon"}
"""Settings that have a shorter name on the command line and in Python."""
Location = tuple[int | str, ...]


def spoken(name: str) -> str:
    """Return the name of a setting on the command line and in Python."""
    return SPOKEN.get(name, name)


def key_of(option: str) -> str:
    """Return an option as the key of a file, with its section; what the worker's environment says, as its variable."""
    name = option.replace("-", "_")
    one = next((one for one in settings_of() if name in (one.name, spoken(one.name))), None)
    if one is None:
        return name
    return one.variable or ".".join(filter(None, [one.within, one.name]))


def _missing(locations: list[Location], options: frozenset[str] | None, file: Path | None) -> str:
    """Say which settings are missing, as they are named on the command line, or else in a configuration file."""
    optional = [loc for loc in locations if options is None or loc[-1] in options]
    names = [f"--{spoken(str(loc[-1])).replace('_', '-')}" if loc in optional else _dotted(loc) for loc in locations]
    what = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) + (" is" if len(names) == 1 else " are")
    where = f" ({', '.join(map(_dotted, optional))} in a configuration file)" if optional else f" in {file}"
    return f"{what} missing{where}; there is no default"


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
    names = [field.alias or name for name, field in model.model_fields.items()]
    return f"{rule_of(fault)} here; there are {', '.join(names)}"


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
