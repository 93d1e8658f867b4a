"""Ingest: read the raw table, check it against its schema, and write it encoded into the sensitive zone."""

import json

from dpmodels.errors import DataError
from dpmodels.evaluation.pages.checks import render_checks
from dpmodels.schema.expectations import Gate
from dpmodels.schema.ingest import transform_encode
from dpmodels.schema.load import load_parts
from tasks.engine import Threads, cores
from tasks.partitions import refuse_repeated
from tasks.stage import stage
from tasks.store import Handle, Run, make_private, replace_folder, write_text


@stage("ingest", sensitive=True)
def ingest(run: Run) -> Handle:
    """Encode the raw data, charging nothing, and leave the gate's results beside the encoded table."""
    line, settings = run.plan.release, run.settings
    target = run.sensitive / "encoded"
    if target.exists():  # it was moved here when it was complete
        return Handle(path=target)
    part = run.sensitive / ".part-encoded"
    make_private(part)
    raw = load_parts(settings.data, line.table, settings.batch_rows)
    gate = Gate(line.table, raw=True)
    try:
        transform_encode(raw, gate, part, Threads(settings.threads or cores()).map)
    except DataError as fault:
        where = f"nothing was charged; {run.sensitive / 'checks.html'} shows every rule"
        raise DataError(fault.column, f"{fault.rule}; {where}") from None
    finally:  # also after a failure; its counts are private, so they stay in the sensitive zone
        write_text(run.sensitive / "ingest.json", json.dumps(gate.results(), indent=1))
        write_text(run.sensitive / "checks.html", render_checks(gate))
    refuse_repeated(run, part)
    replace_folder(part, target)
    return Handle(path=target)
