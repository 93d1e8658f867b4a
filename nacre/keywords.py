"""The keywords of Python's functions: settings of the configuration, which describes each of them once.

The dictionaries are for type checkers and editors; the signature and the help that Python shows are made of the
configuration, and so is what is accepted.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar

from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import are_tables
from flows.building import spoken
from flows.config import EmbedConfig, HandOverConfig, SynthesizeConfig
from flows.planning import MayOpen
from flows.settings import from_environment, placed, settings_of
from flows.start import start
from nacre.places import Place, home_of, url_of
from nacre.words import warn_of_release
from tasks.run.in_memory import GIVEN, GIVEN_TABLES
from tasks.run.store import Run, new_name

P = ParamSpec("P")
R = TypeVar("R")
UNASKED = {"prefect", "approval_hours"}
"""Settings that no function takes: one that is called runs no flow, and waits for nobody."""


class HandOverSettings(TypedDict, total=False):
    """What every function takes that ends in a hand-off."""

    home: Place | None
    ledger: str | None
    out: Place | None
    signing_key: Place | None
    purpose: str
    subjects: str
    special_categories: str
    legal_basis: str
    compatibility: str
    information: str
    minors: str
    processor: str
    recipient: str
    recipient_retention: str
    license: str
    controller: str
    contact: str
    signer: str
    why: str
    retention: str
    release_retention: str


class SampledSettings(HandOverSettings, total=False):
    """What every function takes whose hand-off is sampled."""

    rows: int | None
    seed: int
    device: str
    dask: str | None
    batch_rows: int
    threads: int
    internal_report: bool
    training: Mapping[str, Any] | None


class FitSettings(SampledSettings, total=False):
    """What ``fit`` takes."""

    format: str


class SynthesisSettings(SampledSettings, total=False):
    """What ``synthesize`` and ``plan`` take."""

    query: str
    parents: Place
    format: str
    method: str | None
    measurement: Mapping[str, Any] | None
    report_epsilon: float | None
    report: Mapping[str, Any]
    account: str | None
    allow_large_delta: bool
    again: str
    open: bool


class EmbeddingSettings(HandOverSettings, total=False):
    """What ``embed_documents`` takes."""

    query: str
    method: str
    recipe: Mapping[str, Any] | None
    measurement: Mapping[str, Any] | None
    account: str | None
    again: str
    open: bool


def takes_settings(
    model: type[HandOverConfig], *positional: str, opens: bool = True
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function the signature and the help that a configuration says, and refuse every other keyword.

    ``positional`` are settings that the function has under other names; ``opens``: whether it opens accounts.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        declared = inspect.signature(function)
        named = [one for one in declared.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {*positional, *(one.name for one in named)}
        keywords = dict(_keywords(model, taken, opens))
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, kind, default=default) for name, (default, _) in keywords.items()]
        function.__signature__ = declared.replace(parameters=[*named, *parameters])  # type: ignore[attr-defined]
        words = "".join(f"\n    {name}: {text}" for name, (_, text) in keywords.items())
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nSettings:{words}\n"
        return function

    return declare


def _keywords(model: type[HandOverConfig], taken: set[str], opens: bool) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Yield every keyword with its default and its description."""
    for one in settings_of(model):
        name = spoken(one.name)
        if not {name, one.name, one.within} & {*taken, *UNASKED, *model.WITHOUT}:
            default = None if one.field.is_required() else one.field.default
            yield name, (str(default) if isinstance(default, Path) else default, str(one.field.description))
    if opens:
        yield "open", (False, "Open the data set's account with this run's budget as its cap, if it has none.")


def started(
    model: type[SynthesizeConfig | EmbedConfig],
    source: str,
    path: str | None,
    private: Sensitive[Any],
    fields: Mapping[str, Any],
    warn_later: Callable[[str], object],
) -> Run:
    """Start a run on what a caller gave: paths, or rows in memory, which are kept in the run's sensitive folder.

    Args:
        model: the kind of configuration.
        source: its setting that says where the data is.
        path: where the data is; None for rows in memory, which ``private`` holds.
        private: what the caller gave.
        fields: settings by their names, and whole sections.
        warn_later: is told what to warn of once the data were not refused.
    """
    name, terms = new_name(), terms_of(fields)
    terms[source] = path or terms["home"] / "sensitive" / name / (GIVEN_TABLES if are_tables(private) else GIVEN)
    terms["out"] = terms.get("out") or terms["home"] / "hand-offs" / name
    may_open = MayOpen.YES if terms.pop("open", False) else MayOpen.FIRST
    sections = {key: value for key, value in terms.items() if key in model.model_fields}
    config = model.build({**sections, **placed(terms, model)})
    given = None if path else private
    return start(config, name, given=given, may_open=may_open, warn=warn_of_release, warn_later=warn_later)


def terms_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the home, the ledger and the cluster that hold where none is given."""
    known = {"home": home_of(fields.get("home")), "ledger": url_of(fields.get("ledger")), "prefect": False}
    return {**fields, **known, "dask": fields.get("dask") or from_environment("dask")}
