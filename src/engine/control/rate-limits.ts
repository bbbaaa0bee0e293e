import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openCounterFile } from './counter-file.ts';
import { FILL_MS, takeFrom, type Verdict } from './token-bucket.ts';

/** What a key spends: requests that query or add, items of batches, bytes of uploads. */
export type RateClass = 'queries' | 'adds' | 'batch_items' | 'upload_bytes';

/** What a tenant spends in the workers: time of parsers (ms), and fetches of pages. */
type WorkerRateClass = 'parse_ms' | 'fetches';

/** A bucket: what is spent, and by whom. */
interface Bucket {
  /** Name of the key or tenant. */
  readonly key: string;
  readonly kind: RateClass | WorkerRateClass;
}

/** The buckets of all keys and tenants, which all processes of a data folder share. */
export interface RateLimits {
  /**
   * Takes `cost` tokens from the bucket of a key. If the file cannot be written, the request is allowed: limits protect
   * the service and must not be what stops it. `mustFit` false takes the tokens in any case.
   */
  take(
    bucket: Bucket,
    request: { readonly cost: number; readonly perMinute: number; readonly mustFit: boolean },
  ): Verdict;
  /** Says what `take` would say to a request that must fit, and takes nothing. */
  peek(bucket: Bucket, request: { readonly cost: number; readonly perMinute: number }): Verdict;
  close(): void;
}

/** Full buckets are forgotten once in this number of requests. */
const SWEEP_EVERY = 10_000;

const TABLES = {
  schema: `CREATE TABLE IF NOT EXISTS buckets (
      key TEXT NOT NULL, kind TEXT NOT NULL, full_at REAL NOT NULL, PRIMARY KEY (key, kind)
    ) STRICT, WITHOUT ROWID;`,
  statements: {
    read: 'SELECT full_at FROM buckets WHERE key = :key AND kind = :kind',
    write: `INSERT INTO buckets VALUES (:key, :kind, :fullAt)
       ON CONFLICT (key, kind) DO UPDATE SET full_at = excluded.full_at`,
    forget: 'DELETE FROM buckets WHERE full_at < :now',
  },
} as const;

/** Makes the rate limits. Their small SQLite file is opened, and made if absent, when the first limit applies. */
export function openRateLimits(file: string, clock: Clock): RateLimits {
  let shared: ReturnType<typeof openCounterFile<keyof typeof TABLES.statements>> | undefined;
  let taken = 0;
  /** Asks a bucket; the file keeps the answer where `keeps` is true. */
  const ask = (
    { key, kind }: Bucket,
    request: { cost: number; perMinute: number; mustFit: boolean },
    keeps: boolean,
  ): Verdict => {
    const now = clock.now();
    try {
      shared ??= openCounterFile(file, TABLES);
      return shared.write(({ read, write, forget }) => {
        if (taken++ % SWEEP_EVERY === 0) forget.run({ now });
        const row = read.get({ key, kind }) as { full_at: number } | undefined;
        const verdict = takeFrom(row?.full_at, { ...request, now });
        if (verdict.isAllowed && keeps) write.run({ key, kind, fullAt: verdict.fullAt });
        return verdict;
      });
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
