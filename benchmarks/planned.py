"""Hold the noise of pairs that a plan names, before anything is charged, against errors of the released counts.

NIST's sets of columns that have PUMA, with the workload "any column by PUMA", and Adult with "any column by education",
whose income is a target. A release counts pairs of merged cells; its error is what it says of a pair less what the
real rows hold. By pair of columns: the root mean square of these errors, over its cells and all releases.
"""

import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks import nist
from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import Table, data_dir, parse, report
from dpmodels.arrays import Floats
from dpmodels.audit.desks import measured
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import pair_weights
from dpmodels.methods.parts.pair_noise import ABOUT
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget

HEAD = [
    "table",
    "pairs",
    "number",
    "planned",
    "error",
    "error / planned, by pair",
    "within 20 %",
    "within 1.96 planned",
]
CLOSE, IN_95_OF_100 = 0.2, 1.96
SETS = ("industry", "family", "simple")


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--releases", type=int, default=20, help="of each table")


def tables() -> Iterator[tuple[str, Schema, pd.DataFrame]]:
    """Yield the tables, each with a schema that has a workload."""
    for name in SETS:
        columns = [column for column in nist.SETS[name].split() if column != "DENSITY"]
        yield (
            f"NIST {name}",
            Schema.model_validate(nist.schema_of(columns, True)),
            nist.as_input(nist.national()[columns]),
        )
    adult = load_schema(SCHEMAS / "adult.yaml").model_dump() | {"workload": [{"by": "education"}]}
    yield "Adult", Schema.model_validate(adult), pd.read_parquet(data_dir() / "adult_train.parquet")


def errors_of(system: Any, line: Any, records: Any) -> tuple[Any, Floats]:
    """Measure once, and return the look at pairs and the errors of its counts. Shapes: [D, D]."""
    with tempfile.TemporaryDirectory() as folder:
        released, _ = measured(system, Path(folder), line, records)
    second = system.answers(released.value)[-1]
    exact = second.embedding.lattice_sum(records).numpy()
    noisy, true = (second.embedding.unpack(vector)[1].sum(axis=0) for vector in (second.vector, exact))
    return second.embedding, noisy - true


def squares_by_pair(look: Any, errors: Floats, planned: Floats) -> tuple[Floats, Floats]:
    """Return each pair's mean squared error, and the share of its cells whose error is within 1.96 of what is planned.

    Shapes: two of [F, F].
    """
    begin, cells = look.partition.offsets[:-1], np.outer(look.column_sizes, look.column_sizes)
    width = np.repeat(np.repeat(planned, look.column_sizes, axis=0), look.column_sizes, axis=1)
    each = np.square(errors), np.abs(errors) <= IN_95_OF_100 * width
    squares, within = (np.add.reduceat(np.add.reduceat(one, begin, axis=0), begin, axis=1, dtype=float) for one in each)
    return squares / cells, within / cells


def main() -> None:
    args = parse(__doc__, options)
    releases = 2 if args.quick else args.releases
    table = Table(f"nacre, epsilon={EPSILON}, delta={DELTA}: records in a pair of cells", HEAD, digits=2)
    for name, schema, rows in tables():
        system = create("nacre", {}, {})
        line = system.plan(schema, PrivacyBudget(epsilon=EPSILON, delta=DELTA))
        records = Codec(schema).encode(pa.Table.from_pandas(rows, preserve_index=False))
        noise, names = system.noise(line), system.of(line).fine.names
        paired = np.triu(np.ones((len(names),) * 2, dtype=bool), 1)
        asked = pair_weights(schema.workload, names) > 1
        (entry,) = (value for key, value in noise.items() if "the workload asks for" in key)
        planned = np.where(asked, entry, noise[ABOUT])
        made = [squares_by_pair(*errors_of(system, line, records), planned) for _ in range(releases)]
        error, within = np.sqrt(np.mean([one for one, _ in made], axis=0)), np.mean([one for _, one in made], axis=0)
        for kind, chosen in ((schema.workload[0].text, paired & asked), ("the others", paired & ~asked)):
            ratio = (error / planned)[chosen]
            close, right = float((abs(ratio - 1) <= CLOSE).mean()), float(within[chosen].mean())
            spread = f"{ratio.min():.2f} to {ratio.max():.2f}"
            rms = float(np.sqrt(np.mean(np.square(error[chosen]))))
            table.add(name, kind, str(int(chosen.sum())), float(planned[chosen][0]), rms, spread, close, right)
    report("planned", [table], range(releases), args)


if __name__ == "__main__":
    main()
