"""What whoever runs declares. The ledger keeps it in its chain, and the manifest and the public pages repeat it."""

import re
from datetime import date
from typing import Annotated

from pydantic import Field

from dpmodels.frozen import Frozen

Said = Annotated[str, Field(max_length=300, pattern=r"^[^\x00-\x1f\x7f]*$")]


DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")


class Declaration(Frozen):
    """What whoever runs says of a release and its hand-off, word for word; public, and no part of any promise.

    This is the list of what can be said: settings, keywords, the ledger, the manifest and the pages follow it.
    """

    purpose: Said = Field(
        default="", description="What the hand-off is for, in a sentence; public, kept for ever.", examples=["Teaching"]
    )
    subjects: Said = Field(
        default="",
        description="Whose data it is: which people, where, from when to when; public, kept for ever.",
        examples=["Everybody treated in St. Anna Hospital from 2019 to 2024"],
    )
    special_categories: Said = Field(
        default="",
        description="Which columns hold special categories of data (GDPR, Art. 9), or none; public, kept for ever.",
        examples=["diagnosis, ward: health; nationality: ethnic origin"],
    )
    legal_basis: Said = Field(
        default="",
        description="On what ground the data may be used for this (GDPR, Art. 6, 9); public, kept for ever.",
        examples=["GDPR, Art. 9(2)(j): research"],
    )
    compatibility: Said = Field(
        default="",
        description="Why this use fits what the data was collected for (GDPR, Art. 6(4)); public, kept for ever.",
        examples=["Research, Art. 5(1)(b) and 89(1)"],
    )
    information: Said = Field(
        default="",
        description="How the people were informed of this use, or why not (GDPR, Art. 13, 14); public, kept for ever.",
        examples=["Leaflet at admission, since 2018"],
    )
    minors: Said = Field(
        default="",
        description="Whether children are among the people, and what is done for them; public, kept for ever.",
        examples=["None: patients are adults"],
    )
    processor: Said = Field(
        default="",
        description="Who processes the data for the controller, by which contract (GDPR, Art. 28); public, kept for "
        "ever.",
        examples=["None: the hospital runs it itself"],
    )
    recipient: Said = Field(
        default="", description="Who gets the hand-off; public, kept for ever.", examples=["University of Ghent"]
    )
    recipient_retention: Said = Field(
        default="",
        description="How long whoever gets the hand-off may keep it; public, kept for ever.",
        examples=["Until the study ends, at most until 2029-12-31"],
    )
    license: Said = Field(
        default="", description="Under which terms it is handed over; public.", examples=["CC BY 4.0"]
    )
    controller: Said = Field(
        default="",
        description="Who decides about the data (GDPR, Art. 4(7)); public, kept for ever.",
        examples=["St. Anna Hospital, Ghent"],
    )
    contact: Said = Field(
        default="",
        description="Who answers for the hand-off and may be asked; public, kept for ever.",
        examples=["privacy@st-anna.example"],
    )
    signer: Said = Field(
        default="",
        description="Who makes the hand-off, in words: name and role (its key: --signing-key); public, kept for ever.",
        examples=["A. Peeters, data steward of St. Anna Hospital"],
    )
    why: Said = Field(
        default="",
        description="Why this unit, this epsilon and this delta; public, kept for ever.",
        examples=["See the DPIA of 2026-11, chapter 4"],
    )
    retention: Said = Field(
        default="",
        description="How long the sensitive zone is kept; a day in it is the last (remove --expired); public.",
        examples=["The sensitive zone is kept until 2027-03-01."],
    )
    release_retention: Said = Field(
        default="",
        description="How long the operator keeps the release, the noisy numbers that rows are made of; public.",
        examples=["Until the study ends; the ledger stays for as long as the data does"],
    )
    again: Said = Field(
        default="",
        description="Why data is charged again: to another account, or beside a paid run that is unfinished; public.",
        examples=["A copy for another study, agreed by the board"],
    )

    @property
    def days(self) -> list[date]:
        """The days of the calendar that the retention names; where it is one, private files are kept until it ends."""
        return [day for word in DAY.findall(self.retention) if (day := _day(word)) is not None]

    @property
    def said(self) -> dict[str, str]:
        """What was said; whatever was not is left out."""
        said = {name: getattr(self, name) for name in Declaration.model_fields}
        return {name: words for name, words in said.items() if words}


def _day(word: str) -> date | None:
    try:
        return date.fromisoformat(word)
    except ValueError:
        return None
