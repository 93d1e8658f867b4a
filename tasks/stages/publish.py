"""Publish: assemble the hand-off of a run, which appears whole or not at all."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.artifact import sha256_of, write_text
from dpmodels.codec.flat import handed_over, public_tables, tables_of
from dpmodels.contract.helpers import helpers_of
from dpmodels.errors import ArtifactError
from dpmodels.files import copy_plain
from dpmodels.gate.made_files import read_batches
from dpmodels.hand_off.lines import ClientLine
from dpmodels.hand_off.manifest import LEFT_OUT, MANIFEST, Manifest
from dpmodels.hand_off.payments import accounts_of, approved, cost_of, discovered, for_all, payment, total
from dpmodels.hand_off.writer import HandOff, hand_over, manifest_of
from dpmodels.releases.plan import REPORT
from dpmodels.report.terms import cautions
from tasks.engine.engines import open_engine
from tasks.kinds.protocol import direct_kind_of
from tasks.kinds.users import write_split
from tasks.run.accounts import charges_of, desk_of
from tasks.run.anchors import anchor_after
from tasks.run.bucket import Bucket
from tasks.run.home import ledger_of
from tasks.run.ready import check_free
from tasks.run.receive import forget, receive
from tasks.run.runs import is_in_place, mark_finished
from tasks.run.signing import passphrase_of
from tasks.run.store import BEGUN, MADE, Handle, Run, members
from tasks.run.table_file import write_table
from tasks.stages.csv_forms import in_days
from tasks.stages.stage import stage


@stage("publish", sensitive=False)
def publish(run: Run, release: Handle, product: Handle, report: Handle) -> Handle:
    """Write the product that was checked, and the report, and the manifest that accounts for them."""
    direct = direct_kind_of(run.plan.release)
    if direct is not None:
        return assemble(run, release, report, partial(direct.write, run))
    handed_over = assemble(run, release, report, partial(copy_table, run))
    forget(run)
    return handed_over


def copy_table(run: Run, folder: Path) -> dict[str, str]:
    """Copy a synthetic table as it was checked; return the digests of what lies in the object store already."""
    received, place, contract = receive(run), folder / MADE["sample"], run.plan.release.contract
    size = run.settings.batch_rows
    if received.parts:  # whose digests are those of the files that were checked
        return {f"{MADE['sample']}/{name}": sha256 for name, sha256 in received.parts.items()}
    place.mkdir()
    public = public_tables(contract)
    for file in members(received.folder, received.synthetic):
        if tables_of(contract):
            flat = (pa.Table.from_batches([batch]) for batch in read_batches(file, size, contract))
            write_split(contract, flat, place, file.name, public=public)
            public = {}
        elif helpers_of(contract):
            rows = (pa.Table.from_batches([batch]) for batch in read_batches(file, size, contract))
            write_table((handed_over(contract, each) for each in rows), place / file.name)
        else:
            copy_plain(file.parents[1], file, place / file.name)
    if kind := run.settings.format:
        batches = (each for file in sorted(place.iterdir()) for each in read_batches(file, size, contract))
        tables = map(pa.Table.from_batches, ([batch] for batch in batches))
        write_table(in_days(tables, contract, f".{kind}"), folder / f"synthetic.{kind}")
    return {}


def assemble(run: Run, release: Handle, report: Handle, write: Callable[[Path], Mapping[str, str] | None]) -> Handle:
    """Assemble a hand-off, unless it is in place: what ``write`` leaves in its folder, report and manifest.

    What ``write`` returns are the digests of files that lie in the object store already. The rest goes there too, the
    manifest last, and stays in the folder.
    """
    settings = run.settings
    if is_in_place(run):
        mark_finished(run)
        return Handle(path=settings.out)
    check_free(settings.out)

    def write_all(folder: Path) -> Mapping[str, str] | None:
        elsewhere = write(folder)
        for file in members(run.control.parent, report.path):
            copy_plain(file.parents[1], file, folder / file.name)
        return elsewhere

    def deliver(folder: Path, artifacts: Mapping[str, str]) -> None:
        if settings.bucket:
            with open_engine(settings.threads, None) as engine:
                Bucket(settings.bucket).settle(run.name, folder, artifacts, engine)
        if (run.control / BEGUN).exists():  # so that no other manifest at its place is taken for the run's
            write_text(run.control / BEGUN, sha256_of(folder / MANIFEST))

    key = settings.signing_key
    passphrase = passphrase_of(key) if key else ""
    hand_off = hand_off_of(run, release)
    hand_over(settings.out, hand_off, write_all, owner=run.name, key=key, passphrase=passphrase, deliver=deliver)
    mark_finished(run)
    if not settings.is_paid_elsewhere:
        anchor_after(ledger_of(run), key)
    return Handle(path=settings.out)


def hand_off_of(run: Run, release: Handle) -> HandOff:
    """Make the manifest of a run's hand-off, and say where the accounts stood that paid, if their ledger is here."""
    said = manifest_of_clients(run) if run.settings.clients else manifest(run, release)
    if said.ledger.account is None:
        return HandOff(said, run.plan.whole)
    charges = [[line.charge] for line in said.clients or ()] or [[line.charge for line in said.lines_of_run]]
    return HandOff(said, run.plan.whole, *accounts_of(ledger_of(run), charges))


