"""How often the target has a class among the rows of each group of another column, as released and in synthetic rows.

A rare class is little of all rows, so what is a small error of a table is a large one of a rate, which has its own.

    R = c / N            c the released records of the class in a group, N of all classes
    sigma_R^2            (v_c v_o / (v_c + v_o) + t (v_c / (v_c + v_o) - R)^2) / N^2

with v_c and v_o the variances of the noise of c and of N - c, as they are compared with each other, and t that of N. Of
independent noise t is v_c + v_o, and this is ((1 - R)^2 v_c + R^2 v_o) / N^2.

Where a rule of the schema leaves a group no row of the class, or none of another, its rate is 0 or 1 without noise.
The counts are the most likely ones (likely.py), so the rates by every column make up one rate of all rows.

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Codec
from dpmodels.contract.columns import Boolean, Continuous, Discrete, Modelled, helpers
from dpmodels.embeddings.moments import Moments
from dpmodels.methods.parts.marginals import Marginals, NoisyTable
from dpmodels.releases.steps import NoisySum
from dpmodels.report.bins import group_labels
from dpmodels.report.counts.noisy_tables import Counted
from dpmodels.report.pairs import MOST_COLUMNS, class_counts, grouped, moments_of, states_of, zero_of
from dpmodels.report.within import DIGITS, MOST_CLASSES, MOST_RATES, OF_A_CLASS, rate_within

YES = {
    **dict.fromkeys(("yes", "y"), ("no", "n")), **dict.fromkeys(("true", "t", "1"), ("false", "f", "0")),
    **dict.fromkeys(("ja", "j"), ("nein", "nee", "nej", "n")), **dict.fromkeys(("oui", "o"), ("non", "n")),
    **dict.fromkeys(("si", "sí"), ("no", "n")),
}  # fmt: skip
"""Categories that stand for true, each with those that stand for false beside it."""


def rates_of(
    names: Sequence[str],
    sums: Sequence[NoisySum],
    synthetic: Sequence[Floats],
    marginals: Marginals | None = None,
    likely: Callable[[NoisyTable], NoisyTable] | None = None,
) -> dict[str, Any] | None:
    """Return what a report says of the target by every other column; None where no sum counted them by class.

    With ``likely``, which gives the most likely counts of a table, what rules fix is exact, and all rates agree.
    Shapes: ``synthetic`` one array a sum, the same sum over the synthetic rows.
    """
    place = {name: index for index, name in enumerate(names[:MOST_COLUMNS])}
    for look, total in reversed(list(zip(sums, synthetic, strict=True))):
        moments = moments_of(look)
        if moments is None or moments.partition.class_column is None:
            continue
        released = _agreeing(moments, class_counts(moments, look, marginals), likely)
        if facts := _rates(moments, released, total, place):
            return facts
    return None


def _agreeing(
    moments: Moments,
    released: Sequence[tuple[Floats, Floats]],
    likely: Callable[[NoisyTable], NoisyTable] | None,
) -> list[tuple[Floats, Floats]]:
    """Return the most likely counts by class, and their noise, of which cells that no row can be in have none."""
    partition, kept = moments.partition, list[tuple[Floats, Floats]]()
    if likely is None or partition.class_column is None:
        return [*released]
    target = list(partition.codec.columns)[partition.class_column]
    for name, merge, (counts, stddev) in zip(partition.names, partition.merge, released, strict=True):
        table = NoisyTable((target, name), (np.arange(len(counts)), merge), counts, stddev)
        kept.append(_counts(likely(table)) if name != target else (counts, stddev))
    return kept


def _counts(table: NoisyTable) -> tuple[Floats, Floats]:
    """Return the counts of a table, and the noise of each."""
    return table.counts, np.broadcast_to(table.stddev, table.counts.shape)


def asked_rates(counted: Counted, codec: Codec, cells: Whole, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rates of one of two classes of a column by another, of the pairs that a workload names.

    They are parts of the rows that are not null. Those of the target are ``rates_of``.

    Shapes: cells, those of the synthetic rows, [B, columns].
    """
    pairs, names, stated = facts["pairs"] or {}, list(codec.columns), dict[int, dict[str, Any]]()
    dropped = helpers(counted.columns)
    asked = [one["columns"] for one in pairs.get("tables", ())[: pairs.get("asked_for", 0)]]
    for place, by in (two for pair in asked for two in (pair, pair[::-1])):
        column = codec.columns[names[place]]
        if place == pairs.get("target") or not _has_two(column) or dropped & {names[place], names[by]}:
            continue
        best = counted.over([names[place], names[by]])
        if best is None or not (best[1].cells_of[0] == np.arange(column.size)).all():
            continue
        table, merge = best[1].compared([names[place]]), best[1].cells_of[1]
        (counts, stddev), totals = _counts(counted.likely(table)), best[1].total_variance([names[place]])
        drawn = np.zeros_like(counts)
        np.add.at(drawn, (cells[:, place], merge[cells[:, by]]), 1.0)
        group = _groups(codec.columns[names[by]], merge, counts.sum(axis=0))
        labels = [label for (label,) in group_labels(column, np.arange(column.size))]
        likely = _yes(labels[:2]) or _stated(column, counts.sum(axis=1)[:2])
        taken = labels.index(stated[place]["class"]) if place in stated else likely[0]
        of_all = totals if column.size == len(labels[:2]) else None
        rates = _in_groups(group, taken, counts[:2], stddev[:2], drawn[:2], of_all)  # of the rows that are no null
        if len(rates["share"]) > 1 and any(rates["share"]):
            of_class = stated.setdefault(place, {"target": place, "class": labels[taken], "columns": []})
            groups = group_labels(codec.columns[names[by]], group[merge])
            of_class["columns"].append({"column": by, "labels": groups, **rates})
    return list(stated.values())


