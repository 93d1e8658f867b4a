"""What tables of a size bring at epsilon 1: how far shares are off, and how much is left of what two columns show.

Rows of Adult are drawn with replacement, so that tables of any size are of the same people. Each is released by nacre's
defaults several times, and the synthetic rows are held against the real ones: numbers in four groups of about the same
size, other columns in their three commonest values and the rest. Distances are total variations, in percent of all
rows. Two columns are related if they depart from independence by 1 % or more; a relation is kept if that of the
synthetic rows is half to one and a half times as strong. For the last figure the schema names a rare target, who works
for a company of her own (3.4 % of the rows): 100 says that its rates depart from that of all rows, group by group of
every other column, as far as they do in real rows; 0 that they are the same in all groups. Both are slopes.
"""

import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import Table, data_dir, parse, report
from dpmodels.arrays import Floats, Whole
from dpmodels.audit.desks import measured
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

HEAD = ["rows", "one column is off by, %", "two together by, %", "relations kept, %"]
HEAD += ["a rare target's differences, % of the real ones"]
RELATED, KEPT = 0.01, (0.5, 1.5)
ROWS = (1_000, 5_000, 16_000, 32_561, 1_000_000)
RARE = {"workclass": {"type": "boolean"}}
"""A target of 3.4 %: whether somebody works for a company of her own, in place of what kind of employer it is."""
Code = Callable[[pd.DataFrame], dict[str, Whole]]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--releases", type=int, default=4, help="of each table")


def load(rows: int, rare: bool) -> tuple[pd.DataFrame, Schema]:
    """Draw so many people of Adult with replacement, and give the schema that names the common or the rare target."""
    frame = pd.read_parquet(data_dir() / "adult_train.parquet").sample(n=rows, replace=True, random_state=0)
    schema = load_schema(SCHEMAS / "adult.yaml")
    if not rare:
        return frame, schema
    keys = schema.model_dump(mode="json", exclude_unset=True)
    keys["columns"] |= RARE
    return frame.assign(workclass=frame.workclass == "Self-emp-inc"), Schema.model_validate(
        keys | {"target": "workclass"}
    )


def synthetic_of(frame: pd.DataFrame, schema: Schema, seed: int) -> pd.DataFrame:
    """Release a table once, and draw as many rows as the release says."""
    system, codec = create("nacre", {}, {}), Codec(schema)
    line = system.plan(schema, PrivacyBudget(epsilon=EPSILON, delta=DELTA))
    records = codec.encode(pa.Table.from_pandas(frame, preserve_index=False))
    with tempfile.TemporaryDirectory() as folder:
        released, _ = measured(system, Path(folder), line, records)
        model = system.fit(released, Craft(seed=seed))
    batches = model.sample(model.default_rows(), seed)
    frame_of_all: pd.DataFrame = pa.concat_tables(codec.decode(batch) for batch in batches).to_pandas()
    return frame_of_all


def coder(real: pd.DataFrame) -> Code:
    """Return what gives every column of a table four codes at most, by the real rows."""
    ends = {str(name): np.unique(real[name].quantile([0.25, 0.5, 0.75])) for name in real.select_dtypes("number")}
    common = {str(name): real[name].value_counts().index[:3] for name in real if str(name) not in ends}

    def codes(frame: pd.DataFrame) -> dict[str, Whole]:
        numbers = {name: np.searchsorted(cuts, frame[name].to_numpy()) for name, cuts in ends.items()}
        return numbers | {name: pd.Categorical(frame[name], values).codes % 4 for name, values in common.items()}

    return codes


def figures(real: dict[str, Whole], synthetic: dict[str, Whole], target: str) -> dict[str, float]:
    """Return the figures of one release, in percent."""
    shares = [(_table(real, name), _table(synthetic, name)) for name in real]
    pairs = [tuple(_table(codes, *pair) for codes in (real, synthetic)) for pair in combinations(real, 2)]
    apart = [tuple(table - np.outer(table.sum(axis=1), table.sum(axis=0)) for table in pair) for pair in pairs]
    related = [(a, b) for a, b in apart if np.abs(a).sum() / 2 >= RELATED]
    slopes = [float((a * b).sum() / (a**2).sum()) for a, b in related]
    rates = [tuple(_rates(codes, name, target) for codes in (real, synthetic)) for name in real if name != target]
    weights = np.concatenate([np.maximum(_table(real, name), 0) for name in real if name != target])
    true, made = (np.concatenate([each[side] for each in rates]) for side in (0, 1))
    return {
        "one": 100 * float(np.mean([np.abs(a - b).sum() / 2 for a, b in shares])),
        "two": 100 * float(np.mean([np.abs(a - b).sum() / 2 for a, b in pairs])),
        "relations": 100 * float(np.mean([KEPT[0] <= slope <= KEPT[1] for slope in slopes])),
        "rates": 100 * float((weights * true * made).sum() / (weights * true**2).sum()),
    }


def _table(codes: dict[str, Whole], *names: str) -> Floats:
    """Return the shares of one or two columns' codes."""
    places = np.ravel_multi_index([codes[name] for name in names], [4] * len(names))
    return np.bincount(places, minlength=4 ** len(names)).reshape([4] * len(names)) / len(places)


def _rates(codes: dict[str, Whole], name: str, target: str) -> Floats:
    """Return by how much the rate of the target's second commonest value departs, in each group, from that of all."""
    hit = (codes[target] == 1).astype(np.float64)
    sizes = np.bincount(codes[name], minlength=4)
    return np.where(sizes > 0, np.bincount(codes[name], hit, minlength=4) / np.maximum(sizes, 1) - hit.mean(), 0)


def main() -> None:
    args = parse(__doc__, options)
    sizes, releases = ([5_000], 1) if args.quick else (args.rows, args.releases)
    table = Table(f"Rows of Adult, epsilon={EPSILON}, delta={DELTA}", HEAD, digits=1)
    for rows in sizes:
        (frame, schema), (rare_frame, rare_schema) = load(rows, rare=False), load(rows, rare=True)
        outcomes = []
        for seed in range(releases):
            codes, rare_codes = coder(frame), coder(rare_frame)
            one = figures(codes(frame), codes(synthetic_of(frame, schema, seed)), "income")
            rare = figures(rare_codes(rare_frame), rare_codes(synthetic_of(rare_frame, rare_schema, seed)), "workclass")
            outcomes.append([one["one"], one["two"], one["relations"], rare["rates"]])
        table.add(f"{rows:,}", *np.array(outcomes).T.tolist())
        print(table.lines()[-1], flush=True)
    report("sizes", [table], range(releases), args)


if __name__ == "__main__":
    main()
