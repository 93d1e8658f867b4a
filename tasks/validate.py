"""Validate: a gate and a publishable report, both from released objects."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.errors import DataError, InvalidArgument
from dpmodels.evaluation.checks import render_checks
from dpmodels.evaluation.report import summarise
from dpmodels.evaluation.report_page import render
from dpmodels.generators.load import load_generator
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.expectations import Gate
from dpmodels.schema.lint import load_schema
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.base import Release, read_release
from dpmodels.synthesizers.one_shot import OneShot, split_looks
from dpmodels.synthesizers.registry import create
from tasks.sanitize import StoredRecords
from tasks.stage import stage
from tasks.store import Handle, Run, write_text


@stage("validate", sensitive=False)
def validate(run: Run, release: Handle, synthetic: Handle) -> Handle:
    """Hold the synthetic table against the schema's expectations and write the publishable report."""
    if done := run.finished("validate"):
        return done
    released = read_release(release.path).value
    schema, settings = released.plan.table, run.settings
    rows = settings.rows or load_generator(run.released / "generator.safetensors").default_rows()
    gate = check_table(synthetic.path, schema, rows, settings.batch_rows)
    report = run.released / "report"
    report.mkdir(exist_ok=True)
    write_text(report / "checks.html", render_checks(gate))
    if gate.broken:
        broken = "; ".join(map(str, gate.broken))
        raise DataError("", f"the synthetic table breaks its schema and is not handed over: {broken}")
    facts = report_facts(released, release.sha256, load_synthetic(synthetic, schema, settings.batch_rows), gate)
    write_text(report / "report.json", json.dumps(facts, indent=1))
    write_text(report / "report.html", render(facts))
    return run.finish("validate", report)


def report_facts(release: Release, sha256: str, synthetic: Iterable[Records], gate: Gate) -> dict[str, Any]:
    """Collect the facts of the publishable report."""
    plan = release.plan
    system = create(plan.method, plan.measurement, {})
    looks = split_looks(release, system.looks(plan)) if isinstance(system, OneShot) else []
    return summarise(release, looks, synthetic, system.noise(plan), gate.results(), sha256)


def render_again(report: Handle) -> str:
    """Lay a publishable report out again from its facts, as this version does; the hand-off keeps its own."""
    return render(json.loads((report.path / "report.json").read_text(encoding="utf-8")))


def check_table(path: Path, schema: Schema, rows: int | None, batch_rows: int = 65_536) -> Gate:
    """Hold a Parquet file, or a folder of them, against the expectations of a synthetic table.

    Raises:
        DataError: there is no such file, it is damaged, or a column cannot hold its declared values.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError("", f"{path} holds no .parquet file")
    gate = Gate(schema, raw=False, rows=rows)
    for file in files:
        try:
            for batch in pq.ParquetFile(file).iter_batches(batch_size=batch_rows):
                gate.check(batch)
        except (OSError, pa.ArrowException):
            raise DataError("", f"{file} does not exist, is no Parquet file, or is damaged") from None
    return gate


def check_hand_off(folder: Path, schema_file: Path | None) -> Gate:
    """Hold a hand-off against the schema that came with it, or any Parquet table against the schema that is named.

    Raises:
        InvalidArgument: no hand-off, and no schema.
        DataError: nothing that can be checked.
    """
    if not (folder / "manifest.json").is_file():
        if schema_file is None:
            raise InvalidArgument("schema", "nothing", f"be named: {folder} is no hand-off, which has its own")
        return check_table(folder, load_schema(schema_file), None)
    schema = load_schema(schema_file or folder / "schema.yaml")
    try:
        rows = int(json.loads((folder / "report.json").read_text(encoding="utf-8"))["synthetic_rows"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError("", f"{folder} has no report.json that can be read") from None
    return check_table(folder / "synthetic", schema, rows)


def load_synthetic(synthetic: Handle, schema: Schema, batch_rows: int) -> StoredRecords:
    """Open the synthetic table."""
    return StoredRecords(synthetic.path, Codec(schema).encode, batch_rows)
