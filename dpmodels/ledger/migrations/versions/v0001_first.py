"""The tables of the first ledger: accounts, and the chain of entries."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0001", None, None, None


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "accounts",
        sa.Column("name", sa.String, primary_key=True),
        *(_text(name) for name in ("dataset", "unit", "adjacency", "epsilon_cap", "delta_cap")),
        *(_text(name) for name in ("note", "created")),
        sa.UniqueConstraint("dataset", "unit", "adjacency"),
    )
    op.create_table(
        "entries",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("account", sa.String, sa.ForeignKey("accounts.name"), nullable=False),
        *(_text(name) for name in ("charge", "kind")),
        sa.Column("attempt", sa.Integer, nullable=False),
        *(_text(name) for name in ("payload", "time")),
        sa.Column("previous_hash", sa.String, nullable=False, unique=True),
        _text("hash"),
        sa.UniqueConstraint("charge", "kind", "attempt"),
    )


def _text(name: str) -> "sa.Column[str]":
    return sa.Column(name, sa.String, nullable=False)
