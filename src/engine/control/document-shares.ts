import type { ControlDatabase } from './control-database.ts';
import { LIMIT_SETTING, type LimitName, type Limits } from './limits.ts';
import type { RateLimits } from './rate-limits.ts';

/** Limits of a tenant that keep its documents waiting. */
type DocumentLimit = Extract<LimitName, 'parse_seconds' | 'fetches' | 'fetches_at_once'>;

/** A reason for documents to wait, and for how long. */
export interface DocumentWait {
  readonly limit: DocumentLimit;
  /** The reason in words, for the status of the jobs. */
  readonly message: string;
  /** Time until the first of the documents may be tried again (ms), above 0. */
  readonly ms: number;
  /** Time by which each further document waits longer than the one before it (ms), 0 or more. */
  readonly apartMs: number;
}

/** The share of one tenant in the parsers and the fetches of all workers. Without limits nothing waits. */
export interface DocumentShare {
  /** Tells whether the tenant's documents have to wait, as its parser time of the last minute is spent. */
  waitForParser(): DocumentWait | undefined;
  /**
   * Tells whether a claimed page has to wait, as too many others are under way.
   * @param underWay pages of the tenant that are claimed, this one included
   */
  waitForPlace(underWay: number): DocumentWait | undefined;
  /** Takes one of the tenant's fetches of this minute, or tells that a page has to wait for it. */
  takeFetch(): DocumentWait | undefined;
  /** Notes for how long a document kept a parser busy (ms), however its reading ended. */
  spendParser(ms: number): void;
}

/**
 * Parser time that must be left before another document is read (ms), or the whole of a minute's time if that is less:
 * how long a document takes is known only afterwards.
 */
const LEAST_PARSER_MS = 1_000;
/** Time after which a page is tried again for which there was no place (ms). */
const PLACE_MS = 1_000;
/** Pages for each place that are tried again in each `PLACE_MS`: a page often takes less than that. */
const TRIED_FOR_PLACE = 4;

/** Makes a function that finds the share of a tenant by its id. All processes of a data folder share what is spent. */
export function createDocumentShares(
  { limits }: Pick<ControlDatabase, 'limits'>,
  rates: Pick<RateLimits, 'take' | 'peek'>,
): (tenantId: string) => DocumentShare {
  return (tenantId) => {
    const limitOf = (name: DocumentLimit) => limits.inForce({ tenantId })[name];
    const parserTime = { key: tenantId, kind: 'parse_ms' } as const;
    return {
      waitForParser() {
        const perMinute = 1_000 * limitOf('parse_seconds');
        if (perMinute === 0) return undefined;
        const { retryAfterMs } = rates.peek(parserTime, { cost: Math.min(LEAST_PARSER_MS, perMinute), perMinute });
        return waitOf('parse_seconds', { value: perMinute / 1_000, ms: retryAfterMs, apartMs: 0 });
      },
      waitForPlace(underWay) {
        const most = limitOf('fetches_at_once');
        if (most === 0 || underWay <= most) return undefined;
        const apartMs = PLACE_MS / (TRIED_FOR_PLACE * most);
        return waitOf('fetches_at_once', { value: most, ms: PLACE_MS, apartMs });
      },
      takeFetch() {
        const perMinute = limitOf('fetches');
        if (perMinute === 0) return undefined;
        const bucket = { key: tenantId, kind: 'fetches' } as const;
        const { retryAfterMs } = rates.take(bucket, { cost: 1, perMinute, mustFit: true });
        return waitOf('fetches', { value: perMinute, ms: retryAfterMs, apartMs: 60_000 / perMinute });
      },
      spendParser(ms) {
        const perMinute = 1_000 * limitOf('parse_seconds');
        if (perMinute > 0) rates.take(parserTime, { cost: ms, perMinute, mustFit: false });
      },
    };
  };
}

const ALLOWED: Readonly<Record<DocumentLimit, string>> = {
  parse_seconds: 's of parsers a minute',
  fetches: 'fetched pages a minute',
  fetches_at_once: 'pages at once',
};

function waitOf(
  limit: DocumentLimit,
  { value, ms, apartMs }: { readonly value: Limits[DocumentLimit]; readonly ms: number; readonly apartMs: number },
): DocumentWait | undefined {
  if (ms <= 0) return undefined;
  const message = `it waits: ${limit} (${LIMIT_SETTING[limit]}) allows the tenant ${value} ${ALLOWED[limit]}`;
  return { limit, message, ms, apartMs };
}
