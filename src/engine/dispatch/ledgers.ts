import type { Config } from '../config.ts';
import { DEFAULT_TENANT, type ControlDatabase } from '../control/control-database.ts';
import type { Clock } from '../ports.ts';
import {
  forgetDispatchMarks,
  returnDispatchBatch,
  takeDispatchBatch,
  type DispatchBatch,
  type TooFew,
  type WantedBatch,
} from '../store/dispatch.ts';
import { recoverLeases, type Recovery } from '../store/job-leases.ts';
import type { Store } from '../store/open-store.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import type { Writer } from '../writer/writer.ts';
import type { DispatchLedger, QueuePlace } from './dispatch-ports.ts';
import type { LedgerPoller } from './ledger-poller.ts';

interface LedgerOptions {
  readonly control: ControlDatabase;
  readonly poller: LedgerPoller;
  readonly clock: Clock;
  /**
   * Whether vectors are computed on this machine or not at all (`Config.embedsHere`). Bulk jobs that embed then wait
   * while documents are read.
   */
  readonly embedsHere: boolean;
}

/**
 * The changes that a dispatcher makes to a tenant's ledger, as in `DispatchLedger`, but with the path of the tenant's
 * file in place of its id.
 */
interface LedgerWriter {
  take(path: string, options: WantedBatch): Promise<DispatchBatch | TooFew | undefined>;
  giveBack(path: string, jobNos: readonly number[]): Promise<void>;
  forget(path: string): Promise<number>;
  recover(path: string): Promise<Recovery>;
}

/**
 * Makes the access to the tenants' ledgers (tables of jobs) for a dispatcher in a process that serves the API. It reads
 * on the poller's connections; the writer thread makes its changes, which mark rows as handed out to a queue or remove
 * such marks.
 */
export function ledgerOverWriter({ writer, ...options }: LedgerOptions & { readonly writer: Writer }): DispatchLedger {
  return createLedger(options, {
    take: async (path, batch) => (await writer.write(path, 'takeDispatchBatch', batch)) ?? undefined,
    giveBack: (path, jobNos) => writer.write(path, 'returnDispatchBatch', { jobNos }),
    forget: (path) => writer.write(path, 'forgetDispatchMarks', {}),
    recover: (path) => writer.write(path, 'recoverLeases', {}),
  });
}

/**
 * Makes the access to the tenants' ledgers (tables of jobs) for a dispatcher in a worker process. It marks rows as
 * handed out to a queue, and removes such marks, on connections of its own.
 * @param leaseMs time for which a claim of a job holds (ms); jobs with an older one are made due again
 */
export function ledgerOverStores({
  pool,
  leaseMs,
  ...options
}: LedgerOptions & { readonly pool: TenantPool; readonly leaseMs: number }): DispatchLedger {
  const write = <T>(path: string, work: (store: Store) => T): T => {
    const { store } = pool.get(path);
    return store.write(() => work(store));
  };
  const { embedsHere } = options;
  const now = () => options.clock.now();
  return createLedger(options, {
    take: async (path, batch) => write(path, (store) => takeDispatchBatch(store, { ...batch, embedsHere, now: now() })),
    giveBack: async (path, jobNos) => write(path, (store) => returnDispatchBatch(store, jobNos)),
    forget: async (path) => write(path, forgetDispatchMarks),
    recover: async (path) => write(path, (store) => recoverLeases(store, { now: now(), leaseMs, everyOwner: false })),
  });
}

/**
 * Creates the access to the tenants' ledgers for a dispatcher. In files it reads before it takes rows or removes their
 * marks, since finding no rows then needs no write lock. For a tenant that was erased, each call finds no rows and does
 * nothing.
 */
