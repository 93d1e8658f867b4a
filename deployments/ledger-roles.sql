-- Three roles of one PostgreSQL server, run once by its superuser: psql --file, as compose.yaml does.
-- The passwords come from variables of psql: --set prefect_password=... --set owner_password=... --set ledger_password=...
--
--   prefect        owns Prefect's database and reaches no other
--   nacre_owner    owns the ledger's tables: makes and migrates them, and grants; no worker has its password
--   nacre_ledger   what workers connect as: may insert and look up entries, and neither change nor delete one
--
-- Then once, and after each new version of nacre:
--   nacre ledger grant nacre_ledger --ledger postgresql://nacre_owner@database/ledger
CREATE ROLE prefect LOGIN PASSWORD :'prefect_password';
CREATE ROLE nacre_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE nacre_ledger LOGIN PASSWORD :'ledger_password';
CREATE DATABASE prefect OWNER prefect;
CREATE DATABASE ledger OWNER nacre_owner;
REVOKE CONNECT, TEMPORARY ON DATABASE prefect FROM PUBLIC;
REVOKE CONNECT, TEMPORARY ON DATABASE ledger FROM PUBLIC;
GRANT CONNECT ON DATABASE ledger TO nacre_ledger;
