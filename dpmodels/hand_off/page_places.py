"""Where a page differs from the one that its facts make: the heading under which the first difference lies."""

import html
import re
from itertools import takewhile
from typing import Any

from dpmodels.hand_off.manifest import printable

HEADING = re.compile(r"<(h[1-3])[^>]*>(.*?)</\1>|</?table[^>]*>|<tr[^>]*><th scope=\"row\">(.*?)</th>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
BODY = "<body>"


def first_difference(expected: str, written: str) -> str:
    """Say under which heading, and in which row of a table, a page first says something else; ``expected`` is ours."""
    place = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(expected, written, strict=False)))
    if place < expected.find(BODY):
        return "in its head: style, title, or whatever a browser takes from there"
    heading = row = ""
    for one in HEADING.finditer(expected, expected.find(BODY)):
        if one.start() > place:
            break
        if one[1]:
            heading, row = _text(one[2]), ""
        else:
            row = _text(one[3] or "")
    where = ", ".join(f"“{printable(text, 80)}”" for text in (heading, row) if text)
    return f"first under {where}" if where else "first at its beginning"


def first_key(expected: Any, written: Any) -> str:
    """Return the keys that lead to the first fact that is another, with points between them; empty of facts alike."""
    if isinstance(expected, dict) and isinstance(written, dict):
        pairs = [(key, expected.get(key), written.get(key)) for key in {**expected, **written}]
    elif isinstance(expected, list) and isinstance(written, list) and len(expected) == len(written):
        pairs = [(place, *both) for place, both in enumerate(zip(expected, written, strict=True))]
    else:
        return ""
    for key, one, other in pairs:
        if one != other:
            return printable(".".join(filter(None, (str(key), first_key(one, other)))), 200)
    return ""


def _text(written: str) -> str:
    return " ".join(html.unescape(TAG.sub(" ", written)).split())
