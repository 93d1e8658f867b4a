"""THE reader of text: a CSV file or JSON lines as a stream of batches, each record read by itself alone.

Tables, documents and the records of clients are all read here. Text is held to its rule (records_of_text.py) before
Arrow parses it, and every record fits into what Arrow takes at once, so the size of that decides nothing.
"""

import codecs
import csv
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from dpmodels.codec.text_values import cast_columns, which_lines
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import DataError
from dpmodels.limits import LONGEST_DOCUMENT, LONGEST_LINE
from dpmodels.reading.data_files import FAILURES, PACKED, DataFile, is_uri
from dpmodels.reading.text_records import JsonLines, Malformed, Plain, Quoted, RuledText, TextRule

Stream = Iterator[pa.RecordBatch]
DELIMITERS = ",;\t|"
WITHOUT_QUOTES = ".tsv"
DAMAGED = "the file is damaged or not what its name says"
ALSO = {
    "csv": ", or a row has more or fewer fields than there are names, as where a decimal comma parts a number in two",
    "json": ", or a line has another kind of value than the first line (give a frame that pandas.to_numeric mends), "
    "where a column that is to be discovered must have a value",
}
"""What else may be wrong with a file of text."""
NO_TEXT = "{} is no CSV file or JSON lines: its first line is no UTF-8 text, or is longer than {} MiB"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
NOT_UTF8 = "its text is not in UTF-8: save it as UTF-8 (in Excel as CSV UTF-8)"
ENDS = re.compile(rb"[\r\n]")


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is written, which its name and its first line say.

    Attributes:
        names: of the columns, in the order of the file.
        quoted: whether a quotation mark is one. In a file named ``.tsv`` it is a letter, unless names stand in some.
    """

    names: tuple[str, ...]
    delimiter: str
    quoted: bool

    def rule(self, longest: int) -> TextRule:
        """Return what the file is held to."""
        return Quoted(longest, self.delimiter) if self.quoted else Plain(longest)


def csv_form(file: DataFile, columns: Collection[str] = ()) -> CsvForm:
    """Read the first line; the delimiter is the one at which it holds most of the wanted names, which are public.

    Raises:
        DataError: the first line is too long or is Excel's, or the file is in UTF-16.
    """
    header = first_line(file).decode("utf-8-sig", "replace")
    if re.fullmatch(r'"?sep=.?"?', header, re.IGNORECASE):
        raise DataError("", f"{file.uri} begins with a line for Excel, sep=, which holds no names: delete that line")
    quoted = kind_of_text(file) != WITHOUT_QUOTES or '"' in header
    others = dict.fromkeys(char for char in header if char.isascii() and not char.isalnum() and char not in '"\r\n')
    delimiters = {char: split(header, char, quoted) for char in dict.fromkeys([*DELIMITERS, *others])}
    delimiter = max(delimiters, key=lambda char: len(set(columns) & set(delimiters[char])))
    if not set(columns) & set(delimiters[delimiter]):
        delimiter = max(DELIMITERS, key=header.count)
    return CsvForm(tuple(delimiters[delimiter]), delimiter, quoted)


def csv_names(file: DataFile, columns: Collection[str]) -> list[str]:
    """Return the names of a file's columns; those of a file that cannot be opened are refused as damaged.

    Raises:
        DataError: see above, or as for ``csv_form``.
    """
    with suppress(*FAILURES):  # whose messages may quote the file
        names = csv_form(file, columns).names
        if not any("\ufffd" in name for name in names):
            return list(names)
    raise DataError("", f"{file.uri} cannot be read: {fault_of(file)}")


def kind_of_text(file: DataFile) -> str:
    """Return the suffix that says what text a file holds, packed or not."""
    name = PurePosixPath(file.path.lower())
    return PurePosixPath(name.stem).suffix if name.suffix in PACKED else name.suffix


def read_csv(file: DataFile, form: CsvForm, columns: Sequence[str], longest: int, null: bool = True) -> Stream:
    """Read some columns of a CSV file as text; no other column is parsed further than to its end.

    A record has at most ``longest`` bytes. An empty field is null, or else an empty text.

    Raises:
        DataError: while reading: the file breaks its rule, is damaged, or a row has another number of fields.
    """
    text = pacsv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=list(columns),
        null_values=[""],
        strings_can_be_null=null,
    )
    marks: Any = '"' if form.quoted else False
    parse = pacsv.ParseOptions(delimiter=form.delimiter, quote_char=marks, newlines_in_values=form.quoted)
    with file.stream() as source:
        ruled: Any = RuledText(source, form.rule(longest))
        yield from pacsv.open_csv(ruled, pacsv.ReadOptions(block_size=longest), parse, text)


def read_json(file: DataFile, explicit: pa.Schema, longest: int) -> Stream:
    """Read some keys of JSON lines, each as one type; whatever else a line says is left out.

    Privacy: Arrow reads a key that it is told nothing of by all values of a block: as moments, if all of its text is
        moments. Then one record would decide what all others are.

    Raises:
        Malformed: while reading: a line is no object, or there are two in one.
    """
    form = pajson.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore")
    rows = 0
    with file.stream() as source:
        ruled: Any = RuledText(source, JsonLines(longest))
        for batch in pajson.open_json(ruled, pajson.ReadOptions(block_size=longest), form):
            rows += batch.num_rows
            yield batch
    if rows != ruled.rule.records:
        raise Malformed(JsonLines.FAULT)


def first_object(file: DataFile) -> dict[str, Any]:
    """Read the first line of JSON lines.

    Raises:
        DataError: it holds no object.
    """
    row = json.loads(first_line(file, LONGEST_DOCUMENT))
    if not isinstance(row, dict):
        raise DataError("", f"{file.uri} {JsonLines.FAULT}, whose keys are the columns")
    return row


def first_line(file: DataFile, longest: int = LONGEST_LINE) -> bytes:
    """Read the first line of a text file, of at most ``longest`` bytes; nothing below it is looked at.

    Raises:
        DataError: it has no end, or the file is in UTF-16, or is a JSON array.
    """
    with file.stream() as source:
        line: bytes = source.read(LONGEST_LINE)
        while len(line) < longest and not ENDS.search(line) and (piece := source.read(LONGEST_LINE)):
            line += piece
    if line.startswith(UTF16) or (b"\0" in line[:2]):
        raise DataError("", f"{file.uri} is in UTF-16; save it as UTF-8")
    if file.format == "json" and line.lstrip().startswith(b"["):
        raise DataError("", f"{file.uri} is a JSON array, which is not read: write JSON lines, one object in each line")
    line = line.replace(b"\r", b"\n").partition(b"\n")[0]
    if len(line) >= longest:
        raise DataError("", NO_TEXT.format(file.uri, longest // 2**20))
    return line


def split(header: str, delimiter: str, quoted: bool = True) -> list[str]:
    """Cut the header of a CSV file into names; a header that is none has none."""
    if not quoted:
        return header.split(delimiter) if header else []
    try:
        return next(csv.reader([header], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def guarded(batches: Stream, file: DataFile) -> Stream:
    """Yield the batches that have rows, and say nothing of what a damaged file holds.

    Raises:
        DataError: the file cannot be read to its end, or breaks the rule of its kind.
    """
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except Malformed as broken:
            fault = f"{file.uri} {broken}"
            break
        except FAILURES:
            fault = f"{file.uri} cannot be read to its end: {fault_of(file)}"
            break
        if batch.num_rows:
            yield batch
    raise DataError("", fault)


def fault_of(file: DataFile) -> str:
    """Say what may be wrong with a file that cannot be read; one of this machine is read again to its end for that."""
    if file.format in ALSO and not is_uri(file.uri) and not _is_utf8(file):
        return NOT_UTF8
    elsewhere = "the connection broke, its text is not in UTF-8, or " if is_uri(file.uri) else ""
    return elsewhere + DAMAGED + ALSO.get(file.format, "") + _which_lines(file)


def _which_lines(file: DataFile) -> str:
    """Say what prints the lines of another number of fields, of a plain file on this machine."""
    is_plain = file.format == "csv" and not is_uri(file.uri) and kind_of_text(file) == PurePosixPath(file.path).suffix
    with suppress(DataError, *FAILURES):
        return which_lines(file.uri, (form := csv_form(file)).delimiter, form.quoted) if is_plain else ""
    return ""


def _is_utf8(file: DataFile) -> bool:
    """Tell whether all text is in UTF-8; what cannot be opened or unpacked is taken for that."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with file.stream() as source:
            while block := source.read(LONGEST_LINE):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except FAILURES:
        pass
    return True


def parsed(
    batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType], delimiter: str = "", form: TextForm | None = None
) -> pa.RecordBatch:
    """Turn the columns of text of a batch into the types that the schema declares, of values written in a form."""
    texts = (field.name for field in batch.schema if pa.types.is_string(field.type) and field.name in kinds)
    return cast_columns(batch, {name: kinds[name] for name in texts}, delimiter, form)
