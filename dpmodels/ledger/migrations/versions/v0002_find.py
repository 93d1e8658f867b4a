"""Columns and indices that find an account's newest entries, its children and one run's charges without the chain."""

import json

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None


def upgrade() -> None:
    """Add the parent of an account, the run of a charge, and the indices; fill the runs in from the entries."""
    op.add_column("accounts", sa.Column("parent", sa.String, nullable=False, server_default=""))
    op.create_index("ix_accounts_parent", "accounts", ["parent"])
    op.add_column("entries", sa.Column("run", sa.String, nullable=False, server_default=""))
    entries = sa.table("entries", sa.column("seq"), sa.column("kind"), sa.column("payload"), sa.column("run"))
    connection = op.get_bind()
    reserved = connection.execute(sa.select(entries.c.seq, entries.c.payload).where(entries.c.kind == "reserve"))
    runs = [{"at": seq, "of": _run(payload)} for seq, payload in reserved]
    if runs:
        statement = sa.update(entries).where(entries.c.seq == sa.bindparam("at")).values(run=sa.bindparam("of"))
        connection.execute(statement, runs)
    op.create_index("ix_entries_account_kind_seq", "entries", ["account", "kind", "seq"])
    op.create_index("ix_entries_account_run", "entries", ["account", "run"])


def _run(payload: str) -> str:
    """Read the run of a charge; an entry that was tampered with gets no run, and `verify` names that entry."""
    try:
        return str(json.loads(payload)["run"])
    except (ValueError, TypeError, KeyError):
        return ""
