"""Read a trained generator of any kind; the file says which one it is."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dpmodels.errors import ArtifactError, FileDamaged, NacreError
from dpmodels.generators.bayes_net import BayesNetModel
from dpmodels.generators.gan_model import GanModel
from dpmodels.generators.images import ImageModel
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.model_file import read_model
from dpmodels.generators.photos import PhotoModel
from dpmodels.generators.pictures import PictureModel
from dpmodels.generators.points import PointModel
from dpmodels.generators.tabular import TabularModel
from dpmodels.generators.trees.tree import TreeModel
from dpmodels.generators.users import UserModel
from dpmodels.generators.vae_model import VaeModel
from dpmodels.late import Tensor

Model = (
    BayesNetModel
    | GanModel
    | ImageModel
    | MixtureModel
    | PhotoModel
    | PictureModel
    | PointModel
    | TabularModel
    | TreeModel
    | VaeModel
)
KINDS: dict[str, type[Model]] = {
    "bayes-net": BayesNetModel,
    "gan": GanModel,
    "images": ImageModel,
    "mixture": MixtureModel,
    "network": TabularModel,
    "photos": PhotoModel,
    "pictures": PictureModel,
    "points": PointModel,
    "tree": TreeModel,
    "users": UserModel,
    "vae": VaeModel,
}


MOST_CELLS = 4096
"""No method cuts a column into more cells."""


def rebuilt(facts: Mapping[str, Any], tensors: Mapping[str, Tensor], kinds: Collection[str]) -> Model:
    """Make a generator of what its file holds, or of what a generator that starts from it holds.

    Raises:
        ValueError: it is of another kind, or is cut finer than any method cuts.
    """
    if facts["kind"] not in kinds or facts.get("most_cells", 0) > MOST_CELLS:
        raise ValueError
    return KINDS[facts["kind"]].of(facts, tensors)


def load_generator(path: Path, contract: Any = None, kinds: Collection[str] = KINDS) -> Model:
    """Read a generator back by the kind in its header.

    Who trained it may have written anything there. So a contract that is known is held to the header's, and the kind to
    those that the run's method makes, before memory is given to what the header says.

    Raises:
        ArtifactError: the file is missing or damaged, of a kind this version does not know, or of another contract.
    """
    facts, tensors = read_model(path)
    if facts.get("kind") not in KINDS:
        raise ArtifactError(f"generator {path.name} is of no kind this version knows; train it again")
    if facts["kind"] not in kinds:
        raise ArtifactError(f"generator {path.name} is of a kind that the run's method does not make; train it again")
    hashes = {each.hash for each in (contract, getattr(contract, "flat", None)) if each is not None}
    if hashes and facts["schema"].hash not in hashes:
        raise ArtifactError(f"generator {path.name} is of another contract than the run; train it again")
    try:
        return rebuilt(facts, tensors, kinds)
    except NacreError:
        raise
    except Exception as fault:  # whatever a model makes of parts that are not as it wrote them
        raise FileDamaged(f"generator {path.name}", "train it again") from fault
