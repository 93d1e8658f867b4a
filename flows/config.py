"""The configuration of a run: what to protect, how to model it, and where to compute. Runtime never changes privacy."""

from pathlib import Path
from typing import Annotated, Any, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpmodels.errors import InvalidArgument, Unsuitable, rule_of

HOME = Path(".nacre")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PrivacyConfig(_Model):
    """The budget asked for and the account that pays.

    Attributes:
        target_epsilon: of the release; ``report_epsilon`` is the report's own, for scores on the real rows, at the same
            delta. Without it the report has none and costs nothing.
        allow_large_delta: take a delta above 0.001.
    """

    target_epsilon: float
    report_epsilon: float | None = None
    delta: float
    allow_large_delta: bool = False
    account: str | None = None


class ModelConfig(_Model):
    """The method (by default the one that suits the schema) and its settings; only ``measurement`` is in the plan."""

    method: str | None = None
    measurement: dict[str, Any] = {}
    training: dict[str, Any] = {}


class RuntimeConfig(_Model):
    """Where and how to compute, and who vouches for it.

    Attributes:
        batch_rows: rows of the raw table that a thread holds at a time; with ``threads``, the bound on memory.
        threads: how many read, encode and sum; 0 for as many as there are cores.
        dask: address of a Dask scheduler in the sensitive zone, tcp://… or tls://…, whose workers take the sums.
        ledger: PostgreSQL URL of a shared ledger, without a password (use ~/.pgpass); the home's own if not given.
        signing_key: ed25519 private key (PEM) that signs the hand-off's manifest.
        approval_hours: how long a flow run waits for the approval of its account's officer.
    """

    home: Path = HOME
    device: str = "auto"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    batch_rows: Annotated[int, Field(ge=1)] = 65_536
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    dask: str | None = None
    prefect: bool = True
    ledger: str | None = None
    signing_key: Path | None = None
    approval_hours: Annotated[float, Field(gt=0)] = 24


class SynthesizeConfig(_Model):
    """Everything ``nacre synthesize`` needs; ``report`` says which scores a charged section has."""

    data: Path
    table_schema: Annotated[Path, Field(alias="schema")]
    out: Path
    rows: Annotated[int, Field(ge=1)] | None = None
    privacy: PrivacyConfig
    model: ModelConfig = ModelConfig()
    report: dict[str, Any] = {}
    runtime: RuntimeConfig = RuntimeConfig()

    @classmethod
    def build(cls, options: dict[str, Any], file: Path | None = None) -> "SynthesizeConfig":
        """Merge a configuration file with options; an option that was given wins.

        Raises:
            InvalidArgument: an unknown, missing or impossible setting.
        """
        merged = _merge(_read(file) if file else {}, options)
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            faults = error.errors(include_url=False)
            missing = [fault["loc"] for fault in faults if fault["type"] == "missing"]
            if len(missing) == len(faults):
                raise Unsuitable(
                    f"nothing was given for {', '.join(map(_dotted, missing))}; there is no default"
                ) from None
            first = next(fault for fault in faults if fault["type"] != "missing")
            raise InvalidArgument(_dotted(first["loc"]), first["input"], _rule(cls, first)) from None


def _dotted(place: tuple[int | str, ...]) -> str:
    return ".".join(map(str, place))


def _rule(model: type[BaseModel], fault: Any) -> str:
    """Say what is wrong with a setting; of one that there is not, say which there are in its place."""
    if fault["type"] != "extra_forbidden":
        return rule_of(fault)
    for name in fault["loc"][:-1]:
        model = cast(type[BaseModel], model.model_fields[str(name)].annotation)
    known = [field.alias or name for name, field in model.model_fields.items()]
    return f"{rule_of(fault)} here; there are {', '.join(known)}"


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError:
        raise InvalidArgument("config", file, "be a readable file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InvalidArgument("config", file, f"be YAML; see line {mark.line + 1 if mark else 1}") from None
    if not isinstance(content, dict):
        raise InvalidArgument("config", file, "be a mapping of settings")
    return content


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Lay ``over`` on ``base``, mapping by mapping; an option that is None was not given."""
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, dict):
            merged[key] = _merge(base.get(key) or {}, value)
        elif value is not None:
            merged[key] = value
    return merged
