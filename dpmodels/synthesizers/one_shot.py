"""What every one-shot system shares: its release is one noisy sum, or a few, each chosen from those before it.

    for each look:   embedding <- public parameters and the vectors released so far
                     s = sum_x phi(x) + discrete Gaussian noise

A system says what its looks are; summing, noise, the charge and the file are here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.accounting.ledger import Charge, Ledger
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.summation import check_repeatable, transform_sum
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.base import Plan, Release, write_release
from dpmodels.synthesizers.draw_state import DrawState
from dpmodels.synthesizers.marginals import Marginals
from dpmodels.synthesizers.paid import Paid, check_plan

Vector = NDArray[np.int64]


@dataclass(frozen=True)
class Look:
    """One sum that a plan measures, and the multiplier of its noise over the plan's ``l2_sensitivity``.

    ``chosen``: the integers, computed from earlier looks, that the embedding is made of; they are kept with the
    release, for where another machine's arithmetic could compute others. ``rebuild`` makes the embedding of them.
    """

    embedding: Embedding
    noise_multiplier: float
    chosen: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rebuild: Callable[[Vector], Embedding] | None = None


Choose = Callable[[Sequence[Vector]], Look]
"""Makes a look from the noisy vectors of the looks before it."""


class OneShot(ABC):
    """A system whose release is nothing but noisy sums, each of which can be held against other rows."""

    @abstractmethod
    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge from public inputs."""

    @abstractmethod
    def looks(self, plan: Plan) -> Sequence[Choose]:
        """List what a plan measures, in order."""

    @abstractmethod
    def marginals(self, release: Release) -> Marginals | None:
        """Return the one-way counts that a release states, or None if it states none (post-processing)."""

    def measure(
        self,
        sensitive: Sensitive[Iterable[Records]],
        plan: Plan,
        *,
        ledger: Ledger,
        charge: Charge,
        staged: Path,
        released: Path,
        device: str = "cpu",
    ) -> Released[Path]:
        """Take every look: sum it exactly, add noise once; all of them are one release for one ledger charge.

        Privacy: add or remove one unit. A sum moves by at most the ``l2_sensitivity`` its embedding proves. A look is
            chosen from public parameters and the noisy vectors before it, so this is an adaptive composition of the
            Gaussians of ``plan.event``, which are charged. Nothing else is read out.
        """
        check_plan(self, plan)
        looks = self.looks(plan)
        if len(looks) > 1:
            check_repeatable(sensitive)

        def draw(path: Path, entry: str) -> None:
            paid = Paid(plan, ledger, entry, staged.parent)
            vectors: list[Vector] = []
            names: list[dict[str, Any]] = []
            chosen: list[Vector] = []
            for number, choose in enumerate(looks, start=1):
                look = choose(vectors)
                embedding = look.embedding
                vectors.append(
                    paid.sum(
                        partial(transform_sum, embedding, sensitive, device),
                        own=embedding.l2_sensitivity,
                        l2_sensitivity=plan.l2_sensitivity,
                        noise_multiplier=look.noise_multiplier,
                    )
                )
                chosen.append(look.chosen)
                names.append({"look": np.full(embedding.dim, number), **embedding.coordinates()})
            paid.end()
            coordinates = {key: np.concatenate([named[key] for named in names]) for key in names[0]}
            vector, integers = Released(np.concatenate(vectors)), np.concatenate(chosen)
            write_release(path, vector, plan, entry, coordinates, integers)

        place = ledger.release(charge, staged=staged, released=released, draw=draw, announced=True)
        DrawState(staged.parent, charge.key, plan.hash).end()
        return Released(place)


def split_looks(release: Release, looks: Sequence[Choose]) -> list[tuple[Look, Vector]]:
    """Split a release into its looks and what each of them released (post-processing)."""
    vectors: list[Vector] = []
    found: list[tuple[Look, Vector]] = []
    start, stored = 0, release.chosen
    for choose in looks:
        look = choose(vectors)
        if look.rebuild:
            chosen, stored = np.split(stored, [len(look.chosen)])
            look = replace(look, embedding=look.rebuild(chosen), chosen=chosen)
        vectors.append(release.vector[start : start + look.embedding.dim])
        found.append((look, vectors[-1]))
        start += look.embedding.dim
    return found
