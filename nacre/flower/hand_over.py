"""Make the hand-off of a Flower federation: of the files that clients released, and of the receipts of their ledgers.

A receipt says which entries of a client's own ledger paid. The server cannot look into that ledger: it checks that the
release names the charge, and the manifest names the entries by their hashes, by which an auditor finds them there.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmodels.contract.dropped import UNPLANNED
from dpmodels.errors import NacreError
from dpmodels.hand_off import writer
from dpmodels.hand_off.lines import ClientLine
from dpmodels.hand_off.manifest import Manifest
from dpmodels.hand_off.payments import cost_of, for_all
from dpmodels.methods.federations.public_part import PublicPart, PublicRecords
from dpmodels.methods.federations.soft_labels import write_soft_labels
from dpmodels.pages.report import render
from dpmodels.privacy import Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, read_release
from dpmodels.report.federated import Party, summarise_federation
from dpmodels.report.terms import cautions
from flows.config import FederateConfig
from flows.kinds.prepared import Prepared
from nacre.flower.messages import Answer
from tasks.kinds.classifier import CLASSIFIER, SOFT_LABELS, Classified, made_of
from tasks.kinds.federation import PUBLIC, RECORDS, about, create
from tasks.run.accounts import charge_of
from tasks.run.signing import passphrase_of


@dataclass(frozen=True)
class Taken:
    """What one client released, as it stands in the manifest, and the release itself."""

    told: ClientLine
    release: Released[Release]


def check_answer(answer: Answer, line: Line) -> Taken | str:
    """Return what a client released, or why it is dropped: it must be of the line, and paid by the charge it names."""
    try:
        release = read_release(answer.release)
        create(line.method, line.measurement).answers(release.value)
        sha256, paid = hashlib.sha256(answer.release).hexdigest(), answer.paid
        facts = {**cost_of(line), "client": answer.client, "run": answer.run, "release_sha256": sha256, "ledger": paid}
        part = Taken(ClientLine.model_validate(facts), release)
        charge = charge_of(answer.run, line, str(paid["account"])).key
    except (NacreError, ValueError, KeyError, TypeError):
        return UNPLANNED
    same = release.value.line == line and release.value.entry == charge == part.told.ledger.charge
    return part if same else UNPLANNED


def hand_over(
    config: FederateConfig, prepared: Prepared, usable: Mapping[str, Taken], dropped: Mapping[str, str]
) -> Path:
    """Write the classifier and what it says of public records, with report and manifest; whole or not at all."""
    out, releases = Path(os.path.realpath(config.out)), [part.release for part in usable.values()]
    entries = {client: part.told.charge for client, part in usable.items()}
    line, judge = prepared.lines[0], PublicRecords.of_bytes(prepared.files[RECORDS]).judge
    model = made_of(line, releases, entries, PublicPart.of_bytes(prepared.files[PUBLIC]), judge, config.model.sharpness)
    contract = about(line).whole
    paid = for_all([part.told for part in usable.values()], contract.name, "local", dropped)
    header = {"run": f"{contract.name}-{contract.hash[:12]}", "cautions": cautions(line), **paid}
    manifest = writer.manifest_of(line, contract, config.statement, **header)

    def write(folder: Path) -> None:
        model.classifier.save(folder / CLASSIFIER)
        write_soft_labels(folder / SOFT_LABELS, 0, model.classifier.contract.classes, model.said, model.certainties)
        facts = report(prepared, model, usable, dropped, manifest)
        (folder / "report.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        (folder / "report.html").write_text(render(facts), encoding="utf-8")

    key = config.runtime.signing_key
    passphrase = passphrase_of(key) if key else ""
    writer.hand_over(out, writer.HandOff(manifest, contract), write, key=key, passphrase=passphrase)
    return out


def report(
    prepared: Prepared,
    model: Classified,
    usable: Mapping[str, Taken],
    dropped: Mapping[str, str],
    manifest: Manifest,
) -> dict[str, Any]:
    """Collect the facts of the publishable report: who took part, what it cost, what is said of public records."""
    parties = []
    for client, line in prepared.by_client.items():
        account = (usable[client].told.ledger.account if client in usable else None) or line.contract.name
        parties.append(
            Party(client, account, prepared.plans[client], dropped.get(client, ""), model.certainties.get(client))
        )
    names = ("plan_sha256", "release_sha256", "schema_sha256")
    hashes = {**{name: getattr(manifest, name) for name in names}, "ledger_charge": manifest.charge}
    return summarise_federation(parties, hashes, model.said, model.rated, model.lost)
