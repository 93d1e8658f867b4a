"""Heads and moments in one release, so that one hand-off can say which of the two makes the better classifier.

    measure   the two heads of heads.py, then the moments of moments_head.py

Privacy: three Gaussians of the same records, charged in one line. The heads take ``heads_share`` of the budget's
squared mu and the moments the rest. The sensitivities are those of the two systems, with their proofs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent
from dpmodels.accounting.split import gaussians, noise_multiplier_of
from dpmodels.arrays import Whole
from dpmodels.contract.federation import Federation
from dpmodels.errors import InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.methods.federations.heads import FederatedHeads, HeadProblems, Heads, HeadsMeasurement
from dpmodels.methods.federations.moments_head import ClientMoments, Discriminant, MomentsHead, added
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme
from dpmodels.releases.system import System, fingerprint_of
from dpmodels.statistics.class_moments import ClassMoments


class BothMeasurement(Frozen):
    """What is measured, all of it part of the plan; ``heads_share`` is the heads' share of the budget's squared mu."""

    heads: HeadsMeasurement = HeadsMeasurement()
    moments: ClientMoments = ClientMoments()
    heads_share: Annotated[float, Field(ge=0.01, le=0.99)] = 0.5


@dataclass(frozen=True)
class BothDesigns:
    """What the two systems make of the contract."""

    heads: HeadProblems
    moments: ClassMoments


@dataclass(frozen=True)
class HeadsAndMoments(System[BothDesigns]):
    """Both releases of one client; ``negatives`` are the vectors of public records, needed to measure only."""

    method = "federated-both"
    about = "a federation"
    measurement: BothMeasurement = field(default_factory=BothMeasurement)
    negatives: Whole | None = None

    @property
    def _heads(self) -> FederatedHeads:
        return FederatedHeads(self.measurement.heads, self.negatives)

    @property
    def _moments(self) -> MomentsHead:
        return MomentsHead(self.measurement.moments)

    def settled(self, contract: Federation) -> BothMeasurement:
        """Settle the heads' parameters.

        Raises:
            InvalidArgument: as for ``FederatedHeads``, or the moments are to be added up before their noise is drawn.
        """
        if self.measurement.moments.trust != "local":
            rule = "be local where heads are released too, since these cannot be added up; or release the moments alone"
            raise InvalidArgument("moments.trust", self.measurement.moments.trust, rule)
        return self.measurement.model_copy(update={"heads": self._heads.settled(contract)})

    def priced(self, spec: BothMeasurement, contract: Federation, budget: PrivacyBudget) -> BothMeasurement:
        """Regularize the heads as the noise of their share asks."""
        z = noise_multiplier_of(spec.heads_share, gaussian_noise_multiplier(budget))
        return spec.model_copy(update={"heads": self._heads.regularized(spec.heads, contract, z)})

    def design(self, spec: BothMeasurement, contract: Federation) -> BothDesigns:
        return BothDesigns(self._heads.design(spec.heads, contract), self._moments.design(spec.moments, contract))

    def event(self, design: BothDesigns, budget: PrivacyBudget) -> ComposedEvent:
        z, share = gaussian_noise_multiplier(budget), self.measurement.heads_share
        moments = gaussians(z, {"moments of the classes": 1 - share})
        return ComposedEvent(events=(*self._heads.events(noise_multiplier_of(share, z)), *moments))

    def programme(self, design: BothDesigns) -> Programme:
        """Measure the heads, then the moments."""
        yield from self._heads.programme(design.heads)
        yield from self._moments.programme(design.moments)

    def heads(self, release: Released[Release]) -> Heads:
        """Read the heads of a release (post-processing)."""
        line = release.value.line
        return Heads.of(line, self.of(line).heads, self.answers(release.value))

    def fit(self, releases: Sequence[Released[Release]]) -> Discriminant:
        """Add up the moments of all clients, and read Gaussians off them (post-processing)."""
        line = releases[0].value.line
        floor = BothMeasurement.model_validate(line.measurement).moments.floor
        return added(self.of(line).moments, [self.answers(release.value)[2] for release in releases], floor)

    def noise(self, line: Line) -> dict[str, float]:
        design = self.of(line)
        return self._heads.noise_of(line, design.heads) | self._moments.noise_at(line, design.moments, 2)

    def least_units(self, line: Line) -> float:
        """Say about how many records a client needs for its classifying head, of which usually most is made."""
        return self._heads.least_of(line, self.of(line).heads)

    def fingerprint(self, design: BothDesigns) -> str:
        return fingerprint_of(self._heads.fingerprint(design.heads), self._moments.fingerprint(design.moments))
