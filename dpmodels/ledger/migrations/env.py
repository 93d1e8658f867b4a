"""Run by Alembic: migrate over the connection that the ledger holds, in its transaction."""

from alembic import context

from dpmodels.ledger.store import VERSION_TABLE, metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, version_table=VERSION_TABLE)
context.run_migrations()
