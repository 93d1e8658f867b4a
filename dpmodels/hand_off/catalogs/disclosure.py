"""A hand-off as a record of the registry of deployments of differential privacy that OpenDP keeps.

What was done follows from manifest, contract and card. Four things only a person knows: who publishes it, what it is
for, where, and why this budget; what is not answered stays TODO, and whoever submits the record answers it.

Source: schemas/deployments-schema.yaml of https://github.com/opendp/deployments-registry-data (2026-07-15).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from dpmodels.accounting.events import Event
from dpmodels.contract.helpers import helpers_of
from dpmodels.hand_off.lines import ManifestError
from dpmodels.hand_off.manifest import Manifest
from dpmodels.ledger.records import Standing
from dpmodels.releases.contract import Contract

TODO = "TODO"
PRODUCTS = {"each document": "Dataset", "federation": "Machine learning model"}
"""What is handed over, in the registry's words; everything else is synthetic data."""
ADJACENT = {
    "add_or_remove_one": "Two data sets are adjacent if one has all that belongs to one unit more than the other",
    "replace_one": "Two data sets are adjacent if what one unit says is another in each; that it is there is public",
}
Facts = dict[str, Any]


@dataclass(frozen=True)
class Answers:
    """What a person says of a deployment; empty where nobody did."""

    curator: str = ""
    use: str = ""
    region: str = ""
    why: str = ""

    @property
    def left(self) -> list[str]:
        """The questions that nobody answered, by the names of their options."""
        return [name for name in ("curator", "use", "region", "why") if not getattr(self, name)]


def record_of(
    manifest: Manifest, contract: Contract, standings: Sequence[Standing], day: str, answers: Answers
) -> Facts:
    """Return the record of a hand-off that has a price; ``day`` is when it was charged or made.

    Raises:
        ManifestError: it has none.
    """
    if not manifest.has_price or not manifest.is_charged:
        raise ManifestError(
            ["the hand-off has no price, so there is no deployment of differential privacy to disclose"]
        )
    slug = re.sub(r"[^a-z0-9]+", "-", f"{manifest.data_set}-{manifest.made_by}".lower()).strip("-")
    says = manifest.operator_says
    curator = answers.curator or says.get("controller") or TODO
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": f"Synthetic {manifest.data_set}",
                "data_curators": [curator],
                "intended_use": answers.use or says.get("purpose") or TODO,
                "data_product_type": PRODUCTS.get(contract.kind, "Synthetic data"),
                "data_product_region": answers.region or TODO,
                "description": _described(manifest, contract),
                "publication_date": day,
            },
            "dp_variant": _variant(manifest, contract),
            "privacy_loss": _loss(manifest),
            "deployment_model": _model(manifest, standings),
            "accounting": _accounting(manifest),
            "implementation": _implementation(manifest, answers),
            "administrative": {
                "sources": f"manifest.json of the hand-off, sha256 {manifest.sha256 or 'not stated'}; "
                f"schema.yaml, sha256 {manifest.schema_sha256}",
                "registry_authors": [curator],
            },
        },
    }


def as_yaml(record: Facts) -> str:
    """Write a record as the registry keeps it."""
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=120)


def _described(manifest: Manifest, contract: Contract) -> str:
    columns = f" of {len(contract.columns.keys() - helpers_of(contract))} columns" if contract.is_table else ""
    return f"{PRODUCTS.get(contract.kind, 'Synthetic data')} made from data set {manifest.data_set}{columns} by nacre."


def _variant(manifest: Manifest, contract: Contract) -> Facts:
    domain = "All data sets that follow schema.yaml, which is public"
    if contract.is_table:
        domain += ": rows with the columns " + ", ".join(
            name for name in contract.columns if name not in helpers_of(contract)
        )
    said = {
        "variant_name": "Approximate DP" if manifest.whole_cost.delta else "Pure DP",
        "data_domain": f"{domain}.",
        "unprotected_quantities": " ".join(["What schema.yaml declares to be public.", *(manifest.cautions or ())]),
    }
    return said


