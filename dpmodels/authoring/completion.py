"""Write what was discovered into the draft of a schema: only the marks change, so a person's comments and order stay.

The findings come from noisy counts, so this is post-processing. The schema names under ``sources`` the keys that come
from a charged release, and the release, for whoever signs it.
"""

import json
import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from typing import Any, cast

import numpy as np
import yaml

from dpmodels.authoring.draft import INTRODUCTION, OF_AMOUNTS, OF_DATES, OF_ROWS, TYPES, UNTYPED
from dpmodels.authoring.tree_draft import JOINS, OF_TABLES
from dpmodels.clock import with_counted_times
from dpmodels.contract.columns import Categorical
from dpmodels.contract.discovery.discovery import SHARE, columns_of, marks
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import read_yaml

TODO = "TODO"
TOO_LARGE = f"is larger than {LARGEST_YAML // 2**20} MiB, which no command reads"
WIDTH = 110
KEYS = ("type", "values", "outside", "other", "dtype")
OF_A_DRAFT = frozenset(
    "".join((INTRODUCTION, UNTYPED, JOINS, TYPES, OF_ROWS, OF_DATES, OF_AMOUNTS, OF_TABLES)).splitlines()
) - {""}
"""Lines that a draft begins and ends with, which say how it is to be finished."""
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


@dataclass(frozen=True)
class ReleasedKeys:
    """What a release says of a column.

    Attributes:
        values: of an open set those that reached the threshold, in their order.
        low, high: ends of the outermost cells, or the first and last year; None where no cell surely holds rows, and
            infinite where the lattice ends.
        null_share: an upper bound of the share of nulls; unread: the noisy number of rows that hold no such value.
        rows: the noisy number of rows; noise_stddev: of each count, in rows.
        least_rows: the number of rows at which a value is released half of the time.
        tail: share of the counted rows that a bound may leave out, by the settings of the discovery.
        hidden: the number of rows below which a cell or a year does not count for a bound, by settings and noise.
    """

    values: tuple[Any, ...]
    low: float | None
    high: float | None
    null_share: float
    rows: float
    unread: float
    noise_stddev: float
    least_rows: float
    tail: float = 0.0
    hidden: float = 0.0


@dataclass(frozen=True)
class Completion:
    """A schema with what was found, and what its author should know of it, a sentence each."""

    text: str
    remarks: tuple[str, ...]


def complete(text: str, findings: Mapping[str, ReleasedKeys], origin: str, charge: DiscoveryCharge) -> Completion:
    """Write what was found into a draft; what was not found becomes a TODO.

    Args:
        text: the draft, whose marks are those of the release.
        findings: by column.
        origin: says in words which charged release this is from.
        charge: what was paid for it.
    """
    text = "".join(line for line in text.splitlines(keepends=True) if line.rstrip() not in OF_A_DRAFT)
    data, root = read_yaml(text), cast(yaml.MappingNode, yaml.compose(text, Loader=yaml.SafeLoader))
    edits, remarks, origins = list[tuple[int, int, str]](), list[str](), list[str]()
    columns, keeps_rows = columns_of(data), "users" in data or "columns" not in data
    for name, keys in marks(data).items():
        column, place = with_counted_times(columns[name][0]), columns[name][1]
        node = reduce(_value, place, root)
        values = _said(column, keys, findings[name], keeps_rows)
        remarks += _remarks(name, values, findings[name], str(column.get("outside", "clip")))
        if name == data.get("target") and "outside" not in column and values.get("other"):
            remarks.append(_of_target(name, values["other"], findings[name], keeps_rows))
        if written_keys := [key for key in keys if values.get(key) != TODO]:
            origins.append(f"{', '.join(written_keys)} of {name}")
        changed = [key.value for key, _ in node.value if key.value in values and key.value not in keys]
        if changed:
            remarks.append(f"column {name}: {' and '.join(changed)} did not fit what was found, and is changed")
        for key in changed:
            old = _value(node, key)
            edits.append((old.start_mark.index, old.end_mark.index, _scalar(values.pop(key))))
        for index, key in enumerate(keys):
            mark = _value(node, key)
            indent = " " * (_indent(text, mark.start_mark.index) + 4)
            written = _flow(values.pop(key), indent)
            start, end = mark.start_mark.index, mark.end_mark.index
            end = start + len(text[start:end].rstrip())  # that of a word in a block lies on the next line
            edits.append((start, end, written + _more(index, keys, node, values)))
    edits.append(_added(text, root, "sources", ": ".join(filter(None, [origin, "; ".join(origins)]))))
    if charge.charge not in (one.get("charge") for one in data.get("discovered", ())):
        edits.append(_added(text, root, "discovered", charge.model_dump(mode="json")))
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    if len(text) > LARGEST_YAML:
        remarks.append(f"the schema {TOO_LARGE}: take rare values out of it before it is used")
    return Completion(text, tuple(remarks))


