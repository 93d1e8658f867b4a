"""The charged scores: how the synthetic table's models and marginals fit the real rows, released once, with noise.

    models   <- trained on synthetic rows                                        public: functions of one record
    s = sum over real x of [ onehot(label, score bin) a model ; onehot(label, cell) a column ]  + noise     one vector

Everything said of it (AUROC, accuracy, total variation, intervals) is post-processing: see ``charged_facts``.

Privacy: given the synthetic rows, which are made of an earlier release, this is one Gaussian release about the same
records, so it composes with that release (adaptively) as a charge of its own. Sensitivity: embeddings/cell_counts.py.
The rows are those that were sanitized, the only ones there are: no score here is one on held-out rows.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.embeddings.cell_counts import STEP, CellCounts
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable, rule_of
from dpmodels.evaluation.published.bins import Bins
from dpmodels.evaluation.published.scorers import Scorer, fit_scorer
from dpmodels.evaluation.sampling import draw
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.steps import Keep, Programme, Sum
from dpmodels.releases.system import System
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.schema import Schema

METHOD = "report"
"""What plans and ledger entries of the charged scores are called."""
FINE_CELLS = 256
MOST_CELLS = 2**18
TEST_SHARE = 5
"""One in so many synthetic rows is kept from training, to show the same score on rows like those trained on."""

Counts = NDArray[np.int64]
Classifier = Literal["logistic", "trees"]


def _even(bins: int) -> int:
    if bins % 2:
        raise ValueError("must be even: half of the bins lie on either side of a classifier's threshold")
    return bins


class ScoreMeasurement(BaseModel):
    """Which scores are released: public parameters that decide the vector and so are part of the plan.

    Attributes:
        classifiers: trained on synthetic rows to tell the target; by default both, for images logistic alone.
        marginals: the tables of each column with the target (or alone, where that has no classes), or none.
        cells: most cells that the values of an interval column are joined to.
        score_bins: of a classifier's score, for a target of two classes.
        training_rows: synthetic rows that classifiers are trained on, at most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    classifiers: tuple[Classifier, ...] | None = None
    marginals: bool = True
    cells: Annotated[int, Field(ge=2, le=FINE_CELLS)] = 12
    score_bins: Annotated[int, Field(ge=2, le=200), AfterValidator(_even)] = 20
    training_rows: Annotated[int, Field(ge=10, le=10**6)] = 20_000


@dataclass(frozen=True)
class Table:
    """One histogram of the vector: what it is about, and its cells; class by class where it has classes."""

    kind: Classifier | Literal["column"]
    name: str
    classes: int
    cells: int


def tables_of(spec: ScoreMeasurement, schema: Schema) -> list[Table]:
    """List the histograms of a schema, classifiers first."""
    classes, codec = schema.classes, Partition.fine(schema, FINE_CELLS, conditional=False).codec
    chosen: tuple[Classifier, ...] = ("logistic",) if schema.image else ("logistic", "trees")
    chosen = chosen if spec.classifiers is None else tuple(dict.fromkeys(spec.classifiers))
    alone = len(schema.modelled) == 1 and not schema.image
    tables = [
        Table(kind, str(schema.target), classes, spec.score_bins if classes == 2 else classes)
        for kind in chosen
        if classes > 1 and not alone
    ]
    if spec.marginals:
        others = {n: c for n, c in codec.columns.items() if classes == 1 or n != schema.target}
        tables += [Table("column", n, classes, len(Bins.of(c, spec.cells).labels)) for n, c in others.items()]
    return tables


