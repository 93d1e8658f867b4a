"""The draft of a schema: a text as any other, which a terminal and a notebook show in its lines."""

from html import escape
from typing import Any

STYLE = "text-align:left;color:inherit;background:none;white-space:pre-wrap;margin:.5em 0"


class Drafted(str):
    """The YAML of a schema; whatever is made of it is a plain text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return f'<pre style="{STYLE}">{escape(self)}</pre>'
