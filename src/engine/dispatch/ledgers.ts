import { DEFAULT_TENANT } from '../control/open-control-database.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import type { Clock } from '../ports.ts';
import { forgetHandouts, hasUnmarked, peekHandout, returnHandout, takeHandout } from '../store/dispatch.ts';
import type { Store } from '../store/open-store.ts';
import type { TenantPool } from '../store/tenant-pool.ts';
import type { Writer } from '../writer/writer.ts';
import type { DispatchLedger } from './dispatcher.ts';

interface LedgerOptions {
  readonly control: ControlDatabase;
  readonly pool: TenantPool;
  readonly clock: Clock;
}

/** In a process that serves the API: looks over a reader's connection, marks through the writer. */
export function ledgerOverWriter({ control, pool, clock, writer }: LedgerOptions & { writer: Writer }): DispatchLedger {
  const pathOf = pathsOf(control);
  return {
    listTenants: () => control.listTenants().map(({ id }) => id),
    hasWork: (tenant, step) =>
      withPath(pathOf(tenant), (path) => hasUnmarked(pool.get(path).store, step, clock.now())) ?? false,
    async take(tenant, step, partial) {
      const path = pathOf(tenant);
      if (path === undefined) return undefined;
      const { store } = pool.get(path);
      const seen = store.read(() => peekHandout(store, { step, partial, now: clock.now() }));
      if (seen === undefined) return undefined;
      return (await writer.write(path, 'takeHandout', { step, partial })) ?? undefined;
    },
    async giveBack(tenant, seqs) {
      const path = pathOf(tenant);
      if (path !== undefined) await writer.write(path, 'returnHandout', { seqs });
    },
    async forget(tenant) {
      const path = pathOf(tenant);
      return path === undefined ? 0 : writer.write(path, 'forgetHandouts', {});
    },
  };
}

/** In a worker process: on a connection of its own. */
export function ledgerOverStores({ control, pool, clock }: LedgerOptions): DispatchLedger {
  const pathOf = pathsOf(control);
  const use = <T>(tenant: string, work: (store: Store) => T): T | undefined =>
    withPath(pathOf(tenant), (path) => work(pool.get(path).store));
  const write = <T>(tenant: string, work: (store: Store) => T): T | undefined =>
    use(tenant, (store) => store.write(() => work(store)));
  return {
    listTenants: () => control.listTenants().map(({ id }) => id),
    hasWork: (tenant, step) => use(tenant, (store) => hasUnmarked(store, step, clock.now())) ?? false,
    async take(tenant, step, partial) {
      const seen = use(tenant, (store) => peekHandout(store, { step, partial, now: clock.now() }));
      if (seen === undefined) return undefined;
      return write(tenant, (store) => takeHandout(store, { step, partial, now: clock.now() }));
    },
    giveBack: async (tenant, seqs) => void write(tenant, (store) => returnHandout(store, seqs)),
    forget: async (tenant) => write(tenant, forgetHandouts) ?? 0,
  };
}

function pathsOf(control: ControlDatabase): (tenant: string) => string | undefined {
  return (tenant) => control.findTenantPath(tenant);
}

function withPath<T>(path: string | undefined, work: (path: string) => T): T | undefined {
  return path === undefined ? undefined : work(path);
}

/** The tenant of a file, for hints that name files. */
export function createTenantFinder(control: ControlDatabase): (path: string) => string | undefined {
  const known = new Map<string, string>();
  return (path) => {
    const found = known.get(path);
    if (found !== undefined) return found;
    for (const { id } of control.listTenants()) {
      const own = control.findTenantPath(id);
      if (own !== undefined) known.set(own, id);
    }
    return known.get(path);
  };
}

/** Names the queues of one data folder by the identity of its default tenant's file. */
export function queuePrefix(pool: TenantPool, control: ControlDatabase): string {
  const path = control.findTenantPath(DEFAULT_TENANT);
  return `cairn-${path === undefined ? 'new' : pool.get(path).storeId}`;
}
