"""Export: copy the synthetic table of a hand-off to a file, a folder, an object store or an open table, all at once.

Privacy: post-processing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dpmodels.artifact import aside, left_by, settle, sha256_of, sweep, write_whole
from dpmodels.authoring.lint import load_schema, read
from dpmodels.contract.columns import Discrete
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import ArtifactError, DataError, InvalidArgument, Unsuitable
from dpmodels.gate.made_files import parquet_files, read_batches
from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from dpmodels.hand_off.odcs import price_of
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.plural import counted
from dpmodels.reading.addresses import Address, address_of
from dpmodels.reading.data_files import FAILURES, SCHEMES, is_uri, open_system, settled
from dpmodels.reading.pictures import write_pictures
from tasks.run.bucket import check_there
from tasks.run.database_file import ENDING, write_database, write_single
from tasks.run.ready import check_free, check_new_file
from tasks.run.snapshots import EXPORT, write_delta, write_iceberg
from tasks.run.store import MADE
from tasks.run.table_file import ENDINGS, write_table
from tasks.run.workbook_file import check_size, sheet_title, write_workbook
from tasks.stages.csv_forms import form_to_write, in_days, write_form

STORES = [scheme for scheme in SCHEMES if scheme not in ("https", "file")]
TARGETS = (
    f"end in {', '.join(ENDINGS)}, .xlsx or {ENDING}, or be delta:FOLDER, iceberg:CATALOG.db#NAMESPACE.TABLE, "
    f"a folder, whose name has no ending or a / after it, or a URI of {', '.join(STORES)} that can be written"
)
"""What a table is exported to."""
PICTURES, BATCH_ROWS = 1024, 65_536
CSV = ".csv"
DONE = "_SUCCESS"
"""The file that an object store gets last: without it, the rest is not whole."""


def export(
    hand_off: Path,
    to: str,
    by: Sequence[str] = (),
    png: bool = False,
    replace: bool = False,
    text: str | Mapping[str, Any] = "",
) -> str:
    """Write the synthetic table of a hand-off to one file, in the format of its ending, or as Parquet to a folder.

    A place ``delta:…`` or ``iceberg:…`` is a table in that format, of which the rows become one snapshot; with
    ``replace`` the next one of a table that an export made before. Return where the rows are read.

    With columns ``by``, the folder has one for each of their values. With ``png``, write images as PNG files on this
    machine, in a folder for each label. ``text`` says how a CSV file writes numbers and dates, as a schema's key does.

    A file or a folder on this machine appears at once. In an object store, ``_SUCCESS`` is written last, and what was
    written before a failure is removed.

    Raises:
        NacreError: the hand-off has faults or no table, a column has no listed values, or the place cannot be written,
            or holds something.
    """
    table = hand_off / MADE["sample"]
    check_there(hand_off)
    if faults := verify_hand_off(hand_off).faults:
        raise ArtifactError(
            f"the hand-off {hand_off} has {counted(len(faults), 'fault')}, and is not exported: {faults[0]}"
        )
    _check_outside(hand_off, to)
    form = form_to_write(text)
    if form is not None and (Path(to).suffix.lower() != CSV or to.endswith("/")):
        raise InvalidArgument("text", text, f"go with a file that ends in {CSV}")
    contract, _ = read(hand_off / "schema.yaml")
    address = address_of(to)
    is_versioned = address.kind in ("delta", "catalog")
    if replace and not is_versioned:
        raise InvalidArgument("replace", "(given)", "go with delta:… or iceberg:…, whose tables have snapshots")
    if contract is not None and contract.kind == "tree":
        _to_database(contract, table, to, bool(by or png), _about(hand_off))
    elif address.kind:
        return _to_open_table(hand_off, table, address, bool(by or png), replace)
    else:
        _export_table(hand_off, table, to, by, png, form)
    return to


def _check_outside(hand_off: Path, to: str) -> None:
    """Refuse a place within a hand-off, which was signed as it is."""
    if "://" not in to and Path(to.partition(":")[2] or to).resolve().is_relative_to(hand_off.resolve()):
        raise InvalidArgument("to", to, "lie outside of the hand-off, which any file in it would make a faulty one")


def _about(hand_off: Path) -> dict[str, str]:
    """Say what the rows cost, in the words of the manifest, which is named by its digest."""
    manifest = read_manifest(hand_off)
    price = {name: str(value) for name, value in price_of(manifest).items()}
    return {"dataSet": manifest.data_set, **price, "manifestSha256": sha256_of(hand_off / MANIFEST)}


def _schema_of(hand_off: Path, table: Path) -> Schema:
    """Return the schema of a hand-off of one table.

    Raises:
        NacreError: it holds no table, or several.
    """
    schema = load_schema(
        hand_off / "schema.yaml", f"only tables are exported or compared: copy the files of {hand_off} as they are"
    )
    if not table.is_dir():
        raise ArtifactError(f"the hand-off {hand_off} holds no synthetic table")
    if schema.users:
        raise Unsuitable(f"{table} holds a table of users and one of their rows; copy these folders as they are")
    return schema


def _to_open_table(hand_off: Path, table: Path, address: Address, is_apart: bool, replace: bool) -> str:
    """Write one table as a snapshot of a table that other tools open, with what it cost in its properties."""
    schema, about = _schema_of(hand_off, table), _about(hand_off)
    if is_apart or address.snapshot or address.kind == "iceberg":
        rule = "be delta:FOLDER, iceberg:CATALOG.db#NAMESPACE.TABLE, FILE.duckdb or FILE.xlsx, without --by and --png"
        raise InvalidArgument("to", str(address), rule)
    batches, name = _batches(table, schema), re.sub(r"\W+", "_", address.table or schema.name)
    if address.kind == "delta":
        return write_delta(batches, address, about, replace)
    if address.kind == "catalog":
        return write_iceberg(batches, address, about, replace)
    if is_uri(address.base):
        raise InvalidArgument("to", address.base, "be a file on this machine")
    check_new_file(file := Path(settled(address.base)))
    if address.kind == "excel":
        if schema.image:
            raise Unsuitable(f"{table} holds images, which no sheet does; export to .parquet instead")
        name = sheet_title(name)
        footers = [pq.read_metadata(part) for part in parquet_files(table)]
        check_size(sum(footer.num_rows for footer in footers), footers[0].num_columns)
        write_whole(file, lambda part: write_workbook(name, batches, part, about))
    else:
        write_whole(file, lambda part: write_single(name, batches, part, about))
    return f"{address.base}#{name}"


def _export_table(hand_off: Path, table: Path, to: str, by: Sequence[str], png: bool, form: TextForm | None) -> None:
    """Write one table, once its hand-off was verified."""
    schema = _schema_of(hand_off, table)
    if png and not schema.image:
        raise Unsuitable(f"{table} holds no images, so there are none to write as PNG files")
    columns = schema.columns
    if wrong := [name for name in by if not isinstance(columns.get(name), Discrete)]:
        raise InvalidArgument("by", wrong[0], "be a column that lists its values, or is true or false")
    to = to.removeprefix("file://")
    if is_uri(to) and (scheme := to.partition("://")[0]) not in STORES:
        raise InvalidArgument("to", f"{scheme}://…", TARGETS)
    if png and (by or is_uri(to)):
        raise InvalidArgument("png", to, "go to a folder on this machine, and without columns")
    if is_file(to):
        if by or png or is_uri(to):
            raise InvalidArgument("to", to, "be without that ending: it is a folder of several files")
        if form is not None and schema.image:
            raise Unsuitable(f"{table} holds images, which are no text; export to .parquet instead")
        _to_file(_batches(table, schema), Path(settled(to)), schema, form)
        return
    if is_uri(to):
        written = _to_store(_batches(table, schema), to, by)
    else:
        written = _to_folder(_batches(table, schema), Path(settled(to)), by, schema if png else None)
    if not written:
        raise DataError("", f"{to} cannot be written: check that it may be, and the credentials in the environment")


def _to_database(tree: Any, folder: Path, to: str, is_apart: bool, about: Mapping[str, str]) -> None:
    """Write the tables of a tree to a database, the one file that can hold several."""
    place = Path(settled(to.removeprefix("file://")))
    if is_uri(to.removeprefix("file://")) or place.suffix.lower() != ENDING or is_apart:
        rule = (
            f"end in {ENDING}, without --by and --png: these are several tables, whose folders you may copy as they are"
        )
        raise InvalidArgument("to", to, rule)
    check_new_file(place)

    def batches(name: str) -> Iterator[pa.RecordBatch]:
        for file in parquet_files(folder / name):
            yield from read_batches(file, BATCH_ROWS, tree.handed_over(name))

    write_whole(place, lambda part: write_database(tree, batches, part, about))


def is_file(to: str) -> bool:
    """Tell whether a place is one file, by its ending.

    Raises:
        InvalidArgument: it has an ending that says no format, and is no folder.
    """
    path = Path(to)
    if not path.suffix or to.endswith("/") or path.is_dir():
        return False
    if path.suffix.lower() not in ENDINGS:
        raise InvalidArgument("to", to, TARGETS)
    return True


def _batches(table: Path, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Read a table that somebody else may have made."""
    for file in parquet_files(table):
        yield from read_batches(file, PICTURES, schema)


