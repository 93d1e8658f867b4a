"""What every one-shot system shares: its release is one noisy sum, or a few, each chosen from those before it.

    for each look:   embedding <- public parameters and the vectors released so far
                     s = sum_x phi(x) + discrete Gaussian noise

A system says what its looks are; summing, noise, the charge and the file are here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.accounting.events import GaussianEvent, Leaf, leaves
from dpmodels.accounting.ledger import Charge, Ledger
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.summation import check_repeatable, transform_sum
from dpmodels.errors import InvalidArgument
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Released, Sensitive
from dpmodels.schema.encode import Records
from dpmodels.synthesizers.base import Plan, Release, write_release
from dpmodels.synthesizers.marginals import Marginals

Vector = NDArray[np.int64]
ROUNDING = 2.0**-50
"""What float operations may take off a noise multiplier; ``lattice_noise_stddev`` adds as much to the noise."""


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
        looks, events = self.looks(plan), list(leaves([plan.event]))
        if len(looks) > 1:
            check_repeatable(sensitive)

        def draw(path: Path, entry: str) -> None:
            vectors: list[Vector] = []
            names: list[dict[str, Any]] = []
            chosen: list[Vector] = []
            for number, (choose, event) in enumerate(zip(looks, events, strict=True), start=1):
                look = choose(vectors)
                check_charged(look, event, plan.l2_sensitivity)
                total = transform_sum(look.embedding, sensitive, device)
                l2, z = plan.l2_sensitivity, look.noise_multiplier
                vectors.append(measure_gaussian(total, l2_sensitivity=l2, noise_multiplier=z).value)
                chosen.append(look.chosen)
                names.append({"look": np.full(look.embedding.dim, number), **look.embedding.coordinates()})
            coordinates = {key: np.concatenate([named[key] for named in names]) for key in names[0]}
            vector, integers = Released(np.concatenate(vectors)), np.concatenate(chosen)
            write_release(path, vector, plan, entry, coordinates, integers)

        return Released(ledger.release(charge, staged=staged, released=released, draw=draw))


def check_charged(look: Look, event: Leaf, l2_sensitivity: int) -> None:
    """Refuse a look that would get less noise than its event is charged for.

    Units: ``l2_sensitivity`` is the plan's, in lattice steps; the look's noise is a multiple of it.

    Raises:
        InvalidArgument: noise / the embedding's own sensitivity is below the event's noise multiplier.
    """
    multiplier = look.noise_multiplier * l2_sensitivity / look.embedding.l2_sensitivity
    if not isinstance(event, GaussianEvent) or multiplier < event.noise_multiplier * (1 - ROUNDING):
        # the ratio may tell of a noisy look that is drawn anew on resuming, so it is not said
        raise InvalidArgument("noise_multiplier", "<redacted>", f"be what the look is charged for: {event!r}")


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
