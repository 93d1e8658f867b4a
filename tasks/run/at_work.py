"""Work at a run: nobody removes it meanwhile, it keeps why the work stopped, and refused input leaves no run behind."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dpmodels.artifact import write_text
from dpmodels.errors import ContentCharged, DataError, NacreError
from tasks.run.lock import shared
from tasks.run.remove import withdraw
from tasks.run.store import Run

STOPPED = "stopped.txt"
"""Says in the sensitive zone why the work at a run stopped; absent while it goes on, and where it was killed."""
LARGEST = 2**16
KNOWN = {
    "KeyboardInterrupt": "interrupted",
    "SystemExit": "its process was asked to end",
    "Pause": "it waits for the officer of its account",
}
"""Why the work stopped, by the kind of what ended it, where that is no error; the last one is Prefect's."""


@contextmanager
def at_work(run: Run) -> Iterator[None]:
    """Work at a run for the length of the block.

    Privacy: an error that names the reason was written for the user, and is safe to store; of any other only the kind
        of error is kept.

    Raises:
        ArtifactError: the run was removed meanwhile.
    """
    try:
        with shared(run):
            (run.sensitive / STOPPED).unlink(missing_ok=True)
            try:
                yield
            except BaseException as error:
                with suppress(OSError, NacreError):  # a full disk must not hide what went wrong
                    write_text(run.sensitive / STOPPED, _reason(error), 0o600)
                raise
    except (DataError, ContentCharged):
        withdraw(run)
        raise


def why_stopped(run: Run) -> str:
    """Say why the work at a run stopped."""
    with suppress(OSError, UnicodeDecodeError), (run.sensitive / STOPPED).open(encoding="utf-8") as file:
        return file.read(LARGEST).strip()
    return "its process ended without a word, or has not begun"


def is_for_officer(run: Run, why: str) -> bool:
    """Tell whether the work at a run stopped for the signature of its account's officer, by why it did."""
    return why == KNOWN["Pause"] or f"nacre approve {run.name} " in why


def _reason(error: BaseException) -> str:
    if isinstance(error, NacreError):
        return str(error)
    return KNOWN.get(type(error).__name__, f"it failed with {type(error).__name__}")
