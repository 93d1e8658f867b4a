"""Hold events of lineage to what OpenLineage's specification asks of them, field by field."""

import json
import re
from datetime import datetime
from typing import Any
from uuid import UUID

URI = re.compile(r"[a-z][a-z0-9+.-]*:\S+")
FACET = re.compile(r"https://openlineage\.io/spec/facets/\d+-\d+-\d+/(\w+)\.json#/\$defs/\1|pkg:pypi/nacre@\S+#\S+")
FACETS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "nominalTime": {"nominalStartTime": str},
    "parent": {"run": dict, "job": dict},
    "errorMessage": {"message": str, "programmingLanguage": str},
    "jobType": {"processingType": str, "integration": str, "jobType": str},
    "schema": {"fields": list},
    "dataQualityAssertions": {"assertions": list},
    "outputStatistics": {"rowCount": int},
    "nacre_privacyCharge": {"charges": list},
}
"""The facets that are written, with all of their fields; statistics of inputs are none of them."""
WHERE = {
    "run": {"nominalTime", "parent", "errorMessage", "nacre_privacyCharge"},
    "job": {"jobType"},
    "facets": {"schema"},
    "inputFacets": {"dataQualityAssertions"},
    "outputFacets": {"outputStatistics"},
}
Event = dict[str, Any]


def read_events(content: bytes) -> list[Event]:
    """Read lines of JSON, each of which is held to the specification."""
    events = [json.loads(line) for line in content.splitlines()]
    for event in events:
        check_event(event)
    return events


def check_event(event: Event) -> None:
    required = {"eventTime", "eventType", "producer", "schemaURL", "run", "job", "inputs", "outputs"}
    assert event.keys() == required and event["eventType"] in ("START", "COMPLETE", "FAIL")
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert URI.fullmatch(event["producer"])
    time = datetime.fromisoformat(event["eventTime"])
    assert time.tzinfo is not None and (time.hour, time.minute, time.second, time.microsecond) == (0, 0, 0, 0)
    assert event["run"].keys() == {"runId", "facets"} and UUID(event["run"]["runId"])
    assert event["job"].keys() == {"namespace", "name", "facets"}
    check_facets(event["run"]["facets"], "run")
    check_facets(event["job"]["facets"], "job")
    for side, more in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for one in event[side]:
            assert {"namespace", "name"} <= one.keys() <= {"namespace", "name", "facets", more}
            assert one["namespace"] and one["name"] and "@" not in one["namespace"]
            check_facets(one.get("facets", {}), "facets")
            check_facets(one.get(more, {}), more)


def check_facets(facets: dict[str, Event], where: str) -> None:
    assert facets.keys() <= WHERE[where]
    for name, facet in facets.items():
        assert facet.keys() == {"_producer", "_schemaURL", *FACETS[name]} and FACET.fullmatch(facet["_schemaURL"])
        assert all(isinstance(facet[key], kind) for key, kind in FACETS[name].items()), name
