import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { removeUploads } from '../documents/uploads.ts';
import { assert, EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openAccessCache, type AccessCache } from './access-cache.ts';
import { DEFAULT_TENANT, type ControlDatabase, type KeyRecord } from './control-database.ts';
import { immediately, openControlFile, type ControlFile, type KeyRow } from './control-file.ts';

/** Tenant ids become file names, so a path holds no id that does not match this. */
const TENANT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** Form of a key's secret; the group is the key's id. */
const KEY_SECRET = /^cairn_([0-9a-f]{16})_[\w-]{43}$/;
/** Digest that no secret has; comparing with it takes as long as with another. */
const NO_DIGEST = Buffer.alloc(32);

interface Context {
  readonly file: ControlFile;
  readonly cache: AccessCache;
  readonly paths: Config['paths'];
  readonly clock: Clock;
}

/**
 * Opens the control database beside the default tenant's file, and makes it and the default tenant if they are absent.
 * @throws EngineError `invalid` for a path that cannot be a database's; `unprocessable` for a file that is no database
 *         or is from a newer Cairn; what `storageError` says
 */
export function openControlDatabase(config: Config, clock: Clock): ControlDatabase {
  const file = openControlFile(config.paths.control);
  const { statements } = file;
  if (statements.findTenant.get(DEFAULT_TENANT) === undefined) {
    immediately(file, () => statements.insertTenant.run(DEFAULT_TENANT, clock.now()));
  }
  const context: Context = { file, cache: openAccessCache(file), paths: config.paths, clock };
  return {
    ...tenantRecords(context),
    ...keyRecords(context),
    ...authentication(context, config.OM_API_KEY),

    getSetting: (tenantId, name) => statements.readSetting.get(tenantId, name)?.value,
    putSetting(tenantId, name, value) {
      requireTenant(context, tenantId);
      immediately(file, () => statements.writeSetting.run(tenantId, name, value));
    },

    close: () => file.db.close(),
  };
}

type TenantRecords = Pick<ControlDatabase, 'listTenants' | 'findTenantPath' | 'createTenant' | 'eraseTenant'>;

function tenantRecords({ file: { statements }, cache, paths, clock }: Context): TenantRecords {
  return {
    listTenants: () => cache.listTenants(),

    findTenantPath: (tenantId) => (cache.findTenant(tenantId) === undefined ? undefined : tenantFile(paths, tenantId)),

    createTenant(tenantId) {
      if (!TENANT_ID.test(tenantId)) {
        throw new EngineError(
          'invalid',
          `tenant id ${describeId(tenantId)}: expected 1..64 of a-z, 0-9, - and _, starting with a letter or digit`,
        );
      }
      return cache.change(() => {
        const tenant = { id: tenantId, createdAt: clock.now() };
        if (statements.insertTenant.run(tenant.id, tenant.createdAt).changes === 0) {
          throw new EngineError('conflict', `tenant ${tenantId} exists`);
        }
        // A file nobody owns may hold an earlier tenant's memories: a new tenant must not inherit them.
        if (databaseFiles(tenantFile(paths, tenantId)).some((name) => fs.existsSync(name))) {
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
      cache.change(() => {
        if (statements.deleteTenant.run(tenantId).changes === 0) {
          throw new EngineError('not_found', `no tenant ${describeId(tenantId)}`);
        }
        // Files are removed before the commit: if that fails, or a crash comes between, the erasure can be repeated.
        for (const name of databaseFiles(tenantFile(paths, tenantId))) fs.rmSync(name, { force: true });
        removeUploads(tenantFile(paths, tenantId));
      });
    },
  };
}

function keyRecords(context: Context): Pick<ControlDatabase, 'createKey' | 'listKeys' | 'revokeKey'> {
  const {
    file: { statements },
    cache,
    clock,
  } = context;
  return {
    createKey({ tenantId, role, label = '' }) {
      requireTenant(context, tenantId);
      const id = randomBytes(8).toString('hex');
      const secret = `cairn_${id}_${randomBytes(32).toString('base64url')}`;
      const record: KeyRecord = { id, tenantId, role, label, createdAt: clock.now(), revokedAt: null };
      cache.change(() => statements.insertKey.run({ ...record, digest: digestOf(secret) }));
      return { record, secret };
    },

    listKeys(tenantId) {
      const rows = statements.listKeys.all();
      return rows.filter((row) => tenantId === undefined || row.tenant_id === tenantId).map(keyFromRow);
    },

    revokeKey(keyId) {
      cache.change(() => {
        if (statements.revokeKey.run(clock.now(), keyId).changes === 0) {
          // The message does not repeat the id, which may be a whole secret, given by mistake.
          throw new EngineError('not_found', 'no key has this id');
        }
      });
    },
  };
}

/**
 * Creates the functions that identify callers.
 * @param environmentKey the value of OM_API_KEY; undefined if it is not set
 */
function authentication(
  { cache }: Context,
  environmentKey: string | undefined,
): Pick<ControlDatabase, 'isOpen' | 'authenticate'> {
  const environmentDigest = environmentKey === undefined ? undefined : digestOf(environmentKey);
  return {
    // Revoking the last key must not open a server that runs, whatever address it listens on: only a restart can.
    isOpen: () => !cache.hasSeenKey() && environmentDigest === undefined,

    authenticate(secret) {
      const digest = digestOf(secret);
      const isEnvironmentKey = timingSafeEqual(digest, environmentDigest ?? NO_DIGEST);
      const key = cache.findKey(KEY_SECRET.exec(secret)?.[1] ?? '');
      const isKey = timingSafeEqual(digest, key?.digest ?? NO_DIGEST);
      if (isEnvironmentKey) return { tenantId: DEFAULT_TENANT, role: 'admin', keyId: 'environment' };
      return isKey ? key?.principal : undefined;
    },
  };
}

/** Throws EngineError `not_found` for an unknown tenant. */
function requireTenant({ cache }: Context, tenantId: string): void {
  if (cache.findTenant(tenantId) === undefined) throw new EngineError('not_found', `no tenant ${describeId(tenantId)}`);
}

function tenantFile(paths: Config['paths'], tenantId: string): string {
  if (tenantId === DEFAULT_TENANT) return paths.defaultTenant;
  assert(TENANT_ID.test(tenantId), 'a tenant id that is safe as a file name');
  return path.join(paths.tenants, `${tenantId}.sqlite`);
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}

/** Lists the files of a database, the main file first: without it the others are no database. */
function databaseFiles(file: string): string[] {
  return [file, `${file}-wal`, `${file}-shm`];
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

/** Quotes an id for a message and cuts it to 64 characters, because ids come from clients. */
function describeId(id: string): string {
  return JSON.stringify(id.length > 64 ? `${id.slice(0, 64)}…` : id);
}
