"""What every model of plans, settings, contracts and files is: frozen, without unknown keys, and of finite numbers."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A model that nothing changes once it is made; JSON keeps every bit of its floats, by their shortest repr."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __str__(self) -> str:
        return repr(self)


class Strict(Frozen):
    """A frozen model of what a person wrote: no text is taken for a number, and no number for text."""

    model_config = ConfigDict(strict=True)
