"""The internal comparison with the real table: exact, therefore sensitive, therefore kept where the data is."""

import json
from collections.abc import Iterable
from pathlib import Path

from dpmodels.evaluation.marginals import evaluate_marginals
from dpmodels.evaluation.utility import evaluate_utility
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.schema import Schema

BANNER = "SENSITIVE: exact statistics of the real data. Keep inside the sensitive zone; never hand over."
MAX_ROWS = 200_000
"""Rows compared, from the start of each table."""


def evaluate_table(
    real: Sensitive[Iterable[Records]], synthetic: Iterable[Records], schema: Schema, seed: int, target: Path
) -> None:
    """Write marginal distances and TSTR to ``target``, which must lie in the sensitive zone."""
    codec = Codec(schema)
    rows, made = Sensitive(_first(real.reveal())), _first(synthetic)
    cells = Sensitive(codec.to_cells(rows.reveal()))
    marginals = evaluate_marginals(cells, codec.to_cells(made), codec.cell_sizes, list(codec.columns))
    utility = evaluate_utility(rows, made, schema, seed)
    report = {"banner": BANNER, "marginals": marginals.reveal(), "utility": utility.reveal()}
    target.write_text(json.dumps(report, indent=1), encoding="utf-8")


def _first(batches: Iterable[Records]) -> Records:
    parts: list[Records] = []
    held = 0
    for records in batches:
        parts.append(records.take(slice(0, MAX_ROWS - held)))
        held += len(parts[-1])
        if held >= MAX_ROWS:
            break
    return Records.concat(parts)
