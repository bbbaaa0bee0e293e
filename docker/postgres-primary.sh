#!/usr/bin/env bash
# Prepares the PostgreSQL server of docker-compose.yml at its first start: a role and a database for Cairn, and a role
# and a slot for the standby. The image runs it while the server listens on a local socket only.
set -euo pipefail

psql --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE cairn LOGIN PASSWORD :'password';
CREATE DATABASE cairn OWNER cairn TEMPLATE template0 ENCODING 'UTF8';
CREATE ROLE standby LOGIN REPLICATION PASSWORD :'password';
SELECT pg_create_physical_replication_slot('standby');
-- It counts from the next start on. In this one nothing could be committed, because no standby is there yet.
ALTER SYSTEM SET synchronous_standby_names = 'standby';
SQL

# Over the network nobody logs in as superuser, since row-level security would not apply to that role.
cat >"$PGDATA/pg_hba.conf" <<'HBA'
local all         all         trust
host  cairn       cairn   all scram-sha-256
host  replication standby all scram-sha-256
HBA
