"""A small table, its schema, and short training: what the tests of the pipeline share."""

import hashlib
import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.mechanisms.gaussian import Sampler
from dpmodels.privacy import Released, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.system import System
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.schema import Schema
from flows.command_line import app

SCHEMA_TEXT = """
name: clinic
unit: record
target: sick
columns:
  patient: {type: identifier, keep: regenerate}
  age: {type: integer, min: 0, max: 99}
  ward: {type: categorical, values: [north, south, west]}
  dose: {type: number, min: 0, max: 10, round: 2, nullable: true, zero_inflated: true}
  smoker: {type: boolean}
  sick: {type: categorical, values: ["no", "yes"]}
"""


def make_schema(**changes: object) -> Schema:
    """Return the clinic's schema, with top-level keys replaced; patients are not numbered anew if they are the unit."""
    content = {**yaml.safe_load(SCHEMA_TEXT), **changes}
    if content["unit"] != "record" and "columns" not in changes:
        content["columns"]["patient"] = {"type": "identifier"}
    return Schema.model_validate(content)


def make_table(rows: int, seed: int = 0) -> pa.Table:
    """Return clinic rows in which smoking, age and ward go with being sick."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(rows) < 0.4
    age = rng.integers(0, 100, rows)
    sick = rng.random(rows) < 0.1 + 0.5 * smoker + 0.3 * (age > 60)
    dose = np.where(rng.random(rows) < 0.3, 0.0, np.round(rng.random(rows) * 10, 2))
    return pa.table(
        {
            "patient": pa.array(np.arange(rows)),
            "age": pa.array(age),
            "ward": pa.array(np.array(["north", "south", "west"])[rng.integers(0, 3, rows)]),
            "dose": pa.array(dose, mask=rng.random(rows) < 0.1),
            "smoker": pa.array(smoker),
            "sick": pa.array(np.where(sick, "yes", "no")),
        }
    )


def make_records(rows: int, seed: int = 0) -> Records:
    """Return clinic rows, encoded."""
    return Codec(make_schema()).encode(make_table(rows, seed))


def repeated_noise(seed: int = 0) -> Sampler:
    """Return a sampler for ``gaussian._sampler`` that draws the same in every run: for what holds for most noise."""
    noise = np.random.default_rng(seed)
    return lambda values, stddev: values + np.rint(noise.normal(0, stddev, len(values))).astype(np.int64)


def write_clinic(folder: Path, rows: int = 200, **changes: object) -> tuple[Path, Path, Path]:
    """Write data, schema and a configuration with short training; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    data, schema, config = folder / "clinic.parquet", folder / "clinic.yaml", folder / "config.yaml"
    pq.write_table(make_table(rows), data)
    schema.write_text(make_schema(**changes).to_yaml())
    training = {"steps": 6, "batch_size": 32, "frequencies_per_step": 16, "network": {"hidden_dim": 16}}
    measurement = {"frequencies": {"count": 32}}
    config.write_text(yaml.safe_dump({"model": {"measurement": measurement, "training": training, "method": "pearl"}}))
    return data, schema, config


def run_cli(*words: object) -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["nacre", *map(str, words)]):
        try:
            app.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return code, out.getvalue(), err.getvalue()


def synthesize_words(folder: Path, **options: object) -> list[object]:
    """Return the words of a quick `nacre synthesize` on the clinic written to ``folder``; options override."""
    named = {
        "schema": folder / "clinic.yaml",
        "config": folder / "config.yaml",
        "target-epsilon": 1,
        "delta": 1e-5,
        "out": folder / "out",
        "home": folder / "home",
        **{key.replace("_", "-"): value for key, value in options.items()},
    }
    data = named.pop("data", folder / "clinic.parquet")
    words = ["synthesize", data, "--no-prefect"]
    return words + [word for key, value in named.items() if value is not None for word in (f"--{key}", value)]


def digest(path: Path) -> str:
    """Hash a file, or the names and hashes of all files below a folder."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    lines = [f"{file.relative_to(path)} {digest(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def write_key(path: Path) -> tuple[Path, Path]:
    """Write an ed25519 key and its public half; return both paths."""
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = path.with_suffix(".pub")
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path, public


def charges(home: Path) -> list[str]:
    """Return the kinds of the ledger's entries, openings left out."""
    ledger = Ledger(home / "ledger.sqlite")
    return [entry.kind for entry in ledger.entries() if entry.kind != "open"]


def desk_in(folder: Path, line: Line, run: str = "r", ledger: Ledger | None = None) -> Desk:
    """Return a desk in ``folder``, whose ledger has an account with the line's budget as its cap."""
    folder.mkdir(mode=0o700, exist_ok=True)
    ledger = ledger or Ledger(folder / "ledger.sqlite")
    ledger.open_account("a", dataset=line.contract.name, budget_cap=line.budget)
    charge = Charge(
        account="a",
        dataset=line.contract.name,
        mechanism=line.method,
        event=line.event,
        budget=line.budget,
        plan_hash=line.hash,
        schema_hash=line.contract.hash,
        run=run,
        part=line.family,
    )
    return Desk(ledger, charge, folder / "private" / f"{run}.parquet", folder / "public" / f"{run}.parquet")


def measured(system: System[Any], folder: Path, line: Line, *batches: Records) -> tuple[Released[Release], Ledger]:
    """Measure batches under a ledger of their own in ``folder``."""
    desk = desk_in(folder, line)
    path = system.measure(Sensitive(list(batches)), line, desk)
    return read_release(path.value), desk.ledger


def servers_of(home: Path) -> set[int]:
    """Return the embedded Prefect servers of a home, and no other's: each works in the folder it was started with."""
    place = str(home.resolve() / "prefect")
    found = [process.info for process in psutil.process_iter(["pid", "cmdline", "cwd"])]
    return {
        one["pid"] for one in found if one["cwd"] == place and "flows.with_prefect.server" in (one["cmdline"] or [])
    }
