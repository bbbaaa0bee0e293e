import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../../errors.ts';
import { postgresError, type BlockingConnection } from './blocking-connection.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');
/** Key of the lock under which one process at a time changes the schema: "Carn" in ASCII, as in a tenant's file. */
const SCHEMA_LOCK = 0x4361726e;
/** Oldest server that is supported, as `server_version_num`. */
const OLDEST_SERVER = 150_000;

/**
 * Brings the current schema of a database to the newest version; an empty one gets all tables. Each step is one
 * transaction, and `schema_version` counts them.
 * @throws EngineError `unprocessable` if the schema is newer than this code, or the server older than PostgreSQL 15
 */
export function migrateSchema(connection: BlockingConnection): void {
  const server = Number(connection.query('SHOW server_version_num').rows[0]![0]);
  if (server < OLDEST_SERVER) throw new EngineError('unprocessable', 'the database is older than PostgreSQL 15');
  const steps = fs
    .readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name))
    .sort();
  for (;;) {
    connection.query(`BEGIN; SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    try {
      const version = versionOf(connection);
      if (version > steps.length) {
        throw new EngineError(
          'unprocessable',
          `the database has schema version ${version}, this version of Cairn knows ${steps.length}: use a newer Cairn`,
        );
      }
      const step = steps[version];
      if (step !== undefined) connection.query(fs.readFileSync(path.join(MIGRATIONS, step), 'utf8'));
      connection.query(step === undefined ? 'COMMIT' : `UPDATE schema_version SET version = ${version + 1}; COMMIT`);
      if (step === undefined) return;
    } catch (error) {
      if (postgresError(error)?.isLost !== true) connection.query('ROLLBACK');
      throw error;
    }
  }
}

function versionOf(connection: BlockingConnection): number {
  const [[exists] = []] = connection.query(`SELECT to_regclass('schema_version') IS NOT NULL`).rows;
  if (exists !== 1) return 0;
  return connection.query('SELECT version FROM schema_version').rows[0]![0] as number;
}
