"""Make synthetic data: the pipeline that the command line runs, called from Python."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dpmodels.errors import DataError, NacreError, Unsuitable
from dpmodels.privacy import Sensitive
from flows import fit as fit_again
from flows.config import FitConfig, SynthesizeConfig
from flows.settings import from_environment, placed
from flows.synthesize import carry_out, find
from nacre.given import SchemaLike, path_of, schema_file, with_public_rows
from nacre.keywords import FitSettings, SynthesisSettings, started, takes_settings, terms_of
from nacre.ledgers import Ledger
from nacre.places import Place, home_of, url_of
from nacre.result import Result, home_known, name_of, run_of
from nacre.words import warn_of_release
from tasks.engine.progress import LOG
from tasks.run.accounts import has_opened, new_ledger
from tasks.run.in_memory import are_given, forget_given
from tasks.run.runs import inside, is_out_lost, stays_inside
from tasks.run.store import Run, new_name
from tasks.run.unfinished import refuse_same

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@takes_settings(SynthesizeConfig, "data", "schema")
def synthesize(
    data: "pd.DataFrame | pa.Table | Place | Mapping[str, Any] | Any",
    schema: SchemaLike,
    *,
    epsilon: float,
    delta: float,
    **settings: Unpack[SynthesisSettings],
) -> Result:
    """Make a synthetic copy of tables: ingest, sanitize (the charge), train, sample, validate, hand off.

    Args:
        data: a pandas DataFrame (its index is left out), a polars or Dask DataFrame, a pyarrow Table or reader, or
            whatever else gives Arrow batches; or the path, the pattern or the URI of files. Of a schema with ``tables``
            a dictionary with one of these frames for each table, or a folder with a file for each. Private.
        schema: a path, YAML text, a dictionary or a ``Schema``. Public; nothing of it may be taken from the data.
        epsilon: of the release, 0.001 to 1000; ``delta`` lies above 0 and, unless ``allow_large_delta``, is at most
            0.001. It is charged to the account once, before any noise is drawn, and nothing gives it back.
        delta: see ``epsilon``; never chosen by looking at the number of rows.
        settings: see below. By default state lies in ``NACRE_HOME`` or in ``.nacre``, and the hand-off in
            ``HOME/hand-offs/RUN``.

    Privacy:
        Rows given in memory are written, unchanged, to ``HOME/sensitive/RUN/given.parquet``, or several tables to a
        folder ``given`` there (folders have mode 0700, files 0600), once the ledger has said that it would accept the
        charge. So a run that is cut off can be resumed by a process that no longer has the rows. The files are removed
        when the run was handed over, or when the rows do not fit the schema; a run that fails otherwise keeps them
        until ``resume`` reaches its end. Removed means unlinked: a disk may keep what was written, so put the home
        where the rows themselves may lie. The encoded rows
        stay in the same folder, as with the command, for exact comparisons inside the sensitive zone; the folder may be
        deleted at any time.

    Raises:
        NacreError: the message says what is wrong, in one sentence with no private value. If the run can be resumed, a
            note on the error names it.
    """
    users, private, path = path_of(settings.pop("parents", "")), Sensitive(data), path_of(data)
    del data  # an error from here on shows no rows, even if its local variables are shown
    if users is None:
        raise Unsuitable("parents must be a path or a URI; write the users' table to a Parquet file first")
    with schema_file(schema) as given_file, with_public_rows(given_file, private) as (file, rows):
        fields = {**settings, "schema": file, "parents": users, "target_epsilon": epsilon, "delta": delta}
        run = started(SynthesizeConfig, "data", path, rows, fields, (alarms := list[str]()).append)
    return take_to_hand_off(run, alarms)


def resume(
    run: str | Result,
    *,
    home: Place | None = None,
    ledger: str | None = None,
    device: str | None = None,
    out: Place | None = None,
    refit: bool = False,
) -> Result | Path:
    """Go on with a run that was cut off, from whatever stage it reached; never charges a second time.

    A run that was finished is left as it is, so this also returns the result of an earlier run. With ``refit`` the
    run's release is fitted again by this version, for free, and samples are handed over in ``out``, a new folder;
    ``changes`` of the result says what the fit changed.

    Raises:
        NacreError: there is no such run, or it fails; the message says why.
    """
    folder, dask = os.fspath(out) if out else None, from_environment("dask")
    changed: dict[str, Any] = {"device": device, "out": None if refit else folder}
    stored_run = find(home_of(home or home_known(run)), name_of(run), url_of(ledger), dask, **changed)
    if refit:
        again, changes = fit_again.refit(stored_run, folder, prefect=False)
        return Result(again.settings.out, changes, again.home)
    return take_to_end(stored_run)


@takes_settings(FitConfig, "release", opens=False)
def fit(release: Place | Result, **settings: Unpack[FitSettings]) -> Result:
    """Make another generator from a release, which is paid for, as a run of its own: nothing is charged.

    This version's fitter makes it.

    The release is any ``release.parquet`` that a run of any version left, or a result, whose run's is meant. If the
    ledger at hand paid for it, the hand-off names account and run; otherwise it names the charge as the release does,
    and says that the rest is left out. ``changes`` of the result compares this fit with that of the run that paid, if
    that run is in the home.

    What that run declared (purpose, legal basis, and so on) is declared of this hand-off too, in the words that the
    ledger has: give any of them anew, or an empty text for none. Without that ledger, only what is given is declared.

    Raises:
        NacreError: the release is damaged, or this version cannot fit it.
    """
    if isinstance(release, Result):
        paid = run_of(release, settings.get("home"))
        settings["home"], release = paid.home, paid.place("sanitize")
    name, terms = new_name(), terms_of(settings)
    terms["out"] = terms.get("out") or terms["home"] / "hand-offs" / name
    config = FitConfig.build(placed({**terms, "release": release}, FitConfig))
    run, changes = fit_again.fit(config, name)
    return Result(run.settings.out, changes, run.home)


def take_to_hand_off(run: Run, alarms: Sequence[str] = ()) -> Result:
    """Take a run to its hand-off; ``alarms`` are warned of before it is charged, once its data were not refused."""
    return _handed_over(_finished(run, alarms))


def _handed_over(run: Run) -> Result:
    """Return the result of a finished run, which says so where the run opened its account."""
    made = Result(run.settings.out, home=run.home)
    made.opened = _opened(run)
    return made


def _opened(run: Run) -> str:
    """Say how more is allowed of an account whose cap is still the budget of the run that opened it; else nothing."""
    name = run.settings.account
    with suppress(NacreError):  # a ledger that cannot be read says nothing here
        if has_opened(run):
            own = "" if run.home == home_of(None) else repr(str(run.home))
            call = f"nacre.ledger({f'url={run.ledger_url!r}' if run.ledger_url else own}).change_cap"
            is_first = not run.ledger_url and len(Ledger(run.ledger).accounts()) == 1
            first = f", the first of the ledger in {run.home}, which knows nothing of what another home has spent"
            return (
                f"{name} was opened with this budget as its cap{first * is_first}; that leaves nothing for a second "
                f"run: for more, `{call}({name!r}, epsilon=EPSILON, reason=REASON)`"
            )
    return ""


def take_to_end(run: Run) -> Result | Path:
    """Take a run to its hand-off, or to the folder of models that stay in the sensitive zone."""
    return inside(run) if stays_inside(_finished(run)) else _handed_over(run)


def _begun(run: Run, alarms: Sequence[str]) -> None:
    """Say before the charge what the command line says: what was released before, and that a ledger is new.

    Raises:
        PaidBefore: a run has released the same plan of the same data.
    """
    for one in alarms:
        refuse_same(run, one)
        warn_of_release(one)
    if said := new_ledger(run.ledger):
        LOG.warning(said)


def _finished(run: Run, alarms: Sequence[str] = ()) -> Run:
    """Run what remains of a run; a note on any error says how to go on, if that can help."""
    try:
        return carry_out(run, False, partial(_begun, run, alarms))
    except BaseException as error:
        if run.exists and isinstance(error, DataError) and are_given(run):
            forget_given(run)  # rows that do not fit their schema will not fit it later
        elif run.exists:
            elsewhere = ", out=OUT" if is_out_lost(run) else ""
            call = f"nacre.resume({run.name!r}, home={str(run.home)!r}{elsewhere})"
            error.add_note(f"to go on, without a second charge: {call}")
        raise