def manifest(run: Run, release: Handle) -> Manifest:
    """Make the manifest of a run that is no federation's."""
    settings, line = run.settings, run.plan.release
    again = "fitted_again_as" if settings.fits else "sampled_again_as" if settings.paid_by else ""
    paid = paid_elsewhere(settings.fits) if settings.is_paid_elsewhere else paid_here(run, release)
    paid |= discovered(line.contract, None if settings.is_paid_elsewhere else ledger_of(run))
    return manifest_of(
        line,
        line.contract,
        settings.declared,
        release_sha256=release.sha256,
        **({again: run.name} if again else {}),
        **cost_of(line),
        **paid,
        **total(line, paid),
        **({"cautions": cautions(line)} if line.family else {}),
    )


def manifest_of_clients(run: Run) -> Manifest:
    """Make the manifest of a federation: one line for each client that took part, and why the others did not."""
    ended, plan = json.loads(run.read("round")), run.plan
    parties, trust = dict(zip(run.settings.clients, run.parties, strict=True)), plan.release.measurement.get("trust")
    lines = [_client_line(client, parties[client], sha256) for client, sha256 in ended["taken"].items()]
    paid = for_all(lines, run.settings.account, trust or "local", ended["dropped"])
    said = {"run": run.name, "cautions": cautions(plan.release), **paid}
    return manifest_of(plan.release, plan.whole, run.settings.declared, **said)


def _client_line(client: str, party: Run, sha256: str) -> ClientLine:
    """Say what one client released and who paid for it."""
    (charge,) = charges_of(party)
    check_sealed(party, Handle(path=party.place("sanitize"), sha256=sha256))
    ledger = ledger_of(party)
    said = {"client": client, "run": charge.run, "release_sha256": sha256, "ledger": payment(ledger, charge)}
    return ClientLine.model_validate({**cost_of(party.plan.release), **said, "approved": ledger.approval(charge.key)})


def paid_elsewhere(charge: str) -> dict[str, Any]:
    """Name the charge as the release's footer does, and say that what only the ledger knows is left out."""
    return {"left_out": LEFT_OUT, "ledger": {"charge": charge}}


def paid_here(run: Run, release: Handle) -> dict[str, Any]:
    """Say who paid and who signed for it, and account for the charged section of the report."""
    charge, ledger = charges_of(run)[0], ledger_of(run)
    check_sealed(run, release)
    return {"run": charge.run, "ledger": payment(ledger, charge), **charged_line(run), **approved(ledger, charge)}


def check_sealed(run: Run, release: Handle) -> None:
    """Refuse a release that is not the one which the ledger sealed.

    Raises:
        ArtifactError: the run uses another release.
    """
    held = desk_of(run).held()
    if held is None or held.artifact_hash != release.sha256:
        raise ArtifactError(
            f"the release of run {run.name} is not the one that the ledger sealed; nothing was handed over"
        )


def charged_line(run: Run) -> dict[str, Any]:
    """Account for the charged section of the report, if the run was asked for one and its charge was not voided."""
    plan, done = run.plan.report, run.finished("score")
    if plan is None:
        return {}
    held = desk_of(run, REPORT).held()
    if held is None or held.state == "voided":
        return {}
    scores = {"scores_sha256": done.sha256} if done else {}
    return {"report": {**cost_of(plan), "ledger": payment(ledger_of(run), charges_of(run)[1]), **scores}}
