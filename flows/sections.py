"""The sections of configurations: what is asked of a run, by subject."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from dpmodels.files import Place
from dpmodels.ledger.declared import Declaration

HOME = Path(".nacre")


@dataclass(frozen=True)
class Variable:
    """The environment variable from which a setting is taken if it is given nowhere else."""

    name: str


class Section(BaseModel):
    """What all settings keep to."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _has_no_null(cls, value: Any) -> Any:
        """Refuse the letter that ends a name for the system; YAML can write it."""
        if isinstance(value, str | Path) and "\0" in str(value):
            raise ValueError("must not hold the letter NUL")
        return value


class PrivacyConfig(Section):
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


class ModelConfig(Section):
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


class RuntimeConfig(Section):
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


class FitterConfig(Section):
    """The settings of a release's fitter; its method, and what that measured, are in the release."""

    training: dict[str, Any] = Field(default={}, description="Settings of the generator, which cost nothing.")


class ColumnsConfig(Section):
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


class PureConfig(Section):
    """The pure budget asked for and the account that pays; delta is 0."""

    target_epsilon: float = Field(description="Epsilon for each document (or user), 0.001 to 100.", examples=[5.0])
    account: str | None = Field(
        default=None, description="Account that pays. (default: the data set's)", examples=["letters"]
    )


class EmbeddingModelConfig(Section):
    """How candidates are made and what is released of a document; all of it is part of the plan."""

    method: str = Field(default="document-sketch", description="document-sketch or deep-candidate.")
    recipe: dict[str, Any] = Field(
        default={}, description="How candidates are made of the public documents.", examples=[{"candidates": 2000}]
    )
    measurement: dict[str, Any] = Field(
        default={}, description="Settings of the method that are part of the plan.", examples=[{}]
    )


class ClientPrivacyConfig(Section):
    """The budget of each client, and the account above those of the clients."""

    target_epsilon: float = Field(description="Epsilon of each client, 0.001 to 1000.", examples=[1.0])
    delta: float = Field(description="Delta of each client, above 0 and below 1; never from a size.", examples=[1e-6])
    allow_large_delta: bool = Field(
        default=False, description="Take a delta above 0.001, the share that may leak whole."
    )
    account: str | None = Field(
        default=None, description="Account above the clients'. (default: the data set's)", examples=["hospitals"]
    )


class FederationModelConfig(Section):
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
        default=None, ge=0, le=1000, description="Power of certainties. (default: 8; the papers have 1)", examples=[8.0]
    )
    training: dict[str, Any] = Field(
        default={}, description="Of paper mode: how models are trained and distilled.", examples=[{"drawn": 10}]
    )
    architectures: dict[str, Literal["resnet8", "mobilenet", "shufflenet", "mlp"]] = Field(
        default={},
        description="Of paper mode: by client, if it trains another architecture than the extractor's.",
        examples=[{"north": "mlp"}],
    )


class RoundConfig(Section):
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
    judge: Place | None = Field(
        default=None,
        description="PUBLIC labeled records that classifiers are judged by.",
        examples=["/srv/nacre/labeled.parquet"],
    )
