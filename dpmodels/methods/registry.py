"""The methods of every kind by name: the system of each and the models of its settings. A new system is one entry."""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from dpmodels.contract.federation import SCORES
from dpmodels.errors import InvalidArgument, near, refused
from dpmodels.generators.image_matching import MatchingSpec
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.reconstruction import TrainingSpec
from dpmodels.methods.documents.deep_candidate import DeepCandidate, DeepCandidateMeasurement
from dpmodels.methods.documents.document_moments import DocumentMeasurement, DocumentMomentsSystem
from dpmodels.methods.documents.document_sketch import DocumentSketch, DocumentSketchMeasurement
from dpmodels.methods.federations.heads import FederatedHeads, HeadsMeasurement, ScoresMeasurement
from dpmodels.methods.federations.heads_and_moments import BothMeasurement, HeadsAndMoments
from dpmodels.methods.federations.moments_head import ClientMoments, MomentsHead
from dpmodels.methods.federations.scores import FederatedScores
from dpmodels.methods.images.image_moments import ImageMeasurement, NacreImages
from dpmodels.methods.images.photo_moments import NacrePhotos, PhotoMeasurement, PhotoTraining
from dpmodels.methods.kinds import KINDS
from dpmodels.methods.tables.bayes_structure import PrivBayesMeasurement
from dpmodels.methods.tables.dp_merf import DpMerfMeasurement, DpMerfTraining, dp_merf
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.tables.moments import MomentsMeasurement, MomentsSystem
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.methods.tables.pearl import Pearl, PearlMeasurement
from dpmodels.methods.tables.privbayes import PrivBayes, PrivBayesTraining
from dpmodels.methods.tables.thresholded_counts import DiscoveryMeasurement, DiscoverySystem
from dpmodels.methods.tables.tree import NacreTree, TreeMeasurement
from dpmodels.methods.trained.dp_gan import DpGanMeasurement, dp_gan
from dpmodels.methods.trained.dp_gm import DpGmMeasurement, dp_gm
from dpmodels.methods.trained.dp_vae import DpVaeMeasurement, dp_vae
from dpmodels.methods.trained.dpkg import DpkgMeasurement, dpkg
from dpmodels.methods.trained.p3gm import P3gmMeasurement, p3gm, p3gm_ae
from dpmodels.methods.trained.private_training import Untrained
from dpmodels.releases.contract import Contract
from dpmodels.releases.system import Synthesizer, System


@dataclass(frozen=True)
class Method:
    """A system and the models that check its settings.

    Attributes:
        measurement: of what is part of the plan; training: of what is free, where a generator is fitted.
        kind: what the method is for, see ``KINDS``; one of a table is for images and collections of documents too.
        generators: the kinds of file that its generators are, see ``load_generator``.
        takes_public: whether the system is made with public vectors: candidates, or records that are no client's.
    """

    system: Callable[..., System[Any]]
    measurement: type[BaseModel]
    training: type[BaseModel] | None = None
    kind: str = "table"
    takes_public: bool = False
    generators: Set[str] = frozenset()


