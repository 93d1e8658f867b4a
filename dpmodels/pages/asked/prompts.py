"""What an answer that was declared asks of a person in turn, by its words and by those of the schema."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.pages.asked.adviser import says_adviser
from dpmodels.pages.asked.open_points import BEGINS_WITH_NONE, DAY, OF_ASSESSMENT
from dpmodels.pages.card_words import cut

INTERESTS = re.compile(r"6\s*\(1\)\s*\(?(f\b|lit\. ?f)|legitimate interest|berechtigte[sn]? Interesse", re.IGNORECASE)
OF_DECISION = re.compile(r"\b(decided|decision|resolution|minutes|Beschluss|décision|délibération)\b", re.IGNORECASE)
CONSENT = re.compile(r"6\s*\(1\)\s*\(?(a\b|lit\. ?a)|\bconsent\b|\bEinwilligung", re.IGNORECASE)

WHO_DECIDES = "who decides that the files leave, since the officer's name says {} (Art. 38(6))"
"""What is asked where whoever signs may only advise and watch over."""

KEPT_LONGER = "why recipients may keep the rows until {}, and the release they are drawn from is kept until {} alone"
"""What is asked where two days differ that whoever reads both might take for one."""


def prompts(facts: Mapping[str, Any]) -> list[str]:
    """Ask for what declared words need: a legal basis, children, who may only advise, a none that is doubted."""
    given, special = facts["given"], facts["content"].get("may_be_special", ())
    basis, asked = given.get("legal_basis", ""), list[str]()
    if INTERESTS.search(basis):
        asked.append("from the controller, the balancing of interests that Art. 6(1)(f) asks for")
    if CONSENT.search(basis):
        asked.append("from the controller, that the consent covers this use, and what follows where it is withdrawn")
    if (minors := given.get("minors", "")) and not BEGINS_WITH_NONE.match(minors):
        asked.append("from the controller, which safeguards hold for the children or others whom answer 5 names")
    approved = facts["hand_off"].get("approved")
    if approved and (adviser := says_adviser(approved["officer"])):
        asked.append(f"from the controller, {WHO_DECIDES.format(cut(adviser))}")
    kept, release = (DAY.search(given.get(name, "")) for name in ("recipient_retention", "release_retention"))
    if kept and release and kept[0] > release[0]:
        asked.append(f"from the controller, {KEPT_LONGER.format(kept[0], release[0])}")
    if special and BEGINS_WITH_NONE.match(given.get("special_categories", "")):
        asked.append(f"from the controller, whether none is right of special categories: {', '.join(special)} may be")
    if OF_ASSESSMENT.search(why := given.get("why", "")) or OF_DECISION.search(why):
        asked.append("from whoever chose unit and budget, the document of that decision, which their words name")
    return asked
