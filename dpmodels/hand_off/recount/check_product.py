"""Check the product of a hand-off by its footers: so many rows as the report says, in the columns of schema.yaml.

What the rows hold is counted in ``recount``, and held to the rules of the schema by ``nacre validate``.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.codec.embedded import codec_of
from dpmodels.codec.flat import handed_over, split, tables_of
from dpmodels.codec.public import public_types
from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain
from dpmodels.hand_off.manifest import MOST_FAULTS, Manifest
from dpmodels.hand_off.verification import Verification
from dpmodels.limits import LARGEST_REPORT, read_json
from dpmodels.methods.kinds import SYNTHESIZED
from dpmodels.parquet_footer import read_footer
from dpmodels.plural import counted
from dpmodels.releases.contract import Contract

PART = re.compile(r"synthetic/([a-z][a-z0-9_]*/)?part-[0-9]{5}\.parquet")
Types = list[tuple[str, pa.DataType]]


def check_product(folder: Path, manifest: Manifest, contract: Contract, check: Verification) -> None:
    """Hold the files of synthetic rows that lie in the folder to the schema and the report, while there is no fault."""
    parts = [name for name in manifest.artifacts if PART.fullmatch(name) and (folder / name).exists()]
    if check.faults or not parts or contract.kind not in SYNTHESIZED:
        return
    check.faults += _faults(folder, parts, contract, whole=len(parts) == len(_listed(manifest)))


def _listed(manifest: Manifest) -> list[str]:
    return [name for name in manifest.artifacts if PART.fullmatch(name)]


def _faults(folder: Path, parts: list[str], contract: Contract, whole: bool) -> Iterator[str]:
    """Say which files are no Parquet, have other columns, or more or fewer rows together than the report says."""
    rows, known = dict[str, int](), _types_of(contract)
    for name in parts:
        try:
            with open_plain(folder, folder / name) as file:
                footer = read_footer(pa.PythonFile(file, mode="r"))
                types = _types(footer)
        except (ArtifactError, OSError, ValueError, pa.ArrowException):
            yield f"{name} is no Parquet file that nacre writes, or is damaged"
            return
        table = name.split("/")[1] if name.count("/") > 1 else ""
        if table not in known:
            yield f"{name} is of a table that schema.yaml does not have"
            return
        if types != known[table]:
            yield f"{name} has {_differing(types, known[table])}, which schema.yaml does not say"
            return
        rows[table] = rows.get(table, 0) + footer.num_rows
    stated = _stated(folder)
    if whole and (missing := [name for name in known if name not in rows]):
        yield f"there is no table {', '.join(missing[:MOST_FAULTS])}, which schema.yaml describes"
        return
    sizes = {name: table.size for name, table in contract.public.items()} if contract.kind == "tree" else {}
    if whole and (wrong := [name for name, size in sizes.items() if rows[name] != size]):
        yield f"public table {wrong[0]} has not the {sizes[wrong[0]]:,} rows that schema.yaml says"
        return
    of_units = contract.root if contract.kind == "tree" else "parents"
    counted = rows.get("", rows.get(of_units))  # without a table of users nobody counts them here
    if whole and counted is not None and counted != stated:
        yield f"the synthetic table has {counted:,} rows, and report.json says {stated:,}"


def _stated(folder: Path) -> int:
    with open_plain(folder, folder / "report.json") as file:
        return int(read_json(file.read(LARGEST_REPORT))["synthetic_rows"])


def _types_of(contract: Contract) -> dict[str, Types]:
    """Return the columns of each table of a product, as Parquet itself tells them."""
    rows = handed_over(contract, codec_of(contract).output_schema.empty_table())
    tables = split(contract, rows) if tables_of(contract) else {"": rows}
    for name, public in contract.public.items() if contract.kind == "tree" else ():
        tables[name] = public_types(name, public).empty_table()
    return {name: _stored(table.schema) for name, table in tables.items()}


def _stored(types: pa.Schema) -> Types:
    """Return what a footer says of columns that are written with these types."""
    target = BytesIO()
    pq.write_table(types.empty_table(), target)
    return _types(read_footer(pa.BufferReader(target.getvalue())))


def _types(footer: pq.FileMetaData) -> Types:
    return [(field.name, field.type) for field in footer.schema.to_arrow_schema()]


def _differing(types: Types, known: Types) -> str:
    """Say how columns differ from those that a schema has; names that it lacks are a stranger's, and are not shown."""
    names, expected = [name for name, _ in types], [name for name, _ in known]
    if extra := sum(name not in expected for name in names):
        return f"{counted(extra, 'column')} of other names"
    if missing := [name for name in expected if name not in names]:
        return f"no column {', '.join(missing[:MOST_FAULTS])}"
    if names != expected:
        return "columns in another order, or twice"
    wrong = [name for (name, one), (_, other) in zip(types, known, strict=True) if one != other]
    return f"other types in {', '.join(wrong[:MOST_FAULTS])}"
