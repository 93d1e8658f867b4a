"""Whether an officer, by name, may only advise and watch over (GDPR, Art. 38, 39): then law asks who decides."""

import re

ADVISER = re.compile(
    r"(?<!\w)(DPO|DPD|DSB)(?!\w)|data[ -]protection|Datenschutz|protection des données|protection[ -]officer|délégué",
    re.IGNORECASE,
)
"""Names of those who may only advise and watch over (GDPR, Art. 39)."""
ASKS_WHO_DECIDES = "Art. 38(6) asks who decides"
ONE_KEY_FOR_BOTH = f"the name says {{}}, and one key signed both charge and leaving: {ASKS_WHO_DECIDES}"


def says_adviser(name: str) -> str:
    """Return the words of an officer's name that are those of a data-protection officer; empty where none is."""
    return match[0] if (match := ADVISER.search(name)) else ""
