"""What the URL of a database must not hold: it is kept with a run, and printed."""

import re
from typing import TYPE_CHECKING

from dpmodels.errors import InvalidArgument

if TYPE_CHECKING:
    from sqlalchemy import URL

SECRETS = re.compile("pass|pwd|secret|token|credential|private|connect$", re.IGNORECASE)
"""Names of what drivers take behind the question mark of a URL, and what may hold a password."""


def check_url(text: str, name: str, kind: str, instead: str) -> "URL":
    """Read the URL of a database.

    Args:
        text: the URL.
        name: of the setting that the error is about.
        kind: what the URL must be, in words.
        instead: where a password goes.

    Raises:
        InvalidArgument: it is none, or holds a password or what may be one; the error does not repeat it.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InvalidArgument(name, "(hidden)", f"be {kind}") from None
    if url.password or any(SECRETS.search(key) for key in url.query):
        raise InvalidArgument(name, "(hidden)", f"hold no password; {instead}")
    return url
