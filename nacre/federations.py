"""Make a classifier of what clients release of their own data: what ``nacre federate`` does, called from Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.config import FederateConfig
from flows.planning import MayOpen
from flows.settings import placed
from flows.start import start
from nacre.places import Place, home_of, url_of
from nacre.result import Result
from nacre.running import take_to_end
from nacre.words import warn_of_release
from tasks.run.store import new_name


def federate(
    config: Place | Mapping[str, Any],
    *,
    open: bool = False,
    home: Place | None = None,
    ledger: str | None = None,
    out: Place | None = None,
    signing_key: Place | None = None,
) -> Result | Path:
    """Have every client of a federation release once, under its own account, and make one classifier of it.

    Args:
        config: the path of a YAML file, or the mapping that it holds; see docs/federate.md. Clients are named by the
            paths of their data, which this process does not open where Dask gives each client a process of its own.
        open: open the account above the clients' with this run's budget as its cap, if there is none; a home's first
            run does so by itself.
        home: where state lies; by default ``NACRE_HOME``, or ``.nacre``.
        ledger: URL of a shared ledger on PostgreSQL; by default ``NACRE_LEDGER``, or the home's own.
        out: the hand-off's folder, new or empty; by default that of the configuration, or ``HOME/hand-offs/RUN``.
        signing_key: ed25519 private key (PEM) that signs the hand-off.

    Privacy: epsilon and delta hold for one record at its client; clients are declared disjoint, so the federation costs
        what its heaviest client does. The classifier is post-processing of what the clients released. Under central
        trust the aggregator's process sees every client's exact sums. In paper mode models travel without noise, and no
        epsilon holds for what is made of them, so they stay in the sensitive zone, in the folder that is returned.

    Raises:
        NacreError: the message says what is wrong, in one sentence with no private value.
    """
    name, fields = new_name(), dict(config) if isinstance(config, Mapping) else {}
    base = home_of(home or fields.get("runtime", {}).get("home"))
    terms: dict[str, Any] = dict(home=base, prefect=False, ledger=url_of(ledger), signing_key=signing_key)
    stays_inside = fields.get("round", {}).get("mode") == "paper"  # then there is no hand-off that lies anywhere
    if out is not None or ("out" not in fields and not stays_inside):
        terms["out"] = out or (base / "hand-offs" / name if fields else None)
    settings, file = placed(terms, FederateConfig), None if fields else Path(str(config))
    if fields:
        settings = {**fields, **settings, "runtime": {**fields.get("runtime", {}), **settings["runtime"]}}
    may_open = MayOpen.YES if open else MayOpen.FIRST
    return take_to_end(start(FederateConfig.build(settings, file), name, may_open=may_open, warn=warn_of_release))
