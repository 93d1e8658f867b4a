"""The charged scores: how the synthetic table's models and marginals fit the real rows, released once, with noise.

    models   <- trained on synthetic rows                                        public: functions of one record
    s = sum over real x of [ onehot(label, score bin) a model ; onehot(label, cell) a column ]  + noise     one vector

Everything said of it (AUROC, accuracy, total variation, intervals) is post-processing: see ``charged_facts``.

Privacy: given the synthetic rows, which are made of an earlier release, this is one Gaussian release about the same
records, so it composes with that release (adaptively) as a charge of its own. Sensitivity: embeddings/cell_counts.py.
The rows are those that were sanitized, the only ones there are: no score here is one on held-out rows.

Of a tree every flat table has its histograms, in which a unit weighs at most one record (embeddings/branch.py).
They are parts of one vector, so the squares of their sensitivities add up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import AfterValidator, Field, ValidationError

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.arrays import Whole
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.branch import BranchSum, BranchSums
from dpmodels.embeddings.cell_counts import STEP, CellCounts
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import InvalidArgument, Unsuitable, refused
from dpmodels.frozen import Frozen
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.contract import Contract, table_of, tree_of
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


def tables_of(spec: ScoreMeasurement, schema: Schema, names: Collection[str] | None = None) -> list[Table]:
    """List the histograms of a schema, classifiers first; of its columns those in ``names``, by default all."""
    classes, codec = schema.classes, Partition.fine(schema, spec.fine_cells, conditional=False).codec
    alone = len(schema.modelled) == 1 and not schema.image
    tables = [
        Table(kind, str(schema.target), classes, spec.score_bins if classes == 2 else classes)
        for kind in spec.settled(schema).classifiers or ()
        if classes > 1 and not alone
    ]
    if spec.marginals:
        asked = codec.columns if names is None else names
        others = {n: c for n, c in codec.columns.items() if n in asked and (classes == 1 or n != schema.target)}
        tables += [Table("column", n, classes, len(Bins.of(c, spec.cells).labels)) for n, c in others.items()]
    return tables


class ScoreTables:
    """The histograms of one table, and how their cells are found once there are classifiers.

    Attributes:
        branch: of a tree the table whose flat table this is, of which only what the table itself says is counted.
    """

    def __init__(self, spec: ScoreMeasurement, schema: Schema, branch: str = "", names: Collection[str] | None = None):
        self.spec, self.schema, self.branch = spec, schema, branch
        self.tables = tables_of(spec, schema, names)
        self.sizes = [table.classes * table.cells for table in self.tables]
        self.codec = Partition.fine(schema, spec.fine_cells, conditional=False).codec
        columns = [table.name for table in self.tables if table.kind == "column"]
        self.bins_of_columns = {name: Bins.of(self.codec.columns[name], spec.cells).bin_of_cell for name in columns}
        self.kinds = [table.kind for table in self.tables if table.kind != "column"]

    def embedding(self, scorers: Sequence[Scorer]) -> CellCounts | BranchSum:
        """Make the embedding of trained classifiers; without them only its sizes are of use."""
        counts = CellCounts(
            self.sizes,
            self.schema.unit.max_rows,
            lambda rows: _cells(self.tables, scorers, self.codec, self.bins_of_columns, rows),
        )
        return BranchSum(self.branch, counts) if self.branch else counts

    @property
    def of_columns(self) -> CellCounts | BranchSum:
        """The embedding with classifiers that cost nothing to ask, for where only the columns are counted."""
        return self.embedding([_silent(self.schema)] * len(self.kinds))

    def rows(self, units: Any) -> Records:
        """Return the rows of units in this table."""
        rows: Records = units.flat(self.branch) if self.branch else units
        return rows

    def scorers(self, rows: Records) -> list[Scorer]:
        """Train on synthetic rows."""
        return [fit_scorer(kind, rows, self.schema, self.spec.score_bins) for kind in self.kinds]


@dataclass(frozen=True)
class AllScores:
    """The histograms of one table, or of the flat tables of a tree, in one vector.

    Attributes:
        steps: lattice steps that what is kept of synthetic rows is counted in; of a tree parts of rows count too.
    """

    parts: tuple[ScoreTables, ...]
    steps: int

    @property
    def of_target(self) -> int:
        """The place of the part that has classifiers, if any has."""
        return next((place for place, part in enumerate(self.parts) if part.kinds), 0)

    def embedding(self, scorers: Sequence[Scorer]) -> Any:
        """Make the embedding of trained classifiers; without them only its sizes are of use."""
        return _joined([part.embedding(scorers if part.kinds else []) for part in self.parts])

    def trained(self, synthetic: Iterable[Any], seed: int) -> tuple[Any, Whole]:
        """Train on synthetic rows; return the embedding, and what the same tables hold for synthetic rows.

        What is kept: the number of rows trained on, the number tested on, then for every coordinate the number of
        synthetic rows in its cell, of classifiers among those tested on, of columns among all.
        """
        columns, part = _joined([part.of_columns for part in self.parts]), self.parts[self.of_target]
        counts, rows, units = np.zeros(columns.dim, dtype=np.int64), 0, 0
        for batch in synthetic:
            counts += columns.lattice_sum(batch).numpy()
            rows, units = rows + len(part.rows(batch)), units + len(batch)
        most = part.spec.training_rows * TEST_SHARE // (TEST_SHARE - 1)
        sample = draw(synthetic, max(TEST_SHARE, most * units // max(rows, 1)), seed)
        sample = type(sample[0]).concat(sample)
        sample = sample.take(np.random.default_rng(seed).permutation(len(sample)))
        test, train = (sample.take(half) for half in np.split(np.arange(len(sample)), [len(sample) // TEST_SHARE]))
        scorers = part.scorers(part.rows(train))
        start = sum(sum(one.sizes) for one in self.parts[: self.of_target])
        scored = slice(start, start + sum(part.sizes[: len(part.kinds)]))
        counts[scored] = self.embedding(scorers).lattice_sum(test).numpy()[scored]
        numbers = [len(part.rows(half)) for half in (train, test)]
        return self.embedding(scorers), np.concatenate([numbers, counts // self.steps]).astype(np.int64)


def _joined(parts: Sequence[CellCounts | BranchSum]) -> CellCounts | BranchSums:
    """Put the vectors of a tree's tables one after another; a table has one."""
    branches = [part for part in parts if isinstance(part, BranchSum)]
    return BranchSums(tuple(branches)) if branches else cast(CellCounts, parts[0])


