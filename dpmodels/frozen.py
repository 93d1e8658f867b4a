"""What every model of plans, settings, contracts and files is: frozen, without unknown keys, and of finite numbers."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as ModelType
else:
    ModelType = type(BaseModel)  # which pydantic names in no public module

MACHINERY = ("__pydantic", "__private_attributes__", "__class_vars__", "__signature__", "__annotations__", "model_")
"""How names begin that pydantic gives every model, and that say nothing of what it is."""


class OfFewNames(ModelType):
    """A class of models whose ``help`` shows what the model adds, and not the members of every pydantic model."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith(MACHINERY) and not _is_of_pydantic(cls, name)]


def _is_of_pydantic(model: type, name: str) -> bool:
    """Tell whether a model has a member as pydantic made it, and no class of ours another."""
    owner = next((each for each in model.__mro__ if name in vars(each)), model)
    return owner.__module__.startswith("pydantic")


class Frozen(BaseModel, metaclass=OfFewNames):
    """A model that nothing changes once it is made; JSON keeps every bit of its floats, by their shortest repr."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __str__(self) -> str:
        return repr(self)

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *type(self).model_fields]


class Strict(Frozen):
    """A frozen model of what a person wrote: no text is taken for a number, and no number for text."""

    model_config = ConfigDict(strict=True)