def _loss(manifest: Manifest) -> Facts:
    spent, delta = manifest.whole_cost, manifest.whole_cost.delta
    parameters = {"epsilon": float(spent.epsilon)} | ({"delta": delta} if delta else {})
    part = f" for each {manifest.part}" if manifest.part else ""
    return {
        "privacy_unit": manifest.unit,
        "privacy_unit_details": f"{ADJACENT[manifest.adjacency.value]}. The unit: {manifest.unit}.",
        "privacy_parameters": parameters,
        "privacy_parameters_details": f"Epsilon {spent.epsilon} at delta {delta}{part}, rounded up to 1e-12, for "
        f"all that is handed over; {manifest.price.asked.epsilon} was asked for the release alone.",
    }


def _model(manifest: Manifest, standings: Sequence[Standing]) -> Facts:
    local = manifest.clients is not None and manifest.trust != "central"
    before = [one for one in standings if one.before > 0]
    stood = [
        f"Account {one.account} had spent epsilon {one.before} before and {one.after} after, of a cap of {one.cap} at "
        f"delta {one.delta}."
        for one in standings
    ]
    trusted = "each client alone, of its own records" if local else "the operator of the sensitive zone"
    return {
        "model_name": "Federated" if local else "Central",
        "model_name_details": f"Trusted: {trusted}. Whoever gets the hand-off is not.",
        "actors": f"Raw data are read by {trusted}. A ledger has every charge, for which an officer may sign; "
        "recipients see the hand-off alone, and may know everything else.",
        "release_type": "Many releases" if before else "One release",
        "release_type_details": " ".join([*stood, "Every further release is charged to the same account and its cap."]),
        "data_source_type": "Static",
        "data_source_type_details": "One snapshot of the data was measured.",
        "access_type": "Non-interactive",
        "access_type_details": "Nobody asks the data; everything is read off what was released once.",
    }


def _accounting(manifest: Manifest) -> Facts:
    lines = len(manifest.lines)
    return {
        "post_processing": "The model, the rows that are drawn from it, checks and reports are made of the noisy "
        "release, without the data.",
        "composition": f"{lines} charge(s), added up at one delta: Gaussian events in closed form, others by privacy "
        "loss distributions; charges that are made one after another, and may depend on each other's answers, add up.",
    }


def _implementation(manifest: Manifest, answers: Answers) -> Facts:
    known = "Whoever wrote it declares its bounds and categories to be public knowledge."
    if manifest.discoveries:
        known = "What it lacked was discovered under charges that are part of the budget."
    events = [_worded(event) for line in manifest.lines for event in line.price.events]
    return {
        "preprocessing_and_hyperparameter_tuning": f"Rows are held against a public schema and encoded by it. {known}",
        "mechanisms": f"Method {manifest.method} of nacre {manifest.nacre_version}: {'; '.join(events)}. Whole numbers "
        "are noised, by OpenDP's exact samplers and the system's randomness (docs/privacy.md of nacre has a page of "
        "each mechanism, its proof, and known vulnerabilities). Raw data lie in a zone that recipients cannot read.",
        "justification": answers.why or manifest.operator_says.get("why") or TODO,
    }


def _worded(event: Event) -> str:
    """Write an event in a line; of one that is made of others, how many these are."""
    facts = event.model_dump(mode="json", exclude_defaults=True, exclude={"kind", "mechanism", "events"})
    parts, mechanism = getattr(event, "events", ()), getattr(event, "mechanism", "")
    rest = ", ".join(f"{name} {value}" for name, value in facts.items() if isinstance(value, int | float | str))
    of_parts = f"of {len(parts)} events" if parts else ""
    return " ".join(filter(None, [event.kind, f"({mechanism})" if mechanism else "", rest, of_parts]))
