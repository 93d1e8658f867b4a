"""A hand-off of a table as a data set in Croissant's words, so that catalogs of data sets find and load it.

It is JSON-LD, made of the manifest and schema.yaml: which files there are, with their digests, and which columns they
have. It lies beside the hand-off and not in it, where no file may be added.

Source: Croissant 1.1, https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

from typing import Any

from dpmodels.codec.flat import tables_of
from dpmodels.hand_off.manifest import Manifest
from dpmodels.hand_off.odcs import SYNTHETIC, has_contract, tables
from dpmodels.releases.contract import Contract

CONFORMS = "http://mlcommons.org/croissant/1.1"
PARQUET = "application/x-parquet"
TYPES = {
    "boolean": "sc:Boolean",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
    "timestamp": "sc:DateTime",
    "time": "sc:Time",
    "array": "sc:Integer",
    "string": "sc:Text",
}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
Facts = dict[str, Any]


def croissant_of(manifest: Manifest, contract: Contract, day: str, place: str = "") -> Facts:
    """Return the record of a hand-off.

    Args:
        manifest: of the hand-off.
        contract: what is public of the data set.
        day: when it was charged, or made.
        place: where the folder lies, as a URL or a path from the record.
    """
    said, spent = manifest.operator_says, manifest.whole_cost
    price = f"epsilon {spent.epsilon} at delta {spent.delta}, unit {manifest.unit} ({manifest.adjacency.value})"
    words = [said.get("purpose", ""), SYNTHETIC, f"Spent: {price}.", *(manifest.cautions or ())]
    named = tables(contract) if has_contract(contract) else []
    parts = {one["name"]: _parts(one["name"], manifest, bool(tables_of(contract))) for one in named}
    files = [_file(name, sha256, place) for name, sha256 in sorted(manifest.artifacts.items())]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": f"synthetic-{manifest.data_set}",
        "description": " ".join(filter(None, words)),
        "datePublished": day,
        "version": "1.0.0",
        **({"alternateName": manifest.made_by} if manifest.made_by else {}),
        "identifier": manifest.sha256,
        **({"license": said["license"]} if "license" in said else {}),
        "rai:personalSensitiveInformation": f"Columns may be sensitive; rows are drawn from a release at {price}.",
        "distribution": [*files, *(one for table in named for one in _set(table["name"], parts[table["name"]]))],
        "recordSet": [_records(table, parts[table["name"]]) for table in named],
    }


def _file(name: str, sha256: str, place: str) -> Facts:
    ending = name.rpartition(".")[2]
    kinds = {"parquet": PARQUET, "json": "application/json", "html": "text/html", "yaml": "application/yaml"}
    kind = kinds.get(ending, {"csv": "text/csv", "jsonl": "application/jsonl"}.get(ending, "application/octet-stream"))
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": f"{place.rstrip('/')}/{name}" if place else name,
        "encodingFormat": kind,
        "sha256": sha256,
    }


def _parts(table: str, manifest: Manifest, in_folders: bool) -> list[str]:
    folder = f"synthetic/{table}/" if in_folders else "synthetic/"
    return [name for name in sorted(manifest.artifacts) if name.startswith(folder) and name.endswith(".parquet")]


def _set(table: str, parts: list[str]) -> list[Facts]:
    """Join the files of a table, where there are several."""
    one: Facts = {"@type": "cr:FileSet", "@id": f"{table}-parts", "name": f"{table}-parts"}
    contained = [{"@id": name} for name in parts]
    return [one | {"containedIn": contained, "encodingFormat": PARQUET, "includes": "*.parquet"}] if parts[1:] else []


def _records(table: Facts, parts: list[str]) -> Facts:
    name = table["name"]
    source = {"fileSet": {"@id": f"{name}-parts"}} if parts[1:] else {"fileObject": {"@id": "".join(parts)}}
    fields = [_field(name, one, source) for one in table["properties"]]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _field(table: str, column: Facts, source: Facts) -> Facts:
    name, kind = column["name"], column["logicalType"]
    array = {"isArray": True, "arrayShape": str(column["logicalTypeOptions"]["maxItems"])} if kind == "array" else {}
    extract = {"extract": {"column": name}}
    said = {"@type": "cr:Field", "@id": f"{table}/{name}", "name": name, "dataType": TYPES[kind]}
    return {**said, "source": source | extract, **array}
