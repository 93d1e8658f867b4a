"""Make golden files of the release format that this version writes: ``python -m tests.releases.make_golden``.

For each method a small release of generated rows, for the charged scores another, and one hand-off. They stand for what
users have paid for and keep: whoever made them with an earlier version must be able to read them with every later one.
So what exists is never made again; only what is missing is, for a new method or a new format.
"""

import hashlib
import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import yaml

from dpmodels.audit.data import data_of
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.quick import QUICK, quick
from dpmodels.methods.registry import of_kind
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.release import FORMAT, Release, read_release
from dpmodels.report.charged import ScoreMeasurement, Scores
from dpmodels.report.charged_facts import charged_facts
from tests.kit import support
from tests.kit.every_method import fit
from tests.kit.support import make_table, measured, run_cli, synthesize_words, write_key

GOLDEN = Path(__file__).parent / "golden"
RESIDUALS = Path(__file__).parent / "golden_residuals"
"""Nacre of format 2 since it measures residuals; the one among the others was planned before."""
BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
ROWS = 200
CLINIC = Schema.model_validate(
    {
        "name": "clinic",
        "target": "sick",
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99},
            "ward": {"type": "categorical", "values": ["north", "south", "west"]},
            "dose": {"type": "number", "min": 0, "max": 10, "round": 2, "nullable": True, "zero_inflated": True},
            "sick": {"type": "categorical", "values": ["no", "yes"]},
        },
    }
)


def rows_of(method: str) -> tuple[Any, Any]:
    """Return the schema and the generated rows that a method's golden release is of."""
    if (data := data_of(method)) is not support:
        return data.make_schema(), data.make_records(ROWS)
    return CLINIC, Codec(CLINIC).encode(make_table(ROWS).select(list(CLINIC.columns)))


def facts_of(path: Path) -> dict[str, Any]:
    """Return what must be read of a release for ever."""
    table, release = pq.read_table(path), read_release(path).value
    chosen = np.array(json.loads(table.schema.metadata[b"nacre.chosen"]), dtype="<i8")
    return {
        "plan_sha256": release.line.hash,
        "ledger_entry": release.entry,
        "values_sha256": sha256(table["value"].to_numpy().astype("<i8").tobytes()),
        "values": len(table),
        "chosen_sha256": sha256(chosen.tobytes()),
        "chosen": len(chosen),
    }


def marginals_of(method: str, release: Release) -> dict[str, Any] | None:
    """Return the one-way counts that a release states."""
    found = quick(method).marginals(release)
    if found is None:
        return None
    columns = {
        name: {"counts": list(one.counts), "stddev": one.stddev, "pooled": list(one.pooled)}
        | {"pooled_stddev": list(one.pooled_stddev), "place": one.cell_of.tolist()}
        for name, one in found.columns.items()
    }
    return {"records": found.records, "columns": columns}


def sha256(content: bytes) -> str:
    """Hash bytes."""
    return hashlib.sha256(content).hexdigest()


def make_release(method: str, target: Path) -> dict[str, Any]:
    """Release with a method; return what is read of it, and the hash of the generator that this version fits."""
    schema, records = rows_of(method)
    plan = quick(method).plan(schema, BUDGET.model_copy(update={"unit": schema.unit}))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release, _ = measured(quick(method), folder / "run", plan, records)
        target.write_bytes((folder / "run" / "public" / "r.parquet").read_bytes())
        fit(method, release, folder).save(folder / "model")
        generator = sha256((folder / "model").read_bytes())
    return {
        **facts_of(target),
        "marginals": marginals_of(method, release.value),
        "generator_sha256": generator,
        "nacre": version("nacre"),
    }


def make_scores(target: Path) -> dict[str, Any]:
    """Release charged scores."""
    schema, records = rows_of("nacre")
    spec = ScoreMeasurement(classifiers=("logistic",), training_rows=100)
    scores = Scores(spec, [records.take(slice(0, 100))])
    with tempfile.TemporaryDirectory() as name:
        release, _ = measured(scores, Path(name) / "run", scores.plan(schema, BUDGET), records)
        target.write_bytes((Path(name) / "run" / "public" / "r.parquet").read_bytes())
    return {**facts_of(target), "report": charged_facts(release.value), "nacre": version("nacre")}


def make_hand_off(target: Path) -> None:
    """Hand over a table with a charged report, signed with a key that nobody keeps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(make_table(ROWS).select(list(CLINIC.columns)), folder / "clinic.parquet")
        (folder / "clinic.yaml").write_text(CLINIC.to_yaml())
        model = {"method": "nacre", "measurement": QUICK["nacre"].measurement, "training": QUICK["nacre"].training}
        (folder / "config.yaml").write_text(yaml.safe_dump({"model": model}))
        key, public = write_key(folder / "signer.pem")
        options = {"rows": 20, "report_epsilon": 0.5, "signing_key": key, "out": target}
        code, out, err = run_cli(*synthesize_words(folder, **options))
        assert code == 0, out + err
        (target.parent / "signer.pub").write_bytes(public.read_bytes())


def main() -> None:
    """Make what is missing."""
    torch.set_num_threads(1)
    folder = GOLDEN / f"FORMAT-{FORMAT}"
    for each, names in {folder: [*of_kind("table"), "report"], RESIDUALS: ["nacre"]}.items():
        each.mkdir(parents=True, exist_ok=True)
        place = each / "facts.json"
        facts = json.loads(place.read_text()) if place.exists() else {}
        for name in [name for name in names if name not in facts]:
            target = each / f"{name}.parquet"
            facts[name] = make_scores(target) if name == "report" else make_release(name, target)
        place.write_text(json.dumps(facts, indent=1, default=float) + "\n")
    if not (folder / "hand-off").exists():
        make_hand_off(folder / "hand-off")


if __name__ == "__main__":
    main()
