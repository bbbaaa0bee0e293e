import path from 'node:path';
import type Database from 'better-sqlite3';
import { keyOfFile, type FileKey } from '../file-keys.ts';
import { notADatabase } from '../store/database-form.ts';
import { migrate } from '../store/migrate.ts';
import { createDatabaseFile, openDatabase } from '../store/open-database.ts';
import { BUSY_TIMEOUT_MS, retryWhileBusy } from '../store/open-store.ts';
import { pathError, sqliteCode, storageError } from '../store/storage-errors.ts';
import type { KeyRecord, Role } from './control-database.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');

/** The control database's open file with its prepared statements. */
export interface ControlFile {
  readonly db: Database.Database;
  readonly statements: ControlStatements;
}

/**
 * Opens the file, makes it if it is absent, and brings its schema up to date.
 * @param key key of the file, null for a file in clear; by default what `keyOfFile` finds
 * @throws EngineError `invalid` for a path that cannot be a database's; `unprocessable` for a file that is no database
 *         or is from a newer Cairn; what `storageError` says
 */
export function openControlFile(file: string, key = keyOfFile(file)): ControlFile {
  const db = openFile(file, key);
  return { db, statements: prepareStatements(db) };
}

function openFile(file: string, key: FileKey | null): Database.Database {
  try {
    createDatabaseFile(file, key);
    return migrated(openDatabase(file, { timeout: BUSY_TIMEOUT_MS, key }), file);
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
    if (sqliteCode(error) === 'SQLITE_NOTADB') throw notADatabase(file, false, error);
    throw storageError(error);
  }
}

export interface TenantRow {
  readonly id: string;
  readonly created_at: number;
}

/**
 * A row of `keys` with its tenants. `digest` is the SHA-256 of the secret; `tags` and `tenants` are JSON lists, the
 * tenants in their order. Times are Unix ms, and null for what has not happened.
 */
export interface KeyRow {
  readonly id: string;
  readonly tenants: string;
  readonly role: Role;
  readonly label: string;
  readonly digest: Buffer;
  readonly user_id: string | null;
  readonly tags: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

/** What is stored of a new key, `tags` as a JSON list. */
interface NewKeyRow extends Pick<KeyRecord, 'id' | 'role' | 'label' | 'userId' | 'createdAt' | 'expiresAt'> {
  readonly tags: string;
  readonly digest: Buffer;
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
  readonly insertKey: Database.Statement<[NewKeyRow]>;
  readonly insertKeyTenant: Database.Statement<[string, number, string]>;
  readonly noteKeyUse: Database.Statement<[{ readonly id: string; readonly at: number }]>;
  readonly deleteKeysWithoutTenant: Database.Statement;
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
    /** The foreign keys delete the tenant's settings too, and take the tenant from its keys. */
    deleteTenant: db.prepare<[string]>('DELETE FROM tenants WHERE id = ?'),

    listKeys: db.prepare<[], KeyRow>(
      `SELECT keys.*, (SELECT json_group_array(tenant_id ORDER BY place) FROM key_tenants
                       WHERE key_id = keys.id) AS tenants
       FROM keys ORDER BY created_at, id`,
    ),
    insertKey: db.prepare<[NewKeyRow]>(
      `INSERT INTO keys (id, role, label, digest, user_id, tags, created_at, expires_at)
       VALUES (@id, @role, @label, @digest, @userId, @tags, @createdAt, @expiresAt)`,
    ),
    insertKeyTenant: db.prepare<[string, number, string]>(
      'INSERT INTO key_tenants (key_id, place, tenant_id) VALUES (?, ?, ?)',
    ),
    noteKeyUse: db.prepare<[{ readonly id: string; readonly at: number }]>(
      'UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), @at) WHERE id = @id',
    ),
    deleteKeysWithoutTenant: db.prepare('DELETE FROM keys WHERE id NOT IN (SELECT key_id FROM key_tenants)'),
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
