import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../../errors.ts';
import { postgresError, type BlockingConnection } from './blocking-connection.ts';

const TENANT_MIGRATIONS = path.join(import.meta.dirname, 'migrations');
/**
 * Number of the advisory lock that a process holds while it changes the schema: "Carn" in ASCII, as in a tenant's file.
 */
const SCHEMA_LOCK = 0x4361726e;
/** SQL that begins a transaction in which no other process changes a schema; it waits while one does. */
export const BEGIN_SCHEMA_CHANGE = `BEGIN; SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`;
/** Oldest server that is supported, as `server_version_num`. */
const OLDEST_SERVER = 150_000;

/**
 * Brings the current schema of a database to the newest version; an empty one gets all tables. Each step is one
 * transaction, and `schema_version` counts them.
 * @param folder folder with the steps, `0001-name.sql` and on; by default those of the tenants' tables
 * @throws EngineError `unprocessable` if the schema is newer than this code, or the server older than PostgreSQL 15
 */
export function migrateSchema(connection: BlockingConnection, folder = TENANT_MIGRATIONS): void {
  const server = Number(connection.query('SHOW server_version_num').rows[0]![0]);
  if (server < OLDEST_SERVER) throw new EngineError('unprocessable', 'the database is older than PostgreSQL 15');
  const steps = listSteps(folder);
  // Many threads of many processes open connections, and only the first of them finds something to do.
  if (versionOf(connection) === steps.length) return;
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
