"""Evaluate: the exact comparison with the real rows, whose results never leave the sensitive zone."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpmodels.codec.flat import tables_of
from dpmodels.comparison.compare import compare_tables, distinct_names, write_comparison
from dpmodels.comparison.frame import ParquetBatches, of_table
from dpmodels.comparison.report import QUICK, Options, evaluate_run, write_report
from dpmodels.comparison.trees import compare_trees, evaluate_tree
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written import forms_of, with_forms
from dpmodels.contract.tree import Tree
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.gate.made_files import SyntheticRows
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.privacy import Sensitive
from dpmodels.reading.public import load_public_files
from dpmodels.releases.contract import tree_of
from dpmodels.releases.release import read_release
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Threads, cores
from tasks.engine.pools import limit_pools
from tasks.engine.progress import progress_bar
from tasks.kinds.protocol import kind_of_line
from tasks.kinds.trees import transform_tables
from tasks.run.folders import make_private
from tasks.run.receive import receive
from tasks.run.store import MADE, Handle, Run
from tasks.run.table_inputs import as_parquet
from tasks.stages.stage import stage


@stage("evaluate", sensitive=True)
def evaluate(
    run: Run, ingested: Handle, synthetic: Handle, test: str | None = None, options: Options | None = None
) -> Handle:
    """Write the internal report, by default only with metrics that take seconds.

    ``test`` holds rows of the same population that the run was not given; without them nothing can be said about
    memorization or membership.
    """
    if not kind_of_line(run.plan.release).COMPARED:
        raise Unsuitable(f"run {run.name} is not about a table, and nothing else is compared with the real data here")
    if run.plan.release.contract.kind == "tree":
        return Handle(path=_evaluate_tree(run, ingested, test, options))
    if test is not None and tables_of(run.plan.release.contract):
        raise Unsuitable("rows of other users cannot be compared with: leave --test out for users and their rows")
    schema, settings = run.plan.release.table, run.settings
    real = Sensitive(EncodedTable(ingested.path, schema))
    release = read_release(run.read("sanitize")).value
    options = _on_limited_threads(options or Options(seed=settings.seed, only=QUICK))
    threads = Threads(settings.threads or cores())
    with (
        progress_bar("evaluate"),
        receive(run).here() as folder,
        as_parquet(test or folder, with_forms(schema, settings.text_forms) if test else schema, run.sensitive) as rows,
    ):
        test_rows = None if test is None else Sensitive(ParquetBatches(rows, schema, settings.batch_rows))
        synthetic_rows = ParquetBatches(folder, schema, settings.batch_rows)
        report = evaluate_run(real, test_rows, synthetic_rows, release, options, threads.map)
        return Handle(path=write_report(report, run.sensitive))


def _evaluate_tree(run: Run, ingested: Handle, test: str | None, options: Options | None) -> Path:
    """Write the internal report on a tree of tables."""
    tree, settings = tree_of(run.plan.release.contract), run.settings
    real = Sensitive(EncodedTable(ingested.path, tree))
    options = _on_limited_threads(options or Options(seed=settings.seed, only=QUICK))
    with (
        progress_bar("evaluate"),
        receive(run).here() as folder,
        TemporaryDirectory(dir=run.sensitive) as scratch,
    ):
        synthetic = SyntheticRows(folder, tree, settings.batch_rows)
        fresh = test and transform_tables(with_forms(tree, settings.text_forms), test, Path(scratch) / "held-out")
        report = evaluate_tree(tree, real, synthetic, options, Threads(settings.threads or cores()).map, fresh or None)
        return write_report(report, run.sensitive)


@dataclass(frozen=True)
class Place:
    """A private folder for comparisons that belong to no run."""

    sensitive: Path


@stage("compare", sensitive=True)
def compare(
    place: Place,
    tables: Sequence[str],
    real: str,
    test: str | None,
    schema: Schema | Tree,
    options: Options,
    names: Sequence[str] = (),
) -> Path:
    """Judge any synthetic tables against the same real rows; write figures and page into the private folder.

    ``names`` of the tables are by default what tells their paths apart.
    """
    if schema.users:
        raise Unsuitable("users and their rows are two tables, and tables are compared one by one")
    make_private(place.sensitive)
    names = names or distinct_names([Path(table) for table in tables])
    given, tables = tables, [_rows_in(table) for table in tables]
    if schema.kind == "tree":
        return write_comparison(_compare_trees(place, names, given, real, test, schema, options), place.sensitive)
    with ExitStack() as stack:
        lend = stack.enter_context
        tick = lend(progress_bar("compare"))
        all_names = _all_called(place, given, real, test)
        paths = []
        for at, (data, name) in enumerate(zip((*tables, real, *filter(None, [test])), all_names, strict=True)):
            with of_table(name):
                forms = {} if at < len(tables) else forms_of(schema)  # what is synthetic is written in the usual form
                paths.append(lend(as_parquet(data, with_forms(schema, forms), place.sensitive)))
        parts, (real_rows, *rest) = paths[: len(tables)], paths[len(tables) :]
        by_name, map_ = dict(zip(names, parts, strict=True)), Threads(options.workers).map
        called, test_rows = dict(zip(paths, all_names, strict=True)), rest[0] if rest else None
        options = _on_limited_threads(options)
        comparison = compare_tables(by_name, real_rows, test_rows, schema, options, map_, called, tick)
    return write_comparison(comparison, place.sensitive)


def _all_called(place: Place, tables: Sequence[str], real: str, test: str | None) -> list[str]:
    """Return what messages call the tables, the real rows, and those that were held out if there are any."""
    called = [_called(place, data, f"table {at}") for at, data in enumerate(tables, 1)]
    called.append(_called(place, real, "the real rows"))
    return [*called, _called(place, test, "the test rows")] if test else called


def _called(place: Place, data: str, otherwise: str) -> str:
    """Return what a message calls a table: as it was named or, of rows that were given in memory, which one it is."""
    return otherwise if Path(data).is_relative_to(place.sensitive) else data


def _rows_in(table: str) -> str:
    """Return where the rows of a hand-off lie; any other place is that of its rows itself."""
    return str(Path(table, MADE["sample"])) if Path(table, MANIFEST).is_file() else table


def _compare_trees(
    place: Place, names: Sequence[str], data: Sequence[str], real: str, test: str | None, tree: Tree, options: Options
) -> Sensitive[dict[str, Any]]:
    """Encode all trees of tables, and compare them."""
    tree = load_public_files(tree, real)
    with progress_bar("compare") as tick, TemporaryDirectory(dir=place.sensitive) as folder:
        all_units: list[Any] = []
        for each, name in zip((*data, real, *filter(None, [test])), _all_called(place, data, real, test), strict=True):
            with of_table(name):
                written = with_forms(tree, {} if len(all_units) < len(data) else forms_of(tree))
                all_units.append(transform_tables(written, _rows_in(each), Path(folder) / str(len(all_units))))
        encoded, (real_units, *fresh) = all_units[: len(data)], all_units[len(data) :]
        units, map_ = dict(zip(names, encoded, strict=True)), Threads(options.workers).map
        held_out = fresh[0] if fresh else None
        return compare_trees(tree, real_units, units, _on_limited_threads(options), map_, held_out, tick)


def evaluate_again(run: Run, test: str | None, lenet: Path | None, jobs: int | None, real_rows: bool = False) -> Path:
    """Evaluate a finished run with every metric, and show a few real rows if asked.

    Raises:
        ArtifactError: the run has no synthetic table, or its sensitive zone is gone.
    """
    synthetic, encoded = run.finished("sample"), run.sensitive / "encoded"
    if synthetic is None:
        raise ArtifactError(f"run {run.name} has no synthetic table yet; resume it first")
    if not encoded.exists():
        raise ArtifactError(f"run {run.name} has lost its sensitive zone, and with it the real rows to compare with")
    workers = jobs or min(8, cores())
    options = Options(seed=run.settings.seed, workers=workers, lenet=lenet, real_rows=real_rows)
    return evaluate(run, Handle(path=encoded), synthetic, test, options).path


def _on_limited_threads(options: Options) -> Options:
    return options.model_copy(update={"begin_thread": limit_pools})
