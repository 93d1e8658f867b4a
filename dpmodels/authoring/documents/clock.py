"""Times of day that documents say: `08:00 to 20:00`, or the form `HH:MM`, as the keys of a schema count them."""

import re
from typing import Any

from dpmodels.authoring.documents.intervals import TO

TIME = r"(\d\d?)[:h](\d\d)(?:[:m](\d\d))?(?![\d:])"
SPAN = re.compile(rf"(?<![\d:]){TIME}\s*(?:Uhr\s*)?(?:[-–—…]|(?<![^\W\d])(?:{TO})(?![^\W\d]))\s*{TIME}", re.IGNORECASE)
FORM = re.compile(r"(?<![^\W_])(?:HH|hh|H)[:h]?(?:MM|mm)(?P<seconds>[:m]?(?:SS|ss))?(?![^\W_])")
BESIDE_DAY = re.compile(r"\b(?:[JTDYAjtdya]{2,4}|\d{1,4})[-/.](?:MM|mm|\d\d?)[-/.](?:[JTDYAjtdya]{2,4}|\d{1,4})")
"""A day, beside which a time belongs to a moment."""
DAY = 86_400


def clock_in(words: str) -> dict[str, Any] | None:
    """Return the keys of a column of times of day, to the minute where no seconds are written; None without times."""
    span, form = SPAN.search(words), FORM.search(words)
    if BESIDE_DAY.search(words) or not (span or form):
        return None
    low, high, has_seconds = 0, DAY - 1, bool(form and form["seconds"])
    if span:
        low, high = (_seconds(*span.groups()[first : first + 3]) for first in (0, 3))
        has_seconds = has_seconds or span[3] is not None or span[6] is not None
    if not 0 <= low < high <= DAY:
        return None
    keys = {"type": "integer", "min": low, "max": min(high, DAY - 1), "dtype": "time32[s]"}
    return keys if has_seconds else {**keys, "resolution": "minute"}


def _seconds(hours: str, minutes: str, seconds: str | None) -> int:
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds or 0)
