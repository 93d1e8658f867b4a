"""What a person gives a draft beside its columns: rows, constraints and workload, held to what a schema takes."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.authoring.documents.offered import ACCEPTED, OF_RULES
from dpmodels.authoring.documents.rules import readable_columns
from dpmodels.authoring.documents.same_rules import is_said_by
from dpmodels.authoring.lint import parse
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.plain_yaml import read_yaml, unwritable, write_yaml

OF_SEVERAL = "be left out of a draft of several tables; write it into the draft, below the table that it is about"
UNWRITABLE = "{}: YAML cannot write {}; use text, numbers, lists and dictionaries"
ABOVE = re.compile(r"^(?=columns:$)", re.MULTILINE)
SAID_ROWS = re.compile(r"^(?:# )?rows: .*\n", re.MULTILINE)
"""The number of rows that a document says, live or in a comment, which gives way to that of a person."""
OFFERED = re.compile(r"(?:# )?- .*\n(?:(?:# )?  .*\n)*")
"""A rule that descriptions say, in a comment or live."""
COMMENTED, LIVE = "\n# constraints:\n", "\nconstraints:\n"


def with_beside(text: str, given: Mapping[str, Any]) -> str:
    """Write keys beside the columns of a draft, above them; constraints stand with those that descriptions say.

    Raises:
        NacreError: a schema with these columns does not take one of them, or the draft is of several tables.
    """
    asked = {key: value for key, value in given.items() if value not in (None, (), [], {}, "")}
    for key, written in asked.items():
        value = [written] if key == "constraints" and isinstance(written, str) else written
        if "columns" not in read_yaml(text):
            raise InvalidArgument(key, "(given)", OF_SEVERAL)
        if unwritten := unwritable({key: value}):
            raise Unsuitable(UNWRITABLE.format(key, unwritten))
        text = _with(text, key, write_yaml({key: value}, default_flow_style=False, width=10_000))
    faults = [fault for fault in parse(text)[1] if fault.where.partition(".")[0] in asked]
    if faults:
        raise Unsuitable("; ".join(f"{fault.where} {fault.message}" for fault in faults))
    return text


def _with(text: str, key: str, lines: str) -> str:
    """Write the lines of a key; those of constraints become the first of a list that the draft has, or suggests."""
    if key == "constraints":
        text = _without_said(text, read_yaml(lines)[key])
    others = next((one for one in (LIVE, COMMENTED) if one in text), "") if key == "constraints" else ""
    if others and (rules := lines.removeprefix("constraints:\n")) != lines:
        return text.replace(others, f"{LIVE}{rules}", 1)
    text = SAID_ROWS.sub("", text) if key == "rows" else text
    return ABOVE.sub(lambda _: lines, text, count=1)


def _without_said(text: str, rules: Any) -> str:
    """Leave out of a draft the rules of descriptions that a person's own say already."""
    begin = next((one for one in (LIVE, COMMENTED) if one in text), "")
    if not begin or not (isinstance(rules, list) and all(isinstance(rule, str) for rule in rules)):
        return text
    columns = readable_columns(read_yaml(text)["columns"])
    head, _, tail = text.partition(begin)
    kept, end = list[str](), 0
    while match := OFFERED.match(tail, end):
        (said,) = read_yaml("".join(line.removeprefix("# ") for line in match[0].splitlines(keepends=True)))
        kept += [] if any(is_said_by(said, rule, columns) for rule in rules) else [match[0]]
        end = match.end()
    if kept:
        return head + begin + "".join(kept) + tail[end:]
    for words in (ACCEPTED, OF_RULES):
        head = head.removesuffix(words.rstrip("\n"))
    return head.rstrip("\n") + "\n" + tail[end:]
