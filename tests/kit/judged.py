"""Facts of a report that say no more of a column or a pair than what it is within."""

from typing import Any


def column(name: str, within: float, **more: Any) -> dict[str, Any]:
    """Return the facts of a column of two categories."""
    facts = {"name": name, "ordered": False, "labels": ["a", "b"], "synthetic": [0.5, 0.5], "released": [0.5, 0.5]}
    return {**facts, "shares_within": within, "expected_distance": 0.01, "distance_to_release": 0.01, **more}


def report(*columns: dict[str, Any], **pairs: Any) -> dict[str, Any]:
    """Return the facts of a report of some columns."""
    return {"columns": list(columns), "pairs": {"distances": [], **pairs}, "released_records": 10_000}