@dataclass(frozen=True)
class Scores(System[AllScores]):
    """The charged scores of synthetic rows, whose batches can be read twice; their design is the histograms."""

    method = METHOD
    line = REPORT
    takes_workload = True  # scores are of the rows, whatever the release looked at more closely
    measurement: ScoreMeasurement = field(default_factory=ScoreMeasurement)
    synthetic: Iterable[Any] = ()
    seed: int = 0

    @classmethod
    def reading(cls, line: Line, synthetic: Iterable[Any] = (), seed: int = 0) -> "Scores":
        """Return the system of a line."""
        return cls(ScoreMeasurement.model_validate(line.measurement), synthetic, seed)

    def suits(self, contract: Contract) -> bool:
        """Tell whether a contract is about a table, or about a tree of them."""
        return contract.kind == "tree" or super().suits(contract)

    def settled(self, contract: Contract) -> ScoreMeasurement:
        """Name the classifiers."""
        return self.measurement.settled(tree_of(contract).overview if contract.kind == "tree" else table_of(contract))

    def design(self, spec: ScoreMeasurement, contract: Contract) -> AllScores:
        """List the histograms.

        Raises:
            InvalidArgument: there is nothing or too much to count.
        """
        if is_tree := contract.kind == "tree":
            tree = tree_of(contract)
            parts = [ScoreTables(spec, tree.flat_of(name), name, tree.attributes(name)) for name in tree.measured]
        else:
            parts = [ScoreTables(spec, table_of(contract))]
        parts = [part for part in parts if part.tables]
        if not parts:
            raise Unsuitable("the schema has none of the report's scores; name at least one score that it has")
        if sum(sum(part.sizes) for part in parts) > MOST_CELLS:
            raise InvalidArgument("report.cells", spec.cells, f"lead to at most {MOST_CELLS} counts")
        return AllScores(tuple(parts), 1 if is_tree else STEP)

    def event(self, design: AllScores, budget: PrivacyBudget) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget), mechanism="scores on the real rows")

    def programme(self, design: AllScores) -> Programme:
        """Train the classifiers, and keep what their tables hold for synthetic rows; then count the real rows once."""
        embedding, summary = design.trained(self.synthetic, self.seed)
        yield Keep.of(summary)
        yield Sum.of(embedding)

    def noise(self, line: Line) -> dict[str, float]:
        """Name what the vector holds and the standard deviation of its noise."""
        steps = line.noise_stddev(0, self.of(line).embedding([]).l2_sensitivity)
        return {"records in a cell of a table of scores": steps / STEP}

    def fingerprint(self, design: AllScores) -> str:
        """Hash what the tables are about, and their sizes."""
        tables = [(part.branch, table) for part in design.parts for table in part.tables]
        return fingerprint_of(
            *[(*filter(None, [name]), one.kind, one.name, one.classes, one.cells) for name, one in tables]
        )


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
