"""Draft a schema from column names and types, and from public documentation, with a TODO for whatever is still open."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpmodels.authoring.asked import check_unit, form_of, unit_line
from dpmodels.authoring.column import ColumnDraft, drafted
from dpmodels.authoring.documents.bounds_left_out import REVERSED
from dpmodels.authoring.documents.offered import in_cents, table_lines, with_said
from dpmodels.authoring.documents.spans import nights_in
from dpmodels.authoring.facts import TODO, Facts
from dpmodels.authoring.file_types import dates_opened, opened
from dpmodels.authoring.given.types import Given, by_name, read_types, with_types
from dpmodels.authoring.header import DoubtfulNames, check_names, names_in
from dpmodels.authoring.source import Source, file_of, read_source
from dpmodels.authoring.suggest import names_a_person
from dpmodels.contract.formula import names_in as operands
from dpmodels.errors import DataError, Unsuitable
from dpmodels.reading.data_files import FAILURES, DataFile, find_files, is_uri, root_of, title_of
from dpmodels.reading.database import Query, check_database, names_of_query
from dpmodels.reading.open_tables import LIBRARIES, types_of
from dpmodels.reading.pictures import is_pictures, npz_arrays
from dpmodels.reading.text_files import csv_form

INTRODUCTION = """\
# A draft from names and types alone; of a CSV file from its first line, which is taken as names: if it holds values,
# throw this draft away. Replace every TODO from what is public (a codebook, a form, a law): what is taken from the data
# is a leak. A line with `confirm: TODO` is suggested by its name: delete that mark to take it, or write what is right.
# If nothing public tells values, min or max, write discover: schema discover releases them for a charge.
# The types and their keys stand below the columns. Then check it: nacre schema lint THIS_FILE
"""
UNTYPED = """\
# Types are open or suggested: such a source says none for every row. Write them; or --types, --from, --from-sample.
"""
TYPES = """
# The types and their keys, of which docs/schema.md has all:
#   categorical  values: [a, b]                boolean     no further key
#   integer      min, max; scale: log          number      min, max; round: DECIMALS; zero_inflated: true
#   datetime     min, max; resolution: day     image       height, width; channels: 3 in color
#   identifier   left out, or keep: regenerate, "pattern:[A-Z]{2}[0-9]{6}" or "text:left out"; unique: true
# A column between min and max may come back as any number there: where it has few, list them: values: [0, 150, 300].
# All but identifier: nullable: true; outside: refuse, clip (a number) or other (a category).
"""
OF_ROWS = """\
# Beside columns: constraints: [start <= end, when sick then fee > 0]; partition: COLUMN; and, if the number of rows is
# public, rows: {min: 100, max: 1000}, by which `nacre plan` says whether delta is too large.
"""
OF_DATES = """\
# A rule start <= end keeps the order of two dates, not a time that is short beside their range, such as a stay of days.
# In place of the rule and of start, write, with the min that start had for FIRST
#   days: {type: integer, min: 0, max: 365, computed: "days_between(start, end)"}
#   start: {type: derived, formula: "add_days(end, -days)", min: FIRST}
"""
OF_AMOUNTS = """\
# A rule refunded <= amount keeps the order of two amounts, not which share one is of the other, such as a full refund.
# In place of the rule and of refunded write (0.01: the least amount above 0; without it the share of 0 would be null)
#   share: {type: number, min: 0, max: 1, round: 4, zero_inflated: true, keep: drop,
#           computed: "refunded / max(amount, 0.01)"}
#   refunded: {type: derived, formula: "share * amount", round: 2}
"""
UNREAD = "# WARNING: "
"""Begins what a draft says of a document that was not read whole."""
LONGEST_WARNING = 600
AFFIRMED = """\
# The names below are the first line of the file (of other sources: what these say of themselves). They do not look like
# names, and were taken for names because of --header. If they are values of a person, delete this draft, add a line of
# names at the top of the file, and draft again.
"""
DOCUMENTED = """\
# What is filled in below stands in the document that `sources` names. That document must be public itself: one that a
# tool made by profiling this data, or a sample of this data that nobody published, is a leak.
"""


OF_NAME = "  # of the data set, and of the account that pays for all releases of it: lowercase letters, digits and _"


@dataclass(frozen=True)
class PublicFacts:
    """What is public of the columns beside their names and types.

    Attributes:
        document: a file of public documentation; sample: a file of rows that are public.
        table: the table that the draft is about, where the document describes several.
        accept: whether suggestions by name and type are taken without another word.
        types: types of columns that a person gives, as ``age=integer:0:120? ward=categorical:north|south`` or by name,
            in words or as keys of a schema.
        discover: whether what a discovery can fill in is marked for it.
        name: of the data set, or TODO; by default what its place is called.
        target: the column that rows should teach to predict, if one is named; of several tables behind its table.
        unit: the column that tells apart those whose presence is hidden; max_rows: rows of one that are used.
        text: how numbers and dates are written where data, and rows that are public, are text, as a schema says it.
        beside: what a schema of one table has beside its columns: rows, constraints and workload.
    """

    document: Path | None = None
    sample: Path | None = None
    table: str = ""
    accept: bool = False
    types: str | Mapping[str, Given] = ""
    discover: bool = False
    name: str = ""
    target: str = ""
    unit: str = ""
    max_rows: int | None = None
    text: str | Mapping[str, Any] = ""
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> Mapping[str, Given]:
        """The types that a person gives, by column; that of the unit is an identifier."""
        return {**({self.unit: "identifier"} if self.unit else {}), **by_name(self.types)}

    def of_unit(self, columns: Collection[str]) -> "PublicFacts":
        """Return the same without the unit ``record``, which a schema has anyway, unless a column is called so."""
        return replace(self, unit="") if self.unit == "record" and "record" not in columns else self

    def sources(self, data: str | None, names: Collection[str] = ()) -> list[Source]:
        """Read the files, none of which may be the data, or lie in its folder; ``names`` are those of its columns.

        Raises:
            NacreError: one cannot be read, or is the data itself.
        """
        paths = [(path, path == self.sample) for path in (self.document, self.sample) if path is not None]
        for path, _ in paths:
            if not (path := file_of(path)).is_file():
                raise Unsuitable(f"{path} does not exist, or is no file")
            data_root = Path(root_of(data)) if data is not None and not is_uri(data) else None
            if (
                data_root
                and data_root.exists()
                and any(data_root.samefile(one) for one in (path, *path.resolve().parents))
            ):
                raise Unsuitable(f"{path} is the data itself, or lies in its folder; it is not public documentation")
        return [read_source(path, sample, form_of(self.text), names) for path, sample in paths]


def draft(
    data: str | Path | Query, affirmed: bool = False, public_facts: PublicFacts | None = None, editor: str = ""
) -> str:
    """Write the YAML of a schema that ``lint`` refuses until a person has filled in every TODO.

    ``affirmed`` says that a person has seen that the names are names; a name that is documented is one. ``editor`` is
    where an editor finds the JSON Schema of a schema.

    Privacy: reads names and types of a Parquet or Arrow file, of a query, or the first line of a CSV file or of JSON
        lines, and writes the names. Of a CSV file without a header these are values; where they may be, nothing is
        written before it is affirmed. Everything else is read from files that whoever names them declares to be public.

    Raises:
        DataError: there is no such file, it is damaged, or of no kind that is read.
        DoubtfulNames: the names may be values.
        NacreError: the documentation cannot be read, or is about another table.
    """
    public_facts = public_facts or PublicFacts()
    if not isinstance(data, Query) and not is_uri(str(data)) and is_pictures(Path(data)):
        columns = pictures_drafted(Path(data))
        check_unit(public_facts.of_unit(()).unit, public_facts.max_rows, ())
        if not affirmed:
            check_names(str(data), list(columns))
        return "\n".join(_lines(title_of(str(data).removesuffix(".npz")), columns, [], editor))
    title, location, types, least = named(data)
    public_facts = public_facts.of_unit(types)
    sources = public_facts.sources(None if isinstance(data, Query) else str(data), types)
    facts: dict[str, Facts] = {}
    for source in sources:
        facts = {**source.columns(types, public_facts.table), **facts}
    typed = public_facts.given.keys() & types.keys()
    unknown = [name for name in types if name not in facts and name not in typed]
    doubted = are_doubted(location, unknown, 0 if facts else least - len(typed), affirmed)
    check_unit(public_facts.unit, public_facts.max_rows, types)
    given = with_types(facts, read_types(public_facts.given, types, form := form_of(public_facts.text)))
    types, remarks = opened(types, form, given)
    names = {*types, nights_in(given)}
    columns, rules = _columns({name: of_file(one, names) for name, one in given.items()}, types, public_facts)
    remarks += [one for source in sources for one in (*source.remarks, source.absent(types, public_facts.table)) if one]
    unit = unit_line(public_facts.unit, public_facts.max_rows, _unit(columns))
    written = dates_opened(types, {name for name, one in columns.items() if one.keys.get("type") == "datetime"})
    beside = [*table_lines(sources, written, form, partial(_has_commas, data), public_facts.accept), *rules]
    is_open = are_untyped(columns, types)
    lines = _lines(public_facts.name or title, columns, sources, editor, is_open, remarks, unit, beside)
    return doubted_draft("\n".join(lines)) if doubted else "\n".join(lines)


def _columns(
    facts: Mapping[str, Facts], types: Mapping[str, pa.DataType | None], public_facts: PublicFacts
) -> tuple[dict[str, ColumnDraft], list[str]]:
    """Draft the columns, those that a person makes of others too, and the lines of the rules that descriptions say."""
    accept, discover = public_facts.accept, public_facts.discover
    names = [*types, *made_in(facts, types)]
    columns = {name: drafted(name, types.get(name), facts.get(name, Facts()), accept, discover) for name in names}
    columns = in_cents(columns)
    return (columns, []) if discover else with_said(columns, facts, types, accept)


def made_in(facts: Mapping[str, Facts], names: Collection[str]) -> list[str]:
    """Name the columns that a person makes of others, and that the data has not."""
    return [name for name, one in facts.items() if one.keys is not None and name not in names]


def of_file(facts: Facts, names: Collection[str]) -> Facts:
    """Return what is documented of a column, but for a formula of columns that the file has not."""
    if facts.offered and not {*operands(facts.offered.get("formula", "0"))} <= {*names}:
        facts = replace(facts, offered=None)
    formula = (facts.derived or {}).get("formula")
    if formula is None or {*operands(formula)} <= {*names}:
        return facts
    return replace(facts, derived=None, unread=(*facts.unread, f"{formula}, of columns that the data has not"))


def are_untyped(columns: Mapping[str, ColumnDraft], types: Mapping[str, pa.DataType | None]) -> bool:
    """Tell whether the type of a column is left open, or to its name, because its source says none."""
    return any(column.is_unsure and types.get(name, TODO) is None for name, column in columns.items())


def doubted_draft(text: str) -> str:
    """Say at the top of a draft, below the line for editors, that its names may be values."""
    first = text.partition("\n")[0] + "\n" if text.startswith("# yaml-language-server") else ""
    return first + AFFIRMED + text.removeprefix(first)


def are_doubted(location: str, names: Sequence[str], least: int, affirmed: bool) -> bool:
    """Tell whether names may be values that a person has seen to be names.

    Raises:
        DoubtfulNames: they may be values, and nobody has.
    """
    try:
        check_names(location, names, least)
    except DoubtfulNames:
        if not affirmed:
            raise
        return True
    return False


def pictures_drafted(path: Path) -> dict[str, ColumnDraft]:
    """Draft the columns of images: of arrays by their headers, of a folder of PNG files without opening one.

    Privacy: how many there are stays unsaid, and so do the names of folders, which are values of the label.

    Raises:
        DataError: the file is no ``.npz`` file, or damaged.
    """
    label = ColumnDraft({"type": "categorical", "values": TODO}, ("which the images are labeled with: the target",))
    if path.is_dir():
        size: dict[str, Any] = {"type": "image", "height": TODO, "width": TODO}
        remark = "pixels of every PNG file; channels: 3 in color"
        return {"picture": ColumnDraft(size, (remark,)), "label": label}
    return {name: _array(shape[1:], dtype) or label for name, (shape, dtype) in npz_arrays(path).items()}


def _array(shape: tuple[int, ...], dtype: Any) -> ColumnDraft | None:
    """Draft the column of an array, if it holds images."""
    if len(shape) not in (2, 3) or dtype != "uint8":
        return None
    channels = {"channels": 3} if shape[2:] == (3,) else {}
    return ColumnDraft({"type": "image", "height": shape[0], "width": shape[1], **channels})


def _lines(
    title: str,
    columns: Mapping[str, ColumnDraft],
    sources: list[Source],
    editor: str,
    untyped: bool = False,
    unread: Sequence[str] = (),
    unit: str = "",
    beside: Sequence[str] = (),
) -> Iterator[str]:
    if editor:
        yield f"# yaml-language-server: $schema={editor}"
    yield (INTRODUCTION + (UNTYPED if untyped else "") + (DOCUMENTED if sources else "")).rstrip()
    yield from unread_lines(unread, columns.values())
    yield name_line(title)
    yield unit or unit_line("", None, _unit(columns))
    yield "# target: COLUMN  # what the rows should teach to predict from the others, if anything"
    if sources:
        yield yaml_text({"sources": [source.origin for source in sources]}).rstrip()
    yield from beside
    yield from (lines := [*column_lines(columns)])
    text = "\n".join(lines)
    footers = {"type: datetime": OF_DATES, "type: number": OF_AMOUNTS}
    yield TYPES + OF_ROWS + "".join(footer for kind, footer in footers.items() if text.count(kind) > 1)


def name_line(title: str) -> str:
    """Return the line that names the data set; frames have no name, and those of one name share an account."""
    return yaml.safe_dump({"name": title}, default_flow_style=False).rstrip() + (OF_NAME if title == TODO else "")


def unread_lines(unread: Iterable[str], columns: Iterable[ColumnDraft]) -> Iterator[str]:
    """Yield what was not read of documents, and what contradicts itself there, as lines of comments."""
    yield from (f"{UNREAD}{comment(remark, LONGEST_WARNING)}" for remark in unread)
    remarks = (remark for column in columns for remark in column.remarks)
    yield from (f"{UNREAD}{comment(remark)}" for remark in remarks if REVERSED in remark)


def _unit(columns: Mapping[str, ColumnDraft]) -> str:
    """Say how a person with several rows is hidden, by the first column that is called as what tells persons apart."""
    kinds = (TODO, "identifier", "categorical", "integer")
    listed = {name for name, one in columns.items() if isinstance(one.keys.get("values"), list | tuple)}
    several = {
        name: one.keys["type"] for name, one in columns.items() if not one.keys.get("unique") and name not in listed
    }
    persons = (name for name, kind in several.items() if names_a_person(name) and kind in kinds)
    person = next(persons, "")
    if not person:
        return "or {user: ID_COLUMN, max_rows: N} when one person may have several rows"
    words = yaml.safe_dump({"user": person}, default_flow_style=True, width=10_000, allow_unicode=True).strip()
    return f"or {comment(words)}, as its name suggests: all rows of one are hidden then, and max_rows: 1 of them used"


def column_lines(columns: Mapping[str, ColumnDraft]) -> Iterator[str]:
    """Yield the lines of columns, each after what its author should read."""
    yield "columns:"
    for name, column in columns.items():
        yield from (f"  # {comment(remark)}" for remark in column.remarks)
        yield textwrap.indent(yaml_text({name: dict(column.keys)}).rstrip(), "  ")


def yaml_text(content: object) -> str:
    """Write what is easy to read and to change."""
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)


def comment(words: str, longest: int = 300) -> str:
    """Write words as one line of a comment."""
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    return textwrap.shorten(printable, longest, placeholder=" ...")


def _has_commas(data: str | Path | Query) -> bool:
    """Tell whether data are a CSV file whose fields commas part, by its first line."""
    file = None if isinstance(data, Query) else find_files(str(data))[0]
    return file is not None and file.format == "csv" and csv_form(file).delimiter == ","


def named(data: str | Path | Query) -> tuple[str, str, dict[str, pa.DataType | None], int]:
    """Return the title of a table, its place, its columns with what is known of their types, and how few may be names.

    A single column of a CSV file may be anything, so names are two at least.
    """
    if isinstance(data, Query):
        title = title_of(check_database(data.database).database or "")
        return title, "the query", dict.fromkeys(names_of_query(data)), 1
    file = find_files(str(data))[0]
    typed = file.format in ("parquet", "arrow", *LIBRARIES)
    types = _typed(file) if typed else names_in(file)
    keys = dict.fromkeys(key for key, _ in file.keys)
    return title_of(str(data)), file.uri, {**dict.fromkeys(file.columns), **types, **keys}, 1 if typed else 2


def _typed(file: DataFile) -> dict[str, pa.DataType | None]:
    if file.format in LIBRARIES:
        return {field.name: field.type for field in types_of(file)}
    try:
        with file.open() as source:
            schema = pq.read_schema(source) if file.format == "parquet" else pa.ipc.open_file(source).schema
            return {field.name: field.type for field in schema}
    except FAILURES:
        pass  # its message may quote the file
    raise DataError("", f"{file.uri} is no {file.format.title()} file, or is cut short")
