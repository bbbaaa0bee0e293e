/**
 * Reads the ledgers of many tenants of a PostgreSQL database with one statement, on a connection for which no thread
 * waits: the dispatcher shares its thread with requests.
 */

import { setImmediate as yieldTurn } from 'node:timers/promises';
import type pg from 'pg';
import { EngineError } from '../../errors.ts';
import { QUEUED_STEPS, type QueuedStep } from '../../jobs.ts';
import { heldUntil, maxBatchSize, type LedgerStatus, type WantedLane } from '../dispatch.ts';
import type { LeaseTimes } from '../job-leases.ts';
import { databaseError, PostgresError } from './postgres-error.ts';
import { ENDS_WITH_CONNECTION, PLANNING } from './session-settings.ts';
import type { TenantPlace } from './tenant-database.ts';
import { EarlierSchema, noteReachable, noteUnreachable, requireNoPause } from './unreachable-database.ts';

/** A tenant of a database, as its row shows it. */
export interface TenantStamp {
  /** Number that each row of the tenant has. */
  readonly number: number;
  /** Counter that rises with every write to the tenant. */
  readonly writes: number;
  /** Number of the tenant's placement; null if the tenant was never placed, or before its row had this number. */
  readonly placement: number | null;
}

/** How many due jobs a lane of a tenant has for a queue: none, fewer than one batch may carry, or a full batch. */
export type Readiness = 'none' | 'few' | 'full';

/**
 * Reads ledgers (tables of jobs) by the numbers of their tenants. Each method is one round trip, and shows one
 * snapshot.
 * @throws EngineError `unavailable` if the database does not answer within 5 s, has a schema of an earlier version, or
 *   after `close`; other errors of the database as `databaseError`
 */
export interface LedgerReader {
  /** Returns tenants of the database by id: all of them, or those of `ids` that are there. */
  readTenants(ids?: readonly string[]): Promise<ReadonlyMap<string, TenantStamp>>;
  /**
   * Returns for each of the tenants at which steps jobs are due, whether a lease has expired, and whether jobs are
   * unfinished, as `readLedgerStatus` finds it in one ledger.
   */
  readStatuses(tenants: readonly number[], times: LeaseTimes): Promise<ReadonlyMap<number, LedgerStatus>>;
  /**
   * Returns for each of the tenants whether a lane has jobs to hand to a queue, and whether they fill a batch, as
   * `peekDispatchBatch` finds it in one ledger.
   */
  peek(tenants: readonly number[], wanted: ReaderLane): Promise<ReadonlyMap<number, Readiness>>;
  /**
   * Returns for each of the tenants whether a waiting job is marked as handed to a queue, even if the mark has ended.
   */
  readMarks(tenants: readonly number[]): Promise<ReadonlyMap<number, boolean>>;
  close(): void;
}

/** The lane in which `peek` looks for jobs, with the time and the settings on which that depends. */
interface ReaderLane extends WantedLane {
  readonly embedsHere: boolean;
  readonly now: number;
}

/** Number of rows that are taken apart before the thread yields to other work. */
const A_TURN = 1_000;
const ALL_TENANTS = 'SELECT id, tenant, writes, placement FROM tenants';
/** Longest time that connecting and a statement may take, each (ms). */
const TIMEOUT_MS = 5_000;
/**
 * SQL with which a session begins: it only reads, and a statement sees one snapshot, and with it the functions that it
 * calls, which run many.
 */
const BEGIN_SESSION = `SELECT ${PLANNING}, ${ENDS_WITH_CONNECTION},
  set_config('default_transaction_read_only', 'on', false),
  set_config('default_transaction_isolation', 'repeatable read', false)`;
/** SQLSTATEs of a function, table or column that is missing, as in a schema of an earlier version. */
const MISSING: ReadonlySet<string | undefined> = new Set(['42883', '42P01', '42703']);

