/** Settings of a session in PostgreSQL, as SQL. */

import type { OpenStoreOptions } from '../open-store.ts';

/** SQL of the session settings for each role of a store. */
export const SESSIONS: Readonly<Record<OpenStoreOptions['role'], string>> = {
  reader: `set_config('default_transaction_read_only', 'on', false)`,
  acknowledger: `set_config('synchronous_commit', 'on', false)`,
  // If a crash takes its work back, the work is repeated from the ledger.
  worker: `set_config('synchronous_commit', 'off', false)`,
};

/**
 * SQL with which every session begins, whatever the server, the database or the role has set. Bytes and numbers come in
 * the form that `wire-values.ts` reads. No timeout of the server ends a statement or a session: Cairn bounds its
 * statements itself, and some, such as the erasure of a tenant, may take hours.
 */
export const BEGIN_SESSION = `
  SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false),
    set_config('bytea_output', 'hex', false), set_config('extra_float_digits', '1', false);
  SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')`;

/**
 * SQL of the settings that make PostgreSQL plan as SQLite does: by indexes and nested loops, as the statements are
 * written for, and once for all values. Without them PostgreSQL plans by statistics, which a new table does not have
 * and which describe all tenants together; a wrong plan reads a whole tenant. Planning a statement anew takes longer
 * than most statements take to run, and compiling it (`jit`) far longer.
 */
export const PLANNING = Object.entries({
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
})
  .map(([name, value]) => `set_config('${name}', '${value}', false)`)
  .join(', ');

/**
 * SQL of the setting that ends a statement and its transaction soon after the connection has closed. When a statement
 * has taken too long, Cairn closes the connection (`connection-channel.ts`); so it does when it is killed. Without this
 * setting the server would notice only when it sends the result, and until then the statement would keep the lock on
 * its tenant's row, for which all writes of that tenant wait. A timeout of the server (`statement_timeout`) would not
 * do: it does not end a statement whose client is gone before the timeout is over.
 * Servers on other systems cannot look, and refuse the setting.
 */
export const ENDS_WITH_CONNECTION = `set_config('client_connection_check_interval',
  CASE WHEN version() ~* 'linux|darwin|apple|bsd' THEN '2s' ELSE '0' END, false)`;

/**
 * SQL of the settings of a session that may hold a lock: the server notices within 30 s that this machine is gone, and
 * ends the session. No keepalives are sent while a reply waits to be taken; `tcp_user_timeout`, which only Linux has,
 * bounds that wait.
 * @see https://www.postgresql.org/docs/current/runtime-config-connection.html
 */
export const KEEPALIVE = `SELECT set_config('tcp_keepalives_idle', '10', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '4', false),
  set_config('tcp_user_timeout', CASE WHEN version() ~* 'linux' THEN '30s' ELSE '0' END, false)`;

/**
 * SQL of the setting that ends a session if its transaction waits a minute for the next statement: this process hangs,
 * or its machine is gone and a proxy keeps the connection open. Not for a connection that waits inside a transaction
 * for the work of another one.
 */
export const ENDS_IDLE_TRANSACTION = `SET idle_in_transaction_session_timeout = '60s'`;
