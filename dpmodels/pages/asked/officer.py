"""What a report says to an officer: whether its files may leave, who approved what they spent, and where more is said.

A report that is shown alone, outside a hand-off, has no card and says nothing of it.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.account_words import accounts_of
from dpmodels.pages.asked.questions import CARD, SHEET, STATEMENT, charge_approved
from dpmodels.pages.asked.several import beside_one_record
from dpmodels.pages.card_words import words_of
from dpmodels.pages.leaving import AT_MAKING, from_the_data, warnings
from dpmodels.pages.notes import left_out_and_reckoned
from dpmodels.pages.page import coded

DECLARED = {
    "purpose": "Purpose",
    "contact": "Contact",
    "recipient": "For",
    "license": "Terms",
    "recipient_retention": "May be kept",
}
"""What an officer looks for on every page, of all that is declared."""
BESIDE = {
    STATEMENT: "hard limits to compare with the purpose, what protects whom, and what is still to be obtained",
    SHEET: "what the files may be used for, and for what not",
    CARD: "what a person fills in, and the accounts that paid",
}
"""The pages beside a report, and what each is for."""
TESTED = (
    "Its authors tested it, and nobody else. Tests draw from neighboring tables of made-up rows, the worst ones among "
    "them (one unit more at each extreme of a schema, or one replaced by any other), and hold how far each sum moves "
    "to what its noise hides. `nacre audit` does so for every method, and bounds by statistics from below what a draw "
    "gives away, which must not be above what was charged. Gaussian noise is added up in closed form, other noise by "
    "dp-accounting, and the whole is compared with the accountants of dp-accounting; noise is drawn by the exact "
    "samplers of OpenDP. Tests find faults, and prove no absence. To look at: the pages “audit” and “officer” of "
    "nacre's documentation (`docs/audit.md`, `docs/officer.md`)."
)
"""How the method was tested, in words that an officer can cite; `docs/officer.md` says in which tests."""


USUAL = (
    "No number is usual for all data. What others chose stands in OpenDP's registry of deployments "
    "(`github.com/opendp/deployments-registry-data`), with other units and δ; nacre's documentation begins at ε = 1, "
    "and asks from 10 on why (`docs/which-epsilon.md`). Here it is {epsilon}."
)
"""Whether an epsilon is usual, by what is public."""
KNOWN_LIMITS = "Known limits of nacre {version}: `docs/privacy.md` of that version."


def for_officer(card: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a report of a hand-off says to an officer; nothing without the facts of a card."""
    if card is None:
        return {}
    words = words_of(card)
    return {
        "at_making": coded(AT_MAKING),
        "charge": charge_approved(card, accounts_of(card)),
        "warnings": warnings(card),
        "has_exact_bounds": bool(from_the_data(card["content"].get("sources", ()))),
        "hidden": f"{words['one']}, {words['of_persons']}" if words["of_persons"] else "",
        "guess": f"{words['value_guess']}, and {words['bet']} (a coin wins 50 %)",
        "beside_one": beside_one_record(card, words),
        "declared": [(title, card["given"][name]) for name, title in DECLARED.items() if card["given"].get(name)],
        "reckoned": left_out_and_reckoned(card)[1],
        "tested": coded(TESTED),
        "usual": coded(USUAL.format(epsilon=words["epsilon"])),
        "known_limits": coded(KNOWN_LIMITS.format(version=card["hand_off"]["nacre_version"])),
        "beside": BESIDE,
    }
