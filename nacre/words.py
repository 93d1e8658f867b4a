"""Errors in Python's words: a message names an argument, and not the option of the command line that says the same."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from dpmodels.errors import in_words_of

P = ParamSpec("P")
R = TypeVar("R")


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
            raise TypeError(fault)
        with in_words_of(lambda option: option.replace("-", "_")):
            return function(*call.pop(0), **call.pop())

    return spoken


def _unfit(function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """Say why arguments are not those of a function, in Python's words; empty where they are."""
    try:
        signature(function).bind(*args, **keywords)
    except TypeError as error:
        return f"{function.__name__}() {error}"
    return ""
