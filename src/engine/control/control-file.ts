import path from 'node:path';
import type Database from 'better-sqlite3';
import { keyOfFile, type FileKey } from '../find-file-key.ts';
import { notADatabase } from '../store/database-form.ts';
import { migrate } from '../store/migrate.ts';
import { createDatabaseFile, openDatabase } from '../store/open-database.ts';
import { BUSY_TIMEOUT_MS, retryWhileBusy } from '../store/open-store.ts';
import type { WatchedNumber } from '../store/postgres/blocking-connection.ts';
import type { Statement } from '../store/statement.ts';
import { pathError, sqliteCode, storageError } from '../store/storage-errors.ts';
import type { Role } from '../types.ts';
import type { KeyRecord } from './control-database.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');

/** The open control database with its prepared statements. It is a SQLite file or a schema of PostgreSQL. */
export interface ControlFile {
  /** The open SQLite database; null in PostgreSQL. */
  readonly db: Database.Database | null;
  readonly statements: ControlStatements;
  /** Prepares a statement in SQLite's dialect, also where the database is PostgreSQL. */
  prepare<Parameters extends unknown[] = unknown[], Row = unknown>(sql: string): Statement<Parameters, Row>;
  /**
   * Runs `work` in one write transaction, which excludes all other writers. It is rolled back if `work` throws. Throws
   * what `work` throws, and errors of the database as EngineErrors.
   */
  write<T>(work: () => T): T;
  /** Runs `work` on one snapshot of the database. In a file, it throws errors of SQLite as they are. */
  read<T>(work: () => T): T;
  /** Whether a transaction is open. */
  readonly isInTransaction: boolean;
  /**
   * The generation counter as a background thread last read it from PostgreSQL, so that a look at it costs no round
   * trip; null for a file, where a read costs some microseconds.
   */
  readonly watched: Pick<WatchedNumber, 'latest'> | null;
  close(): void;
}

/** The control database in a file. */
export interface SqliteControlFile extends ControlFile {
  readonly db: Database.Database;
}

/**
 * Opens the file, makes it if it is absent, and migrates its schema.
 * @param key key of the file, null for an unencrypted file; by default what `keyOfFile` finds
 * @throws EngineError `invalid` for a path that no database can have; `unprocessable` for a file that is no database or
 *   is from a newer Cairn; SQLite's errors as `storageError` translates them
 */
