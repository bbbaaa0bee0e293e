import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../../errors.ts';
import { postgresError, type BlockingConnection, type Timeouts } from './blocking-connection.ts';
import { EarlierSchema } from './unreachable-database.ts';
import { DEFAULT_TIMEOUTS } from './connection-channel.ts';

const TENANT_MIGRATIONS = path.join(import.meta.dirname, 'migrations');
/**
 * Number of the advisory lock that a process holds while it changes the schema: "Carn" in ASCII, as in a tenant's file.
 */
const SCHEMA_LOCK = 0x4361726e;
/** SQL that begins a transaction in which no other process changes a schema; it waits while one does. */
export const BEGIN_SCHEMA_CHANGE = `BEGIN; SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`;
/**
 * Timeouts of a connection while it migrates. A step over many rows takes minutes, and one that does not end in time is
 * rolled back, so that it would never end.
 */
const STEP_TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 3_600_000 };
/** Oldest server that is supported, as `server_version_num`. */
const OLDEST_SERVER = 150_000;
/** SQL that reads the version of the server, and the encoding of the texts in the database. */
const READ_SERVER = `SELECT current_setting('server_version_num'), getdatabaseencoding()::text`;

/**
 * Brings the current schema of a database to the newest version; an empty one gets all tables. Each step is one
 * transaction of an hour at most, and `schema_version` counts them; those that make the tables are one transaction
 * together. It waits as long while another process migrates. If there was something to do, the connection has the
 * default timeouts afterwards. Call it only where a process starts, in a command, or on a thread for which nobody
 * waits.
 * @param folder folder with the steps, `0001-name.sql` and on; by default those of the tenants' tables
 * @throws EngineError `unprocessable` if the schema is newer than this code, if the server is older than PostgreSQL 15,
 *   or if the database is not in UTF-8
 */
export function migrateSchema(connection: BlockingConnection, folder = TENANT_MIGRATIONS): void {
  const steps = listSteps(folder);
  if (checkedVersion(connection, steps) === steps.length) return;
  connection.setTimeouts(STEP_TIMEOUTS);
  try {
    takeSteps(connection, { folder, steps });
  } finally {
    connection.setTimeouts(DEFAULT_TIMEOUTS);
  }
}

/** Takes the steps that are missing; `onEarlier` is called, and may throw, if some but not all were taken before. */
function takeSteps(
  connection: BlockingConnection,
  { folder, steps, onEarlier }: { readonly folder: string; readonly steps: readonly string[]; onEarlier?(): void },
): void {
  for (;;) {
    connection.query(BEGIN_SCHEMA_CHANGE);
    try {
      const version = versionOf(connection);
      requireKnown(version, steps);
      if (version > 0 && version < steps.length) onEarlier?.();
      // A process that is killed leaves no tables of an earlier version where there were none.
      const taken = version === 0 ? steps : steps.slice(version, version + 1);
      for (const step of taken) connection.query(fs.readFileSync(path.join(folder, step), 'utf8'));
      const reached = version + taken.length;
      connection.query(taken.length === 0 ? 'COMMIT' : `UPDATE schema_version SET version = ${reached}; COMMIT`);
      if (reached === steps.length) return;
    } catch (error) {
      if (postgresError(error)?.isLost !== true) connection.query('ROLLBACK');
      throw error;
    }
  }
}

/**
 * Requires that the current schema has the newest version, and makes the tables in an empty one with the timeouts that
 * the connection has. Threads that go on while a service serves use it in place of `migrateSchema`.
 * @param name the further database of OM_DATABASES; null for that of OM_DATABASE_URL, undefined if it is not known
 * @throws EarlierSchema; EngineError `unavailable` if another process changes a schema for longer than a statement may
 *   take; `unprocessable` as `migrateSchema`
 */
export function makeOrRequireSchema(connection: BlockingConnection, name?: string | null): void {
  const steps = listSteps(TENANT_MIGRATIONS);
  const version = checkedVersion(connection, steps);
  if (version === steps.length) return;
  if (version > 0) throw new EarlierSchema(name);
  takeSteps(connection, {
    ...{ folder: TENANT_MIGRATIONS, steps },
    // Another process has made the tables meanwhile.
    onEarlier() {
      throw new EarlierSchema(name);
    },
  });
}

/**
 * Returns the version of the current schema, 0 for an empty one.
 * @throws EngineError `unprocessable` as `migrateSchema`
 */
function checkedVersion(connection: BlockingConnection, steps: readonly string[]): number {
  const [server, encoding] = connection.query(READ_SERVER).rows[0]!;
  if (Number(server) < OLDEST_SERVER)
    throw new EngineError('unprocessable', 'the database is older than PostgreSQL 15');
  if (encoding !== 'UTF8') {
    const message = `the database has the encoding ${String(encoding)}, and not UTF8: create one with ENCODING 'UTF8'`;
    throw new EngineError('unprocessable', message);
  }
  const version = versionOf(connection);
  requireKnown(version, steps);
  return version;
}

function requireKnown(version: number, steps: readonly string[]): void {
  if (version <= steps.length) return;
  throw new EngineError(
    'unprocessable',
    `the database has schema version ${version}, this version of Cairn knows ${steps.length}: use a newer Cairn`,
  );
}

/** Whether the current schema has tables of any version of Cairn. */
export function hasSchema(connection: BlockingConnection): boolean {
  return versionOf(connection) > 0;
}

/** Whether the current schema has exactly the version that this code knows. It changes nothing. */
export function isMigrated(connection: BlockingConnection, folder = TENANT_MIGRATIONS): boolean {
  return versionOf(connection) === listSteps(folder).length;
}

function listSteps(folder: string): string[] {
  return fs
    .readdirSync(folder)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name))
    .sort();
}

/**
 * SQL that finds the table of versions in the present schema. It reads the catalog directly, since `to_regclass` may
 * still report no table in a transaction that waited for another one that made the table.
 */
const FIND_VERSIONS = `SELECT 1 FROM pg_class
  WHERE relname = 'schema_version' AND relnamespace = current_schema()::regnamespace`;

function versionOf(connection: BlockingConnection): number {
  if (connection.query(FIND_VERSIONS).rows.length === 0) return 0;
  return connection.query('SELECT version FROM schema_version').rows[0]![0] as number;
}
