"""How a place is spelled that holds tables of its own: which of them is meant, and as of which snapshot.

visits@v12                                      a Delta table, as of a version; without one, as it is now
visits/metadata/00003-….metadata.json@8123      an Iceberg table by its metadata file, as of a snapshot
iceberg:catalog.db#clinic.visits@8123           an Iceberg table by a catalog in a SQLite file
clinic.duckdb#visits, visits.xlsx#2026          a table of a database in a file, a sheet of a workbook
"""

import os
import re
from dataclasses import dataclass, replace

LOG = "_delta_log"
"""The folder by which a Delta table is known."""
METADATA = ".metadata.json"
ENDINGS = {METADATA: "iceberg", ".duckdb": "duckdb", ".xlsx": "excel"}
_SPELLED = re.compile(
    r"((?P<kind>delta|iceberg):(?!//))?(?P<base>.*?)(#(?P<table>[^#@/]+))?(@(?P<snapshot>v?\d{1,19}))?", re.DOTALL
)


@dataclass(frozen=True)
class Address:
    """A place in its parts.

    Attributes:
        base: the path or the URI of the file or the folder.
        kind: ``delta``, ``iceberg``, ``catalog``, ``duckdb`` or ``excel``; empty where the base says nothing.
        table: the name of a table in the file.
        snapshot: the number of a version or of a snapshot.
    """

    base: str
    kind: str = ""
    table: str = ""
    snapshot: str = ""

    def __str__(self) -> str:
        catalog = "iceberg:" if self.kind == "catalog" else ""
        version = "v" if self.kind == "delta" else ""
        table = f"#{self.table}" if self.table else ""
        return f"{catalog}{self.base}{table}" + (f"@{version}{self.snapshot}" if self.snapshot else "")

    @property
    def name(self) -> str:
        """The name of the file or the folder, without its path."""
        return _path(self.base).rpartition("/")[2]

    def at(self, base: str) -> "Address":
        """Return the same table in another place."""
        return replace(self, base=base)


def address_of(uri: str) -> Address:
    """Take a place apart; a file or a folder of the very name is that, whatever its name looks like."""
    parts = _SPELLED.fullmatch(uri)
    if parts is None or ("://" not in uri and os.path.exists(uri)):
        return Address(uri, _kind(uri))
    base, table, snapshot = parts["base"], parts["table"] or "", parts["snapshot"] or ""
    kind = parts["kind"] or _kind(base)
    if kind == "iceberg" and table:
        kind = "catalog"
    if table and kind in ("", "delta"):  # such a place holds no tables by name, so this is a part of the folder's
        base, table = f"{base}#{table}", ""
    is_host = "://" in base and "/" not in base.partition("://")[2]  # as in abfs://container@account
    if not (kind or is_host) and snapshot.startswith("v"):
        kind = "delta"
    if not kind:
        return Address(uri)
    if kind in ("duckdb", "excel") and snapshot:
        return Address(uri)
    return Address(base, kind, table, snapshot.removeprefix("v"))


def _kind(base: str) -> str:
    return next((kind for ending, kind in ENDINGS.items() if _path(base).lower().endswith(ending)), "")


def _path(base: str) -> str:
    return base.partition("?")[0] if "://" in base else base
