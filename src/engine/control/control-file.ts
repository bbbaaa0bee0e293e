import path from 'node:path';
import Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { migrate } from '../store/migrate.ts';
import { BUSY_TIMEOUT_MS, retryWhileBusy } from '../store/open-store.ts';
import { pathError, sqliteCode, storageError } from '../store/storage-errors.ts';
import { createPrivateFile } from '../store/private-file.ts';
import type { KeyRecord, Role } from './control-database.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');

/** The control database's open file with its prepared statements. */
export interface ControlFile {
  readonly db: Database.Database;
  readonly statements: ControlStatements;
}

/**
 * Opens the file, makes it if it is absent, and brings its schema up to date.
 * @throws EngineError `invalid` for a path that cannot be a database's; `unprocessable` for a file that is no database
 *         or is from a newer Cairn; what `storageError` says
 */
export function openControlFile(file: string): ControlFile {
  const db = openFile(file);
  return { db, statements: prepareStatements(db) };
}

function openFile(file: string): Database.Database {
  try {
    createPrivateFile(file);
    return migrated(new Database(file, { timeout: BUSY_TIMEOUT_MS }), file);
  } catch (error) {
    throw pathError(error, file);
  }
}

function migrated(db: Database.Database, file: string): Database.Database {
  try {
    retryWhileBusy(() => db.pragma('journal_mode = WAL'));
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    db.pragma('secure_delete = ON');
    migrate(db, file, MIGRATIONS);
    return db;
  } catch (error) {
    db.close();
    if (sqliteCode(error) === 'SQLITE_NOTADB') {
      throw new EngineError('unprocessable', `${path.basename(file)} is not a SQLite database, or it is damaged`, {
        cause: error,
      });
    }
    throw storageError(error);
  }
}

export interface TenantRow {
  readonly id: string;
  readonly created_at: number;
}

/** A row of `keys`. `digest` is the SHA-256 of the secret. Times are Unix ms; `revoked_at` is null for a valid key. */
export interface KeyRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly role: Role;
  readonly label: string;
  readonly digest: Buffer;
  readonly created_at: number;
  readonly revoked_at: number | null;
}

/** The prepared statements of the control database. */
interface ControlStatements {
  readonly readGeneration: Database.Statement<[], { generation: number }>;
  readonly bumpGeneration: Database.Statement;
  readonly listTenants: Database.Statement<[], TenantRow>;
  readonly findTenant: Database.Statement<[string], TenantRow>;
  readonly insertTenant: Database.Statement<[string, number]>;
  readonly deleteTenant: Database.Statement<[string]>;
  readonly listKeys: Database.Statement<[], KeyRow>;
  readonly insertKey: Database.Statement<[KeyRecord & { digest: Buffer }]>;
  readonly revokeKey: Database.Statement<[number, string]>;
  readonly readSetting: Database.Statement<[string, string], { value: string }>;
  readonly writeSetting: Database.Statement<[string, string, string]>;
}

function prepareStatements(db: Database.Database): ControlStatements {
  return {
    readGeneration: db.prepare<[], { generation: number }>('SELECT generation FROM access_generation'),
    bumpGeneration: db.prepare('UPDATE access_generation SET generation = generation + 1'),

    listTenants: db.prepare<[], TenantRow>('SELECT id, created_at FROM tenants ORDER BY created_at, id'),
    findTenant: db.prepare<[string], TenantRow>('SELECT id, created_at FROM tenants WHERE id = ?'),
    insertTenant: db.prepare<[string, number]>(
      'INSERT INTO tenants (id, created_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING',
    ),
    /** The foreign keys delete the tenant's keys and settings, too. */
    deleteTenant: db.prepare<[string]>('DELETE FROM tenants WHERE id = ?'),

    listKeys: db.prepare<[], KeyRow>('SELECT * FROM keys ORDER BY created_at, id'),
    insertKey: db.prepare<[KeyRecord & { digest: Buffer }]>(
      `INSERT INTO keys (id, tenant_id, role, label, digest, created_at, revoked_at)
       VALUES (@id, @tenantId, @role, @label, @digest, @createdAt, @revokedAt)`,
    ),
    /** A second revocation keeps the time of the first. */
    revokeKey: db.prepare<[number, string]>('UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?'),

    readSetting: db.prepare<[string, string], { value: string }>(
      'SELECT value FROM settings WHERE tenant_id = ? AND name = ?',
    ),
    writeSetting: db.prepare<[string, string, string]>(
      `INSERT INTO settings (tenant_id, name, value) VALUES (?, ?, ?)
       ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value`,
    ),
  };
}

/**
 * Runs `work` in one `BEGIN IMMEDIATE` transaction, which is rolled back if `work` throws. Throws what `work` throws,
 * and SQLite's errors as `storageError` turns them.
 */
export function immediately<T>({ db }: ControlFile, work: () => T): T {
  try {
    return db.transaction(work).immediate();
  } catch (error) {
    throw storageError(error);
  }
}
