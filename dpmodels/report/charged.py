"""The charged scores: how the synthetic table's models and marginals fit the real rows, released once, with noise.

    models   <- trained on synthetic rows                                        public: functions of one record
    s = sum over real x of [ onehot(label, score bin) a model ; onehot(label, cell) a column ]  + noise     one vector

Everything said of it (AUROC, accuracy, total variation, intervals) is post-processing: see ``charged_facts``.

Privacy: given the synthetic rows, which are made of an earlier release, this is one Gaussian release about the same
records, so it composes with that release (adaptively) as a charge of its own. Sensitivity: embeddings/cell_counts.py.
The rows are those that were sanitized, the only ones there are: no score here is one on held-out rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationError

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.arrays import Whole
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.cell_counts import STEP, CellCounts
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import InvalidArgument, Unsuitable, refused
from dpmodels.frozen import Frozen
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import REPORT, Line
from dpmodels.releases.steps import Keep, Programme, Sum
from dpmodels.releases.system import System, fingerprint_of
from dpmodels.report.bins import Bins
from dpmodels.report.scorers import Scorer, fit_scorer
from dpmodels.statistics.reservoir import draw

METHOD = "report"
"""What lines and ledger entries of the charged scores are called."""
MOST_CELLS = 2**18
TEST_SHARE = 5
"""One in so many synthetic rows is kept from training, to show the same score on rows like those trained on."""

Classifier = Literal["logistic", "trees"]


def _even(bins: int) -> int:
    if bins % 2:
        raise ValueError("must be even: half of the bins lie on either side of a classifier's threshold")
    return bins


class ScoreMeasurement(Frozen):
    """Which scores are released: public parameters that decide the vector and so are part of the plan.

    Attributes:
        classifiers: trained on synthetic rows to tell the target; by default both, for images logistic alone.
        marginals: the tables of each column with the target (or alone, where that has no classes), or none.
        cells: most cells that the values of an interval column are joined to, of ``fine_cells``.
        score_bins: of a classifier's score, for a target of two classes.
        training_rows: synthetic rows that classifiers are trained on, at most.
    """

    classifiers: tuple[Classifier, ...] | None = None
    marginals: bool = True
    cells: Annotated[int, Field(ge=2, le=256)] = 12
    fine_cells: Annotated[int, Field(ge=2, le=256)] = 256
    score_bins: Annotated[int, Field(ge=2, le=200), AfterValidator(_even)] = 20
    training_rows: Annotated[int, Field(ge=10, le=10**6)] = 20_000

    def settled(self, schema: Schema) -> "ScoreMeasurement":
        """Name the classifiers."""
        usual: tuple[Classifier, ...] = ("logistic",) if schema.image else ("logistic", "trees")
        classifiers = usual if self.classifiers is None else tuple(dict.fromkeys(self.classifiers))
        return self.model_copy(update={"classifiers": classifiers})


@dataclass(frozen=True)
class Table:
    """One histogram of the vector: what it is about, and its cells; class by class where it has classes."""

    kind: Classifier | Literal["column"]
    name: str
    classes: int
    cells: int


def tables_of(spec: ScoreMeasurement, schema: Schema) -> list[Table]:
    """List the histograms of a schema, classifiers first."""
    classes, codec = schema.classes, Partition.fine(schema, spec.fine_cells, conditional=False).codec
    alone = len(schema.modelled) == 1 and not schema.image
    tables = [
        Table(kind, str(schema.target), classes, spec.score_bins if classes == 2 else classes)
        for kind in spec.settled(schema).classifiers or ()
        if classes > 1 and not alone
    ]
    if spec.marginals:
        others = {n: c for n, c in codec.columns.items() if classes == 1 or n != schema.target}
        tables += [Table("column", n, classes, len(Bins.of(c, spec.cells).labels)) for n, c in others.items()]
    return tables


class ScoreTables:
    """The histograms of one schema, and how their cells are found once there are classifiers."""

    def __init__(self, spec: ScoreMeasurement, schema: Schema) -> None:
        self.spec, self.schema, self.tables = spec, schema, tables_of(spec, schema)
        self.sizes = [table.classes * table.cells for table in self.tables]
        if not self.tables:
            raise Unsuitable("the schema has none of the report's scores; name at least one score that it has")
        if sum(self.sizes) > MOST_CELLS:
            raise InvalidArgument("report.cells", spec.cells, f"lead to at most {MOST_CELLS} counts")
        self.codec = Partition.fine(schema, spec.fine_cells, conditional=False).codec
        columns = [table.name for table in self.tables if table.kind == "column"]
        self.bins_of_columns = {name: Bins.of(self.codec.columns[name], spec.cells).bin_of_cell for name in columns}

    def embedding(self, scorers: Sequence[Scorer]) -> CellCounts:
        """Make the embedding of trained classifiers; without them only its sizes are of use."""
        return CellCounts(
            self.sizes,
            self.schema.unit.max_rows,
            lambda rows: _cells(self.tables, scorers, self.codec, self.bins_of_columns, rows),
        )

    def trained(self, synthetic: Iterable[Records], seed: int) -> tuple[CellCounts, Whole]:
        """Train on synthetic rows; return the embedding, and what the same tables hold for synthetic rows.

        What is kept: the number of rows trained on, the number tested on, then for every coordinate the number of
        synthetic rows in its cell, of classifiers among those tested on, of columns among all.
        """
        size = self.spec.training_rows * TEST_SHARE // (TEST_SHARE - 1)
        sample = Records.concat(draw(synthetic, size, seed))
        sample = sample.take(np.random.default_rng(seed).permutation(len(sample)))
        test, train = np.split(np.arange(len(sample)), [len(sample) // TEST_SHARE])
        kinds = [table.kind for table in self.tables if table.kind != "column"]
        scorers = [fit_scorer(kind, sample.take(train), self.schema, self.spec.score_bins) for kind in kinds]
        embedding = self.embedding(scorers)
        scored = sum(self.sizes[: len(scorers)])
        tested = embedding.lattice_sum(sample.take(test)).numpy()[:scored]
        columns = self.embedding([_silent(self.schema)] * len(scorers))
        synthetic_counts = sum(columns.lattice_sum(records).numpy()[scored:] for records in synthetic)
        summary = np.concatenate([[len(train), len(test)], tested // STEP, np.asarray(synthetic_counts) // STEP])
        return embedding, summary.astype(np.int64)


@dataclass(frozen=True)
class Scores(System[ScoreTables]):
    """The charged scores of a synthetic table, whose batches can be read twice; their design is the histograms."""

    method = METHOD
    line = REPORT
    takes_workload = True  # scores are of the rows, whatever the release looked at more closely
    measurement: ScoreMeasurement = field(default_factory=ScoreMeasurement)
    synthetic: Iterable[Records] = ()
    seed: int = 0

    @classmethod
    def reading(cls, line: Line, synthetic: Iterable[Records] = (), seed: int = 0) -> "Scores":
        """Return the system of a line."""
        return cls(ScoreMeasurement.model_validate(line.measurement), synthetic, seed)

    def settled(self, contract: Schema) -> ScoreMeasurement:
        """Name the classifiers."""
        return self.measurement.settled(contract)

    def design(self, spec: ScoreMeasurement, contract: Schema) -> ScoreTables:
        """List the histograms.

        Raises:
            InvalidArgument: there is nothing or too much to count.
        """
        return ScoreTables(spec, contract)

    def event(self, design: ScoreTables, budget: PrivacyBudget) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget), mechanism="scores on the real rows")

    def programme(self, design: ScoreTables) -> Programme:
        """Train the classifiers, and keep what their tables hold for synthetic rows; then count the real rows once."""
        embedding, summary = design.trained(self.synthetic, self.seed)
        yield Keep.of(summary)
        yield Sum.of(embedding)

    def noise(self, line: Line) -> dict[str, float]:
        """Name what the vector holds and the standard deviation of its noise."""
        steps = line.noise_stddev(0, self.of(line).embedding([]).l2_sensitivity)
        return {"records in a cell of a table of scores": steps / STEP}

    def fingerprint(self, design: ScoreTables) -> str:
        """Hash what the tables are about, and their sizes."""
        return fingerprint_of(*[(table.kind, table.name, table.classes, table.cells) for table in design.tables])


def read_measurement(settings: dict[str, object]) -> ScoreMeasurement:
    """Read the settings of the charged scores.

    Raises:
        InvalidArgument: a setting that there is not, or that may not be so.
    """
    try:
        return ScoreMeasurement.model_validate(settings)
    except ValidationError as fault:
        raise refused(fault, "report") from None


def _cells(
    tables: Sequence[Table],
    scorers: Sequence[Scorer],
    codec: Codec,
    bins_of_columns: Mapping[str, Whole],
    records: Records,
) -> Whole:
    """Number the cell of each record in each table; ``bins_of_columns`` joins a column's cells. Shapes: [B, T]."""
    fine, names, result = codec.to_cells(records), list(codec.columns), []
    label = records.labels(codec.schema.class_index)
    for index, table in enumerate(tables):
        if table.kind == "column":
            inner = bins_of_columns[table.name][fine[:, names.index(table.name)]]
        else:
            inner = scorers[index].cells(records)
        result.append(label * table.cells + inner)
    return np.stack(result, axis=1)


def _silent(schema: Schema) -> Scorer:
    """Return a classifier that costs nothing to ask, for where only the columns are counted."""
    edges = np.zeros(1) if schema.classes == 2 else np.zeros(0)
    return Scorer(lambda rows: np.zeros((len(rows), 1)), np.zeros(1, dtype=np.int64), edges)
