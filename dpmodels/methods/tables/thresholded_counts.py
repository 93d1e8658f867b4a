"""Discovery: what a schema's author does not know and no document says, released once under a charge.

    measure   for each row: one to the count of the rows; for each marked column one to the count of its key, which is
              that it is null, that it cannot be read, or its value      statistics/key_counts.py
              all counts + discrete Gaussian noise; values of open sets
              only where the noisy count reaches a threshold             mechanisms/threshold.py
    read      values: those released; bounds: the outermost cells or years that surely hold rows, less what almost
              nothing is in; shares of nulls: a noisy count over a noisy count, with room for the noise

**Unit and adjacency.** A record, or a user with at most ``max_rows`` rows (the rest is not read), is added or removed.
Of a tree of tables a unit is a row of the root with all rows below it, of which one in each table is counted, drawn
uniformly from those of the unit, whatever other units hold (reading/unit_rows.py): so a unit is one row of all columns.

**Sensitivity.** With K marked columns a row adds at most K + 1 ones, so a unit moves the vector of all counts by at
most max_rows sqrt(K + 1) in L2 norm (mechanisms/threshold.py). Cells and years are a public lattice, so bounds come
from noisy counts alone, and which of them are empty is not told for free.

**What is released.** The noisy counts of public keys, and names and noisy counts of those values that reach the
threshold. Nothing else: no exact count, no bound, no number of values.

**Charge.** One, composed before anything is drawn: a Gaussian at delta less the share of the threshold, and the
threshold with the rest of delta. ``accounting/events.py`` says why these deltas add.

What it does not promise: a value that enough units hold is released as it is, whatever it says. The threshold protects
units, not meanings: a column of free text in which a hundred people name the same person shows that name.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, localcontext
from math import ceil, sqrt
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent, ThresholdEvent, leaves
from dpmodels.accounting.tally import Tally
from dpmodels.authoring.completion import ReleasedKeys
from dpmodels.contract.discovery.discovery import Discovery
from dpmodels.errors import InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.mechanisms.threshold import Bringing
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import CountKeys, NoisyCounts, Programme
from dpmodels.releases.system import System, fingerprint_of
from dpmodels.statistics.key_counts import NULL, UNREAD, Coordinates, Figures, transform_key_counts

COUNTING, NAMING = "counts of keys", "names of keys"


class DiscoveryMeasurement(Frozen):
    """The public parameters; every rule that shapes the release or its reading.

    Attributes:
        threshold_share: of delta, what the threshold takes; the noise is calibrated at the rest.
        steps_per_row: lattice steps that a row counts for.
        longest: most characters of a value that is released.
        least_power, most_power: powers of ten between which numbers are told apart.
        threshold: in lattice steps; the plan sets it from the budget.
        tail: share of a column's rows that may lie outside its bounds, at each end.
        false_alarm: probability that noise alone makes one of a column's cells seem to hold rows.
        null_room: standard deviations of noise that a share of nulls has room for.
    """

    threshold_share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    steps_per_row: Annotated[int, Field(ge=1, le=2**20)] = 1024
    longest: Annotated[int, Field(ge=1, le=10_000)] = 200
    least_power: Annotated[int, Field(ge=-100, le=0)] = -9
    most_power: Annotated[int, Field(ge=1, le=100)] = 15
    threshold: Annotated[int, Field(ge=0)] = 0
    tail: Annotated[float, Field(ge=0, lt=0.5)] = 0.0005
    false_alarm: Annotated[float, Field(gt=0, lt=1)] = 0.001
    null_room: Annotated[float, Field(ge=0)] = 4.0


@dataclass(frozen=True)
class Counting:
    """The design: what is counted, how far a unit moves it, and where the threshold is."""

    spec: DiscoveryMeasurement
    contract: Discovery

    @property
    def what(self) -> Coordinates:
        """What is counted."""
        figures = Figures(self.spec.least_power, self.spec.most_power)
        columns = {name: column.counts for name, column in self.contract.wanted.items()}
        return Coordinates(columns, figures, self.spec.longest, self.spec.steps_per_row)

    @property
    def most(self) -> Bringing:
        """The most that a unit brings of values that only it has."""
        return Bringing(self.contract.rows_of_a_unit, self.spec.steps_per_row, len(self.what.open))

    @property
    def l2_sensitivity(self) -> int:
        """How far a unit moves all counts, rounded up. Units: lattice steps."""
        rows = self.contract.rows_of_a_unit * self.spec.steps_per_row
        return ceil(rows * sqrt(len(self.contract.wanted) + 1) * (1 + 1e-12))

    def events(self, budget: PrivacyBudget) -> tuple[GaussianEvent, tuple[ThresholdEvent, ...]]:
        """Return what pays for the noise, and for the threshold where there is one."""
        if not budget.delta:
            raise InvalidArgument("delta", budget.delta, "be above 0: counts have Gaussian noise, which needs one")
        thresholds: tuple[ThresholdEvent, ...] = ()
        if self.what.open:
            thresholds = (ThresholdEvent(delta=budget.delta * self.spec.threshold_share, mechanism=NAMING),)
        with localcontext(prec=60, rounding=ROUND_FLOOR):
            left = budget.delta_exact - Tally.of(thresholds).threshold_delta
        rest = budget.model_copy(update={"delta": np.nextafter(float(left), 0.0).item()}) if thresholds else budget
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(rest), mechanism=COUNTING), thresholds


SURE = 4.0
"""Standard deviations of its noise that a count of a cell must reach about, among many cells."""


class DiscoverySystem(System[Counting]):
    """Values of open sets, bounds and shares of nulls, from one noisy count of keys."""

    method = "discovery"
    about = "a discovery"

    def __init__(self, measurement: DiscoveryMeasurement | None = None) -> None:
        self.measurement = measurement or DiscoveryMeasurement()

    @classmethod
    def of_line(cls, line: Line) -> "DiscoverySystem":
        """Return the system of a line."""
        return cls(DiscoveryMeasurement.model_validate(line.measurement))

    def priced(self, spec: DiscoveryMeasurement, contract: Discovery, budget: PrivacyBudget) -> DiscoveryMeasurement:
        """Set the threshold, which follows from the budget."""
        counting = Counting(spec, contract)
        noise, thresholds = counting.events(budget)
        stddev = lattice_noise_stddev(counting.l2_sensitivity, noise.noise_multiplier)
        threshold = counting.most.threshold(stddev, thresholds[0].delta) if thresholds else 0
        return spec.model_copy(update={"threshold": threshold})

    def design(self, spec: DiscoveryMeasurement, contract: Discovery) -> Counting:
        return Counting(spec, contract)

    def event(self, design: Counting, budget: PrivacyBudget) -> Event:
        """Charge the noise, and the threshold where values are released."""
        noise, thresholds = design.events(budget)
        return ComposedEvent(events=(noise, *thresholds)) if thresholds else noise

    def programme(self, design: Counting) -> Programme:
        """Count every key in one pass."""
        what = design.what
        yield CountKeys(
            lambda data: transform_key_counts(data.records, what),
            what.public,
            what.open,
            design.l2_sensitivity,
            design.spec.threshold,
            design.most,
        )

    def fingerprint(self, design: Counting) -> str:
        return fingerprint_of(design.what.public, design.what.open, design.l2_sensitivity)

    def noise(self, line: Line) -> dict[str, float]:
        """Name the standard deviation of a count, and how many rows a value needs to be released half of the time."""
        spec, (event, *_) = DiscoveryMeasurement.model_validate(line.measurement), leaves([line.event])
        multiplier = event.noise_multiplier if isinstance(event, GaussianEvent) else 0.0
        return {
            "records with a value": lattice_noise_stddev(self.of(line).l2_sensitivity, multiplier) / spec.steps_per_row
        }

    def least_units(self, line: Line) -> float:
        """Say about how many rows must have a value, or lie in a cell, for it to be told from noise."""
        (stddev,) = self.noise(line).values()
        spec = DiscoveryMeasurement.model_validate(line.measurement)
        return max(SURE * stddev, spec.threshold / spec.steps_per_row)

    def found(self, release: Release) -> dict[str, ReleasedKeys]:
        """Return what a release says of each marked column (post-processing)."""
        (counts,) = self.answers(release)
        return {name: _found(name, counts, self.of(release.line)) for name in release.line.contract.wanted}  # type: ignore[union-attr]


def _found(name: str, counts: NoisyCounts, design: Counting) -> ReleasedKeys:
    """Read one column of the counts."""
    from scipy.special import ndtri

    spec, column = design.spec, design.contract.wanted[name]
    counts_by_name = counts.names.append_column("n", pa.array(counts.vector / spec.steps_per_row))
    column_counts = counts_by_name.slice(1).filter(
        pc.equal(counts_by_name.slice(1)["column"], name)
    )  # the first count is that of the rows
    of: dict[str, float] = dict(zip(column_counts["key"].to_pylist(), column_counts["n"].to_pylist(), strict=True))
    rows, nulls, unread = counts_by_name["n"][0].as_py(), of.pop(NULL), of.pop(UNREAD)
    stddev = counts.noise_stddev / spec.steps_per_row
    room = spec.null_room * stddev
    share = (max(nulls, 0.0) + room) / max(rows - room, 1.0)
    hidden = -float(ndtri(spec.false_alarm / max(len(of), 1))) * stddev
    ends = None
    if column.counts in ("cells", "years"):
        ends = _ends({int(key): n for key, n in of.items()}, hidden, spec.tail)
    low = high = None
    if ends and column.counts == "years":
        low, high = float(ends[0]), float(ends[1])
    elif ends:
        low, high = design.what.figures.reach(ends[0])[0], design.what.figures.reach(ends[1])[1]
    return ReleasedKeys(
        values=_values(of) if column.counts == "values" else (),
        low=low,
        high=high,
        null_share=min(0.99, ceil(100 * share) / 100),
        rows=rows,
        unread=unread,
        noise_stddev=stddev,
        least_rows=spec.threshold / spec.steps_per_row,
        tail=spec.tail,
        hidden=hidden,
    )


def _values(keys: Iterable[str]) -> tuple[Any, ...]:
    """Read values from their keys, each of which begins with its kind; numbers by their size."""
    read: dict[str, Callable[[str], Any]] = {"s": str, "i": int, "f": float, "b": lambda text: text == "true"}
    values = [read[key[0]](key[1:]) for key in keys]
    return tuple(sorted(values) if values and {type(each) for each in values} <= {int, float} else values)


def _ends(noisy: Mapping[int, float], least: float, share: float) -> tuple[int, int] | None:
    """Return the outermost cells that surely hold rows, less those at either end in which almost nothing is."""
    sure = sorted((cell, n) for cell, n in noisy.items() if n > least)
    if not sure:
        return None
    tail = share * sum(n for _, n in sure)
    return _outermost(sure, tail), _outermost(sure[::-1], tail)


def _outermost(cells: list[tuple[int, float]], tail: float) -> int:
    passed = 0.0
    for cell, n in cells:
        passed += n
        if passed > tail:
            return cell
    return cells[-1][0]