function createLedger({ control, poller, clock, embedsHere }: LedgerOptions, writer: LedgerWriter): DispatchLedger {
  const pathOf = (tenant: string) => control.findTenantPath(tenant);
  const listPaths = () =>
    new Map(
      control.listTenants().flatMap(({ id }) => {
        const path = pathOf(id);
        return path === undefined ? [] : [[path, id] as const];
      }),
    );
  const { together } = poller;
  const byTenant = async <T>(
    tenants: readonly string[],
    read: (paths: readonly string[]) => Promise<ReadonlyMap<string, T>>,
  ) => {
    const ids = new Map(tenants.map((tenant) => [pathOf(tenant), tenant] as const));
    const found = await read([...ids.keys()].filter((path) => path !== undefined));
    return new Map([...found].map(([path, result]) => [ids.get(path)!, result] as const));
  };
  return {
    async look() {
      const tenants = listPaths();
      const { statuses, failures, isComplete } = await poller.look([...tenants.keys()]);
      return {
        statuses: statuses.map(({ path, ...status }) => ({ tenant: tenants.get(path)!, ...status })),
        failures: failures.map(({ path, error }) => ({ tenant: tenants.get(path)!, error })),
        isComplete,
      };
    },
    async listUnfinished(signal) {
      const tenants = listPaths();
      const paths = await poller.listUnfinished([...tenants.keys()], signal);
      return paths.map((path) => tenants.get(path)!);
    },
    together: together && {
      dueSteps: (tenants) => byTenant(tenants, together.dueSteps),
      peek: (tenants, lane) =>
        byTenant(tenants, (paths) => together.peek(paths, { ...lane, embedsHere, now: clock.now() })),
    },
    async take(tenant, options) {
      const path = pathOf(tenant);
      if (path === undefined) return undefined;
      const seen = poller.peek(path, { ...options, embedsHere, now: clock.now() });
      return seen === 'some' ? writer.take(path, options) : seen;
    },
    async giveBack(tenant, jobNos) {
      const path = pathOf(tenant);
      if (path !== undefined) await writer.giveBack(path, jobNos);
    },
    async forget(tenant) {
      const path = pathOf(tenant);
      return path !== undefined && (await poller.hasMarks(path)) ? writer.forget(path) : 0;
    },
    async recover(tenant) {
      const path = pathOf(tenant);
      return path === undefined ? { requeued: 0, dead: 0 } : writer.recover(path);
    },
    close: () => poller.close(),
  };
}

/**
 * Creates a function that finds the id of the tenant whose file has a path. It still finds a tenant that was erased
 * after it was first found; it returns undefined for a path of no tenant.
 */
export function createTenantFinder(control: ControlDatabase): (path: string) => string | undefined {
  const tenants = new Map<string, string>();
  return (path) => {
    const tenant = tenants.get(path);
    if (tenant !== undefined) return tenant;
    for (const { id } of control.listTenants()) {
      const own = control.findTenantPath(id);
      if (own !== undefined) tenants.set(own, id);
    }
    return tenants.get(path);
  };
}

/**
 * Returns where the queues are: in Redis with `REDIS_URL`, else in PostgreSQL with `OM_DATABASE_URL`; null without
 * both, so that workers read the ledgers themselves.
 */
export function queuePlaceOf(
  { REDIS_URL: redisUrl, OM_DATABASE_URL: database }: Config,
  { pool, control }: { readonly pool: TenantPool; readonly control: ControlDatabase },
): QueuePlace | null {
  if (redisUrl !== undefined) return { kind: 'redis', redisUrl, prefix: queuePrefix(pool, control) };
  return database === undefined ? null : { kind: 'postgres', database };
}

/**
 * Returns the prefix of the names of one data folder's queues: `cairn-` and the id of its default tenant's file, which
 * it opens, or `cairn-new` without a default tenant.
 */
export function queuePrefix(pool: TenantPool, control: ControlDatabase): string {
  const path = control.findTenantPath(DEFAULT_TENANT);
  return `cairn-${path === undefined ? 'new' : pool.get(path).storeId}`;
}
