"""Names that a count of keys releases because enough rows have them: how often one that a single unit brings is shown.

Which names there are is itself secret, so neighbors with other names ask for noise of another size and cannot be
replayed. What is replayed has the same names; names are held to their charge here, in two halves: those whose noisy
count is below the threshold of the plan are not released, and the count of a name that one unit brings reaches the
threshold with no more than the probability that is charged. That is added up over all values of the noise, for every
way in which the unit's rows can be dealt out to names.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpmodels.accounting.events import ThresholdEvent, leaves
from dpmodels.audit.desks import measured
from dpmodels.audit.findings import Finding
from dpmodels.audit.subjects import Subject
from dpmodels.audit.tap import Draw, Tap, tapped

LEAST_SHOWN = 0.9
"""Share of the probability that is charged with which the worst unit is to be shown; less is a waste."""
FAR = 20
"""Standard deviations beyond which noise has no weight that a float could hold."""


def naming_findings(subject: Subject, folder: Path) -> Iterator[Finding]:
    """Hold the threshold of a plan to what is charged for it, and the release to the threshold."""
    contract = subject.line.contract
    charged = [event.delta for event in leaves([subject.line.event]) if isinstance(event, ThresholdEvent)]
    if not charged or contract.kind != "discovery":
        return
    threshold = int(subject.line.measurement["threshold"])
    with tapped() as tap:
        tap.silent = True
        measured(subject.system, folder / "exact", subject.line, *subject.whole.batches)
        (draw,) = tap.restart()
        name_counts = [_names(tap, subject, folder / f"{count}", draw, count) for count in (threshold - 1, threshold)]
    says = "of the names in the data those whose noisy count reaches the threshold are released, and no other"
    yield Finding(check="names", holds=name_counts[0] == 0 < name_counts[1], says=says)
    steps_per_row = int(draw.values[0]) // sum(map(len, subject.whole.batches))
    open_columns = sum(column.counts == "values" for column in contract.wanted.values())
    worst = max(
        _shown(counts, threshold, steps_per_row, draw.scale, open_columns) for counts in dealt(contract.unit.max_rows)
    )
    share = worst / charged[0]
    says = f"a name of one unit alone is released with {100 * share:.4g} % of the probability that is charged"
    yield Finding(check="names", holds=LEAST_SHOWN < share <= 1, says=says)


def dealt(rows: int, most: int | None = None) -> Iterator[list[int]]:
    """Yield every way in which rows can be dealt out to names, as the rows of each name, the largest first."""
    if rows == 0:
        yield []
    for first in range(min(rows, most or rows), 0, -1):
        for others in dealt(rows - first, first):
            yield [first, *others]


def _shown(counts: list[int], threshold: int, steps_per_row: int, noise_stddev: float, columns: int) -> float:
    """Return the probability that any of a unit's names is shown, in columns in each of which it has these rows."""
    each = np.array([tail(threshold - rows * steps_per_row, noise_stddev) for rows in counts])
    return float(-np.expm1(columns * np.log1p(-each).sum()))


def tail(least: int, noise_stddev: float) -> float:
    """Return the probability that discrete Gaussian noise of a large scale is at least a whole number, term by term."""
    x = np.arange(least, math.ceil(FAR * noise_stddev), dtype=np.float64)
    return float(np.exp(-0.5 * (x / noise_stddev) ** 2).sum() / (noise_stddev * math.sqrt(2 * math.pi)))


def _names(tap: Tap, subject: Subject, folder: Path, draw: Draw, count: int) -> int:
    """Count the names that are released where every noisy count is ``count``."""
    tap.copies = {"gaussian": [np.full_like(draw.values, count)]}
    release, _ = measured(subject.system, folder, subject.line, *subject.whole.batches)
    tap.restart()
    return len(release.value.vector) - len(subject.system.of(subject.line).what.public)
