"""Publish: assemble the hand-off, which appears whole or not at all."""

import json
import os
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.artifact import aside, make_folder, replace_folder, sha256_of, write_text
from dpmodels.codec.flat import tables_of
from dpmodels.contract.discovery_charge import DiscoveryCharge
from dpmodels.errors import ArtifactError
from dpmodels.files import copy_plain
from dpmodels.hand_off.manifest import (
    CARD,
    DISCOVERED,
    LAID_OUT,
    LEFT_OUT,
    MANIFEST,
    PAGES,
    PAID_ELSEWHERE,
    Manifest,
    digest_of_all,
)
from dpmodels.hand_off.signature import sign_manifest
from dpmodels.ledger.declared import Declared
from dpmodels.ledger.ledger import Charge
from dpmodels.pages.page import LAYOUT
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import check_discovery, discoveries_of, joint_cost, price_of
from dpmodels.releases.plan import REPORT, Line
from dpmodels.report.embedded import cautions
from dpmodels.report.federated import cautions as cautions_of_clients
from tasks.engine.engines import open_engine
from tasks.kinds.users import write_split
from tasks.run.accounts import charges_of, desk_of
from tasks.run.anchors import anchor_after
from tasks.run.bucket import Bucket
from tasks.run.home import ledger_of
from tasks.run.parquet import read_batches
from tasks.run.ready import check_free
from tasks.run.receive import forget, receive
from tasks.run.runs import is_in_place, mark_finished
from tasks.run.signing import passphrase_of
from tasks.run.store import BEGUN, MADE, Handle, Run, members
from tasks.run.table_file import write_table
from tasks.stages.card import write_card
from tasks.stages.stage import stage

DAY = 86_400
TO_COME = {"artifacts": dict.fromkeys((CARD, *PAGES), 64 * "0"), "layout": LAYOUT, "sha256": 64 * "0"}
"""Stands for the files of a hand-off until they are written, and for the manifest's digest of itself."""


@stage("publish", sensitive=False)
def publish(run: Run, release: Handle, synthetic: Handle, report: Handle) -> Handle:
    """Copy the synthetic table that was checked, and the report, and write the manifest that accounts for them."""

    def table(folder: Path) -> dict[str, str]:
        received, place, contract = receive(run), folder / MADE["sample"], run.plan.release.contract
        size = run.settings.batch_rows
        if received.parts:  # whose digests are those of the files that were checked
            return {f"{MADE['sample']}/{name}": sha256 for name, sha256 in received.parts.items()}
        place.mkdir()
        for file in members(received.folder, received.synthetic):
            if tables_of(contract):
                flat = (pa.Table.from_batches([batch]) for batch in read_batches(file, size, contract))
                write_split(contract, flat, place, file.name)
            else:
                copy_plain(file.parents[1], file, place / file.name)
        if kind := run.settings.format:
            batches = (each for file in sorted(place.iterdir()) for each in read_batches(file, size, contract))
            write_table(map(pa.Table.from_batches, ([batch] for batch in batches)), folder / f"synthetic.{kind}")
        return {}

    handed_over = assemble(run, release, report, table)
    forget(run)
    return handed_over


def assemble(run: Run, release: Handle, report: Handle, write: Callable[[Path], Mapping[str, str] | None]) -> Handle:
    """Assemble a hand-off, unless it is in place: what ``write`` leaves in its folder, report and manifest.

    What ``write`` returns are the digests of files that lie in the object store already. The rest goes there too, the
    manifest last, and stays in the folder.
    """
    out = run.settings.out
    if is_in_place(run):
        mark_finished(run)
        return Handle(path=out)
    check_free(out)
    make_folder(out.parent)
    with aside(out, run.name) as part:
        part.mkdir()
        elsewhere = write(part) or {}
        for file in members(run.control.parent, report.path):
            copy_plain(file.parents[1], file, part / file.name)
        (part / "schema.yaml").write_text(run.plan.whole.to_yaml(), encoding="utf-8")
        said = manifest_of_clients(run) if run.settings.clients else manifest(run, release)
        write_card(run, said, part)
        whole = said.model_copy(update={"artifacts": {**artifacts(part), **elsewhere}})
        (part / MANIFEST).write_text(whole.to_json(), encoding="utf-8")
        if run.settings.signing_key is not None:
            sign_manifest(part, run.settings.signing_key, passphrase_of(run.settings.signing_key))
        if bucket := run.settings.bucket:
            with open_engine(run.settings.threads, None) as engine:
                Bucket(bucket).settle(run.name, part, whole.artifacts, engine)
        blur_times(part)
        if (run.control / BEGUN).exists():  # so that no other manifest at its place is taken for the run's
            write_text(run.control / BEGUN, sha256_of(part / MANIFEST))
        replace_folder(part, out)
    mark_finished(run)
    if not run.settings.is_paid_elsewhere:
        anchor_after(ledger_of(run), run.settings.signing_key)
    return Handle(path=out)


