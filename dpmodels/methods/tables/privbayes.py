"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao; TODS 2017): a Bayesian network, selected and then measured.

    measure   h = sum_x a onehot_fine(x)                  + noise      where the mass of each column is
              cells, coarse cells = merge(h)              released     thin cells merged, from h alone
              repeat: (child, parents) ~ exp(score / s)   released     the exponential mechanism
              t = sum_x onehot(x_child, x_parents) a family + noise    the tables of the network, in one vector
    fit       p(child | parents) of every family                       generators/bayes_net.py

What differs from the paper, and why. The paper's scores divide by the private number n of records, and its
theta-usefulness reads n. Our score (embeddings/contingency.py) counts records against shares that are already released,
and one record moves it by at most one (replacing a record: by two, and the paper's R by 3 / n). A family's price is the
error that the noise of its table will cause, in records too; so wide tables are chosen where they say much, and the
degree need not be tuned to n. Bins come from a charged look. The target, if there is one, is the first column of the
network. Noise is Gaussian and not Laplace: at epsilon 1 and delta 1e-5 Gaussian noise is the smaller from eight columns
on, since a record is in as many tables as there are columns.

Privacy: both vectors get discrete Gaussian noise of one scale z * Delta. As Gaussian mechanisms of
mu_h = Delta_h / (z Delta) and mu_t = Delta_t / (z Delta), and with every selection charged as a Gaussian
(mechanisms/exponential.py), each chosen from what was released before it, mu_h^2 + mu_t^2 + sum mu_select^2 <= 1 / z^2:
together they cost no more than one Gaussian of noise multiplier z (Dong, Roth and Su 2019, corollary 3.3).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent, leaves
from dpmodels.arrays import Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.contingency import SCORE_STEP, ContingencyTables, Family, Views
from dpmodels.frozen import Frozen
from dpmodels.generators.bayes_net import BayesNetModel, Estimate, conditional
from dpmodels.generators.targets import details
from dpmodels.mechanisms.exponential import exponential_scale
from dpmodels.methods.parts.marginals import Marginal, Marginals, NoisyTable, pooled
from dpmodels.methods.tables.bayes_structure import Network, PrivBayesMeasurement, read_family, write_family
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Choose, Data, NoisySum, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, without_image


class PrivBayesTraining(Frozen):
    """Settings of fitting: none, for there is nothing to choose once the network is measured."""


@dataclass(frozen=True)
class Tables:
    """A release taken apart: cells, families, the histogram of every column, and the table of every family.

    Shapes: a table is [combinations of its parents' cells, cells of the child].
    """

    views: Views
    families: list[Family]
    fine: Estimate
    tables: list[Estimate]


@dataclass(frozen=True)
class PrivBayes(Synthesizer[Network]):
    """PrivBayes; its design says what each step measures, given those before."""

    method = "privbayes"
    measurement: PrivBayesMeasurement = field(default_factory=PrivBayesMeasurement)
    training: PrivBayesTraining = field(default_factory=PrivBayesTraining)

    def design(self, spec: PrivBayesMeasurement, contract: Schema) -> Network:
        """Cut the public cells and bound the network."""
        return Network(spec, without_image(contract, self.method))

    def event(self, design: Network, budget: PrivacyBudget) -> ComposedEvent:
        """Charge two vectors, and every selection as the Gaussian that covers it."""
        return design.event(gaussian_noise_multiplier(budget))

    def held_bytes(self, design: Network) -> int:
        """Count the cells of a record, two bytes a column: as they are read, joined, and turned into columns."""
        return 3 * 2 * len(design.first.partition.columns)

    def programme(self, design: Network) -> Programme:
        """Sum the fine histograms, select the network, then sum its tables.

        Privacy: candidates, prices and shares depend on what was released before alone. Of F columns F - 1 are
            selected; the first is public.
        """
        network = design
        first = yield Sum(Sum.of(network.first).total, network.first.dim, network.first.l2_sensitivity)
        views, shares = network.views(first)
        price = lru_cache(maxsize=None)(partial(network.penalty, views, first.noise_stddev))
        tables = lru_cache(maxsize=1)(lambda data: ContingencyTables(views, data.records))
        families = [Family(network.root, ())]
        candidates = network.openings()
        while candidates:
            candidates = [*candidates, *network.joining(views, [family.child for family in families])]
            scores = partial(_scores, tables, candidates, shares, price)
            option = partial(_write_one, candidates, network.degree)
            index = yield Choose(scores, option, 1 + network.degree, network.max_rows * SCORE_STEP)
            families.append(read_family(index))
            candidates = [family for family in candidates if family.child != families[-1].child]
        steps = network.steps(views, families)
        dim = sum(math.prod(views.shape(family)) for family in families)
        yield Sum(partial(_tables_of, tables, families, steps), dim, network.tables_radius)

    def fit(self, release: Released[Release], craft: Craft) -> BayesNetModel:
        """Turn the released tables into conditional distributions; nothing is random and nothing takes long.

        Privacy: post-processing.
        """
        line, network = release.value.line, self.of(release.value.line)
        tables = tables_of(network, self.answers(release.value))
        offsets = network.fine.offsets
        detail = details(tables.views.partition, tables.fine.counts, offsets, tables.fine.noise_stddev)
        totals = np.add.reduceat(tables.fine.counts[0], offsets[:-1])  # each estimates the number of records
        return BayesNetModel(
            line.table,
            network.most_fine,
            tables.views,
            tables.families,
            conditionals(network, tables),
            [shares[0] for shares in detail],
            float(np.average(totals, weights=1 / np.array(network.fine.sizes))),
            release.value.entry,
        )

    def marginals(self, release: Release) -> Marginals:
        """Return every column's counts, averaged over its histogram and all tables it is in (post-processing).

        A table counts a column's merged cells if the column is its child, or a parent by these cells.
        """
        network = self.of(release.line)
        noisy_tables = tables_of(network, self.answers(release))
        views, fine = noisy_tables.views, noisy_tables.fine
        columns, codec = {}, network.fine.codec
        for index, name in enumerate(codec.columns):
            begin, merge = network.fine.offsets[index], views.partition.merge[index]
            once = fine.counts[0, begin : begin + len(merge)]
            estimates = [np.bincount(merge, once).astype(np.float64)]
            variances = [np.bincount(merge) * np.float64(fine.noise_stddev) ** 2]
            for family, table in zip(noisy_tables.families, noisy_tables.tables, strict=True):
                view_numbers = [*family.parents, 2 * family.child]
                if 2 * index in view_numbers:
                    shape = [views.sizes[view] for view in view_numbers]
                    others = tuple(axis for axis, view in enumerate(view_numbers) if view != 2 * index)
                    estimates.append(table.counts.reshape(shape).sum(axis=others))
                    added = table.counts.size / views.sizes[2 * index]
                    variances.append(np.full(views.sizes[2 * index], added * table.noise_stddev**2))
            columns[name] = Marginal(once, fine.noise_stddev, merge, *pooled(estimates, variances))
        return Marginals(codec, columns)

    def tables(self, release: Release) -> Iterator[NoisyTable]:
        """Return the fine histograms of the columns, then the tables of the network (post-processing)."""
        network = self.of(release.line)
        noisy_tables = tables_of(network, self.answers(release))
        names, offsets = list(network.fine.codec.columns), network.fine.offsets
        for name, cell_of_column, begin in zip(names, network.fine.merge, offsets[:-1], strict=True):
            counts = noisy_tables.fine.counts[0, begin : begin + len(cell_of_column)]
            yield NoisyTable((name,), (cell_of_column,), counts, noisy_tables.fine.noise_stddev)
        for family, table in zip(noisy_tables.families, noisy_tables.tables, strict=True):
            view_numbers = [*family.parents, 2 * family.child]
            merges = [noisy_tables.views.partition.merge[view // 2] for view in view_numbers]
            merges_of_views = tuple(
                noisy_tables.views.codes(view, merge) for view, merge in zip(view_numbers, merges, strict=True)
            )
            counts = table.counts.reshape([noisy_tables.views.sizes[view] for view in view_numbers])
            family_names = tuple(names[view // 2] for view in view_numbers)
            yield NoisyTable(family_names, merges_of_views, counts, table.noise_stddev, independent=True)

    def noise(self, line: Line) -> dict[str, float]:
        network = self.of(line)
        steps = line.noise_stddev(0, network.first.l2_sensitivity)
        names = {
            "records in a fine cell of one column": steps / network.first.one_way,
            "records in a cell of a table of average size": steps / network.unit,
        }
        _, *selections, _ = leaves([line.event])
        if selections and isinstance(selections[0], GaussianEvent):
            scale = exponential_scale(network.max_rows * SCORE_STEP, selections[0].noise_multiplier)
            names["score of a family, in records (Gumbel)"] = math.pi / math.sqrt(6) * scale / SCORE_STEP
        return names

    def fingerprint(self, design: Network) -> str:
        return design.fingerprint()


Reader = Callable[[Data], ContingencyTables]
"""Reads the cells of all records, once."""


def _scores(
    tables: Reader, order: list[Family], shares: list[Whole], price: Callable[[Family], int], data: Data
) -> Sensitive[NDArray[np.int64]]:
    return tables(data).transform_scores(order, shares, list(map(price, order)))


def _write_one(order: list[Family], degree: int, index: int) -> NDArray[np.int64]:
    return write_family(order[index], degree)


def _tables_of(tables: Reader, families: list[Family], steps: list[int], data: Data) -> Sensitive[NDArray[np.int64]]:
    return tables(data).transform_tables(families, steps)


def tables_of(network: Network, answers: list[Any]) -> Tables:
    """Take what the steps released apart."""
    first, *choices, last = answers
    families = [Family(network.root, ()), *map(read_family, choices)]
    views, _ = network.views(first)
    fine = Estimate(network.first.unpack(first.vector)[0], first.noise_stddev / network.first.one_way)
    return Tables(views, families, fine, _cut(network, views, families, last))


def _cut(network: Network, views: Views, families: list[Family], counts: NoisySum) -> list[Estimate]:
    """Cut the released vector into one table for each family."""
    end, tables = 0, []
    for family, step in zip(families, network.steps(views, families), strict=True):
        shape = views.shape(family)
        begin, end = end, end + math.prod(shape)
        tables.append(Estimate(counts.vector[begin:end].reshape(shape) / step, counts.noise_stddev / step))
    return tables


def conditionals(network: Network, tables: Tables) -> list[NDArray[np.float64]]:
    """Estimate every family's distribution from its released table and its child's released histogram."""
    result = []
    for family, table in zip(tables.families, tables.tables, strict=True):
        merge = tables.views.partition.merge[family.child]
        start = network.fine.offsets[family.child]
        one_way = np.bincount(merge, tables.fine.counts[0, start : start + len(merge)]).astype(np.float64)
        parts = np.bincount(merge).astype(np.float64)
        result.append(conditional(table, Estimate(one_way, tables.fine.noise_stddev), parts))
    return result