METHODS: dict[str, Method] = {
    "nacre": Method(Nacre, NacreMeasurement, MixtureSpec, generators={"mixture", "users"}),
    "nacre-images": Method(NacreImages, ImageMeasurement, MatchingSpec, generators={"images"}),
    "nacre-photos": Method(NacrePhotos, PhotoMeasurement, PhotoTraining, generators={"photos"}),
    "nacre-tree": Method(NacreTree, TreeMeasurement, MixtureSpec, generators={"tree"}),
    "document-moments": Method(DocumentMomentsSystem, DocumentMeasurement, Untrained, generators={"points"}),
    "dp-gan": Method(dp_gan, DpGanMeasurement, Untrained, generators={"gan"}),
    "dp-gm": Method(dp_gm, DpGmMeasurement, Untrained, generators={"vae"}),
    "dp-merf": Method(dp_merf, DpMerfMeasurement, DpMerfTraining, generators={"network", "pictures"}),
    "dp-vae": Method(dp_vae, DpVaeMeasurement, Untrained, generators={"vae"}),
    "dpkg": Method(dpkg, DpkgMeasurement, Untrained, generators={"gan"}),
    "moments": Method(MomentsSystem, MomentsMeasurement, MixtureSpec, generators={"mixture"}),
    "p3gm": Method(p3gm, P3gmMeasurement, Untrained, generators={"vae"}),
    "p3gm-ae": Method(p3gm_ae, P3gmMeasurement, Untrained, generators={"vae"}),
    "pearl": Method(Pearl, PearlMeasurement, TrainingSpec, generators={"network", "pictures"}),
    "privbayes": Method(PrivBayes, PrivBayesMeasurement, PrivBayesTraining, generators={"bayes-net"}),
    "deep-candidate": Method(DeepCandidate, DeepCandidateMeasurement, kind="each document", takes_public=True),
    "document-sketch": Method(DocumentSketch, DocumentSketchMeasurement, kind="each document", takes_public=True),
    "federated-heads": Method(FederatedHeads, HeadsMeasurement, kind="federation", takes_public=True),
    "federated-moments": Method(MomentsHead, ClientMoments, kind="federation"),
    "federated-both": Method(HeadsAndMoments, BothMeasurement, kind="federation", takes_public=True),
    SCORES: Method(FederatedScores, ScoresMeasurement, kind="federation", takes_public=True),
    DiscoverySystem.method: Method(DiscoverySystem, DiscoveryMeasurement, kind="discovery"),
}


def method_for(contract: Contract, method: str | None = None) -> str:
    """Name the method for a contract: the one that is asked for, or the contract's default."""
    if contract.about == "documents":
        return "document-moments" if method in (None, "moments") else method
    if contract.about == "a tree of tables":
        return "nacre-tree" if method in (None, "nacre") else method
    if method or not contract.image:
        return method or "nacre"
    return "nacre-photos" if contract.image[1].is_color else "nacre-images"


def of_kind(kind: str) -> list[str]:
    """Name the methods of a kind, or of all."""
    return [name for name, method in METHODS.items() if kind in ("", method.kind)]


def synthesized() -> list[str]:
    """Name the methods that a schema, or a contract of a collection, is enough for; other commands start the others."""
    return [name for name, method in METHODS.items() if KINDS[method.kind].command == "synthesize"]


def training_of(method: str) -> type[BaseModel]:
    """Return the model of the settings that are free; a method that fits no generator has none."""
    return METHODS[method].training or Untrained


def system_of(
    method: str,
    measurement: Mapping[str, Any],
    training: Mapping[str, Any] = MappingProxyType({}),
    public: Any = None,
    among: Collection[str] = METHODS.keys(),
) -> System[Any]:
    """Make the system of a method, which is ``among`` some, with the public vectors that it measures against.

    Raises:
        InvalidArgument: there is no such method, or it lacks a setting or refuses its value.
    """
    if method not in among:
        names, meant = ", ".join(among), near(method, among)
        raise InvalidArgument(
            "method", method, f"be a method{meant} There are {names}" if meant else f"be one of {names}"
        )
    entry = METHODS[method]
    try:
        spec = entry.measurement.model_validate(dict(measurement))
        if entry.training is not None:
            return entry.system(spec, entry.training.model_validate(dict(training)))
    except ValidationError as fault:
        raise refused(fault, whole=method if entry.training else "measurement") from None
    return entry.system(spec, public) if entry.takes_public else entry.system(spec)


def create(method: str, measurement: Mapping[str, Any], training: Mapping[str, Any]) -> Synthesizer[Any]:
    """Make a synthesizer from its name and its settings.

    Raises:
        InvalidArgument: there is no such method, or it lacks a setting or refuses its value.
    """
    return cast(Synthesizer[Any], system_of(method, measurement, training, among=of_kind("table")))
