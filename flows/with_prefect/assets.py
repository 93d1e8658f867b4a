"""The assets that a deployed flow run names to Prefect: where its data lie, and what it handed over at which price.

Prefect draws lineage of them, and automations may wait for them. The events are those of Prefect's ``materialize``,
which wants the place before the task is written; here it is a parameter.

Privacy: an asset is a place that the operator gave, and a payload is what the manifest says of the price.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tasks.run.lineage import price, sources, synthetic_tables
from tasks.run.runs import stays_inside
from tasks.run.store import Run

LONGEST = 512
"""Characters of an asset's key, at most; Prefect takes no longer ones."""


def publish_assets(run: Run) -> None:
    """Emit that each place with data was referenced, and that each table of the hand-off was materialized from them."""
    from prefect.events import emit_event

    if stays_inside(run):
        return
    read = [{"prefect.resource.id": key} for key in map(key_of, sources(run)) if len(key) <= LONGEST]
    for resource in read:
        emit_event(event="prefect.asset.referenced", resource=resource)
    related = [{**resource, "prefect.resource.role": "asset"} for resource in read]
    related.append({"prefect.resource.id": "nacre", "prefect.resource.role": "asset-materialized-by"})
    for facts, _ in synthetic_tables(run):
        if len(key := key_of(facts)) <= LONGEST:
            emit_event(
                event="prefect.asset.materialization.succeeded",
                resource={"prefect.resource.id": key, "prefect.resource.name": run.plan.whole.name},
                related=related,
                payload={"run": run.name, "charges": price(run).get("nacre_privacyCharge", {}).get("charges", [])},
            )


def key_of(facts: Mapping[str, Any]) -> str:
    """Write a data set of OpenLineage as the URI of an asset, without the characters that Prefect refuses."""
    path = quote(facts["name"], safe="/").replace("%", "_")
    if "://" in facts["namespace"]:
        return f"{facts['namespace'].rstrip('/')}/{path.lstrip('/')}"
    return f"{facts['namespace']}://{path}"
