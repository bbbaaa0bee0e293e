import path from 'node:path';
import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';

/**
 * Value of `PRAGMA application_id` in the header of a tenant's file: "Carn" in ASCII. The first migration sets it.
 * Files from before 0.1.0 have 0 there, which distinguishes them. Their `user_version` does not: it counts fourteen
 * other migrations, so that version 14 would look like a file of a newer Cairn, and version 1 like a present one.
 */
const TENANT_APPLICATION_ID = 0x4361726e;

interface AboutFile {
  readonly applicationId: number;
  readonly tables: number;
  readonly hasMemories: number | null;
}

/**
 * Refuses a database that is not a tenant's file of the present line of schemas. An empty database passes, since its
 * tables are about to be created.
 * @throws EngineError `unprocessable` for a file from before 0.1.0, or of another program; it is left unchanged
 */
export function requireTenantFile(db: Database.Database, file: string): void {
  // One statement reads one snapshot: another process may be creating the file at this moment.
  const { applicationId, tables, hasMemories } = db
    .prepare<[], AboutFile>(
      `SELECT (SELECT application_id FROM pragma_application_id) AS applicationId, count(*) AS tables,
         max(name = 'memory_dynamics') AS hasMemories FROM sqlite_schema`,
    )
    .get()!;
  if (applicationId === TENANT_APPLICATION_ID || tables === 0) return;
  const name = path.basename(file);
  throw new EngineError(
    'unprocessable',
    hasMemories === 1
      ? `${name} is from before Cairn 0.1.0, and no later version reads it: export its memories with the sqlite3 ` +
          'command in docs/operations/backup-and-upgrades.md ("Files from before 0.1.0"), move the file away, start ' +
          'Cairn, and run `cairn import memories.ndjson`'
      : `${name} is a SQLite database, but not one that holds memories: set OM_DB_PATH to a file of its own`,
  );
}
