"""The schema of every kind of column, and its table."""

from tests.kit.every_kind import schema, schemas, table

__all__ = ["schema", "schemas", "table"]
