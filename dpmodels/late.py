"""What a base installation lacks: the packages of nacre's extras, and torch, which is imported when it is used first.

A module that only computes with torch takes it from here, so that whoever plans, or looks something up, neither waits
for torch nor needs it. A module whose classes inherit from torch's is imported in the function that needs it.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dpmodels.errors import NacreError

EXTRAS = {
    "great_expectations": "validate",
    "pandas": "validate",
    "opendp": "synthesize",
    "torch": "synthesize",
    "numba": "synthesize",
    "sklearn": "synthesize",
    "safetensors": "synthesize",
    "PIL": "synthesize",
    "sentencex": "text",
    "tokenizers": "text",
    "wordllama": "text",
    "prefect": "prefect",
    "pkcs11": "pkcs11",
    "opacus": "opacus",
    "duckdb": "duckdb",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "openpyxl": "excel",
}
"""Packages that a base installation leaves out, and the extra of nacre that brings each."""
SYNTHESIS = [package for package, extra in EXTRAS.items() if extra in ("validate", "synthesize")]
"""What a run needs from its start to its hand-off."""


def lacking(package: str) -> NacreError | None:
    """Say which extra to install for a package that could not be imported; None if no extra of nacre has it."""
    extra = EXTRAS.get(package.split(".")[0])
    sentence = f"this needs {package}, which a base installation lacks: pip install 'nacre[{extra}]'"
    return NacreError(sentence) if extra else None


def check_installed(packages: list[str]) -> None:
    """Refuse what could not go on, before it begins.

    Raises:
        NacreError: one of the packages is not installed; it names the extra that brings it.
    """
    for package in packages:
        if find_spec(package) is None and (error := lacking(package)):
            raise error


@cache
def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop, or fetch it from the cache on disk where there is one."""
    from numba import njit

    try:
        native: Callable[..., None] = njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no place to keep it
        native = njit(nogil=True)(function)
    return native


if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
    from torch import nn as nn
else:

    class _Late:
        """Stands for a module: whatever is asked of it is asked of the real one, which is then imported."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            try:
                return getattr(import_module(self._name), attribute)
            except ModuleNotFoundError as fault:
                raise lacking(fault.name or "") or fault from None

    class Tensor:
        """Stands for ``torch.Tensor`` in annotations; nothing is ever one of these."""

    torch, nn = _Late("torch"), _Late("torch.nn")
