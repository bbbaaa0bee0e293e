import { LRUCache } from 'lru-cache';
import type { Holder } from '../types.ts';
import type { TenantRecord } from './control-database.ts';
import type { ControlFile, KeyRow, TenantRow } from './control-file.ts';
import { createGenerationLook, GENERATION_LOOK_MS, type GenerationLook } from './generation-look.ts';
import { createLookupAllowance } from './lookup-allowance.ts';
import { TENANT_ID } from './tenant-paths.ts';

/**
 * Greatest number of names of which a process remembers that no tenant has them (in PostgreSQL only); the oldest is
 * forgotten first.
 */
const MAX_NO_TENANTS = 10_000;

/**
 * Tenants and keys as they were in the control database at one value of its generation counter, which every change
 * raises.
 */
interface Access {
  readonly tenants: ReadonlyMap<string, CachedTenant>;
  /** Names that were looked up since the control database last changed and that name no tenant; in PostgreSQL only. */
  readonly noTenants: LRUCache<string, true>;
  /** Keys by id, without those that are revoked and those whose tenants were all erased. */
  readonly keys: Map<string, CachedKey>;
  /**
   * Settings that were read since the control database last changed, by tenant and name; undefined for a setting that
   * is not stored. In PostgreSQL only.
   */
  readonly settings: Map<string, string | undefined>;
}

/** A tenant with the number of its placement. */
interface CachedTenant extends TenantRecord {
  readonly placed: number;
}

interface CachedKey {
  /** SHA-256 of the key's secret. */
  readonly digest: Buffer;
  readonly holder: Holder;
}

/**
 * Tenants and keys in memory, so that a request need not read the control database. A tenant or key that another
 * process deleted or revoked may still be found for 250 ms (`GENERATION_LOOK_MS`). In PostgreSQL every method throws
 * EngineError `unavailable` once the database has not answered for 5 s; until then, what is in memory is still found.
 */
export interface AccessCache {
  /**
   * Lists the tenants as the control database has them at this moment, oldest first, without those that `cairn move`
   * took away.
   */
  listTenants(): TenantRecord[];
  /**
   * Finds a tenant; undefined for an unknown id, and for a tenant that `cairn move` took away. In PostgreSQL an unknown
   * id takes a round trip.
   */
  findTenant(tenantId: string): CachedTenant | undefined;
  /**
   * Returns those of the ids that are ids of tenants, in their order, with at most one look into the control database
   * for all of them. A new tenant is found at once; in PostgreSQL within 250 ms (`GENERATION_LOOK_MS`) if its name was
   * looked up before there was the tenant, or while more than 20 lists a second have unknown names.
   */
  existingTenants(tenantIds: readonly string[]): string[];
  /**
   * Finds a key by its id (not its secret); undefined for an unknown or revoked key, or one whose tenants were all
   * erased. A new key is found at once; in PostgreSQL within 250 ms (`GENERATION_LOOK_MS`) while more than 20 unknown
   * keys a second are looked up. An expired key is found as well: the caller checks the expiry.
   */
  findKey(keyId: string): CachedKey | undefined;
  /**
   * Reads a tenant's setting; undefined if it is not stored. In PostgreSQL a setting is cached until something in the
   * control database changes; a file is read each time.
   */
  getSetting(tenantId: string, name: string): string | undefined;
  /** Whether this process has ever read a key that was not revoked at the time. Once true, it stays true. */
  hasSeenKey(): boolean;
  /**
   * Runs `work` in `ControlFile.write`, raises the generation counter, by which other processes notice the change, and
   * reads tenants and keys again. Returns what `work` returns. If `work` throws, nothing is changed and its error is
   * thrown; errors of the database are thrown as EngineErrors. If the later read fails, its error is thrown although
   * the change was made.
   */
  change<T>(work: () => T): T;
  /**
   * Runs `work`, which changes only the key with this id, in one write, and raises the generation counter. The other
   * keys are read again only if another process changed something in the meantime. Returns and throws as `change`.
   */
  changeKey<T>(keyId: string, work: () => T): T;
  /**
   * Stores a setting of a tenant, replacing an earlier value, and raises the generation counter in the same
   * transaction. Tenants and keys are read again only if another process changed something in the meantime.
   */
  changeSetting(tenantId: string, name: string, value: string): void;
  /** Stores a setting of a tenant as `changeSetting` does, but only if there is none. Returns what is stored then. */
  makeSetting(tenantId: string, name: string, value: string): string;
}

function readAll({ listLiveKeys, listTenants }: ControlFile['statements']): Access {
  const keys = listLiveKeys.all().filter(({ tenants }) => tenants !== '[]');
  return {
    tenants: new Map(listTenants.all().map((row) => [row.id, tenantFromRow(row)])),
    noTenants: new LRUCache({ max: MAX_NO_TENANTS }),
    keys: new Map(keys.map((key) => [key.id, { digest: key.digest, holder: holderFromRow(key) }])),
    settings: new Map(),
  };
}

