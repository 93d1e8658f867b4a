"""Read public documentation of whatever kind, and find the table in it that a draft is about."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from dpmodels.authoring.dictionary import has_headings, read_dictionary, repeated_names, unread_headings
from dpmodels.authoring.documents.dbt import is_dbt, read_dbt
from dpmodels.authoring.documents.ddl import read_ddl
from dpmodels.authoring.documents.expectation_suite import is_suite, read_suite
from dpmodels.authoring.documents.forms import (
    date_format_in,
    has_comma,
    moment_format_in,
    money_in,
    rows_in,
    says_comma,
    with_comma,
)
from dpmodels.authoring.documents.json_schema import is_json_schema, read_json_schema
from dpmodels.authoring.documents.name_list import FORM, Listed, as_csv
from dpmodels.authoring.documents.odcs import is_data_contract, read_data_contract
from dpmodels.authoring.documents.pandera import is_pandera, read_pandera
from dpmodels.authoring.facts import Columns, Tables
from dpmodels.authoring.headings import HEADINGS, LANGUAGES
from dpmodels.authoring.sample import read_sample, sheet_as_csv
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import ArtifactError, NacreError, Unsuitable
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import read_yaml
from dpmodels.reading.addresses import address_of
from dpmodels.reading.workbook import Damaged
from dpmodels.similar import close_match

Known = tuple[str, Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Tables]]
MOST_NAMES = 5
"""Names of a document that an error lists."""
DICTIONARY, MARKDOWN = "a data dictionary", (".md", ".markdown")
STRUCTURED: tuple[Known, ...] = (
    ("a data contract", is_data_contract, read_data_contract),
    ("a dbt schema", is_dbt, read_dbt),
    ("a Great Expectations suite", is_suite, read_suite),
    ("a pandera schema", is_pandera, read_pandera),
    ("a JSON Schema", is_json_schema, read_json_schema),
)
KINDS = (
    "a data dictionary (.csv, .xlsx, or a table or lines `- name: what it is` in .md and .txt), SQL that creates "
    "tables (.sql), or, as YAML or JSON, a data contract (ODCS), a dbt schema, a JSON Schema, a pandera schema or a "
    "Great Expectations suite"
)
UNREADABLE = (
    f"{{}} cannot be read as text in UTF-8 of at most {LARGEST_YAML // 2**20} MiB: save it as UTF-8 (in Excel as CSV "
    "UTF-8), and so the table of a document, or the sheet of a workbook other than .xlsx"
)


@dataclass(frozen=True)
class Source:
    """A public document that was read.

    Attributes:
        origin: in words, what it is and which file; it stands in the schema.
        title: the name of its file.
        remarks: in a sentence each, which parts of it were not read.
        rows: how few and how many rows it says that the table has, and its words for that.
        form: how it says that dates and numbers of text are written, as keys of a schema.
    """

    tables: Tables
    origin: str
    title: str = ""
    remarks: tuple[str, ...] = ()
    rows: tuple[int, int, str] | None = None
    form: Mapping[str, str] = field(default_factory=dict)

    def columns(self, names: Iterable[str], table: str = "") -> Columns:
        """Return the facts about columns of these names, from the named table or the one that has most of them.

        Names are compared as they are written; where none is the same, without regard to case.

        Raises:
            Unsuitable: there is no such table, or two have as many of the names.
        """
        column_names = list(names)
        return matched(column_names, self.tables[self._table_of(column_names, table)])

    def absent(self, names: Iterable[str], table: str = "") -> str:
        """Say which columns it describes that are none of these, and which of these each may be; or nothing.

        Raises:
            Unsuitable: as ``columns``.
        """
        column_names = list(names)
        described = self.tables[self._table_of(column_names, table)]
        pairs = counterparts(column_names, described)
        others = {name.casefold(): name for name in column_names if name not in pairs}
        absent = [name for name in described if name not in pairs.values()]
        words = [f"`{name}`{_meant(name, others)}" for name in absent[:MOST_NAMES]]
        more = f" and {len(absent) - MOST_NAMES} more" if len(absent) > MOST_NAMES else ""
        return f"described in {self.title}, but no column of the data: {', '.join(words)}{more}" * bool(absent)

    def _table_of(self, names: list[str], table: str) -> str:
        """Return the named table, or the one that has most of the columns."""
        if table and table not in self.tables:
            raise Unsuitable(f"the documentation has no table {table}; it has {', '.join(self.tables) or 'none'}")
        matches = {name: matched(names, self.tables[name]) for name in ([table] if table else self.tables)}
        most = max(map(len, matches.values()), default=0)
        best = [name for name, facts in matches.items() if len(facts) == most]
        if not most:
            described = ", ".join(list(dict.fromkeys(chain.from_iterable(self.tables.values())))[:MOST_NAMES])
            raise Unsuitable(f"the documentation describes none of the columns: the names in it are {described}")
        if len(best) > 1:
            raise Unsuitable(f"the documentation has several such tables; choose one by --table: {', '.join(best)}")
        return best[0]


def _meant(name: str, others: Mapping[str, str]) -> str:
    """Ask whether one of the columns that nothing is said of is meant, by their names in small letters."""
    match = close_match(name.casefold(), others)
    return f" (did you mean `{others[match]}`?)" if match else ""


def matched(names: Iterable[str], columns: Columns) -> Columns:
    """Return the facts about columns by the names that they have in the data."""
    return {name: columns[other] for name, other in counterparts(names, columns).items()}


def counterparts(names: Iterable[str], columns: Columns) -> dict[str, str]:
    """Return the names that columns of the data have in a document, by the names that they have in the data."""
    folded: dict[str, list[str]] = {}
    for name in columns:
        folded.setdefault(name.casefold(), []).append(name)
    pairs = {name: name if name in columns else _only(folded.get(name.casefold(), [])) for name in names}
    return {name: other for name, other in pairs.items() if other is not None}


def _only(names: list[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def file_of(path: Path) -> Path:
    """Return the file of a path, behind which the sheet of a workbook may be named."""
    return Path(address_of(str(path)).base)


def read_source(path: Path, sample: bool = False, form: TextForm | None = None, names: Collection[str] = ()) -> Source:
    """Read a public document, or a public sample of the data, whose text is written in a form.

    Of documents a data dictionary alone has numbers and dates in the ways of a country, and rows for several columns,
    which the ``names`` of those of the data tell from other names.

    Raises:
        NacreError: it cannot be read, or is none of the kinds of documents that are known.
    """
    try:
        with file_of(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if sample:
            return Source(
                read_sample(path, form), f"derived from a public sample: {path.name}, sha256 {digest}", path.name
            )
        content = read_at_most(file_of(path), LARGEST_YAML)
        text = (sheet_as_csv(path) if _is_sheet(path) else content).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, ArtifactError, Damaged):
        raise Unsuitable(UNREADABLE.format(path)) from None
    try:
        listed, words = _listed(text, path, names), text
        first = words.partition("\n")[0]
        said = _form_of(words, listed is not None or first.count(";") > first.count(","))
        form = TextForm(date_format=said["date_format"]) if form is None and "date_format" in said else form
        text = listed.table if listed else text
        kind, tables = _read(text, path, form, names)
        tables = _placed(tables, listed.lines, path) if listed else tables
        remarks = _remarks(text, path, names) if kind == DICTIONARY else ()
    except NacreError:
        raise
    except Exception:  # whatever an odd document trips: that it says something unforeseen is all there is to say
        raise Unsuitable(f"{path} is not written as {KINDS} is") from None
    said, rows = (said, rows_in(words) if listed else None) if kind == DICTIONARY else ({}, None)
    return Source(tables, f"documented in {kind}: {path.name}, sha256 {digest}", path.name, remarks, rows, said)


def _form_of(words: str, has_decimals: bool) -> dict[str, str]:
    """Return how a document says that dates, and such with times, are written, and how it writes decimals.

    In prose, and between semicolons, a comma within a number stands before these.
    """
    written = date_format_in(words)
    is_comma = says_comma(words) or (has_decimals and has_comma(words))
    decimal = with_comma(words) if is_comma else money_in(words)
    moments = moment_format_in(words)
    forms = {"date_format": written, "datetime_format": moments}
    return {**decimal, **{key: form for key, form in forms.items() if form}}


def _is_sheet(path: Path) -> bool:
    return file_of(path).suffix.lower() == ".xlsx"


def _listed(text: str, path: Path, names: Collection[str]) -> Listed | None:
    """Return the tables and lists of Markdown as a dictionary, or those of a text file that has no headings.

    Raises:
        Unsuitable: it is Markdown without them.
    """
    if path.suffix.lower() not in (*MARKDOWN, ".txt"):
        return None
    listed = as_csv(text, names)
    if path.suffix.lower() in MARKDOWN and not listed:
        raise Unsuitable(FORM.format(path))
    return listed if path.suffix.lower() in MARKDOWN or not has_headings(text) else None


def _placed(tables: Tables, lines: Mapping[str, int], path: Path) -> Tables:
    """Say of each column in which line of a document it stands."""
    return {
        title: {name: replace(one, place=f"line {lines[name]} of {path.name}") for name, one in columns.items()}
        for title, columns in tables.items()
    }


def _remarks(text: str, path: Path, names: Collection[str]) -> tuple[str, ...]:
    """Say which headings of a data dictionary were not read, and which are, and which columns it describes twice."""
    unread, repeated = (
        ", ".join(f"`{one}`" for one in several)
        for several in (unread_headings(text, names), repeated_names(text, names))
    )
    known = f"headings that are read: {', '.join(HEADINGS)}, and usual words for these in {LANGUAGES}"
    remarks = [f"read as descriptions alone in {path.name}: {unread}; {known}"] if unread else []
    twice = f"described more than once in {path.name}, of which the last row counts: {repeated}"
    return (*remarks, twice) if repeated else tuple(remarks)


def _read(text: str, path: Path, form: TextForm | None, names: Collection[str]) -> tuple[str, Tables]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".txt", *MARKDOWN) or _is_sheet(path):
        return DICTIONARY, read_dictionary(text, form, names)
    if suffix in (".sql", ".ddl"):
        return "SQL", read_ddl(text)
    document = json.loads(text) if suffix == ".json" else read_yaml(text)
    for kind, belongs, read in STRUCTURED:
        if isinstance(document, dict) and belongs(document):
            return kind, read(document)
    raise Unsuitable(f"{path} is none of the documents that are read: {KINDS}")
