"""Names that somebody else chose, made safe to show: what a terminal or a browser would obey is written out instead.

A column may be called anything. Control characters move a terminal's cursor and wipe out what was printed before;
bidi marks make text read in another order than it is written; what has no width makes two names look alike.

Source: ECMA-48 (C0 and C1 controls); Unicode Technical Report 36, section 2.7 (bidi); Boucher and Anderson, "Trojan
Source" (2021).
"""

import re

_OBEYED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, delete, C1
    "\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # no width, line ends, bidi
    "\ud800-\udfff\U000e0000-\U000e0fff"  # halves of characters, tags
)
_WRITTEN = re.compile(f"[{_OBEYED}]")
_LINES = re.compile(f"[\t\n{_OBEYED}]")


def escaped(text: str) -> str:
    r"""Write what a terminal or a browser would obey as ``\x1b`` or ``\u202e``; tabs and line feeds stay."""
    return _WRITTEN.sub(_written, text)


def on_one_line(text: str, most: int = 0) -> str:
    """Write tabs and line feeds out as well, and cut the text after so many characters, if any are named."""
    return _LINES.sub(_written, text[:most] if most else text)


def _written(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
