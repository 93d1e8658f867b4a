"""Which columns may join the tables of a folder: proposed by the names of tables and columns alone, to be confirmed.

A column is proposed as the key of its own table if it is called ``id``, or as the table is: ``customer``,
``customer_id``, ``customerNo``, in the table ``customer`` or ``customers``. It is proposed to name a row of another
table's if it is called as that other table is, or as its key is, unless that is only ``id``.

Privacy: no file is opened here; a row, a value and the number of rows change nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

PLAIN = {"id", "key", "uuid", "guid"}
"""Names of a key that say nothing of its table."""
ENDINGS = {*PLAIN, "no", "nr", "num", "number", "code", "ref"}


@dataclass(frozen=True)
class Link:
    """A table whose rows those of another may belong to, and the column that names the row."""

    parent: str
    column: str


@dataclass(frozen=True)
class Proposals:
    """What names propose of the tables.

    Attributes:
        keys: columns that may name each table's rows; links: what each table's rows may belong to.
    """

    keys: Mapping[str, tuple[str, ...]]
    links: Mapping[str, tuple[Link, ...]]

    def key(self, table: str) -> str:
        """Return the one column that is proposed as a table's key; empty where none or several are."""
        return self.keys[table][0] if len(self.keys[table]) == 1 else ""

    def link(self, table: str) -> Link | None:
        """Return the one link that is proposed of a table, if there is one and it does not lead back to the table."""
        seen, link = {table}, self._only(table)
        while link is not None and link.parent not in seen:
            seen.add(link.parent)
            link = self._only(link.parent)
        return self._only(table) if link is None else None

    def _only(self, table: str) -> Link | None:
        return self.links[table][0] if len(self.links[table]) == 1 else None

    @property
    def roots(self) -> tuple[str, ...]:
        """List the tables of which no parent is proposed."""
        return tuple(table for table, links in self.links.items() if not links)

    @property
    def parents(self) -> set[str]:
        """Name the tables that are proposed as the parent of another."""
        return {link.parent for links in self.links.values() for link in links}

    @property
    def order(self) -> tuple[str, ...]:
        """List the tables, a parent before its children as far as parents are proposed."""
        order, left = list[str](), sorted(self.keys)
        while left:
            ready = [table for table in left if not {link.parent for link in self.links[table]} & set(left)]
            order.append((ready or left)[0])
            left.remove(order[-1])
        return tuple(order)


def proposals(tables: Mapping[str, Sequence[str]]) -> Proposals:
    """Propose keys and parents of tables, of which the names of the columns are given."""
    keys = {table: tuple(_keys(table, columns)) for table, columns in tables.items()}
    links = {table: tuple(_links(table, columns, keys)) for table, columns in tables.items()}
    return Proposals(keys, {table: tuple(_nearest(table, links)) for table in tables})


def _keys(table: str, columns: Sequence[str]) -> Iterator[str]:
    """Yield the columns that are called as their table is, or, where none is, those that are called ``id``."""
    called = [name for name in columns if _names(name, table)]
    yield from called or (name for name in columns if _words(name) in PLAIN)


def _links(table: str, columns: Sequence[str], keys: Mapping[str, tuple[str, ...]]) -> Iterator[Link]:
    """Yield what a table's rows may belong to, by the first column that names a row of another table."""
    for parent in keys:
        taken = {_words(key) for key in keys[parent]} - PLAIN
        found = [name for name in columns if _names(name, parent) or _words(name) in taken]
        if parent != table and found:
            yield Link(parent, found[0])


def _nearest(table: str, links: Mapping[str, Sequence[Link]]) -> Iterator[Link]:
    """Yield the links of a table, but for those to tables that one of the others belongs to as well."""
    for link in links[table]:
        others = [other.parent for other in links[table] if other != link]
        if not any(link.parent in {above.parent for above in links[other]} for other in others):
            yield link


def _names(column: str, table: str) -> bool:
    """Tell whether a column is called as a table is, in the singular or the plural, with or without an ending."""
    words, ends = _words(column), "|".join(sorted(ENDINGS))
    return any(re.fullmatch(rf"({ends}) {form}|{form}( ({ends}))?", words) for form in _forms(table))


def _forms(table: str) -> set[str]:
    """Return a table's name as words, and what it may be in the singular and in the plural."""
    words = _words(table)
    forms = {words, f"{words}s"}
    for ending, singular in (("ies", "y"), ("ses", "s"), ("xes", "x"), ("ches", "ch"), ("s", "")):
        if words.endswith(ending) and len(words) > len(ending) + 1:
            forms.add(words.removesuffix(ending) + singular)
    return {re.escape(form) for form in forms}


def _words(name: str) -> str:
    """Return a name as words in lowercase letters: ``customerID``, ``Customer_Id`` and ``CUSTOMER ID`` are the same."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.findall(r"[^\W_]+", apart.lower()))
