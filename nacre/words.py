"""Errors in Python's words: a message names an argument, and not the option of the command line that says the same."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from dpmodels import amounts
from dpmodels.errors import (
    BudgetExhausted,
    DataError,
    NacreError,
    SchemaError,
    Unsuitable,
    in_words,
    in_words_of,
    near,
    without_commas,
)
from dpmodels.tracebacks import fault_beneath
from nacre.calls import call_of

P = ParamSpec("P")
R = TypeVar("R")
OWN = {"nacre", "flows", "contextlib"}
PATH, URL = ((str, os.PathLike), "must be a path"), ((str,), "must be a URL")
WHOLE, NUMBER = ((Integral,), "must be a whole number"), ((Real, Decimal), "must be a number")
MAPPING = ((Mapping,), "must be a dictionary")
SWITCHES = {"open", "header", "accept_suggestions", "allow_large_delta", "internal_report", "png", "replace", "refit"}
"""Arguments that are true or false."""
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("home", "out", "to", "folder", "release", "document", "sample", "key"), PATH),
    **dict.fromkeys(("public_key", "officer_key", "signing_key"), PATH),
    **dict.fromkeys(("ledger", "url"), URL),
    **dict.fromkeys(("rows", "seed", "after", "batch_rows", "threads", "max_rows", "times"), WHOLE),
    **dict.fromkeys(("epsilon", "delta", "report_epsilon", "run_cap"), NUMBER),
    **dict.fromkeys(("measurement", "training", "recipe", "report"), MAPPING),
    **dict.fromkeys(SWITCHES, ((bool,), "must be True or False")),
    "unit": ((str,), "must be the name of a column"),
    "run": ((str,), "must be the name of a run, or its result"),
    "constraints": ((str, list, tuple), 'must be a list of rules such as ["start <= end"]'),
    "workload": ((list, tuple), 'must be a list of dictionaries such as [{"by": "ward"}]'),
    "draft_schema.rows": ((Mapping,), 'must be a dictionary such as {"min": 100, "max": 900}'),
    "where": ((str, Sequence, Mapping), "must be a condition, a list of them, or a dictionary of columns and values"),
}
"""What arguments must be that no configuration checks, by the names that they have in every function, or in one."""


OF_FRAMES = "nacre.synthesize(frame, schema, epsilon=EPSILON, delta=DELTA)"
"""What makes a copy of a frame, which others call a fit."""
EXAMPLES = {"schema": "'schema.yaml'", "epsilon": "1", "delta": "1e-5", "rows": "1000", "reason": "'WHY'"}
"""What may stand for arguments that have no default."""
NO_DATA = "reads no data: leave out the first argument"
"""Of a call that is given data, and a schema behind them, where it takes the schema alone."""
SEEN = (
    "; what it calls them may be values and is not printed: of a frame "
    "`set(frame.columns) - set(nacre.load_schema(schema).columns)` shows them to you, of files "
    "`nacre.draft_schema(data)`"
)
"""How whoever has the data sees the names that a schema lacks."""

QUERY_CAN = "which `--query` can"
ABSENT = "is in the schema but not in the data"
COUNTED = "`nacre.validate(data, schema)` counts the rows that break each"
"""How whoever has the data sees how many rows break a rule."""


class ReleaseWarning(UserWarning):
    """A release that may be in vain: it hardly stands out of its noise, or the same plan was released before.

    Of a discovery it says how many rows a value needs, and what of each column was not found, is cut or clips.
    """


def argument(option: str) -> str:
    """Return what an option of the command line is in Python."""
    name = option.replace("-", "_")
    return f"{name}=True" if name in SWITCHES else name


def warn_of_release(text: str) -> None:
    """Warn of a release where it was asked for; before a charge, a filter that makes it an error stops the run."""
    warnings.warn(in_words(text, argument, call_of), ReleaseWarning, stacklevel=_depth())


def _depth() -> int:
    """Count the frames from whoever warns to the first that is none of this package's or of what it is made of."""
    frame, depth = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        frame, depth = frame.f_back, depth + 1
    return depth


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """Have the errors of a function name its arguments.

    Privacy: a traceback that shows what functions hold shows no rows here, since they are passed on before the call.
    """

    @wraps(function)
    def spoken(*args: P.args, **keywords: P.kwargs) -> R:
        call: list[Any] = [args, keywords]
        places = [keywords.get(name) for name in ("home", "ledger")]
        home = places[0] or _home_of(args)
        indexes = _index_names([*args, *keywords.values()])
        words = [str(os.fspath(one)) for one in (*args, *keywords.values()) if isinstance(one, str | os.PathLike)]
        fault = _unfit(function, args, keywords)
        del args, keywords
        if fault:
            call.clear()
            __tracebackhide__ = True  # of a refusal notebooks and pytest show the line of the call, and not this frame
            raise fault
        try:
            with _with_similar(words), _in_words(home), _in_sentences(places[0], places[1], indexes):
                answer = function(*call.pop(0), **call.pop())
        except NacreError as refusal:
            __tracebackhide__ = True
            # whoever called sees the line of the call and what to do, below the fault of a library if there is one
            raise refusal.with_traceback(None) from fault_beneath(refusal)
        if drowned := _drowned(answer):
            warnings.warn(drowned, ReleaseWarning, stacklevel=2)
        return answer

    return spoken