@dataclass(frozen=True)
class Scores(System):
    """Plans and measures the charged scores of a synthetic table, whose batches can be read twice."""

    measurement: ScoreMeasurement = field(default_factory=ScoreMeasurement)
    synthetic: Iterable[Records] = ()
    seed: int = 0

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: one Gaussian event, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or there is nothing or too much to count.
        """
        check_unit(schema, budget)
        embedding = self._embedding(schema, [])
        noise_multiplier = gaussian_noise_multiplier(budget)
        return Plan(
            method=METHOD,
            table=schema,
            budget=budget,
            event=GaussianEvent(noise_multiplier=noise_multiplier, mechanism="scores on the real rows"),
            noise_multiplier=noise_multiplier,
            l2_sensitivity=embedding.l2_sensitivity,
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=_fingerprint(self.measurement, schema),
        )

    @classmethod
    def of(cls, plan: Plan, synthetic: Iterable[Records] = (), seed: int = 0) -> "Scores":
        """Rebuild the scores of a plan."""
        spec = ScoreMeasurement.model_validate(plan.measurement)
        if plan.method != METHOD or _fingerprint(spec, plan.table) != plan.fingerprint:
            raise ArtifactError("the report was planned with other tables than this version counts")
        return cls(spec, synthetic, seed)

    def programme(self, plan: Plan) -> Programme:
        """Train the classifiers, and keep what their tables hold for synthetic rows; then count the real rows once."""
        embedding, kept = self._trained(plan)
        yield Keep(kept)
        yield Sum.of(embedding, 1, plan.l2_sensitivity, plan.noise_multiplier)

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what the vector holds and the standard deviation of its noise."""
        steps = lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        return {"records in a cell of a table of scores": steps / STEP}

    def _trained(self, plan: Plan) -> tuple[CellCounts, Counts]:
        """Train on synthetic rows; return the embedding, and what the same tables hold for synthetic rows.

        What is kept: the number of rows trained on, the number tested on, then for every coordinate the number of
        synthetic rows in its cell, of classifiers among those tested on, of columns among all.
        """
        schema, spec = plan.table, self.measurement
        size = spec.training_rows * TEST_SHARE // (TEST_SHARE - 1)
        sample = Records.concat(draw(self.synthetic, size, self.seed))
        sample = sample.take(np.random.default_rng(self.seed).permutation(len(sample)))
        test, train = np.split(np.arange(len(sample)), [len(sample) // TEST_SHARE])
        kinds = [table.kind for table in tables_of(spec, schema) if table.kind != "column"]
        scorers = [fit_scorer(kind, sample.take(train), schema, spec.score_bins) for kind in kinds]
        embedding = self._embedding(schema, scorers)
        scored = sum(embedding.sizes[: len(scorers)])
        tested = embedding.lattice_sum(sample.take(test)).numpy()[:scored]
        columns = self._embedding(schema, [_silent(schema)] * len(scorers))
        seen = sum(columns.lattice_sum(records).numpy()[scored:] for records in self.synthetic)
        kept = np.concatenate([[len(train), len(test)], tested // STEP, np.asarray(seen) // STEP])
        return embedding, kept.astype(np.int64)

    def _embedding(self, schema: Schema, scorers: Sequence[Scorer]) -> CellCounts:
        """Make the embedding of trained classifiers; without them only its sizes are of use."""
        tables = tables_of(self.measurement, schema)
        if not tables:
            raise Unsuitable("the schema has none of the report's scores; name at least one score that it has")
        sizes = [table.classes * table.cells for table in tables]
        if sum(sizes) > MOST_CELLS:
            raise InvalidArgument(
                "report.cells", self.measurement.cells, f"be lower: the report would take more than {MOST_CELLS} counts"
            )
        codec = Partition.fine(schema, FINE_CELLS, conditional=False).codec
        most, columns = self.measurement.cells, [table.name for table in tables if table.kind == "column"]
        places = {name: Bins.of(codec.columns[name], most).place for name in columns}
        return CellCounts(sizes, schema.unit.max_rows, lambda rows: _cells(tables, scorers, codec, places, rows))


def read_measurement(settings: dict[str, object]) -> ScoreMeasurement:
    """Read the settings of the charged scores.

    Raises:
        InvalidArgument: a setting that there is not, or that may not be so.
    """
    try:
        return ScoreMeasurement.model_validate(settings)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        name = ".".join(("report", *map(str, first["loc"])))
        raise InvalidArgument(name, first["input"], rule_of(first)) from None


def _cells(
    tables: Sequence[Table], scorers: Sequence[Scorer], codec: Codec, places: Mapping[str, Counts], records: Records
) -> Counts:
    """Number the cell of each record in each table; ``places`` joins a column's cells. Shapes: [B, T]."""
    fine, names, result = codec.to_cells(records), list(codec.columns), []
    label = records.labels(codec.schema.class_index)
    for index, table in enumerate(tables):
        if table.kind == "column":
            inner = places[table.name][fine[:, names.index(table.name)]]
        else:
            inner = scorers[index].cells(records)
        result.append(label * table.cells + inner)
    return np.stack(result, axis=1)


def _silent(schema: Schema) -> Scorer:
    """Return a classifier that costs nothing to ask, for where only the columns are counted."""
    edges = np.zeros(1) if schema.classes == 2 else np.zeros(0)
    return Scorer(lambda rows: np.zeros((len(rows), 1)), np.zeros(1, dtype=np.int64), edges)


def _fingerprint(spec: ScoreMeasurement, schema: Schema) -> str:
    facts = [(table.kind, table.name, table.classes, table.cells) for table in tables_of(spec, schema)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