export function openControlFile(file: string, key = keyOfFile(file)): SqliteControlFile {
  const db = openFile(file, key);
  const prepare = <Parameters extends unknown[], Row>(sql: string) =>
    db.prepare<Parameters, Row>(sql) as Statement<Parameters, Row>;
  return {
    db,
    statements: prepareStatements(prepare, { hasPlacements: false }),
    prepare,
    write(work) {
      try {
        return db.transaction(work).immediate();
      } catch (error) {
        throw storageError(error);
      }
    },
    read: (work) => db.transaction(work)(),
    get isInTransaction() {
      return db.inTransaction;
    },
    watched: null,
    close: () => void db.close(),
  };
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

/**
 * A row of `tenants`: the tenant's id, the time at which it was created (Unix ms), and its placement. `database` is
 * null for the database of OM_DATABASE_URL, and in a file; `placed` is the number of the placement; `is_moving` is 1
 * while a move to another database is under way.
 */
export interface TenantRow {
  readonly id: string;
  readonly created_at: number;
  readonly database: string | null;
  readonly placed: number;
  readonly is_moving: number;
}

/**
 * A row of `keys` with its tenants. `digest` is the SHA-256 of the secret; `tags` and `tenants` are JSON lists, the
 * tenants in their order. Times are Unix ms. `expires_at` is null if the key never expires, `last_used_at` and
 * `revoked_at` are null until that happens, and `user_id` is null for a key of all users.
 */
export interface KeyRow {
  readonly id: string;
  readonly tenants: string;
  /** Place of the first of these tenants among all for which the key was made; above 0 once an earlier one is gone. */
  readonly first_place: number;
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

/** The columns of a new key's row, `tags` as a JSON list. */
interface NewKeyRow extends Pick<KeyRecord, 'id' | 'role' | 'label' | 'userId' | 'createdAt' | 'expiresAt'> {
  readonly tags: string;
  readonly digest: Buffer;
}

/** The prepared statements of the control database. */
export interface ControlStatements {
  readonly readGeneration: Statement<[], { generation: number }>;
  readonly bumpGeneration: Statement;
  readonly listTenants: Statement<[], TenantRow>;
  readonly findTenant: Statement<[string], TenantRow>;
  readonly insertTenant: Statement<[string, number]>;
  readonly deleteTenant: Statement<[string]>;
  readonly listKeys: Statement<[], KeyRow>;
  readonly listLiveKeys: Statement<[], KeyRow>;
  readonly listKeysOf: Statement<[string], KeyRow>;
  readonly pageKeysOf: Statement<[string, number, number], KeyRow>;
  readonly countKeysOf: Statement<[string], { live: number; total: number }>;
  readonly countLiveKeys: Statement<[], { tenant_id: string; live: number }>;
  readonly findKey: Statement<[string], KeyRow>;
  readonly deleteOldRevokedKeys: Statement<[string, number]>;
  readonly insertKey: Statement<[NewKeyRow]>;
  readonly insertKeyTenant: Statement<[string, number, string]>;
  /**
   * Stores when keys were last used. Its parameter is a JSON list of pairs: the id of a key, and the time of its last
   * use (Unix ms).
   */
  readonly noteKeyUses: Statement<[string]>;
  readonly deleteKeysWithoutTenant: Statement;
  readonly revokeKey: Statement<[number, string]>;
  readonly readSetting: Statement<[string, string], { value: string }>;
  readonly writeSetting: Statement<[string, string, string]>;
}

const KEYS = `SELECT keys.*, (SELECT json_group_array(tenant_id ORDER BY place) FROM key_tenants
                              WHERE key_id = keys.id) AS tenants,
                (SELECT min(place) FROM key_tenants WHERE key_id = keys.id) AS first_place FROM keys`;
/** Columns of a tenant's placement, and the join that they need, in PostgreSQL. */
const PLACED = {
  columns: 'p.database, coalesce(p.number, 0) AS placed, p.moving IS NOT NULL AS is_moving',
  join: 'LEFT JOIN placements p ON p.tenant_id = tenants.id',
};
/** Columns in place of those of `PLACED` for tenants in files, which have no placement. */
const IN_FILES = { columns: 'NULL AS database, 0 AS placed, 0 AS is_moving', join: '' };
/** SQL condition on `tenants` that excludes those that `cairn move` took away one by one. */
export const NOT_MOVED = `NOT EXISTS (SELECT 1 FROM store_info WHERE key = 'moved_to:' || tenants.id)`;
const OF_TENANT = 'WHERE id IN (SELECT key_id FROM key_tenants WHERE tenant_id = ?)';

/**
 * Prepares the statements that several parts of the control database share.
 * @param options.hasPlacements whether tenants may be placed in several databases, as in PostgreSQL
 */
export function prepareStatements(
  prepare: ControlFile['prepare'],
  { hasPlacements }: { readonly hasPlacements: boolean },
): ControlStatements {
  const { columns, join } = hasPlacements ? PLACED : IN_FILES;
  return {
    readGeneration: prepare<[], { generation: number }>('SELECT generation FROM access_generation'),
    bumpGeneration: prepare('UPDATE access_generation SET generation = generation + 1'),

    listTenants: prepare<[], TenantRow>(
      `SELECT id, created_at, ${columns} FROM tenants ${join} WHERE ${NOT_MOVED} ORDER BY created_at, id`,
    ),
    findTenant: prepare<[string], TenantRow>(`SELECT id, created_at, ${columns} FROM tenants ${join} WHERE id = ?`),
    insertTenant: prepare<[string, number]>(
      'INSERT INTO tenants (id, created_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING',
    ),
    /** Deletes a tenant. Foreign keys also delete its settings, limits and servers, and remove it from its keys. */
    deleteTenant: prepare<[string]>('DELETE FROM tenants WHERE id = ?'),

    listKeys: prepare<[], KeyRow>(`${KEYS} ORDER BY created_at, id`),
    listLiveKeys: prepare<[], KeyRow>(`${KEYS} WHERE revoked_at IS NULL`),
    listKeysOf: prepare<[string], KeyRow>(`${KEYS} ${OF_TENANT} ORDER BY created_at, id`),
    pageKeysOf: prepare<[string, number, number], KeyRow>(
      `${KEYS} ${OF_TENANT} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?`,
    ),
    countKeysOf: prepare<[string], { live: number; total: number }>(
      `SELECT count(*) AS total, count(*) FILTER (WHERE revoked_at IS NULL) AS live FROM keys ${OF_TENANT}`,
    ),
    countLiveKeys: prepare<[], { tenant_id: string; live: number }>(
      `SELECT tenant_id, count(*) AS live FROM key_tenants JOIN keys ON keys.id = key_id
       WHERE revoked_at IS NULL GROUP BY tenant_id`,
    ),
    findKey: prepare<[string], KeyRow>(`${KEYS} WHERE id = ?`),
    /**
     * Deletes revoked keys whose first tenant this is, except those that were revoked last; the second parameter is the
     * number of keys that stay.
     */
    deleteOldRevokedKeys: prepare<[string, number]>(
      `DELETE FROM keys WHERE id IN (
         SELECT id FROM keys JOIN key_tenants ON key_id = id AND place = 0
         WHERE tenant_id = ? AND revoked_at IS NOT NULL ORDER BY revoked_at DESC LIMIT -1 OFFSET ?)`,
    ),
    insertKey: prepare<[NewKeyRow]>(
      `INSERT INTO keys (id, role, label, digest, user_id, tags, created_at, expires_at)
       VALUES (@id, @role, @label, @digest, @userId, @tags, @createdAt, @expiresAt)`,
    ),
    insertKeyTenant: prepare<[string, number, string]>(
      'INSERT INTO key_tenants (key_id, place, tenant_id) VALUES (?, ?, ?)',
    ),
    noteKeyUses: prepare<[string]>(
      `UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), used.at)
       FROM (SELECT value ->> 0 AS id, CAST(value ->> 1 AS INTEGER) AS at FROM json_each(?)) AS used
       WHERE keys.id = used.id`,
    ),
    deleteKeysWithoutTenant: prepare('DELETE FROM keys WHERE id NOT IN (SELECT key_id FROM key_tenants)'),
    /** Revokes a key; takes the time and the key's id. A key that was revoked before keeps its earlier time. */
    revokeKey: prepare<[number, string]>('UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?'),

    readSetting: prepare<[string, string], { value: string }>(
      'SELECT value FROM settings WHERE tenant_id = ? AND name = ?',
    ),
    writeSetting: prepare<[string, string, string]>(
      `INSERT INTO settings (tenant_id, name, value) VALUES (?, ?, ?)
       ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value`,
    ),
  };
}