/** Creates a cache and fills it from the control database. The cache does not close the database. */
export function openAccessCache(file: ControlFile): AccessCache {
  const { statements } = file;
  const look = createGenerationLook(file);
  const mayLookUp = createLookupAllowance();
  let hasSeenKey = false;

  const readAccess = () => {
    const read = look.read(() => readAll(statements));
    hasSeenKey ||= read.keys.size > 0;
    return read;
  };
  let access = readAccess();

  /**
   * Returns the cached state, read again if another process has changed it. A file is checked if its last check is
   * `maxAgeMs` ago or longer; PostgreSQL is asked only with 0, else what its background thread read last counts.
   */
  function currentAccess(maxAgeMs = GENERATION_LOOK_MS): Access {
    if (look.hasChanged(maxAgeMs)) access = readAccess();
    return access;
  }

  return {
    listTenants: () => [...currentAccess(0).tenants.values()].map(({ placed: _, ...tenant }) => tenant),
    ...createTenantFinder(file, currentAccess),
    ...createSettings(file, look, {
      current: currentAccess,
      known: () => access,
      readAgain: () => void (access = readAccess()),
    }),
    findKey(keyId) {
      // Another process may have made the key a moment ago, so a miss reads the generation.
      const known = currentAccess().keys.get(keyId);
      if (known !== undefined || keyId === '' || (file.watched !== null && !mayLookUp())) return known;
      return currentAccess(0).keys.get(keyId);
    },
    hasSeenKey() {
      currentAccess();
      return hasSeenKey;
    },
    change(work) {
      const result = file.write(() => {
        const value = work();
        statements.bumpGeneration.run();
        return value;
      });
      access = readAccess();
      return result;
    },
    changeKey(keyId, work) {
      const find = () => statements.findKey.get(keyId);
      const { result, row, isFollowed } = changeOne(file, look, () => ({ result: work(), row: find() }));
      if (!isFollowed) access = readAccess();
      else {
        if (row === undefined || row.revoked_at !== null) access.keys.delete(keyId);
        else access.keys.set(keyId, { digest: row.digest, holder: holderFromRow(row) });
        hasSeenKey ||= access.keys.size > 0;
      }
      return result;
    },
  };
}

interface Followed {
  readonly isFollowed: boolean;
}

/**
 * Runs `work` in `ControlFile.write` and raises the generation counter.
 * @returns what `work` returned, with `isFollowed`: whether nothing but this change has happened since the last read
 */
function changeOne<T extends object>(file: ControlFile, look: GenerationLook, work: () => T): T & Followed {
  const { bumpGeneration, readGeneration } = file.statements;
  const { made, generation } = file.write(() => {
    const value = work();
    bumpGeneration.run();
    return { made: value, generation: readGeneration.get()!.generation };
  });
  return { ...made, isFollowed: look.follow(generation) };
}

/**
 * Makes the functions of settings.
 * @param access.current returns what is in memory, read again if another process has changed it
 * @param access.known returns what is in memory
 */
function createSettings(
  file: ControlFile,
  look: GenerationLook,
  access: { current(): Access; known(): Access; readAgain(): void },
): Pick<AccessCache, 'getSetting' | 'changeSetting' | 'makeSetting'> {
  const { readSetting, writeSetting } = file.statements;
  const read = (tenantId: string, name: string) => readSetting.get(tenantId, name)?.value;
  /** Runs `write` for a setting, and returns the value that is stored then. */
  const change = (tenantId: string, name: string, write: () => void): string => {
    const { stored, isFollowed } = changeOne(file, look, () => {
      write();
      return { stored: read(tenantId, name)! };
    });
    if (isFollowed) access.known().settings.delete(`${tenantId} ${name}`);
    else access.readAgain();
    return stored;
  };
  return {
    getSetting(tenantId, name) {
      if (file.watched === null) return read(tenantId, name);
      const { settings } = access.current();
      const place = `${tenantId} ${name}`;
      if (!settings.has(place)) settings.set(place, read(tenantId, name));
      return settings.get(place);
    },
    changeSetting: (tenantId, name, value) =>
      void change(tenantId, name, () => void writeSetting.run(tenantId, name, value)),
    makeSetting: (tenantId, name, value) =>
      change(tenantId, name, () => {
        if (read(tenantId, name) === undefined) writeSetting.run(tenantId, name, value);
      }),
  };
}

/**
 * Makes the functions that find tenants. Another process may have made one a moment ago, so where an id is unknown, the
 * generation is read. In PostgreSQL that is a round trip. Names that a token brings along are therefore looked up
 * within an allowance, and one that no tenant has is remembered. Names of Cairn's own, such as those of queued jobs,
 * are always looked up, since a job is lost if its tenant is not found.
 */
function createTenantFinder(
  { watched }: ControlFile,
  currentAccess: (maxAgeMs?: number) => Access,
): Pick<AccessCache, 'findTenant' | 'existingTenants'> {
  const mayLookUp = createLookupAllowance();
  return {
    findTenant: (tenantId) => currentAccess().tenants.get(tenantId) ?? currentAccess(0).tenants.get(tenantId),
    existingTenants(tenantIds) {
      let { tenants, noTenants } = currentAccess();
      const unknown = tenantIds.filter((id) => !tenants.has(id) && !noTenants.has(id) && TENANT_ID.test(id));
      if (unknown.length > 0 && (watched === null || mayLookUp())) {
        ({ tenants, noTenants } = currentAccess(0));
        if (watched !== null) for (const id of unknown) if (!tenants.has(id)) noTenants.set(id, true);
      }
      return tenantIds.filter((id) => tenants.has(id));
    },
  };
}

function tenantFromRow({ id, created_at: createdAt, database, placed, is_moving: isMoving }: TenantRow): CachedTenant {
  return { id, createdAt, database, placed, isMoving: isMoving === 1 };
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
    ...(row.first_place === 0 ? {} : { mustNameTenant: true }),
    expiresAt: row.expires_at,
  };
}
