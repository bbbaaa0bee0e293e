import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import type { Config } from '../config.ts';
import { removeUploads } from '../documents/uploads.ts';
import { assert, EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { migrate } from '../store/migrate.ts';
import { BUSY_TIMEOUT_MS, pathError, retryWhileBusy, sqliteCode, storageError } from '../store/open-store.ts';
import { createPrivateFile } from '../store/private-file.ts';
import {
  DEFAULT_TENANT,
  type ControlDatabase,
  type KeyRecord,
  type Principal,
  type Role,
  type TenantRecord,
} from './control-database.ts';

/** The tenant that always exists: its file is `OM_DB_PATH`, its first key `OM_API_KEY`. */

/** A change by another process is noticed this long after the last look at the generation counter, at the latest (ms). */
export const GENERATION_LOOK_MS = 250;

const MIGRATIONS = path.join(import.meta.dirname, 'migrations');
/** Ids become file names: nothing else than this may reach a path. */
const TENANT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const KEY_SECRET = /^cairn_([0-9a-f]{16})_[\w-]{43}$/;
const NO_DIGEST = Buffer.alloc(32);

/** Who may do what, as of one generation; held in memory so that a request costs no read of the file. */
interface Access {
  readonly generation: number;
  readonly tenants: ReadonlyMap<string, TenantRecord>;
  /** Without the revoked ones. */
  readonly keys: ReadonlyMap<string, { readonly digest: Buffer; readonly principal: Principal }>;
}

/**
 * Opens (and makes, if need be) the control database beside the default tenant's file.
 * @throws EngineError `invalid` for a path that cannot be a database's; `unprocessable` for a file that is no database or is from a newer Cairn; what `storageError` says
 */
export function openControlDatabase(config: Config, clock: Clock): ControlDatabase {
  const db = openFile(config.paths.control);
  const statements = prepareStatements(db);
  const environmentDigest = config.OM_API_KEY === undefined ? undefined : digestOf(config.OM_API_KEY);

  /** One short transaction that other processes notice. */
  function change<T>(work: () => T): T {
    const result = immediately(db, () => {
      const value = work();
      statements.bumpGeneration.run();
      return value;
    });
    access = readAccess();
    return result;
  }

  const readAccess = db.transaction((): Access => {
    lookedAt = performance.now();
    const keys = statements.listKeys.all().filter((key) => key.revoked_at === null);
    everHadKey ||= keys.length > 0;
    return {
      generation: statements.readGeneration.get()!.generation,
      tenants: new Map(statements.listTenants.all().map((row) => [row.id, tenantFromRow(row)])),
      keys: new Map(keys.map((key) => [key.id, { digest: key.digest, principal: principalFromRow(key) }])),
    };
  });

  /** By the monotonic clock, as the wall clock may be set back. */
  function currentAccess(maxAgeMs = GENERATION_LOOK_MS): Access {
    if (performance.now() - lookedAt < maxAgeMs) return access;
    lookedAt = performance.now();
    if (statements.readGeneration.get()!.generation !== access.generation) access = readAccess();
    return access;
  }

  /** A tenant unknown to the cache may have been made a moment ago by another process, so a miss always looks. */
  function findTenant(tenantId: string): TenantRecord | undefined {
    return currentAccess().tenants.get(tenantId) ?? currentAccess(0).tenants.get(tenantId);
  }

  function requireTenant(tenantId: string): void {
    if (findTenant(tenantId) === undefined) throw new EngineError('not_found', `no tenant ${describeId(tenantId)}`);
  }

  function tenantFile(tenantId: string): string {
    if (tenantId === DEFAULT_TENANT) return config.paths.defaultTenant;
    assert(TENANT_ID.test(tenantId), 'a tenant id that is safe as a file name');
    return path.join(config.paths.tenants, `${tenantId}.sqlite`);
  }

  let everHadKey = environmentDigest !== undefined;
  let lookedAt = 0;
  if (statements.findTenant.get(DEFAULT_TENANT) === undefined) {
    immediately(db, () => statements.insertTenant.run(DEFAULT_TENANT, clock.now()));
  }
  let access = readAccess();

  return {
    listTenants: () => [...currentAccess(0).tenants.values()],

    findTenantPath: (tenantId) => (findTenant(tenantId) === undefined ? undefined : tenantFile(tenantId)),

    createTenant(tenantId) {
      if (!TENANT_ID.test(tenantId)) {
        throw new EngineError(
          'invalid',
          `tenant id ${describeId(tenantId)}: expected 1..64 of a-z, 0-9, - and _, starting with a letter or digit`,
        );
      }
      return change(() => {
        const tenant = { id: tenantId, createdAt: clock.now() };
        if (statements.insertTenant.run(tenant.id, tenant.createdAt).changes === 0) {
          throw new EngineError('conflict', `tenant ${tenantId} exists`);
        }
        // A file nobody owns may hold an earlier tenant's memories: a new tenant must not inherit them.
        if (databaseFiles(tenantFile(tenantId)).some((file) => fs.existsSync(file))) {
          throw new EngineError(
            'conflict',
            `a database file of an earlier tenant ${tenantId} is still there: move it away`,
          );
        }
        return tenant;
      });
    },

    eraseTenant(tenantId) {
      if (tenantId === DEFAULT_TENANT) throw new EngineError('invalid', 'the default tenant cannot be erased');
      change(() => {
        if (statements.deleteTenant.run(tenantId).changes === 0) {
          throw new EngineError('not_found', `no tenant ${describeId(tenantId)}`);
        }
        // Before the commit: if the files cannot be removed, or a crash comes between, the erasure can be asked for again.
        for (const file of databaseFiles(tenantFile(tenantId))) fs.rmSync(file, { force: true });
        removeUploads(tenantFile(tenantId));
      });
    },

    createKey({ tenantId, role, label = '' }) {
      requireTenant(tenantId);
      const id = randomBytes(8).toString('hex');
      const secret = `cairn_${id}_${randomBytes(32).toString('base64url')}`;
      const record: KeyRecord = { id, tenantId, role, label, createdAt: clock.now(), revokedAt: null };
      change(() => statements.insertKey.run({ ...record, digest: digestOf(secret) }));
      return { record, secret };
    },

    listKeys(tenantId) {
      const rows = statements.listKeys.all();
      return rows.filter((row) => tenantId === undefined || row.tenant_id === tenantId).map(keyFromRow);
    },

    revokeKey(keyId) {
      change(() => {
        if (statements.revokeKey.run(clock.now(), keyId).changes === 0) {
          // Not repeated, as it may be a whole secret, given by mistake.
          throw new EngineError('not_found', 'no key has this id');
        }
      });
    },

    isOpen() {
      currentAccess();
      // Revoking the last key must not open a server that runs, whatever address it listens on: only a restart can.
      return !everHadKey;
    },

    authenticate(secret) {
      const digest = digestOf(secret);
      const isEnvironmentKey = timingSafeEqual(digest, environmentDigest ?? NO_DIGEST);
      const keyId = KEY_SECRET.exec(secret)?.[1] ?? '';
      const key = currentAccess().keys.get(keyId) ?? (keyId === '' ? undefined : currentAccess(0).keys.get(keyId));
      const isKey = timingSafeEqual(digest, key?.digest ?? NO_DIGEST);
      if (isEnvironmentKey) return { tenantId: DEFAULT_TENANT, role: 'admin', keyId: 'environment' };
      return isKey ? key?.principal : undefined;
    },

    getSetting: (tenantId, name) => statements.readSetting.get(tenantId, name)?.value,

    putSetting(tenantId, name, value) {
      requireTenant(tenantId);
      immediately(db, () => statements.writeSetting.run(tenantId, name, value));
    },

    close: () => db.close(),
  };
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

interface TenantRow {
  readonly id: string;
  readonly created_at: number;
}

interface KeyRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly role: Role;
  readonly label: string;
  readonly digest: Buffer;
  readonly created_at: number;
  readonly revoked_at: number | null;
}

function prepareStatements(db: Database.Database) {
  return {
    readGeneration: db.prepare<[], { generation: number }>('SELECT generation FROM access_generation'),
    bumpGeneration: db.prepare('UPDATE access_generation SET generation = generation + 1'),

    listTenants: db.prepare<[], TenantRow>('SELECT id, created_at FROM tenants ORDER BY created_at, id'),
    findTenant: db.prepare<[string], TenantRow>('SELECT id, created_at FROM tenants WHERE id = ?'),
    insertTenant: db.prepare<[string, number]>(
      'INSERT INTO tenants (id, created_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING',
    ),
    /** Its keys and settings go with it. */
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

function immediately<T>(db: Database.Database, work: () => T): T {
  try {
    return db.transaction(work).immediate();
  } catch (error) {
    throw storageError(error);
  }
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}

/** The main file first: without it the others are no database. */
function databaseFiles(file: string): string[] {
  return [file, `${file}-wal`, `${file}-shm`];
}

function tenantFromRow(row: TenantRow): TenantRecord {
  return { id: row.id, createdAt: row.created_at };
}

function keyFromRow(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    role: row.role,
    label: row.label,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  };
}

function principalFromRow(row: KeyRow): Principal {
  return { tenantId: row.tenant_id, role: row.role, keyId: row.id };
}

/** Ids come from clients: only so much of one goes into a message, and quoted. */
function describeId(id: string): string {
  return JSON.stringify(id.length > 64 ? `${id.slice(0, 64)}…` : id);
}
