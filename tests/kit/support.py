"""A small table, its schema, and short training: what the tests of the pipeline share."""

import hashlib
import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest.mock import patch

import psutil
import pyarrow.parquet as pq
import typer
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dpmodels.audit.desks import desk_in as desk_in
from dpmodels.audit.desks import measured as measured
from dpmodels.audit.made.clinic import SCHEMA_TEXT as SCHEMA_TEXT
from dpmodels.audit.made.clinic import make_records as make_records
from dpmodels.audit.made.clinic import make_schema, make_table
from dpmodels.ledger.ledger import Ledger
from flows.command_line import app

made_once = cache(typer.main.get_command)
"""Makes the tree of all commands at its first call alone: many a command takes no longer than that."""


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
    argv, commands = ["nacre", *map(str, words)], patch.object(typer.main, "get_command", made_once)
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", argv), commands:
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


def read_only(folder: Path) -> list[str]:
    """Return the words before a command to which a folder is mounted read-only, as a modest user or as root."""
    mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return ["unshare", "--mount", "--map-root-user", "sh", "-c", mounts, str(folder)]


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
    path.chmod(0o600)
    public = path.with_suffix(".pub")
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path, public


def charges(home: Path) -> list[str]:
    """Return the kinds of the ledger's entries, openings left out."""
    ledger = Ledger(home / "ledger.sqlite")
    return [entry.kind for entry in ledger.entries() if entry.kind != "open"]


def servers_of(home: Path) -> set[int]:
    """Return the embedded Prefect servers of a home, and no other's: each works in the folder it was started with."""
    place = str(home.resolve() / "prefect")
    found = [process.info for process in psutil.process_iter(["pid", "cmdline", "cwd"])]
    return {
        one["pid"]
        for one in found
        if one["cwd"] == place and "flows.with_prefect.api_process" in (one["cmdline"] or [])
    }
