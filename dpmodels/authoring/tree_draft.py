"""Draft the schema of several tables, one of each file of a folder; keys are proposed by the names of columns alone."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import yaml

from dpmodels.authoring.asked import check_name, check_unit, form_of, with_target, with_text
from dpmodels.authoring.column import CONFIRM, SUGGESTED, ColumnDraft, drafted
from dpmodels.authoring.documents.offered import in_cents
from dpmodels.authoring.draft import (
    DOCUMENTED,
    INTRODUCTION,
    TYPES,
    UNTYPED,
    PublicFacts,
    are_doubted,
    are_untyped,
    column_lines,
    comment,
    doubted_draft,
    draft,
    made_in,
    name_line,
    named,
    of_file,
    unread_lines,
)
from dpmodels.authoring.facts import TODO, Facts
from dpmodels.authoring.file_types import Types, without_text
from dpmodels.authoring.given.beside import with_beside
from dpmodels.authoring.given.types import UNKNOWN, by_name, read_types, with_types
from dpmodels.authoring.keys import Proposals, proposals
from dpmodels.authoring.source import Source
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.contract.tree import MOST_TABLES, TABLE_NAME
from dpmodels.errors import DataError, InvalidArgument
from dpmodels.reading.addresses import LOG
from dpmodels.reading.data_files import FORMATS, is_uri, title_of
from dpmodels.reading.database import Query
from dpmodels.reading.pictures import is_pictures
from dpmodels.reading.tree_files import place_of

JOINS = """\
# The rows of the one table without a parent are the units: hidden is whether a unit is in the data at all, with all
# rows that belong to it in every table. Any other table's rows belong to one row of its parent. Which columns join them
# is proposed by names alone: confirm it from what is public.
"""
OF_TABLES = """\
# Put a public table, such as one of districts, under public: {district: {key: ..., columns: ...}}, and beside the
# columns of the table that refers to it refers: [{to: district, by: COLUMN}]. Any table may have
# constraints: [start <= end, start >= account.opened]. Beside `most` a table with a parent may have
#   order: COLUMN (by which the rows of one parent are in order; unique: true if no two have the same),
#   follows: [COLUMNS] (that depend on those of the row before) and orphans: drop (leave out rows without a parent).
"""
FIRST_LINES = (
    "the files of {} have different columns: if each is a table, and its first line holds names, say --tables; files "
    "of one table must have the same first line"
)
BAD_NAME = (
    "the files of {} have different columns, so each is a table, which is called as its file is: name every file with "
    "lowercase letters, digits and _, beginning with a letter"
)


@dataclass(frozen=True)
class Drafted:
    """One table of a draft: where it lies, and what is known of its columns."""

    location: str
    types: Types
    least: int
    facts: Mapping[str, Facts]


def draft_all(
    data: str | Path | Query,
    affirmed: bool = False,
    public_facts: PublicFacts | None = None,
    editor: str = "",
    several: bool = False,
) -> str:
    """Draft the schema of a table, or of all tables of a folder that holds several.

    A folder holds several tables if you say so by ``several``; or if its files, which are Parquet or Arrow files and
    called as tables may be, differ in the names of their columns. Otherwise they are parts of one table.

    Privacy: as ``draft``, for each table. Keys are proposed by names alone.

    Raises:
        NacreError: as ``draft``; or the folder holds no tables, or such as cannot be told from parts of one; or no
            schema takes the name, or there is no such target.
    """
    public = public_facts or PublicFacts()
    check_name(public.name)
    form = form_of(public.text)
    text = with_target(_draft_all(data, affirmed, public, editor, several), public.target)
    return with_beside(with_text(text, form), public.beside)


def _draft_all(data: str | Path | Query, affirmed: bool, public: PublicFacts, editor: str, several: bool) -> str:
    places = places_in(data, several)
    if not places:
        return draft(data, affirmed, public, editor)
    check_unit((public := public.of_unit(())).unit, public.max_rows, None)
    sources = public.sources(str(data))
    tables = {name: _read(name, place, sources) for name, place in places.items()}
    doubted, named = False, by_name(public.types)
    for title, table in tables.items():
        typed = {name for name in table.types if f"{title}.{name}" in named}
        unknown = [name for name in table.types if name not in table.facts and name not in typed]
        doubted |= are_doubted(table.location, unknown, 0 if table.facts else table.least - len(typed), affirmed)
    kinds = {f"{name}.{one}": kind for name, table in tables.items() for one, kind in table.types.items()}
    given = read_types(public.types, kinds, form_of(public.text))
    if stray := next((name for name in given if name.partition(".")[0] not in tables), ""):
        raise InvalidArgument("types", stray, UNKNOWN.format(stray))
    tables = {name: _with_types(name, table, given, form_of(public.text)) for name, table in tables.items()}
    text = "\n".join(_lines(public.name or title_of(str(data)), tables, sources, public, editor))
    return doubted_draft(text) if doubted else text


def places_in(data: str | Path | Query, several: bool = False) -> dict[str, str]:
    """Return where each table of a folder lies, by its name; nothing if all of it is one table.

    Raises:
        NacreError: ``several`` tables are asked for where none are, or files are neither several tables nor one.
    """
    is_folder = not isinstance(data, Query) and not is_uri(str(data)) and Path(data).is_dir()
    is_folder &= not Path(str(data), LOG).exists()
    names = _names_in(Path(str(data))) if is_folder and not is_pictures(Path(str(data))) else []
    if several and (not is_folder or len(names) < 2 or not _are_tables(names)):
        rule = "go with a folder of at least two files or folders, each called as its table: letters a to z, digits, _"
        raise InvalidArgument("tables", "(given)", rule)
    if len(names) < 2 or not (several or _differ(Path(str(data)), names)):
        return {}
    return {name: place_of(str(data), name) for name in names}


def _names_in(folder: Path) -> list[str]:
    """Name the files and folders that may be tables; none where a folder's name holds a value of a column."""
    entries = [entry for entry in sorted(folder.iterdir()) if entry.name[0] not in "._"]
    entries = [entry for entry in entries if entry.is_dir() or entry.suffix.lower() in FORMATS]
    if len(entries) > MOST_TABLES or any("=" in entry.name for entry in entries):
        return []
    return list(dict.fromkeys(entry.name if entry.is_dir() else entry.stem for entry in entries))


