"""Text is compared by its bytes on PostgreSQL, so that no update of a system's collations breaks an index."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0003", "0002", None, None

TEXTS = {
    "accounts": ("name", "dataset", "unit", "adjacency", "epsilon_cap", "delta_cap", "note", "created", "parent"),
    "entries": ("account", "charge", "kind", "payload", "time", "previous_hash", "hash", "run"),
}


def upgrade() -> None:
    """Give every column of text the collation C; PostgreSQL makes the indices anew. SQLite compares bytes anyway."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, columns in TEXTS.items():
        for column in columns:
            op.alter_column(table, column, type_=sa.String(collation="C"))
