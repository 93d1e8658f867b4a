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

    Attributes:
        purpose: what the hand-off is for.
        recipient: who gets it.
        license: under which terms.
        contact: who answers for it and may be asked, such as the controller with an address.
        retention: how long the sensitive zone is kept; of a day in it, such as 2027-03-01, that is the last.
        again: why data is charged again, for which another account pays, or an unfinished run has paid.
    """

    purpose: Said = ""
    recipient: Said = ""
    license: Said = ""
    contact: Said = ""
    retention: Said = ""
    again: Said = ""

    @property
    def days(self) -> list[date]:
        """The days of the calendar that the retention names; where it is one, private files are kept until it ends."""
        return [day for word in DAY.findall(self.retention) if (day := _day(word)) is not None]

    @property
    def said(self) -> dict[str, str]:
        """What was said; whatever was not is left out."""
        return self.model_dump(exclude_defaults=True)


def _day(word: str) -> date | None:
    try:
        return date.fromisoformat(word)
    except ValueError:
        return None