def blur_times(folder: Path) -> None:
    """Set the times of all files to the beginning of the day, because how long a run took grows with the data."""
    day = time.time() // DAY * DAY
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (day, day))


def manifest(run: Run, release: Handle) -> Manifest:
    """Say what was asked for, what was spent, what came of it, and which ledger entries paid; the files come later."""
    settings, plan = run.settings, run.plan.release
    budget = plan.budget
    again = "fitted_again_as" if settings.fits else "sampled_again_as" if settings.paid_by else ""
    paid = paid_elsewhere(settings.fits) if settings.is_paid_elsewhere else paid_here(run, release)
    paid |= discovery_lines(run)
    paid |= total(run, paid)
    return Manifest.model_validate(
        {
            "format": DISCOVERED if "discoveries" in paid else LAID_OUT,
            "nacre_version": version("nacre"),
            **({again: run.name} if again else {}),
            "data_set": plan.contract.name,
            "method": plan.method,
            "adjacency": budget.adjacency,
            "unit": str(budget.unit),
            "schema_sha256": plan.contract.hash,
            "release_sha256": release.sha256,
            **line(plan),
            **paid,
            **({"cautions": cautions(plan)} if plan.family else {}),
            **declared(settings.declared),
            **TO_COME,
        }
    )


def declared(said: Declared) -> dict[str, Any]:
    """Return the field of what the operator says, if there is anything."""
    return {"declared": said.said} if said.said else {}


def artifacts(folder: Path) -> dict[str, str]:
    """Hash every file of a hand-off."""
    return {str(file.relative_to(folder)): sha256_of(file) for file in sorted(folder.rglob("*")) if file.is_file()}


def manifest_of_clients(run: Run) -> Manifest:
    """Make the manifest of a federation: one line for each client that took part, and why the others did not."""
    ended, plan = json.loads(run.read("round")), run.plan
    return Manifest.model_validate(
        {
            "format": LAID_OUT,
            "nacre_version": version("nacre"),
            "run": run.name,
            "data_set": plan.whole.name,
            "schema_sha256": plan.whole.hash,
            "method": plan.method,
            "adjacency": plan.contract.adjacency,
            "unit": str(plan.contract.unit),
            **_lines_of_clients(run, ended["taken"]),
            "cautions": cautions_of_clients(plan),
            **({"dropped": ended["dropped"]} if ended["dropped"] else {}),
            **declared(run.settings.declared),
            **TO_COME,
        }
    )


def _lines_of_clients(run: Run, taken: Mapping[str, str]) -> dict[str, Any]:
    """Say what each client that took part paid, and of all of them what the heaviest did."""
    parties, plan = dict(zip(run.settings.clients, run.parties, strict=True)), run.plan.release
    lines = [_client_line(client, parties[client], sha256) for client, sha256 in taken.items()]
    hashes, heaviest = charged_once(run, taken), max(lines, key=lambda one: one["spent"]["epsilon"])
    return {
        **{name: heaviest[name] for name in ("asked", "spent", "events", "part")},
        **{name: hashes[name] for name in ("plan_sha256", "release_sha256")},
        "ledger": {"account": run.settings.account, "charge": hashes["ledger_charge"]},
        "clients": lines,
        "trust": plan.measurement.get("trust", "local"),
    }


def _client_line(client: str, party: Run, sha256: str) -> dict[str, Any]:
    """Say what one client released and who paid for it."""
    (charge,) = charges_of(party)
    check_sealed(party, charge, Handle(path=party.place("sanitize"), sha256=sha256))
    paid = payment(party, charge)
    return {**line(party.plan.release), "client": client, "run": charge.run, "release_sha256": sha256, "ledger": paid}


