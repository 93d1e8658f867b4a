"""Groups of means in messages: as they are typed, `--by age=0,18,65`, and in Python, ``by={'age': [0, 18, 65]}``."""

import re
import shlex

EDGES = "0,18,65"
"""Edges of bands, as an example has them."""
EACH = "each"
"""Stands for edges where every counted value of a number is a group by itself."""
TYPED = re.compile(r"`--by (?P<group>[^`\n]+)`")


def grouped(name: str, edges: str = "") -> str:
    """Return the option that groups by a column, joined by edges, by a width or by categories with + between them."""
    return f"`--by {shlex.quote(name + f'={edges}' * bool(edges))}`"


def groups_in_python(text: str) -> str:
    """Write the groups that a message has as they are typed as an argument of Python."""
    return TYPED.sub(lambda match: f"`by={_as_dictionary(match['group'])}`", text)


def _as_dictionary(group: str) -> str:
    words = shlex.split(group) if group.count("'") % 2 == 0 else [group]
    name, sign, edges = " ".join(words).rpartition("=")
    if not sign or edges == EACH:
        return f"{{{name or edges!r}: None}}"
    if "+" in edges:
        return f"{{{name!r}: {[part.split('+') for part in edges.split(',')]!r}}}"
    bands = f"[{', '.join(edges.split(','))}]" if "," in edges else edges
    return f"{{{name!r}: {bands}}}"
