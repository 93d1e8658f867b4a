"""Make the hand-off of a Flower federation: of the files that clients released, and of the receipts of their ledgers.

A receipt says which entries of a client's own ledger paid. The server cannot look into that ledger: it checks that the
release names the charge, and the manifest names the entries by their hashes, by which an auditor finds them there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpmodels.artifact import aside, make_folder, replace_folder
from dpmodels.errors import NacreError
from dpmodels.hand_off.manifest import LAID_OUT, MANIFEST, ClientLine, Manifest, digest_of_all
from dpmodels.hand_off.signature import sign_manifest
from dpmodels.ledger.declared import Declared
from dpmodels.methods.federations.public_part import PublicRecords
from dpmodels.methods.federations.soft_labels import write_soft_labels
from dpmodels.pages.report import render
from dpmodels.privacy import Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, read_release
from dpmodels.report.federated import Party, cautions, summarise_federation
from flows.config import FederateConfig
from flows.federate import Prepared
from nacre.flower.messages import Answer
from tasks.run.accounts import charge_of
from tasks.run.signing import passphrase_of
from tasks.stages.card import lay_out
from tasks.stages.classify import CLASSIFIER, SOFT_LABELS, Classified, made_of
from tasks.stages.federate import RECORDS, UNPLANNED, about, create
from tasks.stages.publish import TO_COME, artifacts, blur_times, declared
from tasks.stages.publish import line as cost_of


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
        told = {**cost_of(line), "client": answer.client, "run": answer.run, "release_sha256": sha256, "ledger": paid}
        found = Taken(ClientLine.model_validate(told), release)
        charge = charge_of(answer.run, line, str(paid["account"])).key
    except (NacreError, ValueError, KeyError, TypeError):
        return UNPLANNED
    same = release.value.line == line and release.value.entry == charge == found.told.ledger.charge
    return found if same else UNPLANNED


def hand_over(
    config: FederateConfig, prepared: Prepared, taken: Mapping[str, Taken], dropped: Mapping[str, str]
) -> Path:
    """Write the classifier and what it says of public records, with report and manifest; whole or not at all."""
    out, releases = Path(config.out).absolute(), [own.release for own in taken.values()]
    entries = {client: own.told.charge for client, own in taken.items()}
    line, judge = prepared.whole, PublicRecords.of_bytes(prepared.files[RECORDS]).judge
    made = made_of(line, releases, entries, prepared.public, judge, config.model.sharpness)
    make_folder(out.parent)
    with aside(out) as part:
        part.mkdir()
        made.classifier.save(part / CLASSIFIER)
        write_soft_labels(part / SOFT_LABELS, 0, made.classifier.contract.classes, made.said, made.certainties)
        facts = report(prepared, made, taken, dropped)
        (part / "report.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        (part / "report.html").write_text(render(facts), encoding="utf-8")
        (part / "schema.yaml").write_text(about(line).whole.to_yaml(), encoding="utf-8")
        said = manifest(prepared, taken, dropped, config.statement)
        lay_out(part, said, about(line).whole)
        whole = said.model_copy(update={"artifacts": artifacts(part)})
        (part / MANIFEST).write_text(whole.to_json(), encoding="utf-8")
        if config.runtime.signing_key is not None:
            sign_manifest(part, config.runtime.signing_key, passphrase_of(config.runtime.signing_key))
        blur_times(part)
        replace_folder(part, out)
    return out


def report(
    prepared: Prepared, made: Classified, taken: Mapping[str, Taken], dropped: Mapping[str, str]
) -> dict[str, Any]:
    """Collect the facts of the publishable report: who took part, what it cost, what is said of public records."""
    parties = []
    for client, line in prepared.lines.items():
        account = (taken[client].told.ledger.account if client in taken else None) or line.contract.name
        parties.append(
            Party(client, account, prepared.plan_of(client), dropped.get(client, ""), made.certainties.get(client))
        )
    hashes = {**_hashes(taken), "schema_sha256": made.classifier.contract.hash, "ledger_charge": _charge(taken)}
    return summarise_federation(parties, hashes, made.said, made.rated, made.lost)


def manifest(
    prepared: Prepared, taken: Mapping[str, Taken], dropped: Mapping[str, str], statement: Declared
) -> Manifest:
    """Make the manifest: one line for each client that took part, and why the others did not; the files come later."""
    line, contract = prepared.whole, about(prepared.whole).whole
    heaviest = max((own.told for own in taken.values()), key=lambda told: told.price.spent.epsilon)
    told = {name: getattr(heaviest, name) for name in ("asked", "spent", "events", "part")}
    return Manifest.model_validate(
        {
            "format": LAID_OUT,
            "nacre_version": version("nacre"),
            "run": f"{contract.name}-{contract.hash[:12]}",
            "data_set": contract.name,
            "method": line.method,
            "adjacency": line.budget.adjacency,
            "unit": str(line.budget.unit),
            **told,
            **_hashes(taken),
            "schema_sha256": contract.hash,
            "ledger": {"account": contract.name, "charge": _charge(taken)},
            "cautions": cautions(prepared.plan),
            "clients": [own.told for own in taken.values()],
            "trust": "local",
            **({"dropped": dict(dropped)} if dropped else {}),
            **declared(statement),
            **TO_COME,
        }
    )


def _hashes(taken: Mapping[str, Taken]) -> dict[str, str]:
    """Return the digests that stand for the plans and the releases of all clients that took part."""
    told = [own.told for own in taken.values()]
    return {
        "plan_sha256": digest_of_all(own.plan_sha256 for own in told),
        "release_sha256": digest_of_all(own.release_sha256 for own in told),
    }


def _charge(taken: Mapping[str, Taken]) -> str:
    return digest_of_all(own.told.ledger.charge for own in taken.values())