def charged_once(run: Run, taken: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes that stand for those of all clients that took part, and that of the federation's contract."""
    parties = dict(zip(run.settings.clients, run.parties, strict=True))
    charges = [charges_of(parties[client])[0] for client in taken]
    return {
        "plan_sha256": digest_of_all(charge.plan_hash for charge in charges),
        "schema_sha256": run.plan.whole.hash,
        "release_sha256": digest_of_all(taken.values()),
        "ledger_charge": digest_of_all(charge.key for charge in charges),
    }


def line(plan: Line) -> dict[str, Any]:
    """Say what one line of the plan asked for and what it cost."""
    budget = plan.budget
    return {
        "asked": {"epsilon": budget.epsilon, "delta": budget.delta},
        "spent": {"epsilon": spent_epsilon([plan.event], budget.delta_exact), "delta": budget.delta},
        "events": [plan.event],
        "plan_sha256": plan.hash,
        **({"part": plan.family} if plan.family else {}),
    }


def paid_elsewhere(charge: str) -> dict[str, Any]:
    """Name the charge as the release's footer does, and say that what only the ledger knows is left out."""
    return {"left_out": LEFT_OUT, "ledger": {"charge": charge}}


def paid_here(run: Run, release: Handle) -> dict[str, Any]:
    """Say who paid and who signed for it, and account for the charged section of the report."""
    charge = charges_of(run)[0]
    check_sealed(run, charge, release)
    return {"run": charge.run, "ledger": payment(run, charge), **charged_line(run), **approved(run, charge)}


def approved(run: Run, charge: Charge) -> dict[str, Any]:
    """Return the officer's signature for a charge, and, where it is for a family, the account and run it names."""
    ledger = desk_of(run).ledger
    signed = ledger.approval(charge.key)
    if signed is None:
        return {}
    if charge.plan_hash in signed["plans"]:
        return {"approved": signed}
    family = [held.charge for held in map(ledger.find, signed["plans"]) if held]
    above = len({one.account for one in family}) > 1
    account = ledger.account(charge.account).parent if above else charge.account
    return {"approved": signed, "approved_as": {"account": account, "run": family[0].run}}


def payment(run: Run, charge: Charge) -> dict[str, Any]:
    """Name a charge and its entries with their day, but not their time, because a run's time grows with the data."""
    entries = desk_of(run).ledger.entries(key=charge.key)
    return {
        "account": charge.account,
        "charge": charge.key,
        "entries": [{"seq": e.seq, "kind": e.kind, "day": e.time[:10], "hash": e.hash} for e in entries],
    }


def check_sealed(run: Run, charge: Charge, release: Handle) -> None:
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
    charge = charges_of(run)[1]
    held = desk_of(run, REPORT).held()
    if held is None or held.state == "voided":
        return {}
    scores = {"scores_sha256": done.sha256} if done else {}
    return {"report": {**line(plan), "ledger": payment(run, charge), **scores}}


def total(run: Run, lines: Mapping[str, Any]) -> dict[str, Any]:
    """Say what release, report and discoveries cost together, where there are several."""
    plan = run.plan.release
    if not {"report", "discoveries"} & lines.keys():
        return {}
    events = [plan.event, *(lines["report"]["events"] if "report" in lines else ())]
    epsilon, delta = joint_cost(events, plan.budget.delta, plan.contract)
    return {"total_spent": {"epsilon": epsilon, "delta": delta}}


def discovery_lines(run: Run) -> dict[str, Any]:
    """Account for what the schema was discovered with; of a charge that is not in the run's ledger without entries."""
    contract = run.plan.release.contract
    lines = [_discovery_line(run, one, contract) for one in discoveries_of(contract)]
    return {"discoveries": lines} if lines else {}


def _discovery_line(run: Run, one: DiscoveryCharge, contract: Contract) -> dict[str, Any]:
    """Say what a discovery asked for, what it cost, and who paid."""
    held = None if run.settings.is_paid_elsewhere else ledger_of(run).find(one.charge)
    paid: dict[str, Any] = {"account": one.account, "charge": one.charge}
    if held is not None:
        check_discovery(one, held, contract)
        paid = payment(run, held.charge)
    return {
        "asked": {"epsilon": one.epsilon, "delta": one.delta},
        "spent": {"epsilon": price_of(one), "delta": one.delta},
        "events": one.events,
        "plan_sha256": one.plan_sha256,
        "run": one.run,
        "release_sha256": one.release_sha256,
        "ledger": paid,
        **({} if held else {"left_out": PAID_ELSEWHERE}),
    }
