"""Errors in Python's words: a message names an argument, and not the option of the command line that says the same."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import wraps
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from dpmodels.errors import Unsuitable, in_words_of, near

P = ParamSpec("P")
R = TypeVar("R")
PATH, URL = ((str, os.PathLike), "must be a path"), ((str,), "must be a URL")
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("home", "out", "to", "folder", "release", "document", "sample"), PATH),
    **dict.fromkeys(("public_key", "officer_key", "signing_key"), PATH),
    **dict.fromkeys(("ledger", "url"), URL),
    **dict.fromkeys(("rows", "seed"), ((Integral,), "must be a whole number")),
    **dict.fromkeys(("epsilon", "delta", "report_epsilon"), ((Real, Decimal), "must be a number")),
    "run": ((str,), "must be the name of a run, or its result"),
    "where": ((str, Sequence), "must be a condition, or a list of them"),
}
"""What arguments must be that no configuration checks, by the names that they have in every function."""


class ReleaseWarning(UserWarning):
    """What was released hardly stands out of its noise: what was made of it may say next to nothing of the data."""


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """Have the errors of a function name its arguments.

    Privacy: a traceback that shows what functions hold shows no rows here, since they are passed on before the call.
    """

    @wraps(function)
    def spoken(*args: P.args, **keywords: P.kwargs) -> R:
        call: list[Any] = [args, keywords]
        fault = _unfit(function, args, keywords)
        del args, keywords
        if fault:
            call.clear()
            raise fault
        with in_words_of(lambda option: option.replace("-", "_")):
            answer = function(*call.pop(0), **call.pop())
            if drowned := _drowned(answer):
                warnings.warn(drowned, ReleaseWarning, stacklevel=2)
            return answer

    return spoken


def _drowned(answer: object) -> str:
    """Return what a hand-off says of a release that hardly stands out of its noise; empty of anything else."""
    from nacre.result import Result

    return answer.drowned if isinstance(answer, Result) else ""


def _unfit(function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Exception | None:
    """Return what is wrong with the arguments of a function, which may be rows: the error holds no value."""
    from nacre.result import Result

    declared = signature(function)
    try:
        given = declared.bind(*args, **keywords).arguments
    except TypeError as error:
        return TypeError(f"{function.__name__}() {_unexpected(declared, keywords) or error}")
    required = {name for name, one in declared.parameters.items() if one.default is Parameter.empty}
    for name, value in {**given, **given.get("settings", {})}.items():
        kinds, rule = KINDS.get(name, ((object,), ""))
        fits = isinstance(value, kinds) and not (isinstance(value, bool) and object not in kinds)
        is_left_out = value is None and name not in required
        if not (is_left_out or fits or (name == "run" and isinstance(value, Result))):
            return Unsuitable(f"{name} {rule}, not {type(value).__name__}")
    return None


def _unexpected(declared: Signature, keywords: Mapping[str, Any]) -> str:
    """Say which keyword a function does not take, and which was meant; empty if it takes all of them."""
    for name in keywords:
        if name not in declared.parameters:
            return f"got an unexpected keyword argument {name!r}{near(name, declared.parameters)}"
    return ""
