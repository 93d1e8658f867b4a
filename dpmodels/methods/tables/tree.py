"""Nacre for a tree of tables: the looks of nacre at the flat table of each, under one charge.

    for each table of the tree
        zoom, first and second look at its flat table, each unit weighing at most one     embeddings/branch.py
    fit      for each table the mixture of nacre
    sample   units from the mixture of the root, with how many rows they have in each table below;
             these rows one after another, from the mixture of their table given what is known of each
                                                                                          generators/trees/tree.py

Privacy: unit and adjacency are a row of the root with all rows below it, added or removed. Every look is a Gaussian
mechanism whose L2 sensitivity is that of one record (embeddings/branch.py), and may be chosen from what was released
before. Those of table t cost together a Gaussian of noise multiplier z / sqrt(s_t); with sum_t s_t = 1 they all
together cost no more than one of noise multiplier z (Dong, Roth and Su 2019, corollary 3.3).
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent
from dpmodels.arrays import Whole
from dpmodels.contract.branch import PREVIOUS
from dpmodels.contract.tree import Tree
from dpmodels.embeddings.branch import BranchSum, Weighed
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.refinements.coupling import MOST_ROWS, MOST_VALUES, coupling_with
from dpmodels.generators.trees.tree import TreeModel
from dpmodels.methods.parts.marginals import Marginals
from dpmodels.methods.tables.looks import Looks, NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.contract import tree_of
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of

ROWLESS = (
    "the rows of public table {} are not known: name the data that its file lies beside, or write them as its `rows`"
)
Shares = dict[str, Annotated[float, Field(gt=0, le=1000)]]


class TreeMeasurement(NacreMeasurement):
    """What is measured of each flat table, as of a table, and how the budget is divided.

    Attributes:
        shares: by table what part of the budget (mu squared) its looks take, in proportion; 1 for those not named.
        drawn_weight: how many times less noise pairs with a column of the table itself get than pairs of columns that
            are given when its rows are drawn; step_weight: the same of a column and that of the row before.
    """

    paired_columns: Annotated[int, Field(ge=2, le=4096)] = 512
    product_share: None = None
    shares: Shares = Field(default={})
    drawn_weight: Annotated[int, Field(ge=1, le=10)] = 2
    step_weight: Annotated[int, Field(ge=1, le=10)] = 10


class BranchLooks(Looks):
    """The looks at the flat table of one table; pairs with a column that is drawn there are measured more closely."""

    def __init__(self, spec: TreeMeasurement, tree: Tree, table: str) -> None:
        self.usual_weight = spec.drawn_weight if tree.given(table) else 1
        self.weighing, self.order = spec, f"{table}.{tree.tables[table].order}"
        self.drawn, self.steps = tree.attributes(table).keys(), {f"{table}.{each}" for each in tree.followed(table)}
        super().__init__(spec, tree.flat_of(table))

    @property
    def cell_weights(self) -> tuple[list[int], list[int]]:
        """Return the weights of the pairs that are measured most closely, and of the usual ones for all columns."""
        return self.pair_weights.max(axis=0).tolist(), [self.usual_weight] * len(self.pair_weights)

    def weights_of_pairs(self) -> Whole:
        drawn = np.array([name in self.drawn for name in self.fine.names])
        weighs = (drawn | drawn[:, None]) if not drawn.all() else np.zeros((len(drawn),) * 2, dtype=np.bool_)
        weights = np.where(weighs, self.weighing.drawn_weight, 1).astype(np.int64)
        for name in self.steps & set(self.fine.names):  # a target is measured with every other column, class by class
            pair = [self.fine.names.index(each) for each in (name, f"{name}.{PREVIOUS}")]
            weights[pair, pair[::-1]] = self.weighing.step_weight
        return weights


@dataclass(frozen=True)
class TreeLooks:
    """The looks at each flat table, and the share of the budget that they take."""

    looks: dict[str, BranchLooks]
    shares: dict[str, float]


@dataclass(frozen=True)
class NacreTree(Synthesizer[TreeLooks]):
    """Nacre for a tree of tables; its design is that of nacre for each flat table."""

    method = "nacre-tree"
    about = Tree.about
    measurement: TreeMeasurement = field(default_factory=TreeMeasurement)
    training: MixtureSpec = field(default_factory=MixtureSpec)

    @property
    def rows(self) -> Nacre:
        """The method that each flat table is measured and fitted by."""
        return Nacre(self.measurement, self.training)

    def design(self, spec: TreeMeasurement, contract: Tree) -> TreeLooks:
        """Lay out the looks at each flat table.

        Raises:
            InvalidArgument: a share is named of what is no table that is measured by itself.
            Unsuitable: the rows of a public table are not in the contract.
        """
        if contract.without_rows:
            raise Unsuitable(ROWLESS.format(contract.without_rows[0]))
        if strange := spec.shares.keys() - set(contract.measured):
            rule = f"name tables that are measured by themselves, which are {', '.join(contract.measured)}"
            raise InvalidArgument("shares", sorted(strange)[0], rule)
        shares = {name: spec.shares.get(name, 1.0) for name in contract.measured}
        total = math.fsum(shares.values())
        looks = {name: BranchLooks(spec, contract, name) for name in contract.measured}
        return TreeLooks(looks, {name: share / total for name, share in shares.items()})

    def event(self, design: TreeLooks, budget: PrivacyBudget) -> ComposedEvent:
        """Charge for each table what nacre is charged with its share of the budget."""
        z = gaussian_noise_multiplier(budget)
        parts = [self.rows.event_at(looks, z / math.sqrt(design.shares[name])) for name, looks in design.looks.items()]
        named = [
            event.model_copy(update={"mechanism": f"{name}: {getattr(event, 'mechanism', '')}"})
            for name, part in zip(design.looks, parts, strict=True)
            for event in part.events
        ]
        return ComposedEvent(events=tuple(named))

    def programme(self, design: TreeLooks) -> Programme:
        """Take the steps of nacre, table by table."""
        for name, looks in design.looks.items():
            yield from _through(name, self.rows.programme(looks))

    def fit(self, release: Released[Release], craft: Craft) -> TreeModel:
        """Fit a mixture to the looks at each table.

        Privacy: post-processing.
        """
        line = release.value.line
        tree, design, models = tree_of(line.contract), self.of(line), {}
        for name, answers in self._by_table(release.value).items():
            own = replace(craft, checkpoint=craft.checkpoint and _beside(craft.checkpoint, name))
            model = self.rows.fit_looks(design.looks[name], *answers, craft=own, entry=release.value.entry)
            models[name] = model if name == tree.root else self._coupled(model, design.looks[name], craft.seed)
        for name in models if craft.checkpoint else ():
            _beside(craft.checkpoint, name).unlink(missing_ok=True)
        return TreeModel(tree, models, release.value.entry)

    def _coupled(self, model: MixtureModel, looks: BranchLooks, seed: int) -> MixtureModel:
        """Couple values that are drawn within their cells with those that are given."""
        drawn = replace(model, coupling=None).draw(
            min(MOST_ROWS, MOST_VALUES // looks.columns), np.random.default_rng(seed)
        )
        return replace(
            model, coupling=coupling_with(model.partition, drawn, self.training.coupling, looks.drawn - {looks.order})
        )

    def marginals(self, release: Release) -> Marginals:
        """Return the counts of the columns of the root, whose rows are the units (post-processing)."""
        return self.marginals_of(release)[tree_of(release.line.contract).root]

    def marginals_of(self, release: Release) -> dict[str, Marginals]:
        """Return for each measured table the counts of its flat table's columns (post-processing)."""
        looks, answers = self.of(release.line).looks, self._by_table(release)
        return {name: self.rows.marginals_in(looks[name], answers[name]) for name in looks}

    def noise(self, line: Line) -> dict[str, float]:
        design, first, noise = self.of(line), 0, dict[str, float]()
        for name, looks in design.looks.items():
            for quantity, stddev in self.rows.noise_in(looks, line, first).items():
                noise[f"{name}: {quantity}"] = stddev
            first += len(self.rows.event_at(looks, 1.0).events)
        return noise

    def released_noise(self, release: Release) -> dict[str, float]:
        """Return by table the noise that pairs really have (``Nacre.released_noise``)."""
        looks, noise = self.of(release.line).looks, dict[str, float]()
        for name, answers in self._by_table(release).items():
            for quantity, stddev in self.rows.released_noise_in(looks[name], answers).items():
                noise[f"{name}: {quantity}"] = stddev
        return noise

    def fingerprint(self, design: TreeLooks) -> str:
        """Hash the looks at each table; how the budget is divided is in the event."""
        return fingerprint_of(*[(name, self.rows.fingerprint(looks)) for name, looks in design.looks.items()])

    def _by_table(self, release: Release) -> dict[str, list[NoisySum]]:
        """Return what the looks at each table released, as looks at a table of its own."""
        by_table: dict[str, list[NoisySum]] = {}
        for answer in self.answers(release):
            by_table.setdefault(answer.embedding.table, []).append(_alone(answer))
        return by_table


def _through(table: str, programme: Programme) -> Programme:
    """Take the sums of a programme for one table as sums over that table of a tree."""
    step = cast(Sum, next(programme))
    while True:
        answer = yield Sum.of(BranchSum(table, cast(Weighed, step.embedding)), step.l2_sensitivity)
        try:
            step = cast(Sum, programme.send(_alone(answer)))
        except StopIteration:
            return


def _alone(answer: NoisySum) -> NoisySum:
    """Return what a look at a table of a tree released as a look at a table of its own."""
    return replace(answer, embedding=answer.embedding.rows)


def _beside(checkpoint: Any, table: str) -> Path:
    """Return where the fit of a table keeps the state from which it can go on."""
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}-{table}{path.suffix}")