def _home_of(args: Sequence[object]) -> str:
    """Return the home of the ledger whose method was called; empty for other calls, and for one in a database."""
    from nacre.ledgers import Ledger

    address = args[0].address if args and isinstance(args[0], Ledger) else ""
    return "" if "://" in address else os.path.dirname(address)


def _in_words(home: object) -> AbstractContextManager[None]:
    return in_words_of(argument, partial(call_of, home=home))


@contextmanager
def _with_similar(words: Sequence[str]) -> Iterator[None]:
    """Have the error of a file that does not exist ask for one of a similar name; ``words`` may name the file."""
    try:
        yield
    except NacreError as fault:
        if "does not exist" in (text := str(fault)):
            from flows.similar_files import similar_file

            fault.args = (text + similar_file([word for word in words if word in text], text),)
        raise


@contextmanager
def _in_sentences(home: Any, url: Any, indexes: Sequence[str] = ()) -> Iterator[None]:
    """Have a refused charge say in short sentences what is left and what helps, and faults how hidden names are seen.

    ``home`` and ``url`` are where the ledger of the call lies, where these were given, and ``indexes`` the names of the
    indexes of its frames.
    """
    try:
        yield
    except BudgetExhausted as refusal:
        refusal.args = (" ".join(_of_refusal(refusal, home, url)),)
        raise
    except DataError as fault:
        from dpmodels.codec.encode import LISTED
        from tasks.kinds.gate_page import EVERY_RULE

        rules = f"the data breaks {len(fault.faults)} rules of its schema"
        text = _one_a_line(fault, fault.faults, rules).replace(LISTED, SEEN)
        text = text.replace(EVERY_RULE, f"{EVERY_RULE}, and {COUNTED}")
        fault.args = (_of_index(text, fault, indexes),)
        raise
    except SchemaError as fault:
        fault.args = (of_frames(_one_a_line(fault, [str(each) for each in fault.faults], "")),)
        raise


def of_frames(text: str) -> str:
    """Say what computes a column of a frame where a sentence names what does in a query."""
    return text.replace(QUERY_CAN, f"which `frame.assign(NAME=...)` can, or {QUERY_CAN.split()[1]}")


def _index_names(values: Sequence[object]) -> list[str]:
    """Return the names of the indexes of pandas' frames among some arguments, and among those of a dictionary.

    Nothing else is asked for anything: another mapping may fail with a message that quotes what it holds.
    """
    several = [one for each in values for one in (each.values() if type(each) is dict else [each])]
    indexes = [getattr(one, "index", None) for one in several if _is_of_pandas(one)]
    return [name for index in indexes for name in getattr(index, "names", ()) if isinstance(name, str)]


def _is_of_pandas(given: object) -> bool:
    return any(kind.__module__.split(".")[0] == "pandas" for kind in type(given).__mro__)


def _of_index(text: str, fault: DataError, indexes: Sequence[str]) -> str:
    """Say of a column that is missing that it is the index of a frame, where it is."""
    missing = [one for one in indexes if one == fault.column or f" {one}" in fault.rule] if ABSENT in text else []
    if not missing:
        return text
    end = text.find(";", text.index(ABSENT))
    head, tail = (text, "") if end < 0 else (text[:end], text[end:])
    return f"{head}; {missing[0]} is the frame's index, which is left out: give frame.reset_index(){tail}"


def _one_a_line(error: NacreError, faults: Sequence[str], instead: str) -> str:
    """Return what an error says; of several faults with each in a line below it."""
    text, several = str(error), "; ".join(faults)
    if len(faults) < 2 or several not in text:
        return text
    return "\n  ".join([f"{text.replace(several, instead).rstrip(' :')}:", *faults])


def in_a_sentence(refusal: NacreError, home: Any, url: Any) -> str:
    """Say in Python's words what a call would be refused with; the others are as for ``_in_sentences``."""
    if isinstance(refusal, BudgetExhausted):
        return " ".join(_of_refusal(refusal, home, url))
    return in_words(str(refusal), argument, partial(call_of, home=home))


