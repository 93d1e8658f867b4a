"""NIST's Collaborative Research Cycle: the k-marginal score of SDNist on the national excerpt, in four sets of columns.

The score is 1000 (1 - mean total variation) over all pairs of columns, together with PUMA where that is one of them,
so that equal tables have 1000. Ages, incomes and poverty ratios are cut at percentiles of the real rows, as SDNist 2.3
cuts them; N, which is no value, and a ratio of 501 stay apart. The formula is written anew here from its description:
subsamples of the real rows, which NIST has scored itself, say how near it is.

Schemas follow from NIST's data dictionary alone: values, bounds, and the twenty PUMAs of the national excerpt. DENSITY
is a fact of the PUMA, so it is put back after the synthesis. Archived entries of others are one release each, and the
delta of SmartNoise's is not stated; they were read off the archive and are not run here.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from benchmarks.adult import DELTA, synthesize
from benchmarks.common import Table, commit, data_dir, parse, report
from dpmodels.arrays import Whole

SETS = {
    "demographic": "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE",
    "industry": "PUMA SEX MSP HISP RAC1P OWN_RENT INDP_CAT EDU PINCP_DECILE",
    "family": "PUMA AGEP SEX MSP HISP RAC1P NOC NPF OWN_RENT PINCP_DECILE POVPIP",
    "simple": "PUMA AGEP SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT DENSITY INDP_CAT EDU PINCP PINCP_DECILE"
    " POVPIP DVET DREM DPHY DEYE DEAR",
}
NUMBERS = {"AGEP": (), "POVPIP": ("N", "501"), "PINCP": ("N",)}
"""Columns that are cut, and their values that are not."""
WORKLOAD = [{"by": "PUMA"}]
"""What the score asks for: tables of two columns by PUMA."""
CELLS, SEEDS, EPSILONS = 20, (0, 1, 2), (0.5, 1.0, 10.0)
SHARES = (0.05, 0.2, 0.5)
ROUNDS = 60
"""Of iterative proportional fitting; the margins agree long before."""
PUBLISHED = {
    "real rows, 5 % (NIST)": (946, 791, 766, 808),
    "real rows, 20 % (NIST)": (977, 898, 891, 906),
    "real rows, 50 % (NIST)": (989, 948, 944, 955),
    "AIM, epsilon 1 (archive)": (976, None, None, None),
    "MST, epsilon 1 (archive)": (958, 841, 804, 774),
    "MST, epsilon 10 (archive)": (None, 864, 802, 796),
    "PATECTGAN, epsilon 10 (archive)": (805, None, None, None),
    "Private-GSD of three columns, epsilon 1 (archive)": (None, None, None, 851),
}
"""Scores by set, in the order of ``SETS``, that NIST and its archive name."""


@cache
def national() -> pd.DataFrame:
    """Return the excerpt, all text."""
    return pd.read_parquet(data_dir() / "nist" / "national2019.parquet")


@cache
def dictionary() -> Mapping[str, Any]:
    """Return NIST's data dictionary."""
    return json.loads((data_dir() / "nist" / "data_dictionary.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def schema_of(columns: Sequence[str], workload: bool = False) -> dict[str, Any]:
    """Write a schema from the data dictionary; a workload says that tables by PUMA will be asked for."""
    schema = {"name": "national2019", "unit": "record", "columns": {name: column_of(name) for name in columns}}
    return {**schema, "workload": WORKLOAD} if workload and "PUMA" in columns else schema


def column_of(name: str) -> dict[str, Any]:
    """Write a column: a number with its bounds, or the values that the dictionary lists."""
    values = dict(dictionary()[name]["values"])
    span = {"min": values.pop("min"), "max": values.pop("max")} if "min" in values else None
    if span and name in NUMBERS:
        high = max([span["max"], *(int(value) for value in values if value != "N")])
        return {"type": "integer", "min": span["min"], "max": high, "nullable": "N" in values}
    listed = [value for value in values if name != "PUMA" or value[:2] not in ("25", "48")]  # Massachusetts, Texas
    counted = [str(value) for value in range(span["min"], span["max"] + 1)] if span else []
    return {"type": "categorical", "values": [*listed, *(value for value in counted if value not in listed)]}


def as_input(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows as the schema has them: numbers as numbers, and no value where NIST writes N."""
    rows = rows.copy()
    for name in set(rows) & set(NUMBERS):
        rows[name] = pd.to_numeric(rows[name], errors="coerce").round().astype("Int64")
    return rows


def as_text(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows as NIST has them: text alone."""
    rows = rows.copy()
    for name in rows:
        if name in NUMBERS:
            rows[name] = pd.to_numeric(rows[name], errors="coerce").round().astype("Int64")
        rows[name] = rows[name].astype("string").fillna("N").astype(object)
    return rows


def score(real: pd.DataFrame, made: pd.DataFrame) -> float:
    """Return the k-marginal score of a table beside the real rows, which have the same columns of text."""
    codes = {name: coded(name, real[name], made[name]) for name in real}
    within = codes.pop("PUMA", np.zeros(len(real) + len(made), dtype=np.int64))
    distances = []
    for one, other in combinations(codes.values(), 2):
        cell = np.unique((within * (one.max() + 1) + one) * (other.max() + 1) + other, return_inverse=True)[1]
        counts = [np.bincount(part, minlength=cell.max() + 1) for part in (cell[: len(real)], cell[len(real) :])]
        distances.append(np.abs(counts[0] / len(real) - counts[1] / len(made)).sum() / 2)
    return 1000 * (1 - float(np.mean(distances)))


def coded(name: str, real: pd.Series, made: pd.Series) -> Whole:
    """Return places of the values of both columns, real ones first; numbers are cut at percentiles of the real ones."""
    both = pd.concat([real, made], ignore_index=True)
    if name in NUMBERS:
        number = ~both.isin(NUMBERS[name])
        edges = edges_of(real[~real.isin(NUMBERS[name])].astype(int).to_numpy(), CELLS - len(NUMBERS[name]))
        cells = np.searchsorted(edges[1:-1], both[number].astype(int), side="left")
        both[number] = pd.Series(cells, index=both.index[number]).map("cell {}".format)
    return np.asarray(pd.factorize(both)[0], dtype=np.int64)


def edges_of(values: Whole, cells: int) -> Whole:
    """Return where values are cut: at percentiles that are values themselves, and at the largest."""
    percentiles = np.percentile(values, [100 * place / cells for place in range(cells)], method="higher")
    return np.unique([*percentiles, values.max()])


def pairs_alone(real: pd.DataFrame, seed: int) -> float:
    """Return the mean score of tables that know all pairs exactly and no interaction of three columns.

    For every two columns and PUMA, or without it: the counts nearest to even ones that have the margins of all pairs
    (iterative proportional fitting), and as many rows drawn from them.
    """
    rng, codes = np.random.default_rng(seed), {name: coded(name, real[name], real[name][:0]) for name in real}
    sizes = {name: int(code.max()) + 1 for name, code in codes.items()}
    within, distances = [name for name in codes if name == "PUMA"], []
    for pair in combinations([name for name in codes if name not in within], 2):
        names = [*within, *pair]
        cell = np.ravel_multi_index([codes[name] for name in names], [sizes[name] for name in names])
        counts = np.bincount(cell, minlength=int(np.prod([sizes[name] for name in names]))).astype(np.float64)
        counts = counts.reshape([sizes[name] for name in names])
        fitted = np.ones_like(counts) if within else counts.copy()
        for axis in list(range(counts.ndim)) * ROUNDS if within else []:
            margin, now = counts.sum(axis=axis, keepdims=True), fitted.sum(axis=axis, keepdims=True)
            fitted *= np.divide(margin, now, out=np.zeros_like(now), where=now > 0)
        drawn = rng.multinomial(len(real), fitted.ravel() / fitted.sum())
        distances.append(np.abs(drawn - counts.ravel()).sum() / 2 / len(real))
    return 1000 * (1 - float(np.mean(distances)))


def released(name: str, epsilon: float, workload: bool, seed: int, submitted: Path | None) -> tuple[float, float]:
    """Synthesize a feature set, and return its score and the seconds of the run; write what the archive takes."""
    columns = SETS[name].split()
    kept = [column for column in columns if column != "DENSITY"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        as_input(national()[kept]).to_parquet(folder / "national.parquet")
        (folder / "schema.yaml").write_text(yaml.safe_dump(schema_of(kept, workload), sort_keys=False))
        data, schema = str(folder / "national.parquet"), str(folder / "schema.yaml")
        outcome = synthesize(data, schema, "nacre", epsilon, seed, folder)
    made = as_text(outcome.table if outcome.table is not None else pd.DataFrame(columns=kept))
    if "DENSITY" in columns:
        made["DENSITY"] = made["PUMA"].map(national().groupby("PUMA")["DENSITY"].first())
    scored = score(as_text(national()[columns]), made[columns])
    if submitted:
        write_submission(submitted, made[columns], name, epsilon, workload, seed, scored)
    return scored, outcome.seconds


def write_submission(
    folder: Path, made: pd.DataFrame, name: str, epsilon: float, workload: bool, seed: int, scored: float
) -> None:
    """Write a release as NIST's walkthrough asks for it: a table of its own codes, and what its form asks about it."""
    folder.mkdir(parents=True, exist_ok=True)
    variant = "workload-by-puma" if workload else "default"
    path = folder / f"nacre-national2019-{name}-epsilon-{epsilon:g}-{variant}-{seed}"
    made.to_csv(path.with_name(f"{path.name}.csv"), index=False)
    facts = {
        "target dataset": "national2019",
        "feature subset": name,
        "features": list(made),
        "technique": "nacre",
        "library": "nacre",
        "library version": version("nacre"),
        "code": commit(),
        "privacy": "differential privacy, a record is added or removed",
        "epsilon": epsilon,
        "delta": DELTA,
        "parameters": "defaults" + (", tables by PUMA get three times less noise" if workload else ""),
        "tuning": "weights of a workload were chosen on this data, and nothing else"
        if workload
        else "none on this data",
        "not synthesized": "DENSITY, which is public and follows from PUMA" if "DENSITY" in made else "",
        "k-marginal score, re-implemented": round(scored, 1),
    }
    path.with_name(f"{path.name}.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument(
        "--submission", type=Path, metavar="DIR", help="write the releases as NIST's archive takes them"
    )


def table_of(args: Namespace) -> Table:
    """Score real rows, releases, and set published scores beside them."""
    table = Table(f"k-marginal scores, national 2019, delta={DELTA}", ["rows", *args.sets, "seconds a run"], digits=1)
    for share in SHARES:
        scores = [
            [score(real, real.sample(frac=share, random_state=seed)) for seed in args.seeds]
            for real in (as_text(national()[SETS[name].split()]) for name in args.sets)
        ]
        table.add(f"real rows, {100 * share:g} %", *scores, "–")
    exact = [[pairs_alone(as_text(national()[SETS[name].split()]), seed) for seed in args.seeds] for name in args.sets]
    table.add("exact pairs, no interaction of three columns", *exact, "–")
    for epsilon, workload in product(args.epsilons, (False, True)):
        sets = [name for name in args.sets if not workload or "PUMA" in SETS[name].split()]
        runs = {
            name: [released(name, epsilon, workload, seed, args.submission) for seed in args.seeds] for name in sets
        }
        seconds = [one[1] for each in runs.values() for one in each]
        cells = [[one[0] for one in runs[name]] if name in runs else "–" for name in args.sets]
        table.add(f"nacre, epsilon {epsilon:g}{', workload by PUMA' if workload else ''}", *cells, seconds)
        print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    for name, known in PUBLISHED.items():
        cells = dict(zip(SETS, known, strict=True))
        table.add(name, *("–" if cells[each] is None else str(cells[each]) for each in args.sets), "–")
    return table


def main() -> None:
    """Print the table."""
    args = parse(__doc__, options)
    if args.quick:
        args.seeds, args.epsilons = args.seeds[:1], [1.0]
    report("nist", [table_of(args)], args.seeds, args)


if __name__ == "__main__":
    main()
