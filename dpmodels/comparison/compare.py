"""Any synthetic tables side by side, judged by the same metrics against the same real rows."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpmodels.artifact import write_text
from dpmodels.comparison.classifiers import classifier_facts
from dpmodels.comparison.frame import ParquetBatches, Rows
from dpmodels.comparison.report import BANNER, Options, evaluate_table, load_real
from dpmodels.comparison.standing import DOWN, HALF, IDEALS, ONE, UP, mark_best, show, verdicts
from dpmodels.contract.schema import Schema
from dpmodels.pages.page import render_page
from dpmodels.privacy import Sensitive


@dataclass(frozen=True)
class Score:
    """One line of the comparison: what is better, where its figure is, and where that of real rows in their place."""

    name: str
    better: str
    metric: str
    path: str
    real: str = ""


Progress = Callable[[float, float, str], object]
"""Hears how much is done, of how much, and at which table the work is."""
SCORES = (
    Score("total variation, 1-way", DOWN, "marginals", "mean_total_variation_1_way", "mean_chance_1_way"),
    Score("total variation, 2-way", DOWN, "marginals", "mean_total_variation_2_way", "mean_chance_2_way"),
    Score("associations, mean difference", DOWN, "correlations", "mean_difference", "mean_difference_of_held_out_rows"),
    Score(
        "associations, largest difference",
        DOWN,
        "correlations",
        "largest_difference",
        "largest_difference_of_held_out_rows",
    ),
    Score("classifier two-sample AUROC", HALF, "two-sample test", "auroc"),
    Score("pMSE ratio", ONE, "pMSE", "ratio"),
    Score("TSTR AUROC, four classifiers", UP, "four classifiers", "tstr_auroc", "trtr_auroc"),
    Score("TSTR AUPRC, four classifiers", UP, "four classifiers", "tstr_auprc", "trtr_auprc"),
    Score("TSTR of the target, boosted trees", UP, "utility of the target", "tstr", "trtr"),
    Score("rare categories kept", UP, "rare categories", "coverage"),
    Score("real rows reached", UP, "coverage", "coverage", "coverage_by_fresh_real_rows"),
    Score("closer to training rows", HALF, "overfitting", "closer_to_training_rows"),
    Score(
        "copied rows",
        DOWN,
        "copied rows",
        "synthetic_rows_that_equal_a_real_row",
        "fresh_real_rows_that_equal_a_real_row",
    ),
    Score("membership AUROC, distance", HALF, "membership inference", "distance.auroc"),
    Score("membership AUROC, density", HALF, "membership inference", "relative_density.auroc"),
    Score("FID", DOWN, "distance of image features", "fid", "fid_of_real_images"),
    Score("KID", DOWN, "distance of image features", "kid", "kid_of_real_images"),
    Score("TSTR accuracy of a CNN", UP, "CNN accuracy", "tstr_accuracy", "trtr_accuracy"),
)


def compare_tables(
    tables: Mapping[str, Path],
    real: Path,
    test: Path | None,
    schema: Schema,
    options: Options,
    run: Callable[..., Iterable[Any]] = map,
    called: Mapping[Path, str] = MappingProxyType({}),
    progress: Progress = lambda *_: None,
) -> Sensitive[dict[str, Any]]:
    """Judge Parquet files, or folders of them, against the real rows, on as many threads as ``run``, a map, has.

    ``called`` is what messages call a table, by its path; ``progress`` hears after each metric how many are done.

    Privacy: exact statistics of the real data, so the result stays Sensitive.

    Raises:
        DataError: a table is missing, damaged, or lacks a column of the schema.
    """

    def rows_of(path: Path, run: Callable[..., Iterable[Any]] = map) -> Rows:
        name = called.get(path, "")
        return Rows(schema, ParquetBatches(path, schema, name=name), run, name)

    train = Sensitive(rows_of(real, run))
    held_out = None if test is None else Sensitive(rows_of(test))
    side = load_real(train, held_out, schema, options)
    more = {"four classifiers": classifier_facts}
    reports = {
        name: evaluate_table(side, rows_of(path, run), options, more, part_of(progress, tables, name)).reveal()
        for name, path in tables.items()
    }
    return Sensitive(comparison_of(schema.name, score_lines(reports), reports))


def part_of(progress: Progress, tables: Iterable[str], name: str) -> Callable[[float], object]:
    """Return what hears how large a share of one table's work is done, and tells how many of all tables are."""
    names = list(tables)
    return lambda share: progress(names.index(name) + share, len(names), name)


def comparison_of(
    data_set: str, scores: Sequence[Mapping[str, Any]], reports: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Put a comparison together: scores with the best table of each, a sentence on each table, and what was found.

    Privacy: exact statistics of the real data, so whoever calls keeps them Sensitive.
    """
    lines = mark_best(scores)
    return {
        "banner": BANNER,
        "data_set": data_set,
        "scores": lines,
        "verdicts": verdicts(lines, reports),
        "tables": reports,
    }


def score_lines(reports: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one line a score that at least one table has: each table's figure, and what real rows give."""
    lines = []
    for score in SCORES:
        figures = {name: _figure(report, score) for name, report in reports.items()}
        if any(figure is not None for figure in figures.values()):
            first = next(iter(reports.values()))["metrics"][score.metric]
            real = first["result"].get(score.real) if first["status"] == "done" else None
            real = IDEALS.get(score.better) if real is None else real
            lines.append({"score": score.name, "better": score.better, "real": real, "tables": figures})
    return lines


def _figure(report: Mapping[str, Any], score: Score) -> float | None:
    outcome = report["metrics"].get(score.metric, {"status": "absent"})
    if outcome["status"] != "done":
        return None
    value = outcome["result"]
    for key in score.path.split("."):
        value = value[key]
    return None if value is None else float(value)


def write_comparison(comparison: Sensitive[dict[str, Any]], folder: Path) -> Path:
    """Write figures and page into ``folder``, which must lie in the sensitive zone; return the figures' file."""
    facts, target = comparison.reveal(), folder / "comparison.json"
    write_text(target, json.dumps(facts, indent=1))
    write_text(target.with_suffix(".html"), render_comparison(facts))
    return target


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Name each table by the part of its path that tells it from the others."""
    for part in (lambda path: path.stem, lambda path: path.resolve().parent.name, str):
        names = [part(path) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{index} {path}" for index, path in enumerate(paths, start=1)]


def render_comparison(facts: Mapping[str, Any]) -> str:
    """Lay the comparison out as one self-contained HTML page."""
    names = list(facts["tables"])
    lines = [
        (line["score"], line["better"], show(line["real"]), *(_marked(line, name) for name in names))
        for line in facts["scores"]
    ]
    checks = [check["name"] for check in next(iter(facts["tables"].values()))["checks"]]
    verdicts = {
        check: [next(one for one in facts["tables"][name]["checks"] if one["name"] == check) for name in names]
        for check in checks
    }
    return render_page("compare.html", report=facts, names=names, lines=lines, verdicts=verdicts)


def _marked(line: Mapping[str, Any], name: str) -> str:
    """Write a table's figure, and whether it is the best of its line."""
    return show(line["tables"][name]) + (" (best)" if name in line["best"] else "")
