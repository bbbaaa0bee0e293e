import { LRUCache } from 'lru-cache';
import { createArrivingSpace } from '../documents/arriving-space.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { ThreadServices } from '../readers/read.ts';
import type { Readers } from '../readers/readers.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { createTenant } from '../tenant/tenant.ts';
import type { TenantOptions } from '../tenant/tenant-options.ts';
import { TenantState } from '../tenant/tenant-state.ts';

/** The tenants of an engine. */
export interface Tenants {
  /**
   * Returns a tenant by its id. It is looked up each time, as tenants may be deleted, and moved to other databases.
   * @throws EngineError `not_found` if the control database has no such tenant; the errors of the control database
   */
  get(id: string): Tenant;
  /** Stops watching whether tenants have moved. */
  close(): void;
}

type CreateTenantsOptions = Omit<TenantOptions, 'id' | 'path' | 'open' | 'querySourceOf' | 'arrivingSpace'> &
  Pick<ThreadServices, 'querySourceOf'> & { readonly pool: TenantPool };

/**
 * Time between two looks for tenants that were deleted or have moved to another database, whose old place is then
 * closed (ms). Only tenants in PostgreSQL are looked at.
 */
const LOOK_EVERY_MS = 1_000;

/**
 * Greatest number of recently used objects of tenants that are kept: each tenant has one, and one more for each API key
 * that uses it (`Tenant.as`). Each takes some 25 KB, and making it some 20 µs.
 */
const MAX_OBJECTS = 1_000;

/** A tenant that was used: where it is stored, and what its objects share. */
interface KnownTenant {
  readonly path: string;
  /** A number that no other one has, not even of a tenant with the same id that was deleted before. */
  readonly no: number;
  readonly state: TenantState;
}

/**
 * Creates the tenants of an engine at their first use. Their states are kept, and the objects of those that were used
 * lately.
 */
export function createTenants({ pool, querySourceOf, ...options }: CreateTenantsOptions): Tenants {
  const { control, readers, writer, config } = options;
  const mayMove = config.OM_DATABASE_URL !== undefined;
  const arrivingSpace = createArrivingSpace();
  const tenants = new Map<string, KnownTenant>();
  let newestNo = 0;
  const objects = new LRUCache<string, Tenant>({ max: MAX_OBJECTS });
  const objectOf = (id: string, known: KnownTenant, keyId: string | null): Tenant => {
    const name = `${known.no} ${keyId ?? ''}`;
    let object = objects.get(name);
    if (object === undefined) {
      const { path, state } = known;
      const own: TenantOptions = {
        ...{ ...options, id, path, arrivingSpace, open: () => pool.get(path) },
        querySourceOf: (model) => querySourceOf(model, path),
      };
      const placed = mayMove ? { ...own, ...atPresentPlace(own) } : own;
      object = createTenant(placed, { state, keyId, viewOf: (ofKey) => objectOf(id, known, ofKey) });
      objects.set(name, object);
    }
    return object;
  };
  const closeOldPlace = (id: string, present: string | undefined) => {
    const known = tenants.get(id);
    if (known === undefined || known.path === present) return;
    tenants.delete(id);
    if (!mayMove) return;
    pool.evict(known.path);
    readers.forget(known.path);
    void writer.evict(known.path).catch(() => {});
  };
  const look = () => {
    try {
      for (const id of [...tenants.keys()]) closeOldPlace(id, control.findTenantPath(id));
    } catch {
      // The control database does not answer just now. The next look, or the next use of the tenant, comes soon.
    }
  };
  const timer = mayMove ? setInterval(look, LOOK_EVERY_MS).unref() : undefined;
  return {
    get(id) {
      const path = control.findTenantPath(id);
      closeOldPlace(id, path);
      if (path === undefined) throw new EngineError('not_found', control.findMoved(id) ?? 'no such tenant');
      let known = tenants.get(id);
      if (known === undefined) tenants.set(id, (known = { path, no: (newestNo += 1), state: new TenantState() }));
      return objectOf(id, known, null);
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Returns what a tenant reads and writes with, refused with `unavailable` once the tenant has moved to another database
 * or was deleted. A long reply (an event stream) may still have the tenant of the old place, which soon has no rows.
 */
function atPresentPlace({ id, path, control, open, readers, writer }: TenantOptions) {
  const requirePresent = () => {
    if (control.findTenantPath(id) !== path)
      throw new EngineError('unavailable', 'the tenant has moved to another database', { retryAfterMs: 1_000 });
  };
  const guarded = (own: Readers): Readers => ({
    ...own,
    read: (async (...call: Parameters<Readers['read']>) => {
      requirePresent();
      return own.read(...call);
    }) as Readers['read'],
    readFew: (async (...call: Parameters<Readers['readFew']>) => {
      requirePresent();
      return own.readFew(...call);
    }) as Readers['readFew'],
    as: (keyId) => guarded(own.as(keyId)),
  });
  return {
    open() {
      requirePresent();
      return open();
    },
    readers: guarded(readers),
    writer: {
      ...writer,
      write: (async (...call: Parameters<typeof writer.write>) => {
        requirePresent();
        return writer.write(...call);
      }) as typeof writer.write,
    },
  };
}
