"""The flow that checks a run's hand-off, with the ledger that paid for it."""

import os
from pathlib import Path

from dpmodels.errors import ArtifactError
from dpmodels.plural import counted
from flows.settings import home_here
from flows.with_prefect.artifacts import publish_checks
from flows.with_prefect.worker import deployed, name_flow_run, run_here
from tasks.run.bucket import verify
from tasks.run.charges import sealed_releases
from tasks.run.home import home_faults, ledger_of
from tasks.stages.validate import check_hand_off

KEY = "NACRE_PUBLIC_KEY"
"""The worker's variable that names the file of the key (PEM) that must have signed; whoever asks chooses no key."""


@deployed("validate-run")
def validate_run(run: str) -> None:
    """Check a run's hand-off against its schema and its manifest, the whole ledger and every sealed release; free.

    Where the worker's NACRE_PUBLIC_KEY names a file of a key (PEM), that key must have signed the manifest.

    Args:
        run: name of a finished run under the worker's NACRE_HOME, such as 20260131-0a1b2c3d4e.

    Raises:
        ArtifactError: something is wrong; the artifact of the flow run names all of it.
    """
    stored_run, home = run_here(run), home_here()
    name_flow_run(stored_run)
    ledger = ledger_of(stored_run)
    bucket = stored_run.settings.bucket
    key = os.environ.get(KEY)
    verified = verify(bucket or stored_run.settings.out, Path(key) if key else None)
    # what lies in an object store has the digests of what was checked before it was handed over
    rules = [] if bucket or stored_run.plan.release.family else check_hand_off(stored_run.settings.out, None).broken
    broken = [f"the synthetic table breaks {rule}" for rule in rules]
    doubts = home_faults(home, stored_run.ledger_url, ledger)
    faults = [*verified.faults, *broken, *ledger.verify(sealed_releases(ledger, home)), *map(str, doubts)]
    publish_checks(stored_run, faults, verified.signature)
    if faults:
        raise ArtifactError(f"run {run} has {counted(len(faults), 'fault')}: {'; '.join(faults)}")
