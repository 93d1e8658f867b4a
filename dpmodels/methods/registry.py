"""The methods by name: the system of each, and the two models of its settings. A new system is one entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.errors import InvalidArgument, refused
from dpmodels.generators.image_matching import MatchingSpec
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.reconstruction import TrainingSpec
from dpmodels.methods.documents.document_moments import DocumentMeasurement, DocumentMomentsSystem
from dpmodels.methods.images.image_moments import ImageMeasurement, NacreImages
from dpmodels.methods.images.photo_moments import NacrePhotos, PhotoMeasurement, PhotoTraining
from dpmodels.methods.tables.bayes_structure import PrivBayesMeasurement
from dpmodels.methods.tables.dp_merf import DpMerfMeasurement, DpMerfTraining, dp_merf
from dpmodels.methods.tables.moments import MomentsMeasurement, MomentsSystem
from dpmodels.methods.tables.nacre import Nacre, NacreMeasurement
from dpmodels.methods.tables.pearl import Pearl, PearlMeasurement
from dpmodels.methods.tables.privbayes import PrivBayes, PrivBayesTraining
from dpmodels.methods.trained.dp_gan import DpGanMeasurement, dp_gan
from dpmodels.methods.trained.dp_gm import DpGmMeasurement, dp_gm
from dpmodels.methods.trained.dp_vae import DpVaeMeasurement, dp_vae
from dpmodels.methods.trained.dpkg import DpkgMeasurement, dpkg
from dpmodels.methods.trained.p3gm import P3gmMeasurement, p3gm, p3gm_ae
from dpmodels.methods.trained.private_training import Untrained
from dpmodels.releases.contract import Contract
from dpmodels.releases.system import Synthesizer


@dataclass(frozen=True)
class Method:
    """A system and the models that check its settings: ``measurement`` is part of the plan, ``training`` is free."""

    system: Callable[[Any, Any], Synthesizer[Any]]
    measurement: type[BaseModel]
    training: type[BaseModel]


METHODS = {
    "nacre": Method(Nacre, NacreMeasurement, MixtureSpec),
    "nacre-images": Method(NacreImages, ImageMeasurement, MatchingSpec),
    "nacre-photos": Method(NacrePhotos, PhotoMeasurement, PhotoTraining),
    "document-moments": Method(DocumentMomentsSystem, DocumentMeasurement, Untrained),
    "dp-gan": Method(dp_gan, DpGanMeasurement, Untrained),
    "dp-gm": Method(dp_gm, DpGmMeasurement, Untrained),
    "dp-merf": Method(dp_merf, DpMerfMeasurement, DpMerfTraining),
    "dp-vae": Method(dp_vae, DpVaeMeasurement, Untrained),
    "dpkg": Method(dpkg, DpkgMeasurement, Untrained),
    "moments": Method(MomentsSystem, MomentsMeasurement, MixtureSpec),
    "p3gm": Method(p3gm, P3gmMeasurement, Untrained),
    "p3gm-ae": Method(p3gm_ae, P3gmMeasurement, Untrained),
    "pearl": Method(Pearl, PearlMeasurement, TrainingSpec),
    "privbayes": Method(PrivBayes, PrivBayesMeasurement, PrivBayesTraining),
}


def method_for(contract: Contract, asked: str | None = None) -> str:
    """Name the method for a contract: the one that is asked for, or the contract's default."""
    if isinstance(contract, Documents):
        return "document-moments" if asked in (None, "moments") else asked
    if asked or not isinstance(contract, Schema) or not contract.image:
        return asked or "nacre"
    return "nacre-photos" if contract.image[1].is_color else "nacre-images"


def create(method: str, measurement: Mapping[str, Any], training: Mapping[str, Any]) -> Synthesizer[Any]:
    """Make a synthesizer from its name and its settings.

    Raises:
        InvalidArgument: there is no such method, or it lacks a setting or refuses its value.
    """
    if method not in METHODS:
        raise InvalidArgument("method", method, f"be one of {', '.join(METHODS)}")
    entry = METHODS[method]
    try:
        return entry.system(entry.measurement.model_validate(measurement), entry.training.model_validate(training))
    except ValidationError as fault:
        raise refused(fault, whole=method) from None
