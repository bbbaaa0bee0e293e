#!/usr/bin/env bash
# Runs the standby of docker-compose.yml: copies the server that PGHOST, PGUSER and PGPASSWORD name, if there is no copy
# yet, and follows it from then on. Arguments are options of the server.
set -euo pipefail

if [ ! -d "$PGDATA" ]; then
  # A copy that was broken off must not be taken for a whole one, so it gets its name at the end.
  rm -rf "$PGDATA.copy"
  pg_basebackup --pgdata="$PGDATA.copy" --dbname=application_name=standby --slot=standby --write-recovery-conf \
    --checkpoint=fast
  mv "$PGDATA.copy" "$PGDATA"
fi

# The copied settings tell a server to wait for a standby. This one has none, also after it was promoted.
exec postgres -c synchronous_standby_names= "$@"
