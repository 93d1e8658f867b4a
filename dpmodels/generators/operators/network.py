"""Networks that an operator brings: classes that a file of the worker lists by alias, and nobody else can name.

    ward-critic: wards.networks:ConvCritic        the worker's file: alias, module, class
    critic: ward-critic                           a configuration: the alias alone

Whoever writes a configuration or a flow's parameters chooses among what the operator lists, and selects no code. The
plan holds the alias and the SHA-256 of the module's source, and what runs is compiled from the very bytes that were
hashed: another source is another network, and is refused.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, field_validator, model_validator

from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable, near, shortened
from dpmodels.frozen import Frozen
from dpmodels.late import lacking

listing: Callable[[], Mapping[str, str]] = dict
"""Says which networks there are, ``module:Class`` by alias; a process sets it, from its own environment."""
FILE = "the worker's file of networks (NACRE_NETWORKS)"


class OperatorNetwork(Frozen):
    """A network of the operator's file, as a configuration and a plan name it.

    Attributes:
        alias: its name in that file; sha256: of its module's source, which the plan adds.
    """

    alias: str
    sha256: str = Field(default="", pattern="^([0-9a-f]{64})?$")

    @model_validator(mode="before")
    @classmethod
    def _of_its_alias(cls, content: Any) -> Any:
        return {"alias": content} if isinstance(content, str) else content

    @field_validator("alias")
    @classmethod
    def _is_no_module(cls, alias: str) -> str:
        if not (alias.replace("-", "").replace("_", "").isalnum() and alias.isascii() and len(alias) <= 64):
            raise ValueError(f"must be an alias of letters, digits, - and _ that {FILE} lists; it alone names modules")
        return alias


class NetworkShape(NamedTuple):
    """What a class is made for, and is called with as keywords.

    Attributes:
        inputs, outputs: numbers that it is given of a record, or of a latent, and that it returns.
        classes: of the labels; image: height and width of a gray image, whose pixels go row by row; None for tables.
    """

    inputs: int
    outputs: int
    classes: int
    image: tuple[int, int] | None


class OperatorPart(NamedTuple):
    """A network with what it is made for; ``seed`` is of its first weights, and public."""

    network: OperatorNetwork
    shape: NetworkShape
    seed: int


def bound(network: OperatorNetwork) -> OperatorNetwork:
    """Bind an alias to the source that it has here.

    Raises:
        InvalidArgument, ArtifactError, Unsuitable: it is not listed, has another source, or has none.
    """
    return network.model_copy(update={"sha256": hashlib.sha256(_source(network)[1]).hexdigest()})


def class_of(network: OperatorNetwork) -> Any:
    """Return the class of a network, from the source that its plan names.

    Raises:
        InvalidArgument, ArtifactError, Unsuitable: it is not listed, has another source, or cannot be loaded.
    """
    spec, source = _source(network)
    name = listing()[network.alias].partition(":")[2]
    try:
        return _executed(spec.name, str(spec.origin), source)[name]
    except Exception as fault:  # whatever a module does when it is loaded
        raise _unloaded(network, fault) from None


def _source(network: OperatorNetwork) -> tuple[ModuleSpec, bytes]:
    targets = listing()
    if network.alias not in targets:
        rule = f"be an alias that {FILE} lists{near(network.alias, targets)}"
        raise InvalidArgument("network", network.alias, rule)
    try:
        spec = find_spec(targets[network.alias].partition(":")[0])
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            raise ImportError("there is no such module of Python source")
        source = Path(str(spec.origin)).read_bytes()
    except Exception as fault:  # a package above the module is imported
        raise _unloaded(network, fault) from None
    if network.sha256 not in ("", hashlib.sha256(source).hexdigest()):
        raise ArtifactError(
            f"the network {network.alias} has another source here than in the plan: put that source back, or start a"
            " new run; nothing was drawn with this one"
        )
    return spec, source


@lru_cache(maxsize=16)
def _executed(name: str, origin: str, source: bytes) -> dict[str, Any]:
    """Run a module's source, as it was hashed, and return its names; the module is nobody else's."""
    spec = find_spec(name)
    if spec is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    exec(compile(source, origin, "exec"), module.__dict__)
    return module.__dict__


def in_a_line(fault: Exception) -> str:
    """Return what an operator's code says of its fault, without its line ends."""
    return shortened(" ".join(str(fault).split()))


def _unloaded(network: OperatorNetwork, fault: Exception) -> Exception:
    missing = lacking(fault.name or "") if isinstance(fault, ModuleNotFoundError) else None
    return missing or Unsuitable(
        f"the network {network.alias} cannot be loaded ({type(fault).__name__}: {in_a_line(fault)}); mend its module,"
        f" or its line in {FILE}"
    )
