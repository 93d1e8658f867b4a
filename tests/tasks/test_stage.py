"""A stage fails without telling: what leaves it names the stage, and the rest stays in the sensitive directory."""

import errno
import sqlite3
import stat
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.errors import DataError, NacreError
from flows.with_prefect.server import prefect_server
from tasks.engine.engines import Threads
from tasks.stages.stage import as_task, stage
from tests.kit.errors import refused
from tests.kit.stages import CANARY, Run, cast, refuse, train

pytestmark = pytest.mark.processes


@stage("validate", sensitive=False)
def reject(run: Run) -> None:
    raise NacreError("the synthetic table breaks its schema")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "sensitive" / "run")


def everything(error: BaseException | None) -> str:
    """Render an error with all that hangs on it, down to the locals of its frames."""
    text = []
    while error is not None:
        text.append(f"{error!r} {error.args} {vars(error)}")
        frame = error.__traceback__
        while frame:
            if "tasks/stages/stage.py" in frame.tb_frame.f_code.co_filename:
                text.append(str(frame.tb_frame.f_locals))
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
    return "\n".join(text)


def test_a_plain_call_returns_the_result(run: Run) -> None:
    assert cast(run, "41") == 41
    assert not run.sensitive.exists()


def test_the_planted_exception_really_carries_the_value() -> None:
    with pytest.raises(pa.ArrowInvalid, match=CANARY):
        cast.__wrapped__(None)


def test_a_foreign_error_leaves_as_name_and_kind_only(run: Run) -> None:
    with pytest.raises(NacreError, match=r"stage ingest failed with ArrowInvalid; .*error\.txt") as caught:
        cast(run)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert CANARY not in everything(caught.value)
    kept = run.sensitive / "error.txt"
    assert CANARY in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(run.sensitive.stat().st_mode) == 0o700


def test_our_own_error_keeps_its_type_and_loses_its_cause(run: Run) -> None:
    with refused(DataError, column="age", rule="must be an integer") as caught:
        refuse(run)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert CANARY not in everything(caught.value)
    assert CANARY in (run.sensitive / "error.txt").read_text()


def test_a_readable_account_of_an_earlier_failure_is_replaced(run: Run) -> None:
    run.sensitive.mkdir(parents=True)
    kept = run.sensitive / "error.txt"
    kept.write_text("old")
    kept.chmod(0o644)
    with pytest.raises(NacreError):
        cast(run)
    assert "old" not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_an_account_that_cannot_be_written_still_fails_with_the_stage(run: Run) -> None:
    run.sensitive.parent.mkdir()
    run.sensitive.write_text("a file where the directory should be")
    with pytest.raises(NacreError, match="stage ingest failed with ArrowInvalid; its details could not be written"):
        cast(run)


@pytest.mark.parametrize("sensitive", [True, False])
@pytest.mark.parametrize("kind", ["errno", "wrapped", "sqlite"])
def test_a_full_disk_is_said_plainly(run: Run, sensitive: bool, kind: str) -> None:
    @stage("sample", sensitive=sensitive)
    def fill(run: Run) -> None:
        if kind == "sqlite":
            fill_sqlite()
        try:
            raise OSError(errno.ENOSPC, "No space left on device", CANARY)
        except OSError as error:
            if kind == "errno":
                raise
            raise RuntimeError(CANARY) from error

    with pytest.raises(NacreError, match="stage sample: the disk is full") as caught:
        fill(run)
    assert CANARY not in everything(caught.value)


def fill_sqlite() -> None:
    database = sqlite3.connect(":memory:")
    try:
        database.execute("pragma max_page_count = 1")
        database.execute("create table t (a)")
    finally:
        database.close()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes(run: Run, stop: type[BaseException]) -> None:
    @stage("train", sensitive=True)
    def interrupted(run: Run) -> None:
        raise stop

    with pytest.raises(stop):
        interrupted(run)
    assert not run.sensitive.exists()


def test_a_free_stage_keeps_its_own_error(run: Run) -> None:
    with pytest.raises(ConnectionError, match="try again"):
        train(run, [])
    assert not run.sensitive.exists()


def test_the_house_policy() -> None:
    from prefect.cache_policies import NO_CACHE

    private, free = as_task(cast), as_task(train)
    assert (private.name, private.retries) == ("ingest", 0)
    assert (free.name, free.retries) == ("train", 2)
    for task in (private, free):
        assert task.persist_result is False and task.cache_policy is NO_CACHE and task.log_prints is False


def test_nothing_private_reaches_prefect(run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Fail in every way inside a real flow, succeed after retries, then search all that Prefect wrote."""
    tries: list[int] = []
    with prefect_server(tmp_path / "home"):
        from prefect import flow

        @flow
        def pipeline() -> list[object]:
            failed = [as_task(stage_)(run, return_state=True) for stage_ in (cast, refuse, reject)]
            assert as_task(train)(run, tries) == "weights"
            return [state.result(raise_on_failure=False) for state in failed]

        errors = pipeline()
    assert [type(error) for error in errors] == [NacreError, DataError, NacreError]
    assert len(tries) == 3
    database = sqlite3.connect(tmp_path / "home" / "prefect" / "prefect.db")
    rows = database.execute("select name, state_name, run_count from task_run order by name").fetchall()
    database.close()
    assert [(name.split("-")[0], state, count) for name, state, count in rows] == [
        ("ingest", "Failed", 1),
        ("sanitize", "Failed", 1),
        ("train", "Completed", 3),
        ("validate", "Failed", 1),
    ]
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(written) > 1
    assert not [path for path in written if CANARY.encode() in path.read_bytes()]
    printed = capfd.readouterr()
    assert CANARY not in printed.out + printed.err


HUGE = np.array([1e308, np.inf, np.nan, -0.0, 5e-324])


def squared(_: object) -> float:
    """Compute what numpy, and a library that warns by itself, would warn of."""
    warnings.warn(f"{CANARY} is huge", RuntimeWarning, stacklevel=1)
    return float((HUGE.astype(np.float32) * 1e200 / 0.0 + (HUGE * HUGE - HUGE * HUGE)).sum())


@stage("ingest", sensitive=True)
def loud(run: Run) -> None:
    squared(run)
    list(Threads(2).map(squared, range(4)))


def test_a_sensitive_stage_is_silent_in_all_of_its_threads(run, capfd):
    with warnings.catch_warnings(record=True, action="always") as heard:
        loud(run)
        assert heard == [] and capfd.readouterr() == ("", "")
        squared(run)
    assert len(heard) > 1