def _said(column: Mapping[str, Any], keys: tuple[str, ...], finding: ReleasedKeys, keeps_rows: bool) -> dict[str, Any]:
    """Return the keys that are written for a column: the marked ones, and what becomes of values outside.

    Beside ``users`` and in a tree no row may be left out, so a number that was not found ends the run that meets it.
    """
    values: dict[str, Any] = {}
    if SHARE in keys:
        values[SHARE] = finding.null_share
    if "values" in keys:
        values |= _values(column, finding)
        if keeps_rows and values.get("outside") == "reject-row":
            values["outside"] = "refuse"
    if "min" in keys:
        values["min"] = _bound(column, finding.low, ROUND_FLOOR)
    if "max" in keys:
        values["max"] = _bound(column, finding.high, ROUND_CEILING)
    if {"min", "max"} & {*keys}:
        values |= _checked(column, values) | ({} if "outside" in column else {"outside": "clip"})
    return values


def _values(column: Mapping[str, Any], finding: ReleasedKeys) -> dict[str, Any]:
    """Return the values, with one for the rare ones that are not among them."""
    values = [*finding.values]
    if not values:
        return {"values": TODO}
    listed = [] if column.get("other") is None or column["other"] in values else [column["other"]]
    usual = ({"other": None} if "other" in column else {}) | _usual(values)
    drafted = [{"values": [*values, *listed]}] if "outside" in column else []
    untyped = [{**keys, "dtype": None} for keys in (*drafted, usual)]
    return next((keys for keys in (*drafted, *untyped[:-1], usual) if _fits({**column, **keys})), untyped[-1])


def _fits(column: Mapping[str, Any]) -> bool:
    """Tell whether a column holds together: what was found may be text where the draft's author thought of numbers."""
    try:
        Categorical.model_validate({key: column[key] for key in KEYS if key in column})
    except ValueError:
        return False
    return True


def _usual(values: list[Any]) -> dict[str, Any]:
    """Return the values with what becomes of others, where the draft does not say that."""
    if any(isinstance(value, float) for value in values):
        return {"values": values, "outside": "nearest"}
    if not all(isinstance(value, str) for value in values):
        return {"values": values, "outside": "reject-row"}
    rest = next(word for word in ("other", "(other)", "((other))") if word not in values)
    return {"values": [*values, rest], "outside": "other", "other": rest}


def _bound(column: Mapping[str, Any], end: float | None, rounding: str) -> Any:
    """Return an end as a bound: a day of a year; or a number, away from what is inside, at the decimals it keeps."""
    if end is None or math.isinf(end):
        return TODO
    if column["type"] == "datetime":
        return Decimal(f"{end:.0f}"), "01-01" if rounding == ROUND_FLOOR else "12-31"
    decimals = column.get("round", 0) if column["type"] == "integer" or "round" in column else None
    if decimals is None:
        return end
    exact = Decimal(repr(end)).quantize(Decimal(1).scaleb(-int(decimals)), rounding=rounding)
    if column["type"] == "number":
        return float(exact)
    bound = int(exact)
    kind = column.get("dtype")
    return int(np.clip(bound, np.iinfo(kind).min, np.iinfo(kind).max)) if kind in INTS else bound


