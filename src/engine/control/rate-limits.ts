import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openCounterFile } from './counter-file.ts';
import type { CounterPlace } from './counters.ts';
import { FILL_MS, takeFrom, type Verdict } from './token-bucket.ts';

/** Rate limits of a key, each with its own token bucket: queries, adds, items of batches, and bytes of uploads. */
export type RateClass = 'queries' | 'adds' | 'batch_items' | 'upload_bytes';

/** Rate limits of a tenant's work in the workers, each with its own token bucket: parser time (ms) and page fetches. */
type WorkerRateClass = 'parse_ms' | 'fetches';

/** Name of a token bucket: the key or tenant that it belongs to, and what its tokens count. */
interface Bucket {
  /** Id of the key or tenant. */
  readonly key: string;
  readonly kind: RateClass | WorkerRateClass;
}

/**
 * The token buckets of all keys and tenants. All processes of a data folder, or all nodes of a database, share them.
 */
export interface RateLimits {
  /**
   * Takes `cost` tokens from a bucket of `perMinute` tokens, and says whether the request is allowed; a refused one
   * takes nothing. One that costs more than a whole bucket is allowed once the bucket is full. With `mustFit` false a
   * request is always allowed. In both cases the bucket may go into debt. If the counters cannot be written, the
   * request is allowed: limits protect the service and must not be what stops it. `perMinute` is 1 or more: where
   * there is no limit (0), callers do not ask.
   */
  take(
    bucket: Bucket,
    request: { readonly cost: number; readonly perMinute: number; readonly mustFit: boolean },
  ): Verdict;
  /** Returns the verdict that `take` with `mustFit` true would return, without taking any tokens. */
  peek(bucket: Bucket, request: { readonly cost: number; readonly perMinute: number }): Verdict;
  close(): void;
}

/** Number of requests after which full buckets are deleted from the file. */
const SWEEP_EVERY = 10_000;

const TABLES = {
  schema: `CREATE TABLE IF NOT EXISTS buckets (
      key TEXT NOT NULL, kind TEXT NOT NULL, full_at REAL NOT NULL, PRIMARY KEY (key, kind)
    ) STRICT, WITHOUT ROWID;`,
  statements: {
    read: 'SELECT full_at FROM buckets WHERE key = :key AND kind = :kind',
    write: `INSERT INTO buckets (key, kind, full_at) VALUES (:key, :kind, :fullAt)
       ON CONFLICT (key, kind) DO UPDATE SET full_at = excluded.full_at`,
    forget: 'DELETE FROM buckets WHERE full_at < :now',
  },
} as const;

/** Makes the rate limits. Their counters are opened, and made if absent, when the first limit applies. */
export function openRateLimits(place: CounterPlace, clock: Clock): RateLimits {
  let shared: ReturnType<typeof openCounterFile<keyof typeof TABLES.statements>> | undefined;
  let taken = 0;
  /**
   * Returns the verdict of a bucket on a request. The tokens are subtracted only if the request is allowed and `keeps`
   * is true.
   */
  const ask = (
    { key, kind }: Bucket,
    request: { cost: number; perMinute: number; mustFit: boolean },
    keeps: boolean,
  ): Verdict => {
    const now = clock.now();
    try {
      shared ??= openCounterFile(place, TABLES);
      return shared.write(({ read, write, forget }) => {
        if (taken++ % SWEEP_EVERY === 0) forget.run({ now });
        const row = read.get({ key, kind }) as { full_at: number } | undefined;
        const verdict = takeFrom(row?.full_at, { ...request, now });
        // Also if the clock was set back: else each request would wait for the longest time anew.
        const isEarlier = row !== undefined && verdict.fullAt < row.full_at;
        if ((verdict.isAllowed && keeps) || isEarlier) write.run({ key, kind, fullAt: verdict.fullAt });
        return verdict;
      }, `${kind} ${key}`);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      return { isAllowed: true, fullAt: now, remaining: request.perMinute, resetMs: FILL_MS, retryAfterMs: 0 };
    }
  };
  return {
    take: (bucket, request) => ask(bucket, request, true),
    peek: (bucket, request) => ask(bucket, { ...request, mustFit: true }, false),
    close: () => shared?.close(),
  };
}
