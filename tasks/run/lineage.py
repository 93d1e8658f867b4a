"""What a run tells of itself in OpenLineage's words: which stages it ran, on which data sets, and at what price.

Every event is made of what is public: names and places that the operator gave, plan, ledger, schema and report. Nothing
here looks at private data or at the clock.

Privacy: of private data an event has the place and nothing else: no statistics of inputs, no sizes, no times. All
    events of a process have one time, the beginning of a day, since how long a stage that reads private rows takes
    grows with their number. That a stage failed is told, as it is to everybody who waits for the hand-off, and not why.

Source: OpenLineage 2-0-2, https://openlineage.io/spec/2-0-2/OpenLineage.json, and its facets.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from dpmodels.codec.flat import tables_of
from dpmodels.hand_off.odcs import has_contract, tables
from dpmodels.hand_off.payments import cost_of
from dpmodels.reading.addresses import address_of
from tasks.run.accounts import charges_of
from tasks.run.home import ledger_of
from tasks.run.runs import stays_inside
from tasks.run.store import Run

SPEC = "https://openlineage.io/spec"
SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
NAMESPACE = "nacre"
FACETS = {
    "nominalTime": "1-0-1/NominalTimeRunFacet",
    "parent": "1-2-0/ParentRunFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
    "schema": "1-2-0/SchemaDatasetFacet",
    "dataQualityAssertions": "1-1-0/DataQualityAssertionsDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
}
READS_DATA = {"ingest", "sanitize", "round", "client", "rounds", "evaluate", "score"}
"""Stages whose input is the private data."""
MAKES_RELEASE, READS_RELEASE = {"sanitize", "round", "client"}, {"train", "sample", "validate", "publish"}
Facts = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """A stage that a process ran, and whether it came to its end."""

    stage: str
    complete: bool


def events_of(
    run: Run,
    stages: Sequence[Ended],
    complete: bool,
    day: datetime,
    nominal: datetime | None,
    namespace: str = NAMESPACE,
) -> list[Facts]:
    """Return the events of one process that worked at a run: of the run as a whole, and of each stage within it.

    Args:
        run: the run.
        stages: that the process ran, in their order.
        complete: whether all went well.
        day: the one time that all events have.
        nominal: for when a schedule asked for it.
        namespace: of the jobs.
    """
    name = run.plan.whole.name
    whole = _Job(run, namespace, name, "", day)
    asked = {"nominalTime": _facet("nominalTime", nominalStartTime=nominal.isoformat())} if nominal else {}
    paid = price(run)
    source, handed_over = sources(run), _handed_over(run) if complete and not stays_inside(run) else []
    events = [whole.event("START", asked, source)]
    for one in stages:
        job = _Job(run, namespace, f"{name}.{one.stage}", one.stage, day)
        within = asked | {"parent": whole.as_parent}
        read = source if one.stage in READS_DATA else [_release(run, namespace)] if one.stage in READS_RELEASE else []
        made = [_release(run, namespace)] if one.stage in MAKES_RELEASE else []
        events.append(job.event("START", within, read))
        if not one.complete:
            events.append(job.event("FAIL", within | _failed(one.stage), read))
            continue
        facets = within | (paid if one.stage in {*MAKES_RELEASE, "score"} else {})
        read = read + _checked(run) if one.stage == "validate" else read
        events.append(job.event("COMPLETE", facets, read, handed_over if one.stage == "publish" else made))
    if complete:
        return [*events, whole.event("COMPLETE", asked | paid, source, handed_over)]
    return [*events, whole.event("FAIL", asked | paid | _failed("run"), source)]


@dataclass(frozen=True)
class _Job:
    """A run as a whole, or a stage of it; its number follows from its name, so a run that goes on is the same."""

    run: Run
    namespace: str
    name: str
    stage: str
    day: datetime

    @property
    def number(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"nacre:{self.run.name}:{self.stage}"))

    @property
    def as_parent(self) -> Facts:
        job = {"namespace": self.namespace, "name": self.name}
        return _facet("parent", run={"runId": self.number}, job=job)

    def event(self, kind: str, facets: Facts, inputs: Sequence[Facts], outputs: Sequence[Facts] = ()) -> Facts:
        job_type = _facet(
            "jobType", processingType="BATCH", integration="NACRE", jobType="TASK" if self.stage else "DAG"
        )
        return {
            "eventTime": self.day.isoformat(),
            "eventType": kind,
            "producer": producer(),
            "schemaURL": SCHEMA,
            "run": {"runId": self.number, "facets": facets},
            "job": {"namespace": self.namespace, "name": self.name, "facets": {"jobType": job_type}},
            "inputs": list(inputs),
            "outputs": list(outputs),
        }


def producer() -> str:
    """Name what makes the events, as a URI."""
    return f"pkg:pypi/nacre@{version('nacre')}"


def _facet(name: str, **content: Any) -> Facts:
    title = FACETS[name]
    schema = f"{SPEC}/facets/{title}.json#/$defs/{title.partition('/')[2]}"
    return {"_producer": producer(), "_schemaURL": schema, **content}


def _failed(stage: str) -> Facts:
    """Say that something failed; why is told to the operator, for it may depend on private rows."""
    return {"errorMessage": _facet("errorMessage", message=f"{stage} failed", programmingLanguage="PYTHON")}


def dataset(place: str) -> Facts:
    """Name a place as OpenLineage does; what may hold a user, a password or a key is left out."""
    address = address_of(place)
    place = address.base.rpartition("/metadata/")[0] if address.kind == "iceberg" else address.base
    place += f"#{address.table}" if address.table else ""
    if "://" not in place:
        return {"namespace": "file", "name": str(Path(place).absolute())}
    url = urlsplit(place)
    host = url.netloc.rpartition("@")[2]
    return {"namespace": f"{url.scheme}://{host}", "name": url.path.lstrip("/") if host else url.path}


def sources(run: Run) -> list[Facts]:
    """Name where the private data lies, by the places that the operator gave; rows in memory by their data set."""
    settings = [party.settings for party in run.parties]
    places = [(one.query, place) for one in settings for place in (one.data, one.parents) if place]
    named = []
    for query, place in places:
        if run.home in Path(place).parents:
            named.append({"namespace": NAMESPACE, "name": run.plan.whole.name})
        elif query:
            named.append(dataset(place) | {"name": f"{dataset(place)['name']}.{run.plan.whole.name}"})
        else:
            named.append(dataset(place))
    return named


def _release(run: Run, namespace: str) -> Facts:
    return {"namespace": namespace, "name": f"{run.settings.paid_by or run.name}/release"}


def price(run: Run) -> Facts:
    """Return the facet of the charges that the ledger has of a run, with what remains of each account."""
    if run.settings.is_paid_elsewhere:
        return {}
    ledger, charges = ledger_of(run), []
    for charge, line in zip(charges_of(run), [line for one in run.parties for line in one.plan.lines], strict=True):
        reservation = ledger.find(charge.key)
        if reservation is None or reservation.state == "voided":
            continue
        spent, balance = cost_of(line)["spent"], ledger.balance(charge.account)
        charges.append(
            {
                "account": charge.account,
                "charge": charge.key,
                "epsilon": str(spent["epsilon"]),
                "delta": spent["delta"],
                "remaining": str(balance.remaining_epsilon),
                "unit": str(line.budget.unit),
            }
        )
    schema = f"{producer()}#docs/platforms.md"
    return (
        {"nacre_privacyCharge": {"_producer": producer(), "_schemaURL": schema, "charges": charges}} if charges else {}
    )


def synthetic_tables(run: Run) -> list[tuple[Facts, Facts]]:
    """Return what is handed over: each table with its columns, and as its contract has it."""
    contract, place = run.plan.whole, run.settings.bucket or str(run.settings.out)
    if not has_contract(contract):
        return [(dataset(place), {})]
    named = []
    for table in tables(contract):
        folder = f"{place.rstrip('/')}/synthetic" + (f"/{table['name']}" if tables_of(contract) else "")
        fields = [{"name": one["name"], "type": one["physicalType"]} for one in table["properties"]]
        named.append((dataset(folder) | {"facets": {"schema": _facet("schema", fields=fields)}}, table))
    return named


def _report(run: Run) -> Mapping[str, Any]:
    """Return the report that a trusted stage made, as far as there is one."""
    facts = json.loads((run.place("validate") / "report.json").read_text(encoding="utf-8"))
    return facts if isinstance(facts, dict) else {}


def _checked(run: Run) -> list[Facts]:
    """Return the synthetic tables with the rules that they were held to: inputs of the stage that judges them."""
    named, checks = synthetic_tables(run), _report(run).get("gate", ())
    rules = [_facet("dataQualityAssertions", assertions=_rules(checks, table)) for _, table in named]
    return [
        one | {"inputFacets": {"dataQualityAssertions": rule}}
        for (one, _), rule in zip(named, rules, strict=True)
        if checks
    ]


def _rules(checks: Sequence[Mapping[str, Any]], table: Facts) -> list[Facts]:
    """Write the gate's verdicts on a table as a whole and on its columns; those on another table's are left out."""
    columns = {one["name"] for one in table.get("properties", ())}
    return [
        {"assertion": f"{one['expectation']}: {one['rule']}", "success": bool(one["success"])}
        | ({"column": one["column"]} if one["column"] else {})
        for one in checks
        if not columns or not one["column"] or one["column"] in columns
    ]


def _handed_over(run: Run) -> list[Facts]:
    """Return what is handed over, with its columns and, of a table, how many synthetic rows or users it has."""
    rows, of_users = _report(run).get("synthetic_rows"), bool(run.plan.whole.users)
    statistics = {"outputStatistics": _facet("outputStatistics", rowCount=rows)}
    counted = {"parents"} if of_users else {run.plan.whole.name}
    return [
        one | ({"outputFacets": statistics} if rows is not None and table.get("name") in counted else {})
        for one, table in synthetic_tables(run)
    ]
