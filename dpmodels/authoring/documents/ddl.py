"""SQL that creates tables: the types of columns, NOT NULL, PRIMARY KEY, enumerations, comments, and CHECKs.

Of a CHECK the comparisons that are joined by AND are read; one that says anything else is left out, and told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from dpmodels.authoring.facts import Facts, Tables, between, joined, listed, typed
from dpmodels.errors import Unsuitable

TOKEN = re.compile(
    r"(?P<blank>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<string>'(?:[^']|'')*')|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
    r"|(?P<quoted>\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\W\d][^\]']*\])|(?P<word>[^\W\d][\w$]*)|(?P<sign><=|>=|<>|!=|::|[^'\"`])",
    re.DOTALL,
)
RULES = {"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "KEY", "INDEX", "EXCLUDE", "LIKE", "FULLTEXT", "PERIOD"}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


KEYWORDS = {"AND", "OR", "IN", "IS", "NOT", "NULL", "BETWEEN", "ANY", "LIKE"}


class Token(NamedTuple):
    """A name, a value, or a word or sign of the language, which is written in capitals."""

    kind: str
    text: Any


Tree = list[Any]
"""Tokens, and in place of each pair of parentheses the tree between them."""


def read_ddl(text: str) -> Tables:
    """Read the tables that statements create.

    Raises:
        Unsuitable: quotes or parentheses are not closed, or no table is created.
    """
    tables: dict[str, dict[str, list[Facts]]] = {}
    kinds: dict[str, Facts] = {}
    for statement in _split(_tree(text), ";"):
        words = [
            part.text.upper() if isinstance(part, Token) and part.kind in ("word", "name") else part
            for part in statement
        ]
        if words[:2] == ["CREATE", "TYPE"] and "AS" in words and "ENUM" in words:
            kinds[_names(statement[2 : words.index("AS")])[-1].lower()] = _values(statement[-1])
        elif words[:1] == ["CREATE"] and "TABLE" in words:
            _create(statement[words.index("TABLE") + 1 :], tables, kinds)
        elif words[:2] == ["ALTER", "TABLE"] and "ADD" in words:
            table = tables.get(_names(statement[2 : words.index("ADD")])[-1], {})
            _rule(statement[words.index("ADD") + 1 :], table)
        elif words[:3] == ["COMMENT", "ON", "COLUMN"] and "IS" in words:
            *_, table_name, column = ["", *_names(statement[3 : words.index("IS")])]
            tables.get(table_name, {}).get(column, []).append(Facts(description=str(statement[-1].text)))
    if not any(tables.values()):
        raise Unsuitable("the SQL has no CREATE TABLE with columns; take the statement that creates the table")
    return {name: {column: joined(facts) for column, facts in columns.items()} for name, columns in tables.items()}


def checked(condition: str) -> Mapping[str, Facts]:
    """Read what a CHECK says of columns; nothing of a condition that cannot be read."""
    try:
        return _checked(_tree(condition))
    except Unsuitable:
        return {}


def _tree(text: str) -> Tree:
    stack: list[Tree] = [[]]
    end = 0
    for match in TOKEN.finditer(text):
        if match.start() != end:
            break
        end, kind, written = match.end(), str(match.lastgroup), match[0]
        if written == "(":
            stack.append([])
        elif written == ")" and len(stack) > 1:
            inner = stack.pop()
            stack[-1].append(inner)
        elif kind == "quoted":
            stack[-1].append(Token("name", written[1:-1].replace('""', '"')))
        elif kind == "string":
            stack[-1].append(Token("value", written[1:-1].replace("''", "'")))
        elif kind == "number":
            stack[-1].append(Token("value", float(written) if re.search(r"[.eE]", written) else int(written)))
        elif kind != "blank":
            stack[-1].append(Token(kind, written))
    if end != len(text) or len(stack) > 1:
        raise Unsuitable("the SQL cannot be read: a quote or a parenthesis is not closed")
    return stack[0]


def _split(tree: Tree, mark: str) -> list[Tree]:
    parts: list[Tree] = [[]]
    for one in tree:
        if one == Token("sign", mark):
            parts.append([])
        else:
            parts[-1].append(one)
    return [part for part in parts if part]


def _upper(part: Any) -> str:
    return part.text.upper() if isinstance(part, Token) and part.kind == "word" else ""


def _names(tree: Tree) -> list[str]:
    """Return the parts of a name such as ``public.orders``."""
    words = [str(one.text) for one in tree if isinstance(one, Token) and one.kind in ("word", "name")]
    return [word for word in words if word.upper() not in ("IF", "NOT", "EXISTS", "ONLY")] or [""]


def _create(tree: Tree, tables: dict[str, dict[str, list[Facts]]], kinds: Mapping[str, Facts]) -> None:
    index = next((index for index, one in enumerate(tree) if isinstance(one, list)), None)
    if index is None:
        return
    columns = tables.setdefault(_names(tree[:index])[-1], {})
    for item in _split(tree[index], ","):
        if _upper(item[0]) in RULES:
            _rule(item, columns)
        elif isinstance(item[0], Token):
            columns.setdefault(str(item[0].text), []).append(Facts())
            _column(item[1:], str(item[0].text), columns, kinds)


def _column(tree: Tree, name: str, columns: dict[str, list[Facts]], kinds: Mapping[str, Facts]) -> None:
    """Read the type of a column and what follows it."""
    start = 2 if len(tree) > 2 and tree[1] == Token("sign", ".") else 0
    word = str(tree[start].text) if len(tree) > start and isinstance(tree[start], Token) else ""
    within = tree[start + 1] if len(tree) > start + 1 and isinstance(tree[start + 1], list) else []
    if word.upper() in ("ENUM", "SET"):
        columns[name].append(_values(within))
    else:
        sizes = ",".join(str(one.text) for one in within if isinstance(one, Token) and one.kind == "value")
        columns[name].append(kinds.get(word.lower()) or typed(f"{word}({sizes})" if sizes else word))
    words = [_upper(one) for one in tree]
    pairs = list(pairwise(words))
    nullable = ("NOT", "NULL") not in pairs and ("PRIMARY", "KEY") not in pairs
    columns[name].append(Facts(nullable=nullable, unique="UNIQUE" in words))
    for at, (one, following) in enumerate(pairwise(tree)):
        if _upper(one) == "COMMENT" and isinstance(following, Token) and following.kind == "value":
            columns[name].append(Facts(description=str(following.text)))
        elif pairs[at] == ("PRIMARY", "KEY"):
            columns[name].insert(0, Facts(kind="identifier", unique=True))
        elif _upper(one) == "CHECK" and isinstance(following, list):
            _add(columns, _checked(following))


def _rule(tree: Tree, columns: dict[str, list[Facts]]) -> None:
    """Read a rule that stands beside the columns."""
    words = [_upper(one) for one in tree]
    group = next((one for one in tree if isinstance(one, list)), [])
    if "PRIMARY" in words and len(group) == 1 and isinstance(group[0], Token):
        columns.get(str(group[0].text), []).insert(0, Facts(kind="identifier", nullable=False, unique=True))
    elif "UNIQUE" in words and len(group) == 1 and isinstance(group[0], Token):
        columns.get(str(group[0].text), []).append(Facts(unique=True))
    elif "CHECK" in words:
        _add(columns, _checked(group))


def _add(columns: dict[str, list[Facts]], facts: Mapping[str, Facts]) -> None:
    for name, one in facts.items():
        column = next((other for other in columns if other.casefold() == name.casefold()), None)
        if column is not None:
            columns[column].append(one)


def _checked(tree: Tree) -> Mapping[str, Facts]:
    """Read conditions that are joined by AND; one that was not read is told of every name in it."""
    while len(tree) == 1 and isinstance(tree[0], list):
        tree = tree[0]
    words = [_upper(one) for one in tree]
    facts_by_name: dict[str, list[Facts]] = {}
    for part in [tree] if "OR" in words else _conditions(tree):
        if part is not tree and len(part) == 1 and isinstance(part[0], list):
            inner = _checked(part)
        else:
            terms = list(_terms(part))
            unread = {str(term.text): Facts(unread=("a CHECK",)) for term in terms if term.kind == "name"}
            read = None if "OR" in words else _compared(terms)
            inner = dict([read]) if read else unread
        for name, facts in inner.items():
            facts_by_name.setdefault(name, []).append(facts)
    return {name: joined(facts) for name, facts in facts_by_name.items()}


def _conditions(tree: Tree) -> list[Tree]:
    """Cut at every AND that does not belong to a BETWEEN."""
    parts: list[Tree] = [[]]
    for one in tree:
        words = [_upper(other) for other in parts[-1]]
        if _upper(one) == "AND" and words.count("BETWEEN") <= words.count("AND"):
            parts.append([])
        else:
            parts[-1].append(one)
    return parts


def _terms(tree: Tree) -> Iterator[Token]:
    """Yield the tokens of a comparison without parentheses, commas and casts, signs joined to their numbers."""
    cast, before = False, Token("sign", "")
    for index, one in enumerate(tree):
        if isinstance(one, list):
            if not cast:
                yield from _terms(one)
            before = Token("value", None)
            continue
        word, after = _upper(one), tree[index + 1] if index + 1 < len(tree) else None
        cast = one.text == "::" or (cast and (one.kind == "word" or one.text in ("[", "]")) and word not in KEYWORDS)
        typed_value = word in ("DATE", "TIMESTAMP") and isinstance(after, Token) and after.kind == "value"
        if not (cast or typed_value or one.text in (",", "[", "]") or word == "ARRAY" or _is_minus(one, before, after)):
            if one.kind == "value" and before == Token("minus", "-"):
                yield Token("value", -one.text)
            else:
                yield (
                    Token(word, word)
                    if word in KEYWORDS
                    else Token("name" if one.kind == "word" else one.kind, one.text)
                )
        before = Token("minus", "-") if _is_minus(one, before, after) else one


def _is_minus(one: Token, before: Token, after: Any) -> bool:
    """Tell the sign of a number from a subtraction."""
    number = isinstance(after, Token) and after.kind == "value" and not isinstance(after.text, str)
    return one == Token("sign", "-") and number and (before.kind == "sign" or _upper(before) in KEYWORDS)


def _compared(terms: Sequence[Token]) -> tuple[str, Facts] | None:
    """Read one comparison of a column with values; None for anything else."""
    shape = [term.kind for term in terms]
    signs = [str(term.text) for term in terms if term.kind == "sign"]
    values = [term.text for term in terms if term.kind == "value"]
    name = next((str(term.text) for term in terms if term.kind == "name"), "")
    several = ["value"] * len(values)
    if shape == ["name", "IN", *several] or (shape == ["name", "sign", "ANY", *several] and signs == ["="]):
        return name, listed(values)
    if shape == ["name", "BETWEEN", "value", "AND", "value"]:
        return name, between(*values)
    if shape == ["name", "IS", "NOT", "NULL"]:
        return name, Facts(nullable=False)
    sign = signs[0] if len(signs) == 1 else ""
    sign = MIRRORED.get(sign, "") if shape == ["value", "sign", "name"] else sign
    if sign in MIRRORED and shape in (["name", "sign", "value"], ["value", "sign", "name"]):
        if sign == "=":
            return name, listed(values)
        opened = "=" not in sign
        return name, between(values[0], None, opened) if ">" in sign else between(None, values[0], False, opened)
    return None


def _values(tree: Any) -> Facts:
    return joined(
        [Facts(kind="text"), listed([one.text for one in tree if isinstance(one, Token) and one.kind == "value"])]
    )
