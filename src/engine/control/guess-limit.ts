import { LRUCache } from 'lru-cache';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openCounterFile } from './counter-file.ts';
import { networkOf } from './network-of.ts';

/** Pause after the first wrong key beyond `freeTries` (ms). Each further wrong key doubles it, up to a minute. */
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** Time without a wrong key after which the count of an address starts again at 0 (ms). */
const FORGET_MS = 600_000;
/**
 * Time without a wrong key, and without a right one that is noted, after which an address is forgotten (ms), together
 * with the keys that were sent from it. It is deleted when a new address is stored.
 */
const TRUST_MS = 86_400_000;
/** Greatest number of addresses that are remembered; the least recently seen is forgotten first. */
const MAX_ADDRESSES = 10_000;

/** What is stored about one address, or one /64 network of IPv6. Times are Unix ms. */
interface Guesser {
  /** Number of wrong keys in the present or latest series, which ends after ten minutes without one. */
  readonly wrong: number;
  /**
   * Time of the last wrong key, from which the end of a series is counted; once the series is over, also the time of a
   * right key.
   */
  readonly seenAt: number;
  readonly pausedUntil: number;
  /** Which of the keys were sent from the address while no pause was running: the sum of their `TRUST_BITS`. */
  readonly trusted: number;
}

/** A setting with a key that a person may have chosen. */
export type ChosenKey = 'OM_API_KEY' | 'OM_METRICS_KEY';
const TRUST_BITS: Readonly<Record<ChosenKey, number>> = { OM_API_KEY: 1, OM_METRICS_KEY: 2 };

/**
 * Slows down callers who guess OM_API_KEY or OM_METRICS_KEY, the only secrets that a person may have chosen. Keys that
 * Cairn makes have 256 random bits, so that guessing is hopeless, and a correct one is never delayed. All processes of
 * a data folder count together, in a file. While the file cannot be written nobody is slowed, so that a full disk locks
 * nobody out. An IPv6 address stands for its /64 network.
 */
export interface GuessLimit {
  /**
   * Returns the rest of the pause of an address (ms), during which callers refuse its wrong keys without counting them;
   * 0 if no pause is running.
   */
  pauseMs(address: string): number;
  /**
   * Counts a wrong key of an address, and from the first one beyond `freeTries` on begins a pause. Returns true only
   * for that first one in a series, for the log. A series ends after ten minutes without a wrong key.
   */
  noteWrong(address: string): boolean;
  /**
   * Decides whether a right OM_API_KEY or OM_METRICS_KEY, which this address has just sent, is accepted, and remembers
   * the address if so. During a pause it is accepted only from an address that sent this key before while no pause was
   * running. So a guesser cannot tell a right guess from a wrong one, and regular users are not interrupted.
   */
  admitsRightKey(address: string, key: ChosenKey): boolean;
  close(): void;
}

const TABLES = {
  schema: `CREATE TABLE IF NOT EXISTS guessers (
      place TEXT PRIMARY KEY, wrong INTEGER NOT NULL, seen_at REAL NOT NULL, paused_until REAL NOT NULL,
      trusted INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS guessers_by_time ON guessers (seen_at);`,
  statements: {
    read: `SELECT wrong, seen_at AS seenAt, paused_until AS pausedUntil, trusted FROM guessers WHERE place = :place`,
    write: `INSERT INTO guessers VALUES (:place, :wrong, :seenAt, :pausedUntil, :trusted)
       ON CONFLICT (place) DO UPDATE SET wrong = excluded.wrong, seen_at = excluded.seen_at,
         paused_until = excluded.paused_until, trusted = excluded.trusted`,
    forget: `DELETE FROM guessers WHERE seen_at < :before OR place IN
       (SELECT place FROM guessers ORDER BY seen_at DESC LIMIT -1 OFFSET ${MAX_ADDRESSES})`,
  },
} as const;

/**
 * Whether ten minutes have passed since the last wrong key. A clock that was set back by as much ends a series, too.
 */
const isSeriesOver = ({ seenAt }: Guesser, now: number) => Math.abs(now - seenAt) > FORGET_MS;

/**
 * Opens the limit. Its small file is made by the first call of a method.
 * @param freeTries number of wrong keys of one address in a series that cause no pause
 */
export function openGuessLimit(file: string, freeTries: number, clock: Clock): GuessLimit {
  let shared: ReturnType<typeof openCounterFile<keyof typeof TABLES.statements>> | undefined;
  /**
   * Keys and addresses that this process knows to be trusted, so that a request with OM_API_KEY need not read the file.
   * Each is kept for ten minutes.
   */
  const trusted = new LRUCache<string, true>({ max: MAX_ADDRESSES, ttl: FORGET_MS });

  /**
   * Calls `change` with the stored data of an address's network, or with zeros if nothing is stored. Stores the `next`
   * that `change` returns, if any, and returns its `result`. Returns `otherwise` if the file cannot be read or written.
   */
  function update<T>(
    address: string,
    otherwise: T,
    change: (known: Guesser, now: number) => { readonly result: T; readonly next?: Guesser },
  ): T {
    const place = networkOf(address);
    const now = clock.now();
    try {
      shared ??= openCounterFile(file, TABLES);
      return shared.write(({ read, write, forget }) => {
        const row = read.get({ place }) as Guesser | undefined;
        // A clock that was set back must not lengthen a pause.
        const pausedUntil = Math.min(row?.pausedUntil ?? 0, now + MAX_PAUSE_MS);
        const known = { wrong: 0, seenAt: 0, trusted: 0, ...row, pausedUntil };
        const { result, next } = change(known, now);
        if (next !== undefined) write.run({ place, ...next });
        if (next !== undefined && row === undefined) forget.run({ before: now - TRUST_MS });
        return result;
      });
    } catch (error) {
      // Errors of the file system and of SQLite have a code.
      if (error instanceof EngineError || typeof (error as { code?: unknown }).code === 'string') return otherwise;
      throw error;
    }
  }

  return {
    pauseMs: (address) => update(address, 0, ({ pausedUntil }, now) => ({ result: Math.max(0, pausedUntil - now) })),
    noteWrong: (address) =>
      update(address, false, (known, now) => {
        const wrong = (isSeriesOver(known, now) ? 0 : known.wrong) + 1;
        const tooMany = wrong - freeTries;
        const pausedUntil =
          tooMany > 0 ? now + Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** (tooMany - 1)) : known.pausedUntil;
        return { result: tooMany === 1, next: { ...known, wrong, seenAt: now, pausedUntil } };
      }),
    admitsRightKey(address, key) {
      const name = `${key} ${networkOf(address)}`;
      if (trusted.has(name)) return true;
      const bit = TRUST_BITS[key];
      const isTrusted = update(address, true, (known, now) => {
        if ((known.trusted & bit) === 0 && known.pausedUntil > now) return { result: false };
        const next = { ...known, trusted: known.trusted | bit };
        return { result: true, next: isSeriesOver(known, now) ? { ...next, wrong: 0, seenAt: now } : next };
      });
      if (isTrusted) trusted.set(name, true);
      return isTrusted;
    },
    close: () => shared?.close(),
  };
}
