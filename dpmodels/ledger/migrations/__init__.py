"""Changes of the ledger's tables, by Alembic; entries are never rewritten, so every hash stays what it was."""

from pathlib import Path

from sqlalchemy import Connection

from dpmodels.ledger.store import VERSION_TABLE


def upgrade(connection: Connection, version: str | None, head: str = "head") -> None:
    """Bring the tables from a version, or from nothing, to another, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    if version and context.get_current_revision() is None:  # made before there were migrations
        context.stamp(ScriptDirectory.from_config(config), version)
    command.upgrade(config, head)