def _are_tables(names: list[str]) -> bool:
    return all(re.fullmatch(TABLE_NAME, name) for name in names)


def _differ(folder: Path, names: list[str]) -> bool:
    """Tell whether files have different columns, so that they cannot be parts of one table.

    Privacy: the first line of a text file may be a record, so such files are tables only if a person says so.

    Raises:
        DataError: they have, and nobody said that each is a table, or their names cannot be those of tables.
    """
    files = [entry for entry in sorted(folder.iterdir()) if entry.stem in names or entry.name in names]
    if any(file.suffix.lower() in (".json", ".jsonl", ".ndjson") for file in files):
        return False  # lines of one table need not all have the same keys
    if len({frozenset(named(file)[2]) for file in files}) == 1:
        return False
    if not _are_tables(names):
        raise DataError("", BAD_NAME.format(folder))
    if any(file.suffix.lower() in (".csv", ".tsv", ".xlsx") for file in files):
        raise DataError("", FIRST_LINES.format(folder))
    return True


def _read(name: str, place: str, sources: list[Source]) -> Drafted:
    _, location, types, least = named(place)
    facts: dict[str, Facts] = {}
    for source in sources:
        facts = {**_facts(source, name, types), **facts}
    return Drafted(location, types, least, facts)


def _with_types(name: str, table: Drafted, given: Mapping[str, Facts], form: TextForm | None) -> Drafted:
    """Return a table with the types that a person gives for its columns, which are called table.column then."""
    begin = f"{name}."
    own = {one.removeprefix(begin): facts for one, facts in given.items() if one.startswith(begin)}
    return replace(table, facts=with_types(table.facts, own), types=without_text(table.types, form))


def _facts(source: Source, table: str, types: Types) -> Mapping[str, Facts]:
    """Return what a document says of a table of this name; nothing if it has none."""
    called = _called(source, table)
    return source.columns(types, called[0]) if called else {}


def _called(source: Source, table: str) -> list[str]:
    return [one for one in source.tables if one.casefold() == table]


def _unread(tables: Mapping[str, Drafted], sources: list[Source]) -> Iterator[str]:
    """Yield what the tables have nothing of: columns that a document describes in them, or all that it describes."""
    for source in sources:
        yield from source.remarks
        pairs = [(name, called[0]) for name in tables if (called := _called(source, name))]
        absent = ((name, source.absent(tables[name].types, called)) for name, called in pairs)
        yield from (f"table {name}: {remark}" for name, remark in absent if remark)
        if not pairs:
            yield f"nothing is read of {source.title}, which names none of the tables: {', '.join(tables)}"


