"""The one reader of YAML, and its writer: contracts, configurations, deployments and documentation, by whomever.

It reads mappings, lists and scalars, and nothing that runs, repeats itself without end, or takes more work than its
length. Numbers are those that YAML 1.1 and YAML 1.2 read alike: decimal digits, a point, an exponent with its sign.
What one of them reads as a number and the other as text (``012``, ``12:30``, ``1_000``, ``1e5``, ``0x1F``) is text
here, as it is written. So a text that an earlier version wrote without quotes stays text, and schemas keep their hash.
Words such as ``yes`` and dates are read as in YAML 1.1, as they always were.

Source: YAML 1.2.2, section 10.3 (core schema); YAML 1.1, types int, float, bool, timestamp, merge.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any

import yaml

from dpmodels.limits import LARGEST_YAML

Place = tuple[str, ...]
MOST_VALUES = 2**17
"""Keys, values and lists in a file, those that aliases repeat included."""
DEEPEST = 64
LONGEST = 2**16
"""Characters of one text."""
MOST_DIGITS = 400
FOLDED = re.compile("[\x85\u2028\u2029]")
"""Line ends that a text without double quotes loses when it is read: they become a space or a line feed."""
INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
FLOAT = re.compile(
    r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?|\.[0-9]+([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
MISSING = "a name here has no colon after it, or a text with a colon has no quotes"
"""What a parser of YAML means that says: mapping values are not allowed here."""
INDENTED = "it is indented otherwise than the lines around it, or a quote or bracket is not closed above"
UNQUOTED = "more text stands behind a value that ends: put quotes around the whole value"
OPEN_QUOTE = "the quote that opens here is not closed"
OPEN_BRACKET = "the bracket that opens here is not closed, or a comma is missing behind it"
TAB = "the line begins with a tab; indent it with spaces"
NULL = ("", "~", "null", "Null", "NULL")
TAG = "tag:yaml.org,2002:"
_CORE = ("str", "null", "bool", "int", "float", "timestamp")
_OLD: Mapping[str, Any] = yaml.SafeLoader.yaml_implicit_resolvers
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(yaml.SafeDumper):
    """Puts a text with a line end other than the line feed in double quotes, where YAML writes it out.

    Numbers, texts, dates and arrays of NumPy and pandas are written as those of Python that they stand for.
    """

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Write a text."""
        return self.represent_scalar(f"{TAG}str", text, style='"' if FOLDED.search(text) else None)

    def represent_other(self, value: Any) -> yaml.Node:
        """Write a value of another library.

        Raises:
            YAMLError: nothing of Python stands for it.
        """
        plain = _plain(value)
        return self.represent_undefined(value) if type(plain) is type(value) else self.represent_data(plain)


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(None, _Dumper.represent_other)  # type: ignore[arg-type]  # None stands for whatever else


def _plain(value: Any) -> Any:
    """Return what Python calls a value of NumPy or pandas, and a moment at midnight as its day; others as they are."""
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        value = value.astype("datetime64[us]")  # in nanoseconds NumPy gives whole numbers
    for name in ("to_pydatetime", "tolist"):
        value = getattr(value, name)() if hasattr(value, name) else value
    is_day = type(value) is datetime and value.tzinfo is None and value.time() == time()
    return value.date() if is_day else value


def unwritable(content: Mapping[Any, Any]) -> str:
    """Return the keys that lead to the first value of a mapping that no YAML holds, joined by points; empty of none.

    So are those that are not read again, such as a set, bytes, or a number of too many digits.
    """
    for key, value in content.items():
        try:
            read_yaml(write_yaml({key: value}))
        except (yaml.YAMLError, YamlFault):
            below = unwritable(value) if isinstance(value, Mapping) else ""
            return f"{key}.{below}" if below else str(key)
    return ""


def write_yaml(content: Any, **options: Any) -> str:
    """Write content as YAML that reads back equal to it, if it has no text that is too long; options are PyYAML's."""
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **options))


class YamlFault(ValueError):
    """A text is no YAML that is read here; ``twice`` is the key, where a mapping has one twice."""

    def __init__(self, line: int, problem: str, twice: str = "") -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.line, self.problem, self.twice = line, problem, twice


@dataclass(frozen=True)
class Scalar:
    """A scalar as it is written, and what it is read as: str, null, bool, int, float, timestamp or merge."""

    text: str
    kind: str
    is_plain: bool
    line: int

    @property
    def is_number_elsewhere(self) -> bool:
        """Tell whether YAML 1.1 reads a number where this is text."""
        return self.is_plain and self.kind == "str" and _old_kind(self.text) in ("int", "float")

    def value(self) -> Any:
        """Return what it is read as.

        Raises:
            YamlFault: it is no value of its kind, such as a date that no calendar has.
        """
        try:
            return _VALUES[self.kind](self.text)
        except (ValueError, KeyError, OverflowError):
            raise YamlFault(self.line, f"{self.text[:80]} is no value of its kind") from None


