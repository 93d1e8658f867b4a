"""Synthetic data under differential privacy, paid for from a ledger with a hard cap.

    import nacre

    made = nacre.synthesize(frame, "patients.yaml", epsilon=1, delta=1e-5)
    made.table      # the synthetic rows, a pandas DataFrame
    made.report     # the publishable report; a notebook shows the page
    made.spent      # what was charged, for ever

What there is, of which ``help(nacre.synthesize)`` and the like say more:

    draft_schema, load_schema, lint, discover       the public description of the data; discover charges for bounds
    plan, validate                                  what a run will charge, and whether data keeps its schema
    synthesize, embed_documents, federate           measure once, charge the ledger, hand over
    fit, sample, resume, means, marginals           everything more of a release, free
    compare, Result, Report                         scores against real rows, and what a run leaves
    ledger, runs, approve, verify                   accounts, earlier runs, an officer's word, a recipient's check

A run does, charges and leaves the same as ``nacre synthesize`` on the command line: the same stages, the same ledger,
the same hand-off. An error is a ``NacreError``, one sentence that holds no private value.

Importing this package imports nothing that is slow; each function is imported at its first use.
"""

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

from dpmodels import errors
from dpmodels.errors import NacreError, near
from nacre.words import ReleaseWarning, in_python

__version__: str
if TYPE_CHECKING:
    from nacre.approving import approve
    from nacre.discovery import discover
    from nacre.documents import embed_documents
    from nacre.federations import federate
    from nacre.free import marginals, means, sample
    from nacre.given import Schema, draft_schema, load_schema
    from nacre.ledgers import Ledger, PrivacyBudget, PrivacyUnit, ledger
    from nacre.linted import Linted, lint
    from nacre.planning import Planned, plan
    from nacre.reporting import Report
    from nacre.result import Result, Spent
    from nacre.running import fit, resume, synthesize
    from nacre.verified import verify

__all__ = [
    "Ledger",
    "Linted",
    "NacreError",
    "Planned",
    "PrivacyBudget",
    "PrivacyUnit",
    "ReleaseWarning",
    "Report",
    "Result",
    "Schema",
    "Spent",
    "approve",
    "compare",
    "discover",
    "draft_schema",
    "embed_documents",
    "federate",
    "fit",
    "ledger",
    "lint",
    "load_schema",
    "marginals",
    "means",
    "plan",
    "resume",
    "runs",
    "sample",
    "synthesize",
    "validate",
    "verify",
]

_MODULES = {
    "approving": ("approve",),
    "discovery": ("discover",),
    "documents": ("embed_documents",),
    "federations": ("federate",),
    "given": ("Schema", "draft_schema", "load_schema"),
    "ledgers": ("Ledger", "PrivacyBudget", "PrivacyUnit", "ledger"),
    "linted": ("Linted", "lint"),
    "planning": ("Planned", "plan"),
    "reporting": ("Report",),
    "result": ("Result", "Spent"),
    "free": ("marginals", "means", "sample"),
    "judging": ("compare", "runs", "validate"),
    "running": ("fit", "resume", "synthesize"),
    "verified": ("verify",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


_ERRORS = {name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, NacreError)}
for _error in (*_ERRORS.values(), ReleaseWarning):
    _error.__module__ = __name__  # what a traceback shows before the message, and where pickle finds it


def __getattr__(name: str) -> Any:
    if name in _ERRORS:
        return _ERRORS[name]
    if name == "__version__":
        return import_module("importlib.metadata").version("nacre")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{near(name, __all__)}", name=name)
    attribute = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    if isfunction(attribute):
        attribute = in_python(attribute)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted(__all__)
