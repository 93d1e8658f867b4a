"""Small made data on which a method of the registry is tried, and what neighbors of it are made of."""

from types import ModuleType
from typing import Any

import pyarrow as pa

from dpmodels.audit.made import clinic, colors, firm, mails, pictures
from dpmodels.codec.embedded import codec_of
from dpmodels.methods.quick import quick
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line

OTHERS = 30
"""Records of a crowd that are not alike."""
DATA: dict[str, ModuleType] = {
    "nacre-images": pictures,
    "nacre-photos": colors,
    "document-moments": mails,
    "nacre-tree": firm,
}
"""What makes the data of a method that is not for plain tables."""


def data_of(method: str) -> ModuleType:
    """Return what makes the data of a method."""
    return DATA.get(method, clinic)


def quick_plan(method: str, schema: Any = None, epsilon: float = 1.0) -> Line:
    """Plan a method on the schema of its own data, or on another."""
    schema = schema or data_of(method).make_schema()
    return quick(method).plan(schema, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=schema.unit))


def with_users(method: str, rows: int) -> Any:
    """Return the contract of a method's data whose unit is a user with so many rows."""
    data = data_of(method)
    if data is mails:
        return mails.make_schema(protects="user", user="who", most_documents=rows)
    columns = {"who": {"type": "identifier"}, **data.make_schema().model_dump()["columns"]}
    return data.make_schema(unit={"user": "who", "max_rows": rows}, columns=columns)


def crowd(data: ModuleType) -> Any:
    """Return records most of which are alike, so that others lie far outside of what is usual."""
    records = data.make_records(OTHERS)
    return records.take([0] * 300 + list(range(OTHERS)))


def extremes(data: ModuleType) -> Any:
    """Return records at the ends of what the schema allows, or beyond where others lie."""
    codec = codec_of(data.make_schema())
    schema = codec.output_schema if data is mails else data.make_table(1).schema
    return codec.encode(pa.table(data.EXTREMES, schema=schema))


def inserted(records: Any, more: Any, row: int) -> Any:
    """Put records among others, at a place."""
    return type(records).concat([records.take(slice(0, row)), more, records.take(slice(row, None))])
