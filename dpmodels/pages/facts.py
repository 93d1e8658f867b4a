"""The publishable report of a kind of data that has no page of its own: what was made, its price, and its tables."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.page import render_page


def render_facts(facts: Mapping[str, Any], privacy: Mapping[str, str], officer: Mapping[str, Any]) -> str:
    """Lay the facts of a run out as one self-contained HTML page.

    Args:
        facts: of the report; ``words`` says in a sentence what was made, ``tables`` are mappings of ``title``,
            ``header`` and ``rows``.
        privacy: what the budget means, in words.
        officer: what is said to an officer; nothing of a page that lies alone.
    """
    return render_page("facts.html", report=facts, privacy=privacy, officer=officer)
