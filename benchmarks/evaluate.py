"""What exact comparisons cost (Adult's internal report, ``nacre compare`` on ten million rows) and what attacks find.

``--cases attack`` releases Adult's official training rows and attacks the released vector itself, by an adversary who
knows every other real row; the test rows are the candidates that were held out. ``--cases scores`` shows what the
charged section of a report says at several budgets, beside the same scores without noise.

The large tables are Adult's rows drawn with replacement, ages and weights moved a little: their content means nothing,
their size does. They are kept under build/evaluate; delete it to make them again.
"""

import resource
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.adult import DELTA, EPSILON, SCHEMAS, synthesize
from benchmarks.common import ROOT, Table, data_dir, measure, parse, report
from dpmodels.accounting.events import leaves
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.comparison.frame import ParquetBatches
from dpmodels.comparison.release_attack import evaluate_release
from dpmodels.embeddings.summation import transform_sum
from dpmodels.ledger.ledger import Ledger
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.release import Release, read_release
from dpmodels.report.charged import Scores
from dpmodels.report.charged_facts import charged_facts
from tasks.run.accounts import charge_of
from tasks.run.store import Run

KEPT = ROOT / "build" / "evaluate"
PART = 500_000


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large tables")
    parser.add_argument("--jobs", type=int, default=2, help="threads that metrics run on")
    parser.add_argument(
        "--cases", nargs="+", default=["adult", "large"], choices=["adult", "large", "attack", "scores"]
    )
    parser.add_argument("--report-epsilons", nargs="+", type=float, default=[0.1, 0.5], help="of the charged section")
    parser.add_argument("--methods", nargs="+", default=["nacre", "moments", "pearl"], help="methods that are attacked")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the attacks")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 10.0], help="budgets that are attacked")


def large(rows: int, seed: int) -> Path:
    """Return a table of so many rows, which is made at its first use."""
    target = KEPT / f"{rows}-{seed}.parquet"
    if target.exists():
        return target
    KEPT.mkdir(parents=True, exist_ok=True)
    rng, source = np.random.default_rng(seed), pq.read_table(data_dir() / "adult_train.parquet")
    part = target.with_suffix(".part")
    with pq.ParquetWriter(part, source.schema, compression="zstd") as writer:
        for start in range(0, rows, PART):
            drawn = source.take(pa.array(rng.integers(0, len(source), min(PART, rows - start))))
            for name, least, most, step in (("age", 17, 90, 2), ("fnlwgt", 10_000, 1_500_000, 5_000)):
                moved = drawn[name].to_numpy() + rng.integers(-step, step + 1, len(drawn))
                index = drawn.schema.get_field_index(name)
                cast = pa.array(np.clip(moved, least, most), type=drawn.schema.field(name).type)
                drawn = drawn.set_column(index, drawn.schema.field(name), cast)
            writer.write_table(drawn)
    part.rename(target)
    return target


def add(table: Table, name: str, words: Sequence[object]) -> None:
    """Measure one command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = measure([sys.executable, "-m", "nacre", *map(str, words)], cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.code:
        raise SystemExit(f"{name} failed:\n{ran.output}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    table.add(name, ran.seconds, cpu, ran.peak_mib)


def attack(method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Release Adult once and attack the release."""
    schema = load_schema(SCHEMAS / "adult.yaml")
    system, codec = create(method, {}, {}), Codec(schema)
    plan = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
    real = Sensitive([codec.encode(pq.read_table(data_dir() / "adult_train.parquet").combine_chunks())])
    with tempfile.TemporaryDirectory() as folder:
        ledger, run = Ledger(Path(folder) / "ledger.sqlite"), Run(home=Path(folder), name="attacked")
        ledger.open_account("adult", dataset=schema.name, budget_cap=plan.budget)
        places = run.sensitive / "release.parquet", run.released / "release.parquet"
        path = system.measure(real, plan, Desk(ledger, charge_of(run.name, plan, "adult"), *places)).value
        release = read_release(path).value
    held = Sensitive(ParquetBatches(data_dir() / "adult_test.parquet", schema, 65_536))
    return evaluate_release(real, held, release, seed).reveal()