class Watch:
    """What a caller makes of odd things in a file; here each of them ends the reading."""

    def on_key(self, key_path: Place, key: Scalar, first_line: int) -> bool:
        """Take note of a key at a place, and of the line where the mapping had it before, or 0; False skips it."""
        if first_line:
            problem = f"{key.text[:80]} is named twice, first in line {first_line}"
            raise YamlFault(key.line, problem, twice=key.text)
        return True

    def on_item(self, key_path: Place, line: int) -> None:
        """Take note of an item of a list."""

    def on_scalar(self, key_path: Place, scalar: Scalar) -> Any:
        """Return the value of a scalar."""
        return scalar.value()

    def on_alias(self, key_path: Place, line: int) -> bool:
        """Take note of an alias; False leaves out what it stands for."""
        return True


@dataclass
class _Open:
    """A mapping or a list that is being read."""

    content: Any
    path: Place
    line: int
    anchor: str | None
    first: int
    key: Scalar | None = None
    skipped: bool = False
    lines: dict[Any, int] = field(default_factory=dict)
    merged: list[Any] = field(default_factory=list)


def read_yaml(text: str, watch: Watch | None = None) -> Any:
    """Read the one document of a text.

    Raises:
        YamlFault: it is no YAML that is read here, or larger than any file of ours; the fault has its line.
    """
    if len(text) > LARGEST_YAML:
        raise YamlFault(0, "larger than any file of its kind")
    try:
        return _Reader(watch or Watch()).read(yaml.parse(text, Loader=_PARSER))
    except yaml.MarkedYAMLError as error:
        raise _fault_of(error, text.split("\n")) from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, YamlFault):
            raise
        raise YamlFault(0, "a character is impossible") from None


