"""Whether a unit is a person: who says so, and what of it was checked."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.card_words import cut, is_record

OF_USERS = (
    "That each user is one person is declared, by the column or the ids that schema.yaml names: nacre puts the rows of "
    "one value together, and does not check whose they are."
)
OF_UNIQUE = (
    "That no two raw rows have the same {names} was checked, since a run refuses a table with a repeat before its "
    "charge; whether somebody has several values of it, as by coming again, nacre cannot check, and nobody declared."
)
OF_RECORDS = (
    "That one person has one record is the word of whoever declares it, and nacre did not check it: the schema names "
    "no identifier as `unique`."
)


def who_says_one_person(facts: Mapping[str, Any]) -> str:
    """Say in a sentence who says that a unit is one person, and what was checked; empty of parts of documents."""
    hand_off, unique = facts["hand_off"], facts["content"].get("unique", ())
    if hand_off["unit"].startswith("user"):
        return OF_USERS
    if not is_record(hand_off):
        return ""
    return OF_UNIQUE.format(names=cut(" or ".join(unique))) if unique else OF_RECORDS