def _lines(
    title: str, tables: Mapping[str, Drafted], sources: list[Source], public: PublicFacts, editor: str
) -> Iterator[str]:
    if editor:
        yield f"# yaml-language-server: $schema={editor}"
    proposed = proposals({name: list(table.types) for name, table in tables.items()})
    columns = {name: _columns(tables[name], _joins(name, proposed), public) for name in proposed.order}
    untyped = any(are_untyped(columns[name], tables[name].types) for name in columns)
    yield (INTRODUCTION + JOINS + (UNTYPED if untyped else "") + (DOCUMENTED if sources else "")).rstrip()
    yield from unread_lines(_unread(tables, sources), (one for table in columns.values() for one in table.values()))
    yield from (f"# source: {source.origin}" for source in sources)
    yield name_line(title)
    yield "tables:"
    for name in proposed.order:
        yield f"  {name}:"
        lines = chain(_links(name, proposed, public.accept), column_lines(columns[name]))
        yield from (textwrap.indent(line, "    ") for line in lines)
    yield TYPES + OF_TABLES


def _links(name: str, proposed: Proposals, accept: bool) -> Iterator[str]:
    """Yield the lines that join a table with others: what is proposed, and TODO for what a person must write."""
    link, key = proposed.link(name), proposed.key(name)
    is_root = proposed.roots == (name,)
    keys = {} if is_root else {"parent": link.parent if link else TODO}
    keys |= {"parent_key": link.column} if link else {}
    keys |= {"key": key or TODO} if name in proposed.parents else {}
    yield from (f"# {comment(remark)}" for remark in _remarks(name, proposed))
    if known := {one: value for one, value in keys.items() if value != TODO}:
        words = yaml.safe_dump(known, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
        told = "accepted" if accept else "to confirm it, write it"
        yield f"# {comment(f'proposed by names alone: {words.strip()}; {told}')}"
    if keys:
        yield yaml.safe_dump(
            keys if accept else dict.fromkeys(keys, TODO), sort_keys=False, allow_unicode=True
        ).rstrip()
    yield from () if is_root else (f"most: {TODO}  # rows of one parent that are used at most, from what is public",)


def _remarks(name: str, proposed: Proposals) -> Iterator[str]:
    """Yield what the author should read of a table before its keys."""
    links = proposed.links[name]
    if proposed.roots == (name,):
        yield "no name of a column proposes a parent, so that its rows are the units, whose presence is hidden"
        below = [table for table, links in proposed.links.items() if name in {link.parent for link in links}]
        if below:
            yield (
                f"but if anybody may know table {name}, as a list of districts or of products, put it under public, "
                f"with refers in {', '.join(below)}: then the units are the rows of another table"
            )
    elif not links:
        yield "no name of a column proposes a parent: write one, or delete it and `most` if these rows are the units"
    elif proposed.link(name) is None:
        parents = "; or ".join(f"{link.parent}, by {link.column}" for link in links)
        yield f"proposed by names alone: its rows belong to {parents}; a row has one parent, so choose, and write both"


def _columns(table: Drafted, joins: Mapping[str, ColumnDraft], public: PublicFacts) -> Mapping[str, ColumnDraft]:
    """Draft the columns; those that join tables are identifiers, if what is proposed is accepted."""
    columns: dict[str, ColumnDraft] = {}
    for name, kind in {**table.types, **dict.fromkeys(made_in(table.facts, table.types))}.items():
        facts = of_file(table.facts.get(name, Facts()), table.types)
        facts, join = replace(facts, unique=False), joins.get(name)  # `key` says so in a tree
        if join is None:
            columns[name] = drafted(name, kind, facts, public.accept, public.discover)
        elif public.accept:
            columns[name] = join
        else:
            remarks = [one for one in drafted(name, kind, facts).remarks if not one.startswith(SUGGESTED)]
            proposal = f"proposed, as {join.remarks[0]}; to take it, delete `, confirm: TODO`"
            columns[name] = ColumnDraft({**join.keys, **CONFIRM}, (*remarks, proposal))
    return in_cents(columns)


def _joins(name: str, proposed: Proposals) -> dict[str, ColumnDraft]:
    """Draft the columns that are proposed to join a table with others, with the reason of each."""
    joins = {
        link.column: ColumnDraft({"type": "identifier"}, (f"it may name a row of table {link.parent}",))
        for link in proposed.links[name]
    }
    if name in proposed.parents and (key := proposed.key(name)):
        joins[key] = ColumnDraft({"type": "identifier", "keep": "regenerate"}, ("it may name a row of this table",))
    return joins
