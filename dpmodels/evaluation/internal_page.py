"""The internal report as a page: what a person reads first comes first, and what failed says so."""

from collections.abc import Mapping
from typing import Any

from dpmodels.evaluation.page import render_page


def render_internal(facts: Mapping[str, Any]) -> str:
    """Lay the internal report out as one self-contained HTML page."""
    return render_page("internal.html", report=facts)
