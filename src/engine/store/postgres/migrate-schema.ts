import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../../errors.ts';
import { postgresError, type BlockingConnection, type Timeouts } from './blocking-connection.ts';
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

/**
 * Brings the current schema of a database to the newest version; an empty one gets all tables. Each step is one
 * transaction of an hour at most, and `schema_version` counts them; it waits as long while another process migrates. If
 * there was something to do, the connection has the default timeouts afterwards.
 * @param folder folder with the steps, `0001-name.sql` and on; by default those of the tenants' tables
 * @throws EngineError `unprocessable` if the schema is newer than this code, or the server older than PostgreSQL 15
 */
export function migrateSchema(connection: BlockingConnection, folder = TENANT_MIGRATIONS): void {
  const server = Number(connection.query('SHOW server_version_num').rows[0]![0]);
  if (server < OLDEST_SERVER) throw new EngineError('unprocessable', 'the database is older than PostgreSQL 15');
  const steps = listSteps(folder);
  // Many threads of many processes open connections, and only the first of them finds something to do.
  if (versionOf(connection) === steps.length) return;
  connection.setTimeouts(STEP_TIMEOUTS);
  try {
    takeSteps(connection, folder, steps);
  } finally {
    connection.setTimeouts(DEFAULT_TIMEOUTS);
  }
}

function takeSteps(connection: BlockingConnection, folder: string, steps: readonly string[]): void {
  for (;;) {
    connection.query(BEGIN_SCHEMA_CHANGE);
    try {
      const version = versionOf(connection);
      if (version > steps.length) {
        throw new EngineError(
          'unprocessable',
          `the database has schema version ${version}, this version of Cairn knows ${steps.length}: use a newer Cairn`,
        );
      }
      const step = steps[version];
      if (step !== undefined) connection.query(fs.readFileSync(path.join(folder, step), 'utf8'));
      connection.query(step === undefined ? 'COMMIT' : `UPDATE schema_version SET version = ${version + 1}; COMMIT`);
      if (step === undefined) return;
    } catch (error) {
      if (postgresError(error)?.isLost !== true) connection.query('ROLLBACK');
      throw error;
    }
  }
}

/**
 * Makes the tables in an empty schema, for a thread that cannot wait for a migration.
 * @throws EngineError `unavailable` if the schema is of an earlier version, which another thread has to migrate; the
 *   errors of `migrateSchema`
 */
export function makeOrRequireSchema(connection: BlockingConnection): void {
  const version = versionOf(connection);
  if (version === 0 || version >= listSteps(TENANT_MIGRATIONS).length) return migrateSchema(connection);
  throw isEarlier();
}

/** Returns the EngineError `unavailable` for a database whose schema is of an earlier version. */
export function isEarlier(): EngineError {
  const message =
    'the schema of the database is of an earlier version: a service of this version that starts migrates it';
  return new EngineError('unavailable', message, { retryAfterMs: 5_000 });
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
