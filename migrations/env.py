"""How alembic meets the ledger: on the connection and in the transaction it is handed.

It makes no engine, reads no ini file and configures no logging; `agentgate.store.migration` calls it.
"""

from alembic import context

from agentgate.store.schema import VERSION_TABLE, metadata

connection = context.config.attributes["connection"]

# The caller's transaction is the migration's: alembic joins one that has begun, and commits nothing of it. With
# `transactional_ddl` off, a migration that fails would stay half applied on SQLite.
if not connection.in_transaction():
    connection.begin()
context.configure(connection=connection, target_metadata=metadata, version_table=VERSION_TABLE, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
