"""Trees of tables beside the real ones: every flat table by the metrics of a table, and numbers of children by edge.

The rows of a flat table are compared as they are, whatever a unit has of them: none is weighed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.codec.encode import Records
from dpmodels.codec.tree import TreeRecords
from dpmodels.comparison.compare import Progress, comparison_of, part_of, score_lines
from dpmodels.comparison.frame import Rows
from dpmodels.comparison.report import BANNER, Options, Share, evaluate_table, load_real, unwatched
from dpmodels.comparison.standing import DOWN
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.privacy import Sensitive

Units = Iterable[TreeRecords]
"""Units in batches that can be read again and again."""
ROWLESS = "one of the two tables has no rows"


@dataclass(frozen=True)
class FlatRows:
    """The rows of the flat table of one table, batch by batch."""

    units: Units
    table: str

    def __iter__(self) -> Iterator[Records]:
        for records in self.units:
            yield records.flat(self.table)


def evaluate_tree(
    tree: Tree,
    real: Sensitive[Units],
    synthetic: Units,
    options: Options,
    run: Callable[..., Iterable[Any]] = map,
    held_out: Sensitive[Units] | None = None,
    progress: Share = unwatched,
) -> Sensitive[dict[str, Any]]:
    """Compare the units of a tree with real ones, table by table.

    ``held_out`` are units that the synthetic ones were not made from; ``progress`` hears how large a share is done.

    Privacy: exact statistics of the real data, so the result stays Sensitive.

    Raises:
        DataError: the held-out units are units that the synthetic ones were made from.
    """
    real_counts, counts = _children(tree, real.reveal()), _children(tree, synthetic)
    tables, metrics, checks = dict[str, Any](), dict[str, Any](), list[Any]()
    for place, name in enumerate(tree.measured):
        if not real_counts.rows[name] or not counts.rows[name]:
            metrics[name] = {"status": "skipped", "reason": ROWLESS}
            continue
        schema = tree.flat_of(name)
        fresh = None if held_out is None else _rows_of(held_out, name, schema, run)
        side, rows = load_real(_rows_of(real, name, schema, run), fresh, schema, options), FlatRows(synthetic, name)
        part = partial(_progress_of_part, progress, place, len(tree.measured))
        tables[name] = evaluate_table(side, Rows(schema, rows, run), options, progress=part).reveal()
        metrics |= {f"{name}: {key}": one for key, one in tables[name]["metrics"].items() if one["status"] != "done"}
        checks += [{**one, "name": f"{name}: {one['name']}"} for one in tables[name]["checks"]]
    units = None if held_out is None else sum(map(len, held_out.reveal()))
    numbers = {"real": real_counts.rows[tree.root], "held_out": units, "synthetic": counts.rows[tree.root]}
    return Sensitive(
        {
            "banner": BANNER,
            "data_set": tree.name,
            "target": tree.target,
            "rows": numbers,
            "edges": [_edge(tree, name, real_counts, counts) for name in real_counts.shares],
            "tables": tables,
            "metrics": metrics,
            "checks": checks,
        }
    )


def _progress_of_part(progress: Share, place: int, parts: int, share: float) -> None:
    progress((place + share) / parts)


def _rows_of(units: Sensitive[Units], name: str, schema: Schema, run: Callable[..., Iterable[Any]]) -> Sensitive[Rows]:
    """Return the rows of the flat table of one table."""
    return Sensitive(Rows(schema, FlatRows(units.reveal(), name), run))


def compare_trees(
    tree: Tree,
    real: Sensitive[Units],
    synthetic: Mapping[str, Sensitive[Units]],
    options: Options,
    run: Callable[..., Iterable[Any]],
    held_out: Sensitive[Units] | None = None,
    progress: Progress = lambda *_: None,
) -> Sensitive[dict[str, Any]]:
    """Judge several trees of tables against the same real ones.

    Privacy: exact statistics of the real data, so the result stays Sensitive.
    """
    reports = {
        name: evaluate_tree(
            tree, real, units.reveal(), options, run, held_out, part_of(progress, synthetic, name)
        ).reveal()
        for name, units in synthetic.items()
    }
    return Sensitive(comparison_of(tree.name, _scores(tree, reports), reports))


def _scores(tree: Tree, reports: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for every edge and, table by table, one for every score that all trees have."""
    lines, first = [], next(iter(reports.values()))
    for place, edge in enumerate(first["edges"]):
        figures = {name: report["edges"][place]["total_variation"] for name, report in reports.items()}
        lines.append(
            {"score": f"{edge['table']} per {edge['parent']}", "better": DOWN, "real": None, "tables": figures}
        )
    for table in tree.measured:
        if all(table in report["tables"] for report in reports.values()):
            scores = score_lines({name: report["tables"][table] for name, report in reports.items()})
            lines += [{**line, "score": f"{table}: {line['score']}"} for line in scores]
    return lines


@dataclass(frozen=True)
class Children:
    """How many rows each table has, and by edge the shares of parents with 0, 1, 2, ... rows. Shapes: [most + 1]."""

    rows: dict[str, int]
    shares: dict[str, Floats]


def _children(tree: Tree, units: Units) -> Children:
    rows = dict.fromkeys(tree.tables, 0)
    edges = {name: branch for name, branch in tree.tables.items() if branch.parent is not None}
    totals = {name: np.zeros(branch.most + 1, dtype=np.int64) for name, branch in edges.items()}
    for records in units:
        for name in tree.tables:
            rows[name] += records.rows(name)
        for name, total in totals.items():
            total += np.bincount(records.counts(name), minlength=len(total))
    return Children(rows, {name: total / max(int(total.sum()), 1) for name, total in totals.items()})


def _edge(tree: Tree, name: str, real: Children, synthetic: Children) -> dict[str, Any]:
    """Compare the numbers of rows that a parent has in a table."""
    both = real.shares[name], synthetic.shares[name]
    means = [round(float(shares @ np.arange(len(shares))), 6) for shares in both]
    return {
        "table": name,
        "parent": tree.tables[name].parent,
        "total_variation": round(float(np.abs(both[0] - both[1]).sum() / 2), 6),
        **{f"mean_{word}": mean for word, mean in zip(("real", "synthetic"), means, strict=True)},
        **{word: shares.round(6).tolist() for word, shares in zip(("real", "synthetic"), both, strict=True)},
    }