def attacks(args: Namespace, seeds: Sequence[int]) -> Table:
    """Attack releases of every method and budget."""
    header = ["method", "charged epsilon", "candidates", "AUROC", "95 % interval", "best on one record"]
    table = Table("Attack on the released vector, Adult: lower bounds", [*header, "epsilon shown (95 % confidence)"])
    for method in args.methods:
        for epsilon in args.epsilons:
            found = [attack(method, epsilon, seed) for seed in seeds]
            low, high = ([facts["auroc_interval"][end] for facts in found] for end in (0, 1))
            table.add(
                method,
                f"{epsilon:g}",
                2 * found[0]["candidates_of_each"],
                [facts["auroc"] for facts in found],
                f"{fmean(low):.3f} to {fmean(high):.3f}",
                found[0]["auroc_of_the_best_attack_on_one_record"],
                [facts["epsilon_lower_bound"] for facts in found],
            )
    return table


def scores(args: Namespace) -> Table:
    """Synthesise Adult once, and score it on the training rows at every budget and without noise."""
    schema, words = load_schema(SCHEMAS / "adult.yaml"), [f"epsilon {one:g}" for one in args.report_epsilons]
    with tempfile.TemporaryDirectory() as folder:
        synthesize("adult_train.parquet", "adult.yaml", "nacre", EPSILON, 0, Path(folder))
        made = pq.read_table(Path(folder) / "out" / "synthetic")
    codec = Codec(schema)
    system = Scores(synthetic=[codec.encode(made.combine_chunks())])
    plans = [system.plan(schema, PrivacyBudget(epsilon=one, delta=DELTA)) for one in args.report_epsilons]
    programme = system.steps(plans[0])
    kept = next(programme).integers()
    counted = programme.send(kept)
    real = Sensitive([codec.encode(pq.read_table(data_dir() / "adult_train.parquet").combine_chunks())])
    total = transform_sum(counted.embedding, real)
    exact = Release(line=plans[0], vector=total.reveal(), entry="", chosen=kept)
    columns = [_said(charged_facts(exact), noisy=False)]
    for plan in plans:
        z = next(leaves([plan.event])).noise_multiplier
        noisy = measure_gaussian(total, l2_sensitivity=counted.l2_sensitivity, noise_multiplier=z)
        columns.append(_said(charged_facts(exact.model_copy(update={"line": plan, "vector": noisy.value})), noisy=True))
    table = Table("Charged scores, Adult: 95 % intervals of the noise", ["score", "without noise", *words])
    for score in columns[0]:
        table.add(score, *(column[score] for column in columns))
    return table


def _said(facts: dict[str, Any], noisy: bool) -> dict[str, str]:
    """Write every score of a charged section down."""
    found = {
        f"{score['score']}, {one['model']}": (score["value"], score["low"], score["high"])
        for one in facts["classifiers"]
        for score in one["scores"]
    }
    for name, part in (("columns", "columns"), ("columns with the target", "columns_with_target")):
        rows = [[column[key] for key in ("measured", "low", "high")] for column in facts[part]]
        found[f"total variation of {name}, mean"] = tuple(fmean(column) for column in zip(*rows, strict=True))
    said = {}
    for name, (value, low, high) in found.items():
        said[name] = f"{value:.4f} ({low:.4f} to {high:.4f})" if noisy else f"{value:.4f}"
    return said


def main() -> None:
    args = parse(__doc__, options)
    seeds = (0,) if args.quick else args.seeds
    rows = 200_000 if args.quick else args.rows
    title = f"Exact comparisons, {args.jobs} thread(s)"
    table = Table(title, ["command", "seconds", "CPU seconds", "peak MiB"], digits=1)
    test, schema = data_dir() / "adult_test.parquet", SCHEMAS / "adult.yaml"
    if "adult" in args.cases:
        with tempfile.TemporaryDirectory() as folder:
            synthesize("adult_train.parquet", "adult.yaml", "nacre", EPSILON, 0, Path(folder))
            home = Path(folder) / "home"
            run = next((home / "released").iterdir()).name
            words = ["report", run, "--internal", "--test", test, "--home", home, "--jobs", args.jobs]
            add(table, "nacre report --internal, Adult (32,561 rows, 16,281 held out)", words)
    if "large" in args.cases:
        real, made = (large(rows, seed) for seed in (0, 1))
        with tempfile.TemporaryDirectory() as folder:
            words = ["compare", made, "--real", real, "--test", large(rows // 50, 2), "--schema", schema]
            words += ["--out", Path(folder) / "out", "--jobs", args.jobs]
            add(table, f"nacre compare, {rows:,} rows beside {rows:,} real ones, {rows // 50:,} held out", words)
    tables = [table] if table.rows else []
    if "attack" in args.cases:
        tables.append(attacks(args, seeds))
    if "scores" in args.cases:
        tables.append(scores(args))
    report("evaluate", tables, seeds if "attack" in args.cases else [0], args)


if __name__ == "__main__":
    main()
