import type { Holder, TenantRecord } from './control-database.ts';
import { immediately, type ControlFile, type KeyRow, type TenantRow } from './control-file.ts';

/**
 * Longest time (ms) for which a change by another process goes unnoticed. An access that comes later than this after
 * the last look reads the generation counter.
 */
export const GENERATION_LOOK_MS = 250;

/** Tenants and keys as of one generation. */
interface Access {
  readonly generation: number;
  readonly tenants: ReadonlyMap<string, TenantRecord>;
  /** Keys by id, without the revoked ones. */
  readonly keys: ReadonlyMap<string, CachedKey>;
}

interface CachedKey {
  /** SHA-256 of the secret. */
  readonly digest: Buffer;
  readonly holder: Holder;
}

/**
 * Tenants and keys in memory, so that a request costs no read of the file. What another process deleted or revoked may
 * still be found for `GENERATION_LOOK_MS`.
 */
export interface AccessCache {
  /** Lists the tenants as the file has them now, oldest first. */
  listTenants(): TenantRecord[];
  /** Finds a tenant; undefined for an unknown id. A new tenant is found at once. */
  findTenant(tenantId: string): TenantRecord | undefined;
  /**
   * Finds a key by its id (not its secret); undefined for an unknown or revoked key. A new key is found at once, and an
   * expired one is found as well.
   */
  findKey(keyId: string): CachedKey | undefined;
  /** True if this process has ever read a key that was not revoked at the time. It never becomes false again. */
  hasSeenKey(): boolean;
  /**
   * Runs `work` in one `BEGIN IMMEDIATE` transaction, tells other processes of the change, and reads the file again. If
   * `work` throws, nothing is changed. Throws what `work` throws and what `storageError` says.
   */
  change<T>(work: () => T): T;
}

/** Creates a cache and reads the file into it. The cache does not close the file. */
export function openAccessCache(file: ControlFile): AccessCache {
  const { db, statements } = file;
  let hasSeenKey = false;
  let lookedAt = 0;

  const readAccess = db.transaction((): Access => {
    lookedAt = performance.now();
    const keys = statements.listKeys.all().filter((key) => key.revoked_at === null && key.tenants !== '[]');
    hasSeenKey ||= keys.length > 0;
    return {
      generation: statements.readGeneration.get()!.generation,
      tenants: new Map(statements.listTenants.all().map((row) => [row.id, tenantFromRow(row)])),
      keys: new Map(keys.map((key) => [key.id, { digest: key.digest, holder: holderFromRow(key) }])),
    };
  });
  let access = readAccess();

  /**
   * Returns the cached state. If the last look at the file is `maxAgeMs` or longer ago, looks whether another process
   * changed it, and if so reads it again. The monotonic clock measures the age, as the wall clock may be set back.
   */
  function currentAccess(maxAgeMs = GENERATION_LOOK_MS): Access {
    if (performance.now() - lookedAt < maxAgeMs) return access;
    lookedAt = performance.now();
    if (statements.readGeneration.get()!.generation !== access.generation) access = readAccess();
    return access;
  }

  return {
    listTenants: () => [...currentAccess(0).tenants.values()],
    // Another process may have made a tenant or a key a moment ago, so a miss always reads the generation.
    findTenant: (tenantId) => currentAccess().tenants.get(tenantId) ?? currentAccess(0).tenants.get(tenantId),
    findKey: (keyId) =>
      currentAccess().keys.get(keyId) ?? (keyId === '' ? undefined : currentAccess(0).keys.get(keyId)),
    hasSeenKey() {
      currentAccess();
      return hasSeenKey;
    },
    change(work) {
      const result = immediately(file, () => {
        const value = work();
        statements.bumpGeneration.run();
        return value;
      });
      access = readAccess();
      return result;
    },
  };
}

function tenantFromRow(row: TenantRow): TenantRecord {
  return { id: row.id, createdAt: row.created_at };
}

function holderFromRow(row: KeyRow): Holder {
  const tenantIds = JSON.parse(row.tenants) as string[];
  const tags = JSON.parse(row.tags) as string[];
  return {
    tenantId: tenantIds[0]!,
    tenantIds,
    role: row.role,
    keyId: row.id,
    ...(row.user_id === null ? {} : { userId: row.user_id }),
    ...(tags.length === 0 ? {} : { tags }),
    expiresAt: row.expires_at,
  };
}