def _yes(labels: Sequence[str]) -> list[int]:
    """Return the place of what stands for true among two labels, if the other stands for false."""
    words = [label.casefold() for label in labels]
    return [place for place, word in enumerate(words) if words[1 - place] in YES.get(word, ())]


def _has_two(column: Modelled) -> bool:
    """Tell whether a column has two classes, beside nulls."""
    return isinstance(column, Boolean) or (isinstance(column, Discrete) and len(column.keys) == 2)


def _rates(
    moments: Moments, released: Sequence[tuple[Floats, Floats]], total: Floats, place: Mapping[str, int]
) -> dict[str, Any] | None:
    partition = moments.partition
    if partition.class_column is None or partition.classes < 2:
        return None
    target, column = list(partition.codec.columns.items())[partition.class_column]
    drawn = moments.unpack_cells(total)  # type: ignore[arg-type]  # a linear map
    of_classes = np.sum([counts.sum(axis=1) for counts, _ in released], axis=0)
    if target not in place or of_classes.sum() <= 0 or drawn.sum() <= 0:
        return None
    names_of_classes = [label for (label,) in group_labels(column, np.arange(partition.classes))]
    first, *others = _stated(column, of_classes[: len(names_of_classes) - column.nullable])
    columns, of_others = list[dict[str, Any]](), [list[dict[str, Any]]() for _ in others]
    for index, (name, other) in enumerate(zip(partition.names, partition.columns, strict=True)):
        (counts, stddev), cells = released[index], slice(*partition.offsets[index : index + 2])
        group = _groups(other, partition.merge[index], counts.sum(axis=0))
        if name in place and group.any():
            rates, *further = (_in_groups(group, one, counts, stddev, drawn[:, cells]) for one in (first, *others))
            labels = group_labels(other, group[partition.merge[index]])
            if any(rates["share"]):  # noise may leave no group a record
                columns.append({"column": place[name], "labels": labels, **rates})
                for listed, one in zip(of_others, further, strict=True):
                    listed.append({"column": place[name], **{key: one[key] for key in OF_A_CLASS}})
    if not columns:
        return None
    classes = [{"class": names_of_classes[one], "columns": of} for one, of in zip(others, of_others, strict=True)]
    more = {"others": classes} if classes else {}
    return {"target": place[target], "class": names_of_classes[first], "columns": columns, **more}


def _stated(target: Modelled, counts: Floats) -> list[int]:
    """Return whose rates are stated: of a boolean true, of two classes the rarer one, of more the largest first.

    The others follow in the order of the schema; of many classes the largest ``MOST_CLASSES`` have rates.
    Shapes: ``counts`` of the classes that are no null.
    """
    if isinstance(target, Boolean):
        return [1]
    if len(counts) <= 2:
        return [int(counts.argmin() if len(counts) == 2 else counts.argmax())]
    first, *others = np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist()
    return [first, *sorted(others)]


def _groups(column: Modelled, merge: Whole, counts: Floats) -> Whole:
    """Return the group of each cell: categories by themselves while they are few, values in runs. Shapes: [cells].

    Categories are in the order of the schema, in which the first of each cell stands.
    """
    if not isinstance(column, Continuous) and len(counts) <= MOST_RATES:
        return np.argsort(np.argsort([np.flatnonzero(merge == cell)[0] for cell in range(len(counts))]))
    return grouped(counts, states_of(column, merge), zero_of(column, merge))


def _in_groups(
    group: Whole, taken: int, released: Floats, stddev: Floats, drawn: Floats, totals: Floats | None = None
) -> dict[str, list[float]]:
    """Return the rate of a class in each group, its noise, that of the synthetic rows, and within what that is.

    ``totals``: the variances of the noise of all classes together; by default that of each class is independent.
    Shapes: ``group`` and ``totals`` [cells]; ``released``, its ``stddev`` and ``drawn`` [classes, cells].
    """
    sums = [np.zeros((len(released), int(group.max()) + 1)) for _ in range(3)]
    for each, cells in zip(sums, (released, stddev**2, drawn), strict=True):
        np.add.at(each.T, group, cells.T)
    (counts, variances, synthetic), others = sums, np.arange(len(released)) != taken
    whole, of_drawn = (np.maximum(each.sum(axis=0), 0.0) for each in (counts, synthetic))  # noise may leave less
    known = np.maximum(whole, 1.0)
    rate = np.clip(counts[taken] / known, 0.0, 1.0)
    of_all = variances.sum(axis=0) if totals is None else np.bincount(group, totals).astype(np.float64)
    noise = noise_of_rate(rate, variances[taken], variances[others].sum(axis=0), of_all)
    facts = {
        "released": rate,
        "stddev": np.minimum(noise / known, 1.0),
        "synthetic": np.clip(synthetic[taken] / np.maximum(of_drawn, 1e-300), 0.0, 1.0),
        "share": whole / (whole.sum() or 1.0),
    }
    listed = {name: (np.round(each, DIGITS) + 0.0).tolist() for name, each in facts.items()}
    figures = zip(listed["released"], listed["stddev"], listed["synthetic"], strict=True)
    return {**listed, "within": [rate_within(*each) for each in figures]}


def noise_of_rate(rate: Floats, of_class: Floats, of_others: Floats, of_all: Floats) -> Floats:
    """Return the standard deviations of the noise of rates, times the records of each group.

    Args:
        rate: of the class in each group.
        of_class: the variance of the noise of its count, as it is compared with that of all others.
        of_others: the variance of the noise of all others.
        of_all: the variance of the noise of the records.
    """
    both = np.maximum(of_class + of_others, 1e-300)
    noise: Floats = np.sqrt(of_class * of_others / both + of_all * (of_class / both - rate) ** 2)
    return noise
