"""Score: compare models and margins of the synthetic table with the real rows, under the plan's line for the report.

The line was reserved together with the release. Only noisy counts of real rows are released, once.
"""

from dpmodels.gate.made_files import SyntheticRows
from dpmodels.privacy import Sensitive
from dpmodels.releases.plan import REPORT
from dpmodels.report.charged import Scores
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Threads, cores
from tasks.run.accounts import desk_of
from tasks.run.receive import receive
from tasks.run.store import Handle, Run
from tasks.stages.stage import stage

LOST = "the sensitive zone was deleted before the report was scored"


@stage("score", sensitive=True)
def score(run: Run, synthetic: Handle) -> Handle:
    """Measure the charged scores; if the real rows are gone, void the charge that was reserved for the scores."""
    line, encoded, product = run.plan.report, run.sensitive / "encoded", Handle(path=run.place("score"))
    if line is None or run.finished("score"):
        return product
    desk = desk_of(run, REPORT)
    reservation = desk.held()
    if reservation is not None and reservation.state == "voided":
        return product
    if encoded.exists():
        settings, contract = run.settings, line.contract
        # on this machine's threads: models are not sent to a cluster, whose libraries may compute otherwise
        real = Sensitive(EncodedTable(encoded, contract, Threads(settings.threads or cores())))
        with receive(run).here() as folder:
            made = SyntheticRows(folder, contract, settings.batch_rows)
            Scores.reading(line, made, settings.seed).measure(real, line, desk)
    elif reservation is not None and reservation.state == "reserved":
        desk.ledger.void(desk.charge.key, LOST)
    elif desk.staged.exists() or desk.released.exists():
        desk.ledger.recover(desk.charge.key, staged=desk.staged, released=desk.released)
    reservation = desk.held()
    if reservation is None or reservation.state != "committed":  # a file that lies there was not released by us
        return product
    return run.finish("score", reservation.artifact_hash)
