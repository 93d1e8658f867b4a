"""Other ways to make a tree of tables, beside nacre-tree: each table by itself, and SDV's HMA without privacy."""

import datetime
import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.common import ROOT
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

Frames = dict[str, pd.DataFrame]


def made_apart(tree: Tree, real: Frames, epsilon: float, seed: int) -> Frames:
    """Release every table by itself at an equal part of the budget, and give each row a parent by chance.

    As one does without trees: the unit of a table with parents is the row of the root, of which it has so many rows at
    most as there may be. How many rows a table has is what its release says.
    """
    rng, made = np.random.default_rng(seed), Frames()
    for name, branch in tree.tables.items():
        keys = {*tree.keys_of(name), *branch.key}
        columns = {key: one.model_dump(exclude_unset=True) for key, one in branch.columns.items() if key not in keys}
        for one in branch.refers:
            values = sorted(set(tree.public[one.to].rows[tree.public[one.to].key[0]]))
            columns[one.by[0]] = {"type": "categorical", "values": values, "nullable": one.nullable}
        most = math.prod(tree.tables[each].most for each in (*tree.above(name), name) if tree.tables[each].parent)
        unit = {"unit": {"user": tree.keys_of(name)[0], "max_rows": most}} if branch.parent else {}
        user = {key: {"type": "identifier"} for key in tree.keys_of(name)}
        schema = Schema.model_validate({"name": tree.name, **unit, "columns": {**user, **columns}})
        codec, system = Codec(schema), create("nacre", {}, {})
        frame = real[name][list(columns)]
        records = codec.encode(pa.RecordBatch.from_pandas(frame, preserve_index=False))
        line = system.plan(schema, PrivacyBudget(epsilon=epsilon / len(tree.tables), delta=1e-5, unit=schema.unit))
        with tempfile.TemporaryDirectory() as folder:
            release, _ = measured(system, Path(folder) / "run", line, records)
        model = system.fit(release, Craft(seed=seed))
        rows = max(1, model.default_rows())
        batches = [codec.decode(batch).to_pandas() for batch in model.sample(rows, seed=seed)]
        made[name] = pd.concat(batches, ignore_index=True)
        for key in branch.key:
            made[name][key] = np.arange(rows)
        if branch.parent:
            above = made[branch.parent][tree.tables[branch.parent].key[0]]
            made[name][tree.keys_of(name)[0]] = rng.choice(above, rows)
    return made


def made_by_hma(tree: Tree, real: Frames, seeds: Sequence[int], python: Path) -> list[Frames]:
    """Have SDV's HMA make tables of the real ones, without privacy; one fit, a draw for each seed."""
    types = {"datetime": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}, "identifier": {"sdtype": "id"}}
    types |= {"integer": {"sdtype": "numerical"}, "number": {"sdtype": "numerical"}}
    tables, relations = dict[str, Any](), list[dict[str, str]]()
    for name, branch in tree.tables.items():
        keys = {*tree.keys_of(name), *branch.key}
        sdtypes = {
            key: {"sdtype": "id"} if key in keys else types.get(getattr(one, "type", ""), {"sdtype": "categorical"})
            for key, one in branch.columns.items()
        }
        for one in branch.refers:
            sdtypes[one.by[0]] = {"sdtype": "categorical"}
        tables[name] = {"columns": sdtypes} | ({"primary_key": branch.key[0]} if branch.key else {})
        if branch.parent:
            key = {"parent_primary_key": tree.tables[branch.parent].key[0], "child_foreign_key": tree.keys_of(name)[0]}
            relations.append({"parent_table_name": branch.parent, "child_table_name": name, **key})
    task = {"metadata": {"tables": tables, "relationships": relations, "METADATA_SPEC_VERSION": "V1"}}
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in real.items():
            frame[list(tables[name]["columns"])].to_csv(f"{folder}/real-{name}.csv", index=False)
        Path(folder, "task.json").write_text(json.dumps({**task, "root": tree.root, "seeds": list(seeds)}))
        subprocess.run([python, ROOT / "benchmarks" / "peers" / "run_sdv.py", folder], check=True)
        return [
            {name: _typed(pd.read_csv(f"{folder}/made-{seed}-{name}.csv"), real[name]) for name in real}
            for seed in seeds
        ]


def _typed(made: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose dates are of the type of the real ones."""
    dates = [name for name in made if isinstance(real[name].dropna().iloc[0], datetime.date)]
    return made.assign(**{name: pd.to_datetime(made[name]).dt.date for name in dates})