def _to_file(batches: Iterator[pa.RecordBatch], to: Path, schema: Schema, form: TextForm | None) -> None:
    check_new_file(to)
    if form is not None:
        write_whole(to, lambda path: write_form(batches, schema.columns, form, path))
        return
    ending = to.suffix.lower()
    tables = in_days((pa.Table.from_batches([each]) for each in batches), schema, ending)
    write_whole(to, lambda path: write_table(tables, path, ending))


def _to_folder(batches: Iterator[pa.RecordBatch], to: Path, by: Sequence[str], pictures: Schema | None) -> bool:
    check_free(to)
    sweep(to.parent, ".", left_by(EXPORT), deep=False)
    try:
        with aside(to, EXPORT) as part:
            if pictures:
                write_pictures(batches, pictures, part)
            else:
                _write(batches, pafs.LocalFileSystem(), str(part), by)
            settle(part, to)
    except FAILURES:
        return False
    return True


def _to_store(batches: Iterator[pa.RecordBatch], to: str, by: Sequence[str]) -> bool:
    system, path = open_system(to)
    there = None
    with suppress(*FAILURES):
        there = system.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    if there:
        raise InvalidArgument("to", to, "be empty")
    if there is None:
        return False
    try:
        _write(batches, system, path, by)
        with system.open_output_stream(f"{path.rstrip('/')}/{DONE}"):
            pass
    except BaseException as error:
        with suppress(*FAILURES):
            system.delete_dir_contents(path, missing_dir_ok=True)
        if not isinstance(error, FAILURES):
            raise
        return False
    return True


def _write(batches: Iterator[pa.RecordBatch], system: pafs.FileSystem, path: str, by: Sequence[str]) -> None:
    first = next(batches)
    plain = [field.with_type(_plain(field.type)) if field.name in by else field for field in first.schema]
    ds.write_dataset(
        (batch.cast(pa.schema(plain)) for batch in chain([first], batches)),
        path,
        schema=pa.schema(plain),
        filesystem=system,
        format="parquet",
        basename_template="part-{i}.parquet",
        partitioning=list(by) or None,
        partitioning_flavor="hive" if by else None,
        max_partitions=2**15,
        max_rows_per_file=2**22,
        max_rows_per_group=2**17,
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