def _checked(column: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Write days as YAML has them, and leave a bound open that a given one contradicts."""
    days = {key: f"{int(end[0]):04}-{end[1]}" for key, end in values.items() if isinstance(end, tuple)}
    both = {key: str(days.get(key, values.get(key, column.get(key)))) for key in ("min", "max")}
    read: Any = str if column["type"] == "datetime" else float
    if TODO not in both.values():
        low, high = read(both["min"]), read(both["max"])
        if low > high or (low == high and column["type"] == "number"):
            return {key: TODO for key in ("min", "max") if key in values}
    return days


def _remarks(name: str, values: Mapping[str, Any], finding: ReleasedKeys, outside: str) -> Iterator[str]:
    """Say what was not found, and why; and what share of the rows a bound that was found may leave out."""
    open_keys = [key for key in ("values", "min", "max") if values.get(key) == TODO]
    if open_keys:
        needs = (
            f"a value needs about {finding.least_rows:,.0f} rows to be released"
            if "values" in open_keys
            else (f"a count has noise of {finding.noise_stddev:,.0f} rows")
        )
        yield f"column {name}: {' and '.join(open_keys)} could not be found and is left as TODO: {needs}"
    ends = {
        "reject-row": "rows that hold another are left out of what is made by this schema",
        "nearest": "another becomes the nearest of them",
        "refuse": "a row that holds another ends the run, so add to them what is public",
    }
    if "values" in values and values.get("outside") in ends:
        yield f"column {name}: its values are those that enough rows hold; {ends[values['outside']]}"
    bounds = [key for key in ("min", "max") if values.get(key, TODO) != TODO]
    if bounds and finding.tail:
        yield (
            f"column {name}: beyond {' and '.join(bounds)} may lie {finding.tail:.2%} of the rows at each end that was "
            f"found, and cells of fewer than about {finding.hidden:,.0f} rows each, which noise hides; that follows "
            f"from the settings alone, and `outside: {outside}` says what becomes of them"
        )
    if finding.unread > 4 * finding.noise_stddev:
        yield (
            f"column {name}: about {finding.unread:,.0f} of {finding.rows:,.0f} rows hold what its type does not, such "
            "as text in a column of numbers, 1.234,5 or 31.12.2021 where no `text` in the schema says so, or too long "
            "a text; nothing of them is released"
        )


def _of_target(name: str, other: str, finding: ReleasedKeys, keeps_rows: bool) -> str:
    """Say what the class of rare values is for, and how a target that has none is written.

    Privacy: the word is the author's, and the same whatever the rows are; a value that it bars ends a run before its
        charge, or costs its row by a rule that looks at that row alone.
    """
    words = "`outside: refuse` (another value ends the run, before its charge)"
    words += "" if keeps_rows else " or `outside: reject-row` (its row is left out)"
    return (
        f"column {name}: it is the target, and gets a class `{other}` for whatever fewer than about "
        f"{finding.least_rows:,.0f} rows hold, which is not released, be there such rows or not; if you know that the "
        f"list is whole, write {words} beside `values: discover` and give the same command again, for nothing"
    )


def _value(node: yaml.MappingNode, name: str) -> Any:
    return next(value for key, value in node.value if key.value == name)


def _indent(text: str, position: int) -> int:
    """Return how far the line of a place is indented."""
    line = text[text.rfind("\n", 0, position) + 1 :]
    return len(line) - len(line.lstrip(" "))


def _flow(value: Any, indent: str) -> str:
    """Write a value on one line, or a list on as many as it needs."""
    if not isinstance(value, list):
        return _scalar(value) if isinstance(value, bool | float) else str(value)
    lines, line = [], "["
    for index, item in enumerate(value):
        word = _scalar(item) + ("," if index + 1 < len(value) else "]")
        if len(line) + len(word) > WIDTH and line.strip() not in ("", "["):
            lines.append(line)
            line = indent
        line += word if line in ("[", indent) else f" {word}"
    return "\n".join([*lines, line])


def _scalar(value: Any) -> str:
    """Write a value as YAML reads it back: text in quotes, and 1e-05 with a point, without which it would be text."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text


def _more(index: int, keys: tuple[str, ...], node: yaml.MappingNode, values: Mapping[str, Any]) -> str:
    """Write the keys that a column lacked, behind its last mark."""
    if index + 1 < len(keys):
        return ""
    further = [f"{key}: {_scalar(value) if key == 'other' else value}" for key, value in values.items()]
    between = ", " if node.flow_style else "\n" + " " * node.value[0][0].start_mark.column
    return "".join(between + words for words in further)


def _added(text: str, root: yaml.MappingNode, key: str, item: Any) -> tuple[int, int, str]:
    """Return the edit that adds an item to a list of a schema, which it may have none of yet."""
    flow = json.dumps(item, ensure_ascii=False)
    block = yaml.safe_dump([item], default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH)
    if isinstance(item, str):
        block = f"- {flow}\n"
    sequence = next((value for name, value in root.value if name.value == key), None)
    if isinstance(sequence, yaml.SequenceNode) and sequence.flow_style:
        start = sequence.start_mark.index + 1
        return start, start, flow + (", " if sequence.value else "")
    if isinstance(sequence, yaml.SequenceNode):
        start = text.rfind("\n", 0, sequence.start_mark.index) + 1
        return start, start, textwrap.indent(block, " " * sequence.start_mark.column)
    start = next(name.start_mark.index for name, _ in root.value if name.value in ("columns", "tables"))
    if root.flow_style or isinstance(item, str):
        return start, start, f"{key}: [{flow}]" + (", " if root.flow_style else "\n")
    return start, start, f"{key}:\n{block}"
