"""Ingest: read the raw data, check it against its contract, and write it encoded into the sensitive zone."""

from dpmodels.artifact import aside, replace_folder
from dpmodels.errors import uncharged
from tasks.engine.progress import progress_bar
from tasks.kinds.protocol import kind_of_line
from tasks.run.contents import refuse_charged, refuse_repeated
from tasks.run.folders import make_private
from tasks.run.store import Handle, Run
from tasks.stages.stage import stage


@stage("ingest", sensitive=True)
def ingest(run: Run) -> Handle:
    """Encode the raw data, charging nothing; what was found on the way stays in the sensitive zone too."""
    target = run.sensitive / "encoded"
    if target.exists():  # it was moved here when it was complete
        return Handle(path=target)
    make_private(run.sensitive)
    with progress_bar("ingest"), aside(target) as part:  # where no worker of an earlier process writes
        part.mkdir()
        with uncharged():
            kind_of_line(run.plan.release).encode(run, part)
        refuse_repeated(run, part)
        refuse_charged(run, part)
        replace_folder(part, target)
    return Handle(path=target)
