"""The internal comparison with the real table: exact, therefore sensitive, therefore kept where the data is.

Marginals are counted over all rows; what trains models or searches neighbors sees samples, whose sizes are stated.
Metrics run side by side on a bounded number of threads; one that fails is shown as failed and costs no other.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from dpmodels.artifact import write_text
from dpmodels.codec.encode import Records
from dpmodels.comparison.beside import column_shares, sample_rows
from dpmodels.comparison.case import Case, Real, Skip
from dpmodels.comparison.correlation import correlation_facts
from dpmodels.comparison.frame import ParquetBatches, Rows
from dpmodels.comparison.giveaway import giveaway_facts
from dpmodels.comparison.groups import group_facts
from dpmodels.comparison.marginals import Grid, GridTally, compare_categories, compare_marginals
from dpmodels.comparison.membership import membership_facts
from dpmodels.comparison.neighbours import copy_facts, coverage_facts, overfitting_facts, refuse_training_rows
from dpmodels.comparison.release_attack import evaluate_release
from dpmodels.comparison.two_sample import pmse_facts, two_sample_facts
from dpmodels.comparison.utility import column_facts, target_facts
from dpmodels.comparison.verdicts import run_checks
from dpmodels.contract.schema import Schema
from dpmodels.frozen import Frozen
from dpmodels.pages.internal import render_edges, render_internal
from dpmodels.privacy import Sensitive
from dpmodels.releases.release import Release

BANNER = (
    "SENSITIVE: exact statistics of the real data. Keep inside the sensitive zone; never hand over. To choose among "
    "runs, seeds or settings by it is a release that nobody charged."
)
SAMPLE = 200_000
"""Rows of each table that are held in memory."""
MOST_COLUMNS = 100
"""Columns that are predicted from the others one by one; of a wider table the first."""

Metric = Callable[[Case], dict[str, Any]]
Share = Callable[[float], object]
"""Hears how large a share of the work is done."""
QUICK = (
    "marginals",
    "columns",
    "sample rows",
    "correlations",
    "rare categories",
    "given away",
    "utility of the target",
)


class Options(Frozen):
    """How to evaluate; nothing here changes what is compared.

    Attributes:
        workers: threads that metrics run on; ``begin_thread`` is the first that each of them does.
        only: names of the metrics to run; all of them if empty.
        lenet: LeNet-5 weights for the features of 28 x 28 images.
        real_rows: whether a few real rows are shown as they are.
    """

    seed: int = 0
    workers: int = 2
    begin_thread: Callable[[], None] | None = None
    only: tuple[str, ...] = ()
    lenet: Path | None = None
    real_rows: bool = False


def unwatched(share: float) -> None:
    """Hear how far the work is where nobody waits for it."""


def evaluate_run(
    real: Sensitive[Iterable[Records]],
    held_out: Sensitive[ParquetBatches] | None,
    synthetic: ParquetBatches,
    release: Release,
    options: Options,
    run: Callable[..., Iterable[Any]] = map,
) -> Sensitive[dict[str, Any]]:
    """Compare a run's synthetic table with the rows it was made from; all three tables can be read again and again.

    ``run`` maps a function over the batches of a table, on however many threads.

    Privacy: exact statistics of the real data, so the result stays Sensitive.
    """
    schema = release.line.table
    held_out_rows = None if held_out is None else Sensitive(Rows(schema, held_out.reveal()))
    side = load_real(Sensitive(Rows(schema, real.reveal(), run)), held_out_rows, schema, options)

    def attack(case: Case) -> dict[str, Any]:
        if release.line.contract.users:
            raise Skip("the rows of a user are released together, and the attack is on single rows")
        return evaluate_release(real, held_out, release, options.seed).reveal()

    return evaluate_table(side, Rows(schema, synthetic, run), options, {"attack on the release": attack})


def load_real(
    rows: Sensitive[Rows], held_out: Sensitive[Rows] | None, schema: Schema, options: Options
) -> Sensitive[Real]:
    """Sample and count the real side.

    Raises:
        DataError: the held-out rows are rows that the tables were made from.
    """
    train = rows.reveal().sample(SAMPLE, options.seed)
    held_out_sample = None if held_out is None else held_out.reveal().sample(SAMPLE, options.seed)
    if held_out_sample is not None:
        refuse_training_rows(train, held_out_sample)
    grid = Grid(schema, train)
    tally = GridTally.of(grid, rows.reveal())
    return Sensitive(Real(schema, train, held_out_sample, grid, tally, options.seed))


def evaluate_table(
    real: Sensitive[Real],
    synthetic: Rows,
    options: Options,
    more: Mapping[str, Metric] | None = None,
    progress: Share = unwatched,
) -> Sensitive[dict[str, Any]]:
    """Run every metric on one synthetic table, and ``more`` that need something else besides.

    ``progress`` hears after each metric how large a share of them is done.

    Privacy: exact statistics of the real data, so the result stays Sensitive.
    """
    side = real.reveal()
    sample = synthetic.sample(SAMPLE, options.seed)
    tally = GridTally.of(side.grid, synthetic)
    case = Case(side, sample, tally)
    selected = {**(more or {}), **metrics(side.schema, options)}
    jobs = {
        name: partial(metric, case) for name, metric in selected.items() if not options.only or name in options.only
    }
    if not options.only:  # threads that import parts of it at the same time may each see a half of it
        import sklearn.ensemble
        import sklearn.inspection
        import sklearn.pipeline  # noqa: F401
    with ThreadPoolExecutor(options.workers, initializer=options.begin_thread) as pool:
        running = {name: pool.submit(_attempt, job) for name, job in jobs.items()}
        for done, _ in enumerate(as_completed(running.values()), 1):
            progress(done / len(running))
        results = {name: future.result() for name, future in running.items()}
    return Sensitive(
        {
            "banner": BANNER,
            "data_set": side.schema.name,
            "target": side.schema.target,
            "rows": {
                "real": side.tally.rows,
                "held_out": None if side.held_out is None else len(side.held_out),
                "synthetic": tally.rows,
                "most_sampled": SAMPLE,
            },
            "metrics": results,
            "checks": run_checks(results),
        }
    )


def metrics(schema: Schema, options: Options) -> dict[str, Metric]:
    """Name the metrics that a table of this schema has."""
    metrics_by_name: dict[str, Metric] = {
        "utility of the target": target_facts,
        "two-sample test": two_sample_facts,
        "pMSE": pmse_facts,
        "membership inference": membership_facts,
        "overfitting": overfitting_facts,
        "coverage": coverage_facts,
        "copied rows": copy_facts,
        "correlations": correlation_facts,
        "columns": column_shares,
        "sample rows": partial(sample_rows, real=options.real_rows),
        "given away": giveaway_facts,
        "marginals": lambda case: compare_marginals(case.real.grid, case.real.tally, case.tally),
        "rare categories": lambda case: compare_categories(case.real.grid, case.real.tally, case.tally),
    }
    if schema.image:
        from dpmodels.comparison.images import cnn_facts, feature_facts, nearest_facts

        metrics_by_name |= {"CNN accuracy": cnn_facts, "nearest real images": nearest_facts}
        metrics_by_name["distance of image features"] = partial(feature_facts, lenet=options.lenet)
        del metrics_by_name["two-sample test"], metrics_by_name["pMSE"]
    else:
        metrics_by_name["utility by group"] = group_facts
        columns = [name for name in schema.modelled if name != schema.target][:MOST_COLUMNS]
        metrics_by_name |= {f"utility of column {name}": partial(column_facts, name=name) for name in columns}
    return metrics_by_name


def _attempt(job: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run one metric; what goes wrong is its result, without the error's text, which says what a library thinks."""
    began = time.perf_counter()
    try:
        outcome: dict[str, Any] = {"status": "done", "result": job()}
    except Skip as reason:
        outcome = {"status": "skipped", "reason": str(reason)}
    except Exception as error:
        outcome = {"status": "failed", "reason": f"it cannot be reckoned of these rows ({type(error).__name__})"}
    return {**outcome, "seconds": round(time.perf_counter() - began, 2)}


def write_report(report: Sensitive[dict[str, Any]], folder: Path) -> Path:
    """Write the report as JSON and as one self-contained page into ``folder``, which must lie in the sensitive zone.

    Of several tables each has a page of its own beside the one of them all.
    """
    facts = report.reveal()
    target = folder / "internal-report.json"
    write_text(target, json.dumps(facts, indent=1))
    for name, table in facts.get("tables", {}).items():
        write_text(target.with_name(f"internal-report-{name}.html"), render_internal(table))
    write_text(target.with_suffix(".html"), render_edges(facts) if "edges" in facts else render_internal(facts))
    return target
