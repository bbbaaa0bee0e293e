import type { ControlDatabase } from './control-database.ts';
import { LIMIT_SETTING, type LimitName, type Limits } from './limits.ts';
import type { RateLimits } from './rate-limits.ts';

/** Names of the limits of a tenant that make its documents wait. */
type DocumentLimit = Extract<LimitName, 'parse_seconds' | 'fetches' | 'fetches_at_once' | 'max_mb' | 'max_memories'>;

/** Why documents of a tenant have to wait, and how long. */
export interface DocumentWait {
  readonly limit: DocumentLimit;
  /** The reason in words, for the status of the jobs. */
  readonly message: string;
  /** Time until the first waiting document may be tried again (ms), above 0. */
  readonly ms: number;
  /**
   * Additional delay (ms) of each further waiting document after the one before it, so that not all are tried at once;
   * 0 or more.
   */
  readonly apartMs: number;
}

/**
 * How much one tenant may use of the parsers and page fetches of all workers, and how much it may store. With no limit
 * set, nothing waits.
 */
export interface DocumentShare {
  /**
   * Returns why and how long the tenant's documents have to wait because less than a second of its parser time is left
   * for this minute; undefined if a document may be read.
   */
  waitForParser(): DocumentWait | undefined;
  /**
   * Returns why and how long the tenant's documents have to wait because its database is as large as it may be;
   * undefined if a document may be read.
   * @param readUsedBytes returns the size of the database in bytes; called only if the tenant has such a quota
   */
  waitForRoom(readUsedBytes: () => number): DocumentWait | undefined;
  /** Returns the greatest number of memories that the tenant may store; 0 for no limit. */
  maxMemories(): number;
  /**
   * Returns why and how long a document has to wait because the tenant may not store as many memories; undefined if
   * there is room.
   * @param count number of memories that count against the quota without the document
   * @param parts number of memories of the document
   */
  waitForMemories(count: number, parts: number): DocumentWait | undefined;
  /**
   * Returns why and how long a page that a worker has claimed must wait, because the tenant fetches too many pages at
   * the same time; undefined if it may be fetched.
   * @param underWay number of the tenant's pages that are claimed, this one included
   */
  waitForPlace(underWay: number): DocumentWait | undefined;
  /**
   * Counts one fetch against the tenant's fetches of this minute and returns undefined. If no fetch is left, counts
   * nothing and returns how long the page has to wait.
   */
  takeFetch(): DocumentWait | undefined;
  /**
   * Subtracts the time for which a document kept a parser busy (ms) from the tenant's parser time, even if parsing
   * failed.
   */
  spendParser(ms: number): void;
}

/**
 * Parser time that must be left before another document is read (ms); the whole limit of a minute if that is less. Some
 * time must be left because the real cost of a document is known only afterwards.
 */
const LEAST_PARSER_MS = 1_000;
/**
 * Delay (ms) before documents are tried again whose tenant has a database that is as large as it may be, or as many
 * memories as it may have.
 */
const ROOM_MS = 10_000;
/**
 * Delay (ms) before a document is tried again that has more memories than the tenant has room for, though there is room
 * for some: smaller documents may fit meanwhile.
 */
const LARGER_ROOM_MS = 60_000;
/** Delay (ms) before a page is tried again when `fetches_at_once` other pages were being fetched already. */
const PLACE_MS = 1_000;
/**
 * Number of waiting pages that are tried again within each `PLACE_MS`, for each page that may be fetched at the same
 * time. It is above 1, since a fetch often takes less than `PLACE_MS`.
 */
const TRIED_FOR_PLACE = 4;

/**
 * Makes a function that returns the share of a tenant by the tenant's id. All processes of a data folder, or all nodes
 * of a database, use the same counts.
 */
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
      waitForRoom(readUsedBytes) {
        const value = limitOf('max_mb');
        if (value === 0 || readUsedBytes() < value * 1024 * 1024) return undefined;
        return waitOf('max_mb', { value, ms: ROOM_MS, apartMs: 0 });
      },
      maxMemories: () => limitOf('max_memories'),
      waitForMemories(count, parts) {
        const value = limitOf('max_memories');
        if (value === 0 || count + parts <= value) return undefined;
        return waitOf('max_memories', { value, ms: count < value ? LARGER_ROOM_MS : ROOM_MS, apartMs: 0 });
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
  max_mb: 'MB, which are used',
  max_memories: 'memories, which leaves no room for it',
};

function waitOf(
  limit: DocumentLimit,
  { value, ms, apartMs }: { readonly value: Limits[DocumentLimit]; readonly ms: number; readonly apartMs: number },
): DocumentWait | undefined {
  if (ms <= 0) return undefined;
  const message = `it waits: ${limit} (${LIMIT_SETTING[limit]}) allows the tenant ${value} ${ALLOWED[limit]}`;
  return { limit, message, ms, apartMs };
}