def _of_refusal(refusal: BudgetExhausted, home: Any, url: Any) -> Iterator[str]:
    """Say what a charge would spend, what is left, how the cap is raised, and what is to be had for nothing."""
    name, at = refusal.account, f", home={str(home)!r}" if home else ""
    left, cap = amounts.remaining(refusal.remaining), amounts.written(refusal.cap)
    yield f"account {name} refuses the charge: nothing was drawn, and nothing was charged."
    yield f"This call would spend epsilon={amounts.spent(refusal.requested)}{refusal.because}."
    yield f"Left is epsilon={left} of the cap of epsilon={cap}, at delta={amounts.written(refusal.delta)}."
    place = f"url={str(url)!r}" if url else repr(str(home)) if home else ""
    yield f"To raise the cap: `nacre.ledger({place}).change_cap({name!r}, epsilon=EPSILON, reason=REASON)`."
    if refusal.unfinished:
        runs = " or ".join(f"`nacre.resume({run!r}{at})`" for run in refusal.unfinished)
        yield f"Paid for and not finished, so free to go on with: {runs}."
    if free := refusal.free:
        yield f"Free, of what is paid for: `nacre.sample({free.run!r}, ROWS{at})` draws more rows."
        yield f"Free as well: `nacre.fit({free.release!r}{at})` trains another generator."


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
        fault = (
            _unexpected(declared, keywords)
            or _too_many(declared, args)
            or _twice(declared, args, keywords)
            or f"{error}{_missing(declared, args, keywords)}"
        )
        return TypeError(f"{function.__name__}() {fault}")
    required = {name for name, one in declared.parameters.items() if one.default is Parameter.empty}
    further = [name for name, one in declared.parameters.items() if one.kind is Parameter.VAR_KEYWORD]
    for name, value in {**given, **{key: one for each in further for key, one in given.get(each, {}).items()}}.items():
        kinds, rule = KINDS.get(f"{function.__name__}.{name}") or KINDS.get(name, ((object,), ""))
        fits = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds or object in kinds)
        is_left_out = value is None and name not in required
        if not (is_left_out or fits or (name in ("run", "release") and isinstance(value, Result))):
            return Unsuitable(f"{name} {rule}, not {type(value).__name__}{_meant(name, value)}")
    return None


def _meant(name: str, value: object) -> str:
    """Say what to write for a number that was given as text, or true and false as text or a number, or for a fit."""
    if name == "release" and hasattr(value, "columns"):
        return f": to copy a frame, write `{OF_FRAMES}`"
    if name in SWITCHES or not isinstance(value, str):
        return ""
    whole, number = KINDS[name] == WHOLE, KINDS[name] == NUMBER
    pattern = r"[+-]?\d{1,20}" if whole else r"[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][+-]?\d{1,3})?"
    is_meant = (whole or number) and re.fullmatch(pattern, value.strip())
    meant = value.strip() if is_meant else without_commas(value.strip(), whole) if whole or number else ""
    return f": write {name}={meant}, without quotation marks" if meant else ""


def _unexpected(declared: Signature, keywords: Mapping[str, Any]) -> str:
    """Say which keyword a function does not take, and which was meant; empty if it takes all of them."""
    if any(one.kind is Parameter.VAR_KEYWORD for one in declared.parameters.values()):
        return ""
    for name in keywords:
        if name not in declared.parameters:
            return f"got an unexpected keyword argument {name!r}{near(name, declared.parameters)}"
    return ""


def _missing(declared: Signature, args: Sequence[object], keywords: Mapping[str, object]) -> str:
    """Say what to write for the arguments that are missing; empty unless all of them have an example."""
    given = declared.bind_partial(*args, **keywords).arguments
    lacking = [name for name, one in declared.parameters.items() if one.default is one.empty and name not in given]
    if "run" in lacking:
        return "; `nacre.runs()` lists the runs"
    return f": write {_as_written(lacking)}" if lacking and EXAMPLES.keys() >= set(lacking) else ""


def _as_written(names: Sequence[str]) -> str:
    return ", ".join(f"{name}={EXAMPLES.get(name, '...')}" for name in names)


def _too_many(declared: Signature, args: Sequence[object]) -> str:
    """Say which arguments a function takes by name alone, if it was given more without; empty if it was not."""
    parameters, unnamed = declared.parameters.values(), _unnamed(declared)
    if len(args) <= len(unnamed) or any(one.kind is Parameter.VAR_POSITIONAL for one in parameters):
        return ""
    if _reads_no_data(unnamed):
        return NO_DATA
    unnamed = [name for name in unnamed if name != "self"]
    required = [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY and one.default is one.empty]
    written = f": write {_as_written(required)}" if required else ""
    return f"takes {' and '.join(unnamed) or 'nothing'} without a name, and whatever else by name{written}"


def _twice(declared: Signature, args: Sequence[object], keywords: Mapping[str, object]) -> str:
    """Say which arguments were given both without a name and by it; empty if none was."""
    unnamed = _unnamed(declared)
    several = [name for name in unnamed[: len(args)] if name in keywords]
    if not several:
        return ""
    order = ", ".join(name for name in unnamed if name != "self")
    named = f"takes {order} in this order, and is given {' and '.join(several)} twice, without a name and by it"
    return NO_DATA if _reads_no_data(unnamed) else named


def _unnamed(declared: Signature) -> list[str]:
    return [one.name for one in declared.parameters.values() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]


def _reads_no_data(unnamed: Sequence[str]) -> bool:
    """Tell whether a function begins with a schema, where one that reads data begins with them."""
    return [name for name in unnamed if name != "self"][:1] == ["schema"]
