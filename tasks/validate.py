"""Validate: a gate and a publishable report from released objects; an internal one inside the sensitive zone."""

import json
from collections.abc import Iterator

import pyarrow.parquet as pq

from dpmodels.errors import DataError
from dpmodels.evaluation.internal import evaluate_table
from dpmodels.evaluation.report import render, summarise
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.expectations import Gate
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.base import read_release
from dpmodels.synthesizers.registry import create
from tasks.sanitize import load_records
from tasks.stage import stage
from tasks.store import Handle, Run, write_text


@stage("validate", sensitive=False)
def validate(run: Run, release: Handle, synthetic: Handle) -> Handle:
    """Hold the synthetic table against the schema's expectations and write the publishable report."""
    if done := run.finished("validate"):
        return done
    released = read_release(release.path).value
    schema, settings = released.plan.table, run.settings
    gate = Gate(schema, raw=False)
    for file in sorted(synthetic.path.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(batch_size=settings.batch_rows):
            gate.check(batch)
    if gate.failures:
        broken = "; ".join(f"{column} {rule}" for column, rule in gate.failures)
        raise DataError("", f"the synthetic table breaks its schema and is not handed over: {broken}")
    noise = create(released.plan.method, released.plan.measurement, settings.training).noise(released.plan)
    summary = summarise(released, load_synthetic(synthetic, schema, settings.batch_rows), noise, gate.results())
    report = run.released / "report"
    report.mkdir(exist_ok=True)
    write_text(report / "report.json", json.dumps(summary, indent=1))
    write_text(report / "report.html", render(summary))
    return run.finish("validate", report)


@stage("evaluate", sensitive=True)
def evaluate(run: Run, ingested: Handle, synthetic: Handle) -> Handle:
    """Compare with the real rows: marginals and TSTR. The result never leaves the sensitive zone."""
    schema, settings = run.plan.table, run.settings
    target = run.sensitive / "internal-report.json"
    real = Sensitive(load_records(ingested, Codec(schema), settings.batch_rows))
    evaluate_table(real, load_synthetic(synthetic, schema, settings.batch_rows), schema, settings.seed, target)
    return Handle(path=target)


def load_synthetic(synthetic: Handle, schema: Schema, batch_rows: int) -> Iterator[Records]:
    """Stream the synthetic table, encoded."""
    codec = Codec(schema)
    for file in sorted(synthetic.path.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(batch_size=batch_rows):
            yield codec.encode(batch)
