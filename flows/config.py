"""The configuration of a run, written once: what to protect, how to model it, and where to compute.

The command line's options, the keys of ``--config``, the form of a Prefect deployment and the defaults of Python's
``nacre.synthesize`` are all made from these models, so a field that is added here appears in all of them. The runtime
section never changes privacy.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.files import Place
from flows.building import NOTHING_LEAVES, build
from flows.sections import (
    ClientPrivacyConfig,
    ColumnsConfig,
    EmbeddingModelConfig,
    FederationModelConfig,
    FitterConfig,
    ModelConfig,
    PrivacyConfig,
    PureConfig,
    RoundConfig,
    RuntimeConfig,
    Section,
    StatementConfig,
)

if TYPE_CHECKING:
    from tasks.run.source import Source


class HandOverConfig(Section):
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

    @property
    def stays_inside(self) -> bool:
        """Tell whether nothing is handed over."""
        return False

    @classmethod
    def build(
        cls, options: Mapping[str, Any], file: Path | None = None, defaults: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """Merge a configuration file with options, which win, and with defaults for what neither has.

        Raises:
            InvalidArgument, Unsuitable: a setting is unknown, missing or impossible.
        """
        return build(cls, options, file, cls.OPTIONS, defaults)


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
        description="Path, pattern or URI of Parquet, CSV, Arrow, JSON lines, Excel, Delta, Iceberg or DuckDB; of a "
        "database with --query; or images.",
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


class FitConfig(SampledConfig):
    """Everything that may be chosen once a release is paid for."""

    WITHOUT = frozenset({"again"})

    release: Path = Field(description="A release: a run's release.parquet, from this home or from elsewhere.")
    format: Literal["", "csv", "arrow", "jsonl"] = Field(
        default="", description="csv, arrow or jsonl: the table in one such file too, beside its Parquet."
    )
    model: FitterConfig = FitterConfig()


class EmbedConfig(HandOverConfig):
    """Everything that embedding documents needs."""

    WITHOUT = frozenset({"dask", "device", "seed", "batch_rows", "threads", "internal_report"})

    documents: Place = Field(
        description="Documents, private: path, pattern or URI of Parquet, CSV, Arrow or JSON lines; of a database with "
        "--query.",
        examples=["/srv/nacre/letters.parquet"],
    )
    query: str = Field(
        default="",
        description="SQL whose answer is the documents; DOCUMENTS is the URL of the database.",
        examples=["select * from letters"],
    )
    candidates: Place = Field(
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


class FederateConfig(HandOverConfig):
    """Everything that a federation needs."""

    OPTIONS = frozenset({"out", "home", "ledger", "prefect"})

    out: Place = Field(
        default="",
        description="Hand-off: a folder, or the URI of a place in an object store; new or empty. None in paper mode.",
        examples=["/srv/nacre/hand-offs/hospitals"],
    )
    name: str = Field(description="Name of the federation.", examples=["hospitals"])
    clients: dict[str, Place] = Field(
        min_length=2,
        description="By client, its own data: path, pattern or URI of files, or a database.",
        examples=[{"north": "/srv/north.parquet", "south": "/srv/south.parquet"}],
    )
    queries: dict[str, str] = Field(
        default={},
        description="By client whose data are a database: the query that it answers, or the name of a table.",
        examples=[{"north": "select dose, age, outcome from visits"}],
    )
    sizes: dict[str, int] = Field(
        default={}, description="Sizes of all clients, if these are public.", examples=[{"north": 9000, "south": 7000}]
    )
    most_records: int = Field(default=20_000, ge=1, description="Most records of a client.")
    public: Place = Field(
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

    @property
    def sources(self) -> "dict[str, Source]":
        """Where each client's data lie."""
        from tasks.run.source import Source

        return {client: Source(data, self.queries.get(client, "")) for client, data in self.clients.items()}

    @property
    def stays_inside(self) -> bool:
        """Tell whether models are trained in rounds, without a guarantee."""
        return self.round.mode == "paper"

    @model_validator(mode="after")
    def _queries_of_clients(self) -> Self:
        if strangers := self.queries.keys() - self.clients.keys():
            raise InvalidArgument("queries", min(strangers), "be of a client that is named in `clients`")
        return self

    @model_validator(mode="after")
    def _leaves_by_mode(self) -> Self:
        """Have a place for the hand-off named, but in paper mode, where nothing is handed over."""
        if self.stays_inside and self.out:
            raise InvalidArgument("out", self.out, NOTHING_LEAVES)
        if not self.stays_inside and not self.out:
            raise Unsuitable("--out is missing (out in a configuration file); there is no default")
        return self

    @field_validator("classes", mode="before")
    @classmethod
    def _by_name(cls, classes: Any) -> Any:
        """Take whole numbers for the names that labels of whole numbers have."""
        if not isinstance(classes, list):
            return classes
        return [str(name) if isinstance(name, int) and not isinstance(name, bool) else name for name in classes]


Charged = SynthesizeConfig | EmbedConfig | FederateConfig
"""The configurations of runs that measure data, and are charged for it."""
