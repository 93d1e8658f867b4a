"""The options that commands share, and those of a synthesis, which make its configuration."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.config import SynthesizeConfig

Home = Annotated[Path | None, typer.Option(envvar="NACRE_HOME", help="State: ledger, zones, runs. (default: .nacre)")]
Url = Annotated[
    str | None,
    typer.Option("--ledger", envvar="NACRE_LEDGER", help="PostgreSQL URL without a password. (default: in the home)"),
]
AllowLargeDelta = Annotated[
    bool | None, typer.Option("--allow-large-delta", help="Take a delta above 0.001, the share that may leak whole.")
]
Data = Annotated[Path, typer.Argument(help="CSV or Parquet: one file or a folder.")]
SchemaFile = Annotated[Path | None, typer.Option("--schema", help="Schema of the table (YAML).")]
Epsilon = Annotated[float | None, typer.Option("--target-epsilon", help="Epsilon to spend, 0.001 to 1000.")]
ReportEpsilon = Annotated[
    float | None, typer.Option(help="Spend this on scores on the real rows, for the report. (default: none)")
]
Delta = Annotated[float | None, typer.Option(help="Delta, above 0 and below 1; never from the row count.")]
Method = Annotated[str | None, typer.Option(help="Synthesis method. (default: nacre, or nacre-images)")]
Rows = Annotated[int | None, typer.Option(help="Synthetic rows. (default: the released, noisy number of records)")]
AccountName = Annotated[str | None, typer.Option("--account", help="Account that pays. (default: the data set's)")]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda. (default: auto)")]
Dask = Annotated[
    str | None, typer.Option(envvar="NACRE_DASK", help="Scheduler (tcp://…, tls://…) of workers that sum, or none.")
]
OtherDevice = Annotated[
    str | None, typer.Option("--device", help="Another device: auto, cpu, cuda. (default: as begun)")
]
OtherOut = Annotated[Path | None, typer.Option("--out", help="Another hand-off folder. (default: as begun)")]
Seed = Annotated[int | None, typer.Option(help="Seeds training and sampling only, never the noise. (default: 0)")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML with any of these and the model's settings.")]
TestRows = Annotated[Path | None, typer.Option("--test", help="Real rows (Parquet) kept from the synthesis.")]
LeNet = Annotated[Path | None, typer.Option(help="LeNet-5 weights (safetensors) for the features of 28 x 28 images.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Threads. (default: one a core, at most 8)")]
Out = Annotated[Path | None, typer.Option(help="Hand-off folder; must be new or empty.")]
Prefect = Annotated[bool | None, typer.Option("--prefect/--no-prefect", help="Run as a Prefect flow. (default: on)")]
SigningKey = Annotated[Path | None, typer.Option(help="ed25519 private key (PEM) that signs the manifest.")]
OfficerKey = Annotated[Path, typer.Option("--key", help="The officer's ed25519 private key (PEM).")]
DeploymentsFile = Annotated[
    Path | None, typer.Option("--file", help="Deployments (YAML). (default: the ones nacre ships)")
]


def read_options(
    data: Data,
    schema: SchemaFile = None,
    target_epsilon: Epsilon = None,
    delta: Delta = None,
    out: Out = None,
    method: Method = None,
    rows: Rows = None,
    account: AccountName = None,
    device: Device = None,
    dask: Dask = None,
    seed: Seed = None,
    config: ConfigFile = None,
    home: Home = None,
    prefect: Prefect = None,
    ledger: Url = None,
    signing_key: SigningKey = None,
    report_epsilon: ReportEpsilon = None,
    allow_large_delta: AllowLargeDelta = None,
) -> SynthesizeConfig:
    """Turn the options of a synthesis into its configuration; what was not given comes from ``--config``."""
    options: dict[str, Any] = {
        "data": data,
        "schema": schema,
        "out": out,
        "rows": rows,
        "privacy": {"target_epsilon": target_epsilon, "delta": delta, "account": account}
        | {"report_epsilon": report_epsilon, "allow_large_delta": allow_large_delta},
        "model": {"method": method},
        "runtime": {"home": home, "device": device, "seed": seed, "prefect": prefect}
        | {"dask": None if dask == "none" else dask, "ledger": ledger, "signing_key": signing_key},
    }
    return SynthesizeConfig.build(options, config)


def takes_options(command: Callable[[SynthesizeConfig], None]) -> Callable[..., None]:
    """Give a command that wants a configuration the options of ``read_options``."""

    def parsed(**options: Any) -> None:
        command(read_options(**options))

    parsed.__name__, parsed.__doc__ = command.__name__, command.__doc__
    parsed.__signature__ = inspect.signature(read_options)  # type: ignore[attr-defined]
    parsed.__annotations__ = {**read_options.__annotations__, "return": None}
    return parsed
