import fs from 'node:fs';
import path from 'node:path';
import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { keyedHash } from './keyed-hash.ts';

/** Longest time that a process waits for a migration in another process, in ms. */
const MIGRATION_WAIT_MS = 30 * 60_000;
const TENANT_MIGRATIONS = path.join(import.meta.dirname, 'migrations');

/**
 * Brings the schema of a file to the newest version. Each step is one transaction, and `PRAGMA user_version` counts the
 * steps, so a process that is killed leaves the file at the version before or after a step. If another process migrates
 * the file, it waits for up to 30 minutes.
 * @param file path of the database, for the error message
 * @param folder folder of the steps: `0001-name.sql`, `0002-name.sql` and so on without a gap
 * @throws EngineError `unprocessable` if the file has a newer schema than this code knows; it is left unchanged
 */
export function migrate(db: Database.Database, file: string, folder = TENANT_MIGRATIONS): void {
  const steps = migrationFiles(folder);
  const current = () => db.pragma('user_version', { simple: true }) as number;
  if (current() > steps.length) {
    throw new EngineError(
      'unprocessable',
      `${path.basename(file)} has schema version ${current()}, ` +
        `this version of Cairn knows ${steps.length}: use a newer Cairn`,
    );
  }
  // Steps use it to replace values by their hashes. It exists on this connection only.
  db.function('keyed_hash', { deterministic: true }, keyedHash);
  const patience = db.pragma('busy_timeout', { simple: true }) as number;
  // A step that rewrites a large table takes longer than a commit may wait. A process that starts at the same time
  // waits for its end.
  if (current() < steps.length) db.pragma(`busy_timeout = ${MIGRATION_WAIT_MS}`);
  while (current() < steps.length) {
    db.transaction(() => {
      const version = current(); // Read again under the lock: another process may have been faster.
      const step = steps[version];
      if (step === undefined) return;
      db.exec(fs.readFileSync(path.join(folder, step), 'utf8'));
      db.pragma(`user_version = ${version + 1}`);
    }).immediate();
  }
  db.pragma(`busy_timeout = ${patience}`);
}

function migrationFiles(folder: string): string[] {
  return fs
    .readdirSync(folder)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name))
    .sort();
}