/** Makes a reader, which connects with its first statement, and again after its connection was lost. */
export function openLedgerReader(place: Pick<TenantPlace, 'database' | 'name'>): LedgerReader {
  const read = createSession(place);
  return {
    async readTenants(ids) {
      const rows = await (ids === undefined
        ? read('tenants', ALL_TENANTS, [])
        : read('some_tenants', `${ALL_TENANTS} WHERE id = ANY($1)`, [ids]));
      const tenants = new Map<string, TenantStamp>();
      for (const [id, number, writes, placement] of rows) {
        tenants.set(id as string, {
          number: number as number,
          writes: Number(writes),
          placement: placement === null ? null : Number(placement),
        });
        if (tenants.size % A_TURN === 0) await yieldTurn();
      }
      return tenants;
    },
    async readStatuses(tenants, { now, leaseMs }) {
      const text = `SELECT number, interactive, bulk, has_lapsed, is_unfinished
        FROM ledger_statuses($1, $2, $3, $4)`;
      const rows = await read('statuses', text, [tenants, QUEUED_STEPS, now, leaseMs]);
      return new Map(
        rows.map(([number, interactive, bulk, hasLapsed, isUnfinished]) => [
          number as number,
          {
            interactive: interactive as QueuedStep[],
            bulk: bulk as QueuedStep[],
            hasLapsed: hasLapsed as boolean,
            isUnfinished: isUnfinished as boolean,
          },
        ]),
      );
    },
    async peek(tenants, wanted) {
      const { step, bulk, now } = wanted;
      const most = maxBatchSize(step);
      const values = [tenants, step, bulk ? 1 : 0, most, heldUntil(wanted), now];
      const rows = await read('batches', 'SELECT number, due::int FROM ledger_batches($1, $2, $3, $4, $5, $6)', values);
      return new Map(
        rows.map(([number, due]) => [number as number, due === 0 ? 'none' : due === most ? 'full' : 'few']),
      );
    },
    async readMarks(tenants) {
      const rows = await read('marks', 'SELECT number, has_marks FROM ledger_marks($1)', [tenants]);
      return new Map(rows.map(([number, hasMarks]) => [number as number, hasMarks as boolean]));
    },
    close: read.close,
  };
}

interface Read {
  (name: string, text: string, values: readonly unknown[]): Promise<unknown[][]>;
  close(): void;
}

/**
 * Makes the function that runs statements in the schema of the ledger, one after the other, on one connection for all
 * tenants of a database. It connects at the first statement, and again after the connection was lost.
 * @param name the further database of OM_DATABASES, or null for that of OM_DATABASE_URL
 */
function createSession({ database, name = null }: Pick<TenantPlace, 'database' | 'name'>): Read {
  let client: pg.Client | undefined;
  let isClosed = false;
  const requireOpen = () => {
    if (isClosed) throw new EngineError('unavailable', 'the reader of ledgers is closed');
  };
  const drop = (lost = client) => {
    if (lost === client) client = undefined;
    lost?.end().catch(() => {});
  };
  const run = async (statement: string, text: string, values: readonly unknown[]) => {
    try {
      requireOpen();
      client ??= await connect(database, name, drop);
      if (isClosed) drop();
      requireOpen();
      const query = { name: statement, text, values: [...values], rowMode: 'array' as const };
      return (await client.query<unknown[]>(query)).rows;
    } catch (error) {
      if (error instanceof EngineError) throw error;
      const cause = causeOf(error);
      if (cause.isLost) drop();
      throw MISSING.has(cause.code) ? new EarlierSchema(name) : databaseError(cause);
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  const read = (...statement: Parameters<typeof run>) => {
    const result = last.then(() => run(...statement));
    last = result.catch(() => {});
    return result;
  };
  const close = () => {
    isClosed = true;
    drop();
  };
  return Object.assign(read, { close });
}

/**
 * Connects, at most for `TIMEOUT_MS`. A further database (`name`) that could not be reached just now is not tried again
 * for a while: it throws at once.
 */
async function connect(database: string, name: string | null, onLost: (lost: pg.Client) => void): Promise<pg.Client> {
  if (name !== null) requireNoPause(name);
  const { default: pg } = await import('pg');
  const startedAt = performance.now();
  const client = new pg.Client({
    connectionString: database,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
    keepAlive: true,
  });
  client.on('error', () => onLost(client));
  try {
    await client.connect();
    await client.query(BEGIN_SESSION);
    if (name !== null) noteReachable(name);
    return client;
  } catch (error) {
    client.end().catch(() => {});
    const cause = causeOf(error);
    throw name !== null && cause.isLost ? noteUnreachable(name, startedAt, databaseError(cause)) : error;
  }
}

/** Describes an error of `pg` without its message, which could quote stored values. */
function causeOf(error: unknown): PostgresError {
  const code = (error as { code?: unknown }).code;
  const isAnswer = typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
  return new PostgresError({
    code: typeof code === 'string' ? code : 'lost',
    constraint: null,
    isLost: !isAnswer || /^(?:08|57P)/.test(code),
  });
}
