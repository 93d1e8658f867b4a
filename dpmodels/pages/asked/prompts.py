"""What an answer that was declared asks of a person in turn, by its words and by those of the schema."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.pages.asked.open_points import BEGINS_WITH_NONE, OF_ASSESSMENT

INTERESTS = re.compile(r"6\s*\(1\)\s*\(?(f\b|lit\. ?f)|legitimate interest|berechtigte[sn]? Interesse", re.IGNORECASE)
OF_DECISION = re.compile(r"\b(decided|decision|resolution|minutes|Beschluss|décision|délibération)\b", re.IGNORECASE)
CONSENT = re.compile(r"6\s*\(1\)\s*\(?(a\b|lit\. ?a)|\bconsent\b|\bEinwilligung", re.IGNORECASE)


def prompts(facts: Mapping[str, Any]) -> list[str]:
    """Ask for what a declared legal basis needs, and about words that speak against what is declared."""
    given, special = facts["given"], facts["content"].get("may_be_special", ())
    basis, asked = given.get("legal_basis", ""), list[str]()
    if INTERESTS.search(basis):
        asked.append("from the controller, the balancing of interests that Art. 6(1)(f) asks for")
    if CONSENT.search(basis):
        asked.append("from the controller, that the consent covers this use, and what follows where it is withdrawn")
    if special and BEGINS_WITH_NONE.match(given.get("special_categories", "")):
        asked.append(f"from the controller, whether none is right of special categories: {', '.join(special)} may be")
    if OF_ASSESSMENT.search(why := given.get("why", "")) or OF_DECISION.search(why):
        asked.append("from whoever chose unit and budget, the document of that decision, which their words name")
    return asked
