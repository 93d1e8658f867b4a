"""Read a trained generator of any kind; the file says which one it is."""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from dpmodels.errors import ArtifactError
from dpmodels.generators.images import ImageModel
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.tabular import TabularModel

Model = ImageModel | MixtureModel | TabularModel
KINDS: dict[str, type[ImageModel] | type[MixtureModel] | type[TabularModel]] = {
    "images": ImageModel,
    "mixture": MixtureModel,
    "network": TabularModel,
}


def load_generator(path: Path) -> Model:
    """Read a generator back by the kind in its metadata.

    Raises:
        ArtifactError: the file is missing or damaged, or of a kind this version does not know.
    """
    try:
        with safe_open(path, framework="pt") as file:
            kind = json.loads(file.metadata()["nacre"])["kind"]
    except (OSError, SafetensorError, KeyError, TypeError) as fault:
        raise ArtifactError(f"generator {path.name} is missing or damaged; train it again") from fault
    if kind not in KINDS:
        raise ArtifactError(f"generator {path.name} is of no kind this version knows; train it again")
    return KINDS[kind].load(path)
