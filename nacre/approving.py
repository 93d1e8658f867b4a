"""The signature of an officer from Python: for what a run will be charged, or that a hand-off may leave."""

import os
from pathlib import Path

from dpmodels.errors import InvalidArgument
from dpmodels.hand_off.manifest import MANIFEST
from nacre.places import Place, home_of, url_of
from nacre.result import Result


def approve(
    run_or_folder: Place | Result,
    key: Place,
    *,
    reason: str = "",
    home: Place | None = None,
    ledger: str | None = None,
) -> dict[str, str]:
    """Sign as an officer for what a waiting run will be charged, or that a hand-off may leave; asks no question.

    Look first: what a run will be charged is what ``nacre.plan`` of it says, and ``nacre.Result(folder)`` shows a
    hand-off. Signed for, a run goes on with ``nacre.resume``.

    Args:
        run_or_folder: the name of a run that waits; or a hand-off, by its folder or its result.
        key: the officer's ed25519 private key (PEM).
        reason: why a hand-off may leave, in a line; signed, and public.
        home: where the run lies; by default ``NACRE_HOME``, or ``.nacre``.
        ledger: the URL of a shared ledger; by default ``NACRE_LEDGER``, or the home's own.

    Returns:
        The ``file`` of the signature and the SHA-256 of the public ``key``; of a run the ``run``, the ``officer``, the
        lines that were ``signed``, and the ``signature``.

    Raises:
        NacreError: nobody must sign, the key is not that of whoever must, or something is wrong with the hand-off.
    """
    from tasks.run.accounts import sign_run
    from tasks.run.store import Run
    from tasks.stages.agree import REASON_OF_A_CHARGE, agree, look

    name = run_or_folder.folder if isinstance(run_or_folder, Result) else run_or_folder
    folder = Path(name)
    if (folder / MANIFEST).exists():
        look(folder)
        file, fingerprint = agree(folder, Path(key), reason)
        return {"file": str(file), "key": fingerprint}
    if reason:
        raise InvalidArgument("reason", reason, REASON_OF_A_CHARGE)
    stored_run = Run.find(home_of(home), os.fspath(name), url_of(ledger))
    approval, request = sign_run(stored_run, Path(key))
    signed = {"run": stored_run.name, "officer": approval.officer, "signed": request.text}
    return {**signed, "signature": approval.signature}
