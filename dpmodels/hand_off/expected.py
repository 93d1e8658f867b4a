"""What a report and a manifest must say, as it follows from the lines of the manifest and from the contract."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.accounting.events import Event
from dpmodels.contract.federation import Federation
from dpmodels.gate.embedded_gate import EmbeddedGate
from dpmodels.gate.expectations import Verdicts
from dpmodels.gate.family_gate import FamilyGate
from dpmodels.gate.suite import suite_for
from dpmodels.gate.tree_gate import TreeGate
from dpmodels.hand_off.lines import Price
from dpmodels.hand_off.manifest import Manifest
from dpmodels.methods.kinds import KINDS, SYNTHESIZED
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.contract import Contract, table_of
from dpmodels.releases.plan import Former, Line
from dpmodels.report.sections import heading, privacy_of
from dpmodels.report.terms import cautions, terms_of_documents, terms_of_federation, terms_of_table

Facts = dict[str, Any]
BESIDE = {"about": None, "words": None, "rows_are": None}
"""What changes what the pages say, and a report has only where its kind of data makes it."""


def expected_facts(manifest: Manifest, contract: Contract, report: Mapping[str, Any]) -> Facts:
    """Return the facts of a report that follow from manifest and contract; of the report the number of rows is read.

    Raises:
        ValueError: a line of the manifest is not as any plan for this contract has it.
    """
    if not manifest.has_price:
        return _unpriced(manifest, report)
    line, hashes = _line_of(manifest, contract), _hashes(manifest)
    scores, kind = _scores(manifest), kind_of(manifest, contract)
    if contract.kind == "federation":
        terms = terms_of_federation(line, manifest.price.spent.epsilon, hashes) | _clients(manifest, contract)
    elif kind == "each document":
        terms = terms_of_documents(line, hashes["release_sha256"], manifest.charge)
    elif kind in SYNTHESIZED:
        terms = terms_of_table(line, hashes["release_sha256"], manifest.charge, scores)
        terms["gate"] = _kept(expected_checks(contract, report["synthetic_rows"]))
    else:  # a kind that has no page of its own says in its own words what it does not promise
        return {**heading(contract, line.method), "privacy": privacy_of(line, scores), "hashes": hashes}
    return BESIDE | terms


def expected_cautions(manifest: Manifest, contract: Contract) -> list[str]:
    """Return the cautions of a manifest that states a price.

    Raises:
        ValueError: as above.
    """
    return cautions(_line_of(manifest, contract)) if manifest.part else []


def kind_of(manifest: Manifest, contract: Contract) -> str:
    """Return the kind of data, which is the contract's unless all files are of another that may be made by it."""
    kinds = [name for name, kind in KINDS.items() if contract.kind in kind.contracts]
    made = [name for name in kinds if any(re.fullmatch(KINDS[name].product, file) for file in manifest.artifacts)]
    return contract.kind if contract.kind in made or not made else made[0]


def _line_of(manifest: Manifest, contract: Contract) -> Line:
    """Return the plan's line as far as a manifest tells it: all but the parameters of the measurement."""
    whose = contract.of(manifest.clients[0].client) if contract.kind == "federation" and manifest.clients else contract
    price = manifest.price
    return Line(
        part=manifest.part or "",
        method=manifest.method,
        contract=whose,
        budget=PrivacyBudget(**price.asked.model_dump(), adjacency=manifest.adjacency, unit=contract.unit),
        event=_event_of(price),
        measurement={"trust": manifest.trust} if manifest.trust else {},
        fingerprint="",
        former=Former(hash=manifest.plan_sha256 or ""),
    )


def _event_of(price: Price) -> Event:
    (event,) = price.events
    return event


def _scores(manifest: Manifest) -> Facts | None:
    """Return what a report's terms say of the scores that were charged for."""
    if manifest.report is None:
        return None
    event, sha256 = _event_of(manifest.report.price).model_dump(mode="json"), manifest.report.scores_sha256
    return {"charged": True, "event": event} | (
        {"status": "measured", "scores_sha256": sha256} if sha256 else {"status": "lost"}
    )


def _hashes(manifest: Manifest) -> Facts:
    """Return the hashes that stand for a release, or for those of all clients."""
    names = ("plan_sha256", "schema_sha256", "release_sha256")
    hashes = {name: getattr(manifest, name) for name in names} | {"ledger_charge": manifest.ledger.charge}
    return {name: value for name, value in hashes.items() if value is not None}


def _clients(manifest: Manifest, contract: Federation) -> Facts:
    """Return who took part, at what cost, and who was dropped; the classes are the contract's."""
    paid = [
        {"name": line.client, "dropped": "", "epsilon": float(line.price.spent.epsilon)}
        | {"account": line.ledger.account or contract.of(line.client).name}
        for line in manifest.clients or ()
    ]
    dropped = [{"name": name, "dropped": why} for name, why in (manifest.dropped or {}).items()]
    return {"clients": [*paid, *dropped], "classes": [{"name": name} for name in contract.classes]}


def expected_checks(contract: Contract, rows: int) -> Verdicts:
    """Return the rules that so many synthetic rows were checked against, all of which they kept."""
    if contract.kind == "documents":
        rules = [outcome.rule for outcome in EmbeddedGate(contract, rows).outcomes]
    elif contract.kind == "tree":
        rules = [outcome.rule for outcome in TreeGate(contract, rows).outcomes]
    elif contract.users:
        rules = [outcome.rule for outcome in FamilyGate(table_of(contract), rows).outcomes]
    else:
        rules = suite_for(table_of(contract), raw=False, rows=rows)
    checks = Verdicts(contract, rules)  # type: ignore[arg-type]  # of a table or of documents, as above
    for outcome in checks.outcomes:
        outcome.checked = rows
    return checks


def _kept(checks: Verdicts) -> list[Facts]:
    """List rules as a report does whose table keeps them."""
    return [{**result, "success": True} for result in checks.results()]


def _unpriced(manifest: Manifest, report: Mapping[str, Any]) -> Facts:
    """Return what the report says of what no epsilon holds for, which is made no more."""
    none = dict.fromkeys(("delta", "spent_epsilon", "total_epsilon"))
    said = none | {"unit": manifest.unit, "adjacency": manifest.adjacency.value}
    return {"privacy": {**report["privacy"], **said}, "hashes": _hashes(manifest)}