def _fault_of(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> YamlFault:
    """Say what a parser of YAML means in words about the lines of the file, where they are known."""
    mark, opening = error.problem_mark, error.context_mark
    if mark is None:
        return YamlFault(0, str(error.problem))
    line = lines[mark.line] if mark.line < len(lines) else ""
    begins = line.removesuffix(line.lstrip())
    if "\t" in begins:
        return YamlFault(mark.line + 1, TAB)
    context, problem = str(error.context), str(error.problem)
    if opening is not None and "quoted scalar" in context and "end of stream" in problem:
        return YamlFault(opening.line + 1, OPEN_QUOTE)
    if opening is not None and "parsing a flow" in context and "',' or" in problem:
        return YamlFault(opening.line + 1, OPEN_BRACKET)
    if opening is not None and "expected ':'" in problem:
        return YamlFault(opening.line + 1, MISSING)
    if problem.startswith("mapping values are not"):
        above = next((one for one in reversed(lines[: mark.line]) if one.strip()), "")
        is_deeper = len(begins) > len(above) - len(above.lstrip()) and re.search(r":\s+[^\s#]", above)
        problem = INDENTED if is_deeper else MISSING
    elif "parsing a block" in context and ("expected key" in problem or "expected <block end>" in problem):
        problem = INDENTED if mark.column <= len(begins) else UNQUOTED
    return YamlFault(mark.line + 1, problem)


class _Reader:
    """Builds the content from the parser's events, without recursion."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.open, self.root = watch, list[_Open](), list[Any]()
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.values = 0

    def read(self, events: Iterator[Any]) -> Any:
        """Return the content, None for an empty text."""
        for event in events:
            line = event.start_mark.line + 1
            match event:
                case yaml.DocumentStartEvent() if self.root:
                    raise YamlFault(line, "a second document begins")
                case yaml.ScalarEvent():
                    self._count(1, line)
                    self._scalar(_scalar(event, line), event.anchor)
                case yaml.AliasEvent():
                    self._alias(event.anchor, line)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._begin(event, line)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._end()
        return self.root[0] if self.root else None

    def _count(self, more: int, line: int) -> None:
        self.values += more
        if self.values > MOST_VALUES:
            raise YamlFault(line, f"more than {MOST_VALUES:,} keys and values, with what aliases repeat")

    def _scalar(self, scalar: Scalar, anchor: str | None) -> None:
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.content, dict) and top.key is None:
            name = scalar.text if scalar.kind in ("str", "merge") else scalar.value()
            key_path = (*top.path, scalar.text)
            top.skipped = not self.watch.on_key(key_path, scalar, top.lines.get(name, 0))
            top.lines.setdefault(name, scalar.line)
            top.key = scalar
            return
        value = self.watch.on_scalar(self._place(scalar.line), scalar)
        if anchor is not None:
            self.anchors[anchor] = (value, 1)
        self._put(value)

    def _alias(self, anchor: Any, line: int) -> None:
        if self.open and isinstance(self.open[-1].content, dict) and self.open[-1].key is None:
            raise YamlFault(line, "a key is an alias")
        key_path = self._place(line)
        if not self.watch.on_alias(key_path, line):
            return self._put(None)
        if anchor not in self.anchors:
            raise YamlFault(line, "an alias names what is not written before it")
        value, size = self.anchors[anchor]
        self._count(size, line)
        self._put(value)

    def _begin(self, event: Any, line: int) -> None:
        if event.tag not in (None, "!", TAG + "map", TAG + "seq"):
            raise YamlFault(line, "a tag (!) stands where none is read")
        if self.open and isinstance(self.open[-1].content, dict) and self.open[-1].key is None:
            raise YamlFault(line, "a key is no text")
        if len(self.open) >= DEEPEST:
            raise YamlFault(line, f"nested deeper than {DEEPEST} levels")
        self._count(1, line)
        content: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.open.append(_Open(content, self._place(line), line, event.anchor, self.values))

    def _end(self) -> None:
        node = self.open.pop()
        for merged in node.merged:
            for one in merged if isinstance(merged, list) else [merged]:
                if not isinstance(one, dict):
                    raise YamlFault(node.line, "<< takes a mapping")
                self._count(len(one), node.line)
                node.content |= {key: value for key, value in one.items() if key not in node.content}
        if node.anchor is not None:
            self.anchors[node.anchor] = (node.content, self.values - node.first + 1)
        self._put(node.content)

    def _put(self, value: Any) -> None:
        """Put a value where it belongs."""
        if not self.open:
            self.root.append(value)
            return
        top = self.open[-1]
        if isinstance(top.content, list):
            top.content.append(value)
            return
        key, top.key = top.key, None
        if key is None or top.skipped:
            return
        if key.kind == "merge":
            top.merged.append(value)
        else:
            top.content[key.text if key.kind == "str" else key.value()] = value

    def _place(self, line: int) -> Place:
        """Return the place of the value that comes next."""
        if not self.open:
            return ()
        top = self.open[-1]
        if isinstance(top.content, list):
            key_path = (*top.path, str(len(top.content)))
            self.watch.on_item(key_path, line)
            return key_path
        return (*top.path, top.key.text if top.key else "")


def _scalar(event: Any, line: int) -> Scalar:
    """Return a scalar of the parser with its kind."""
    text: str = event.value
    if len(text) > LONGEST:
        raise YamlFault(line, f"a text of more than {LONGEST:,} characters")
    plain = bool(event.implicit[0])
    if event.tag not in (None, "!"):
        kind = event.tag.removeprefix(TAG)
        if kind not in _CORE or kind == event.tag:
            raise YamlFault(line, "a tag (!) stands where none is read")
    else:
        kind = _kind(text) if plain else "str"
    if kind in ("int", "float") and len(text) > MOST_DIGITS:
        raise YamlFault(line, f"a number of more than {MOST_DIGITS} digits")
    return Scalar(text, kind, plain and event.style in (None, ""), line)


def _kind(text: str) -> str:
    """Tell what a plain word is."""
    if text in NULL:
        return "null"
    if INT.fullmatch(text):
        return "int"
    if FLOAT.fullmatch(text):
        return "float"
    old = _old_kind(text)
    return old if old in ("bool", "timestamp", "merge") else "str"


def _old_kind(text: str) -> str:
    """Tell what YAML 1.1 takes a plain word for."""
    tags = (tag for tag, pattern in _OLD.get(text[:1], ()) if pattern.match(text))
    return next((tag.removeprefix(TAG) for tag in tags), "str")


def _number(text: str) -> int:
    if not INT.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _real(text: str) -> float:
    lower = text.lower()
    if lower.lstrip("+-") in (".inf", ".nan"):
        return float(lower.replace(".", ""))
    if not FLOAT.fullmatch(text) and not INT.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _date(text: str) -> Any:
    return yaml.constructor.SafeConstructor().construct_yaml_timestamp(yaml.ScalarNode(f"{TAG}timestamp", text))


def _nothing(text: str) -> None:
    if text not in NULL:
        raise ValueError(text)


_VALUES: Mapping[str, Any] = {
    "str": str,
    "merge": str,
    "null": _nothing,
    "bool": lambda text: yaml.SafeLoader.bool_values[text.lower()],
    "int": _number,
    "float": _real,
    "timestamp": _date,
}
