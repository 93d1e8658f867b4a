"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao; TODS 2017): a Bayesian network, selected and then measured.

    measure   h = sum_x a onehot_fine(x)                  + noise      where the mass of each column is
              cells, coarse cells = merge(h)              released     thin cells merged, from h alone
              repeat: (child, parents) ~ exp(score / s)   released     the exponential mechanism
              t = sum_x onehot(x_child, x_parents) a family + noise    the tables of the network, in one vector
    fit       p(child | parents) of every family                       generators/bayes_net.py

What differs from the paper, and why. Its scores divide by the private number of records and its theta-usefulness reads
that number; ours (embeddings/contingency.py) counts records, against shares that are already released, and moves by at
most one (replacing a record: two, the paper's R three n-ths). A family's price is the error that the noise of its table
will cause, in records too: so wide tables are chosen where much is to be said, and no degree need be tuned to n. Bins
come from a charged look. The target, if there is one, is the first column of the network. Noise is Gaussian and not
Laplace: at epsilon 1 and delta 1e-5 that is less from eight columns on, since a record is in a table of every column.

Privacy: both vectors get discrete Gaussian noise of one scale z * Delta. As Gaussian mechanisms of
mu_h = Delta_h / (z Delta) and mu_t = Delta_t / (z Delta), and with every selection charged as a Gaussian
(mechanisms/exponential.py), each chosen from what was released before it, mu_h^2 + mu_t^2 + sum mu_select^2 <= 1 / z^2:
together they cost no more than one Gaussian of noise multiplier z (Dong, Roth and Su 2019, corollary 3.3).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.embeddings.contingency import SCORE_STEP, ContingencyTables, Family, Views
from dpmodels.embeddings.partition import Counts
from dpmodels.errors import InvalidArgument
from dpmodels.generators.bayes_net import BayesNetModel, Estimate, conditional
from dpmodels.generators.loop import Progress
from dpmodels.generators.targets import details
from dpmodels.mechanisms.exponential import exponential_scale
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Choose, Data, Keep, Programme, Sum
from dpmodels.releases.system import NoisySum, Synthesizer
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.bayes_structure import Network, PrivBayesMeasurement, read_families, write_families
from dpmodels.synthesizers.marginals import Marginal, Marginals, pooled


class PrivBayesTraining(BaseModel):
    """There is nothing to choose once the network is measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class PrivBayes(Synthesizer):
    """The three verbs of PrivBayes."""

    measurement: PrivBayesMeasurement = field(default_factory=PrivBayesMeasurement)
    training: PrivBayesTraining = field(default_factory=PrivBayesTraining)

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: composed Gaussian events, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or the schema has an image.
        """
        check_unit(schema, budget)
        if schema.image:
            raise InvalidArgument("method", "privbayes", "be nacre-images for a schema with a column of type image")
        network = Network(self.measurement, schema, gaussian_noise_multiplier(budget))
        return Plan(
            method="privbayes",
            table=schema,
            budget=budget,
            event=network.event(),
            noise_multiplier=network.noise_multiplier,
            l2_sensitivity=network.l2_sensitivity,
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=network.fingerprint(),
        )

    def programme(self, plan: Plan) -> Programme:
        """Sum the fine histograms, select the network, then sum its tables.

        Privacy: candidates, prices and shares are read off what was released before. F - 1 selections, each charged as
            Gaussian(``network.selection``); the first column is public.
        """
        network, l2, z = Network.of(plan), plan.l2_sensitivity, plan.noise_multiplier
        first = yield replace(Sum.of(network.first, 1, l2, z), columns={"look": np.repeat(1, network.first.dim)})
        views, shares = network.views(first)
        tables = lru_cache(maxsize=1)(lambda data: ContingencyTables(views, data.records))
        families = [Family(network.root, ())]
        candidates = {family: network.penalty(views, family) for family in network.openings()}
        while candidates:
            placed = [family.child for family in families]
            candidates |= {family: network.penalty(views, family) for family in network.joining(views, placed)}
            order, prices = list(candidates), list(candidates.values())
            scores = partial(_scores, tables, order, shares, prices)
            families.append(order[(yield Choose(scores, network.max_rows * SCORE_STEP, network.selection))])
            candidates = {family: price for family, price in candidates.items() if family.child != families[-1].child}
        structure = write_families(families, network.degree)
        yield Keep(structure, {"look": np.repeat(2, len(structure))})
        steps = network.steps(views, families)
        dim = sum(math.prod(views.shape(family)) for family in families)
        columns = {"look": np.repeat(3, dim)}
        yield Sum(partial(_tables_of, tables, families, steps), dim, network.tables_radius, l2, z, columns=columns)

    def sums(self, release: Release) -> list[NoisySum]:
        """Hold nothing against a release whose tables were chosen."""
        return []

    def fit(
        self,
        release: Released[Release],
        *,
        seed: int,
        device: str,
        checkpoint: Path,
        progress: Progress | None = None,
    ) -> BayesNetModel:
        """Turn the released tables into conditional distributions; nothing is random and nothing takes long.

        Privacy: post-processing.
        """
        plan, network = release.value.plan, Network.of(release.value.plan)
        views, families, fine, counts = _parts(network, release.value)
        offsets = network.fine.offsets
        detail = details(views.partition, fine.counts, offsets, fine.noise_stddev)
        totals = np.add.reduceat(fine.counts[0], offsets[:-1])  # each estimates the number of records
        return BayesNetModel(
            plan.table,
            network.most_fine,
            views,
            families,
            conditionals(network, views, families, fine, counts),
            [shares[0] for shares in detail],
            float(np.average(totals, weights=1 / np.array(network.fine.sizes))),
            release.value.entry,
        )

    def marginals(self, release: Release) -> Marginals:
        """Return every column's counts, averaged over its histogram and all tables it is in (post-processing).

        A table says something of a column's cells where it holds them: of the child, and of parents by their cells.
        """
        network = Network.of(release.plan)
        views, families, fine, counts = _parts(network, release)
        tables = list(_tables(network, views, families, counts))
        columns, codec = {}, network.fine.codec
        for index, name in enumerate(codec.columns):
            begin, merge = network.fine.offsets[index], views.partition.merge[index]
            once = fine.counts[0, begin : begin + len(merge)]
            estimates = [np.bincount(merge, once).astype(np.float64)]
            variances = [np.bincount(merge) * np.float64(fine.noise_stddev) ** 2]
            for family, table in zip(families, tables, strict=True):
                held = [*family.parents, 2 * family.child]
                if 2 * index in held:
                    shape = [views.sizes[view] for view in held]
                    others = tuple(axis for axis, view in enumerate(held) if view != 2 * index)
                    estimates.append(table.counts.reshape(shape).sum(axis=others))
                    added = table.counts.size / views.sizes[2 * index]
                    variances.append(np.full(views.sizes[2 * index], added * table.noise_stddev**2))
            columns[name] = Marginal(once, fine.noise_stddev, merge, *pooled(estimates, variances))
        return Marginals(codec, columns)

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        network = Network.of(plan)
        names = {
            "records in a fine cell of one column": network.noise_stddev / network.first.one_way,
            "records in a cell of a table of average size": network.noise_stddev / network.unit,
        }
        if network.columns > 1:
            scale = exponential_scale(network.max_rows * SCORE_STEP, network.selection)
            names["score of a family, in records (Gumbel)"] = math.pi / math.sqrt(6) * scale / SCORE_STEP
        return names


Tables = Callable[[Data], ContingencyTables]
"""Reads the cells of all records, once."""


def _scores(
    tables: Tables, order: list[Family], shares: list[Counts], prices: list[int], data: Data
) -> Sensitive[NDArray[np.int64]]:
    return tables(data).transform_scores(order, shares, prices)


def _tables_of(tables: Tables, families: list[Family], steps: list[int], data: Data) -> Sensitive[NDArray[np.int64]]:
    return tables(data).transform_tables(families, steps)


def _parts(network: Network, release: Release) -> tuple[Views, list[Family], Estimate, NDArray[np.int64]]:
    """Split a release: cells, families, the histogram of every column, and the tables one after the other."""
    width = network.columns * (1 + network.degree)
    first, structure, counts = np.split(release.vector, [network.first.dim, network.first.dim + width])
    fine = Estimate(network.first.unpack(first)[0], network.noise_stddev / network.first.one_way)
    return network.views(first)[0], read_families(structure, network.columns), fine, counts


def _tables(network: Network, views: Views, families: list[Family], counts: NDArray[np.int64]) -> Iterator[Estimate]:
    """Cut the released tables apart. Shapes: each [combinations of its parents' cells, cells of the child]."""
    end = 0
    for family, step in zip(families, network.steps(views, families), strict=True):
        shape = views.shape(family)
        begin, end = end, end + math.prod(shape)
        yield Estimate(counts[begin:end].reshape(shape) / step, network.noise_stddev / step)


def conditionals(
    network: Network, views: Views, families: list[Family], fine: Estimate, counts: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Estimate every family's distribution from its released table and its child's released histogram."""
    result = []
    for family, table in zip(families, _tables(network, views, families, counts), strict=True):
        merge = views.partition.merge[family.child]
        start = network.fine.offsets[family.child]
        one_way = np.bincount(merge, fine.counts[0, start : start + len(merge)]).astype(np.float64)
        parts = np.bincount(merge).astype(np.float64)
        result.append(conditional(table, Estimate(one_way, fine.noise_stddev), parts))
    return result
