"""Nacre, the default for tables: two looks at low-order moments, one charge, and a mixture that reproduces them.

    measure   h = sum_x a onehot_fine(x) (x) e_class                       + noise      where the mass of each column is
              cells = merge(h)                                             released     thin cells merged, from h alone
              s = sum_x [ a onehot(x) (x) e_class ; b r(x) (x) (alpha e_class + beta 1) ]  + noise
                  r(x) = residuals of pairs of columns: all 2-way and label-3-way marginals that 1-way ones leave open
                  in a wide table with few records b h_i(x) h_j(x): one product of two halves for every two columns
              j = sum_x of what the columns of a joint table show together, where a workload asks for one + noise
    denoise   average estimates of the same count, shrink what is noise    generators/denoise.py
    fit       a mixture of product distributions to the moments            generators/moment_matching.py
              the label of a row anew, from its other columns              generators/refinements/label_fit.py
              numbers that rise together do so within cells too            generators/refinements/coupling.py

Privacy: all looks get discrete Gaussian noise of one scale z * Delta, with Delta^2 = Delta_h^2 + Delta_s^2 + Delta_j^2
(proofs: embeddings/moments.py, residuals.py, products.py and interactions.py). They are Gaussian mechanisms of
mu_h = Delta_h / (z Delta), and so on; later ones may depend on the released first, and mu_h^2 + mu_s^2 + mu_j^2 <= 1 /
z^2: together they cost no more than one Gaussian of noise multiplier z (Dong, Roth and Su 2019, corollary 3.3).

Of users with rows of their own (the schema's key ``users``) the looks are at the flat table of contract/family.py, with
one charge for both tables: each row weighs one over the number of rows of its user, so a user moves a look as far as
one record does (embeddings/per_user.py has the proof), and all of the above holds with a user for a record.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.accounting.split import gaussians, noise_multiplier_of
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import weighed
from dpmodels.embeddings.cell_counts import STEP
from dpmodels.generators.ends import Ends
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec, MomentMatching
from dpmodels.generators.refinements.coupling import MOST_ROWS, MOST_VALUES, coupling_of
from dpmodels.generators.refinements.label_fit import label_model
from dpmodels.generators.refinements.present import with_rows
from dpmodels.generators.targets import cut, details, ends_of, joined, moment_target
from dpmodels.generators.users import UserModel
from dpmodels.late import torch
from dpmodels.methods.parts.joint_tables import joint_counts, joint_noise
from dpmodels.methods.parts.marginals import Marginals, NoisyTable, moment_tables, of_moments, with_pairs
from dpmodels.methods.parts.pair_noise import ABOUT, PAIR, SMALL_CLASS, pair_noise
from dpmodels.methods.tables.looks import MOST_GROUPS, Looks, NacreMeasurement, UserLooks
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of, without_image


@dataclass(frozen=True)
class Nacre(Synthesizer[Looks]):
    """Nacre for tables; its design is the two looks."""

    method = "nacre"
    takes_users = True
    takes_workload = True
    measurement: NacreMeasurement = field(default_factory=NacreMeasurement)
    training: MixtureSpec = field(default_factory=MixtureSpec)

    def settled(self, contract: Schema) -> NacreMeasurement:
        """Cut the columns of a workload by the noise of what it asks for, unless the setting was given."""
        spec = self.measurement
        is_set = spec.asked_cells is not None or not weighed(contract)
        return spec if is_set else spec.model_copy(update={"asked_cells": True})

    def design(self, spec: NacreMeasurement, contract: Schema) -> Looks:
        """Cut the public cells and weigh the looks."""
        looks = UserLooks if contract.users else Looks
        return looks(spec, without_image(contract, self.method).flat)

    def event(self, design: Looks, budget: PrivacyBudget) -> ComposedEvent:
        """Charge what one Gaussian of the budget's noise multiplier costs."""
        return self.event_at(design, gaussian_noise_multiplier(budget))

    def event_at(self, design: Looks, z: float) -> ComposedEvent:
        """Charge every zoom its share, and two Gaussians of one scale for the rest: z times the norm of both looks."""
        share = design.spec.zoom_share
        zooms = gaussians(z, {"zoom": share}) * design.zooms
        scale = noise_multiplier_of(1 - share * design.zooms, z) * design.l2_sensitivity
        joint = [("joint tables", design.joint_radius)] if design.joint else []
        parts = [("fine one-way", design.first.l2_sensitivity), *joint, ("one- and two-way", design.second_radius)]
        looks = [GaussianEvent(noise_multiplier=scale / radius, mechanism=name) for name, radius in parts]
        return ComposedEvent(events=(*zooms, *looks))

    def programme(self, design: Looks) -> Programme:
        """Zoom, sum the fine histograms, then the moments on cells that are merged by the noisy histograms."""
        cells = design.coarse
        for _ in range(design.zooms):
            counted = yield Sum.of(design.zoom_counts(cells, design.max_rows))
            cells = design.zoom(counted, cells)
        fine = yield Sum.of(design.first_in(cells) if design.zooms else design.first)
        second = design.second(fine)
        if design.joint:
            yield Sum.of(design.interactions(fine, second.partition), design.joint_radius)
        yield Sum.of(second, design.second_radius)

    def fit(self, release: Released[Release], craft: Craft) -> MixtureModel:
        """Denoise the release and fit a mixture to it, resuming from the checkpoint if there is one.

        Privacy: post-processing.
        """
        line, answers = release.value.line, self.answers(release.value)
        model = self.fit_looks(self.of(line), *answers, craft=craft, entry=release.value.entry)
        if line.contract.users:  # rows of a user share values, which cannot change places
            users = UserModel(**{**vars(model), "schema": line.contract, "coupling": None})
            return with_rows(users) if self.training.each_has_rows else users
        return model

    def fit_looks(self, looks: Looks, *released: NoisySum, craft: Craft, entry: str = "") -> MixtureModel:
        """Fit a mixture to what was released, look by look (post-processing)."""
        zooms, fine, joint, second = looks.parted(released)
        first, moments, noise = fine.embedding, second.embedding, fine.noise_stddev
        tables = (joint.embedding, joint.vector, joint.noise_stddev) if joint else None
        target, counts = moment_target(first, moments, np.concatenate([fine.vector, second.vector]), noise, tables)
        matching = MomentMatching(target, self.training, seed=craft.seed, device=craft.device)
        probabilities = matching.run(craft.checkpoint, craft.progress)
        ends = _ends(looks, zooms, fine, second)
        merged, cells = joined(moments.partition, ends)
        probabilities = torch.zeros(*probabilities.shape[:2], int(merged.offsets[-1])).index_add_(
            2, torch.from_numpy(cells), probabilities
        )
        counted = first.unpack_cells(fine.vector)
        shares = details(merged, counted, first.partition.offsets, noise / first.one_way, ends)
        partition, shares = cut(merged, shares, ends)
        model = MixtureModel(
            looks.schema, looks.most_fine, partition, probabilities, shares, torch.from_numpy(counts), entry
        )
        labels = label_model(model, target, moments.partition, self.training.label_rows, craft.seed)
        drawn = model.draw(min(MOST_ROWS, MOST_VALUES // looks.columns), np.random.default_rng(craft.seed))
        return replace(model, labels=labels, coupling=coupling_of(partition, drawn, self.training.coupling))

    def marginals(self, release: Release) -> Marginals:
        """Return every column's counts, averaged over both looks (post-processing)."""
        return self.marginals_in(self.of(release.line), self.answers(release))

    def marginals_in(self, looks: Looks, released: Sequence[NoisySum]) -> Marginals:
        """Return the same of looks and what they released (post-processing)."""
        zooms, fine, _, second = looks.parted(released)
        once = of_moments(fine.embedding, fine.vector, fine.noise_stddev)
        marginals = with_pairs(once, fine.embedding, fine.vector, second.embedding, second.vector, fine.noise_stddev)
        names, ends = fine.embedding.partition.names, _ends(looks, zooms, fine, second)
        pooled = {names[index]: replace(marginals.columns[names[index]], ends=each) for index, each in ends.items()}
        return replace(marginals, columns=marginals.columns | pooled)

    def tables(self, release: Release) -> Iterator[NoisyTable]:
        """Return the fine counts of the first look, then all of the second and of joint tables (post-processing).

        The zooms before them counted coarser cells of the same columns, and are left out.
        """
        _, fine, joint, second = self.of(release.line).parted(self.answers(release))
        return chain(moment_tables(fine), moment_tables(second), joint_counts(joint, second) if joint else ())

    def noise(self, line: Line) -> dict[str, float]:
        return self.noise_in(self.of(line), line, 0)

    def noise_in(self, looks: Looks, line: Line, first: int) -> dict[str, float]:
        """Name the same of looks of which the earliest takes event number ``first`` of a line."""
        steps = line.noise_stddev(first + looks.zooms, looks.first.l2_sensitivity)
        zoom = line.noise_stddev(first, looks.zoom_radius) / STEP
        zooms = {"records in a cell of one column, at each zoom": zoom} if looks.zooms else {}
        return {
            **zooms,
            "records in a fine cell of one column and class": steps / looks.first.one_way,
            "records in a merged cell of one column and class, at most": steps / looks.one_way,
            **self._noise_of_pairs(looks, steps),
        }

    def released_noise(self, release: Release) -> dict[str, float]:
        """Return the noise that pairs really have on the cells that the release led to, by the names of ``noise``."""
        return self.released_noise_in(self.of(release.line), self.answers(release))

    def released_noise_in(self, looks: Looks, released: Sequence[NoisySum]) -> dict[str, float]:
        """Return the same of looks and what they released."""
        _, _, joint, second = looks.parted(released)
        if not looks.mix:
            return {}
        workload = weighed(looks.schema)
        noise = joint_noise(workload, joint.embedding.stddevs, joint.noise_stddev) if joint else {}
        return pair_noise(second.embedding, second.noise_stddev, workload) | noise

    def _noise_of_pairs(self, looks: Looks, steps: float) -> dict[str, float]:
        """Say what the noise of pairs will be about: more where a class is small, and so first moments weigh more."""
        if not looks.mix:
            return {f"{PAIR} and class, at most": steps / looks.weights(0.0, steps / looks.two_way)[1]}
        usual, small = (looks.expected_second(smallest, steps) for smallest in (math.inf, 0.0))
        products = pair_noise(looks.expected_products(), steps, ()) if looks.all_pairs else {}
        noise, if_small = (pair_noise(each, steps, weighed(looks.schema)) for each in (usual, small))
        noise |= joint_noise(weighed(looks.schema), looks.joint_stddevs, steps)
        return noise | products | ({SMALL_CLASS: if_small[ABOUT]} if if_small else {})

    def fingerprint(self, design: Looks) -> str:
        """Hash the fine cells, the weights, and the rules by which the first look sets those of the second."""
        spec, cells = design.spec, [design.fine.sizes, design.fine.classes, design.most_cells, design.reach]
        rules: list[float | None] = [spec.small_class, spec.most_weight, spec.resolved, spec.least_runs]
        rules += [spec.pooled_share, *design.mix] if design.mix else []
        rules += [spec.zooms, spec.coarse_cells, spec.zoom_values, spec.zoom_noise] if design.zooms else []
        rules += [spec.product_share] if design.all_pairs else []
        rules += design.pair_weights.ravel().tolist() if design.is_weighed else []
        rules += [spec.asked_cells] if spec.asked_cells else []
        for columns, weight in design.joint:
            rules += [MOST_GROUPS, weight, *columns]
        return fingerprint_of(*cells, design.first.one_way, design.one_way, design.two_way, *rules)


def _ends(looks: Looks, zooms: Sequence[NoisySum], fine: NoisySum, second: NoisySum) -> dict[int, Ends]:
    """Pool what all looks released of the columns that are zoomed into, by their places (post-processing)."""
    zoom_looks = [(look.embedding.zoom, look.embedding.unpack(look.vector), look.noise_stddev / STEP) for look in zooms]
    measured = [(look.embedding, look.vector, look.noise_stddev) for look in (fine, second)]
    return ends_of(zoom_looks, measured)
