"""The flow that fits a paid release again: train -> sample -> validate -> hand-off; always free."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dpmodels.codec.flat import tables_of
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.releases.release import read_release
from flows.config import FitConfig
from flows.kinds.tables import NOT_IN_A_STORE, OF_ONE_TABLE
from flows.planning import bind
from flows.synthesize import carry_out
from tasks.run.bucket import local
from tasks.run.fits.changes import Changes, Outcome
from tasks.run.refit import forget_fit, start_fit
from tasks.run.store import Run, new_name


def fit(config: FitConfig, name: str = "") -> tuple[Run, Changes]:
    """Fit a release again as a run of its own, hand over what the run samples, and return what the fit changed."""
    runtime, release = config.runtime, config.release.absolute()
    _check_format(config, release)
    home = runtime.home.absolute()
    run = Run(home=home, name=name or new_name(), ledger_url=runtime.ledger or "", dask=runtime.dask)
    before = start_fit(run, release, bind(config, data=release, account=""), anew=config.statement.model_fields_set)
    fitted = carry_out(run, runtime.prefect)
    words = tuple(name for name in fitted.settings.declared.said if name not in config.statement.model_fields_set)
    return fitted, replace(_changes(fitted, before), declared=words, paid_by=fitted.settings.paid_by)


def _check_format(config: FitConfig, release: Path) -> None:
    """Refuse one file of what is handed over in an object store, or of several tables.

    Raises:
        InvalidArgument: it is asked for.
    """
    if config.format and local(config.out) is None:
        raise InvalidArgument("format", config.format, NOT_IN_A_STORE)
    with suppress(ArtifactError, OSError):  # whoever starts the run says what is wrong with the release
        if config.format and tables_of(read_release(release.read_bytes()).value.line.contract):
            raise InvalidArgument("format", config.format, OF_ONE_TABLE)


def refit(run: Run, out: str | Path | None, prefect: bool) -> tuple[Run, Changes]:
    """Fit a run's generator again, hand over what it samples in a new folder, and return what the fit changed."""
    before = Outcome.of(run)
    again = forget_fit(run, out or run.settings.bucket or run.settings.out)
    return again, _changes(carry_out(again, prefect), before)


def _changes(run: Run, before: Outcome | None) -> Changes:
    now = Outcome.of(run)
    if now is None:
        raise ArtifactError(f"the report of run {run.name} is gone; `nacre resume {run.name}` makes it again")
    return Changes.between(before, now)
