import { LRUCache } from 'lru-cache';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { openCounterFile } from './counter-file.ts';
import { networkOf } from './network-of.ts';

/** Pause after the first wrong key too many (ms); each further one doubles it, up to `MAX_PAUSE_MS`. */
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** Time without a wrong key after which an address begins anew (ms). */
const FORGET_MS = 600_000;
/** Time for which an address is remembered that sent OM_API_KEY (ms). */
const TRUST_MS = 86_400_000;
/** Most addresses that are remembered; the one that was seen least recently is forgotten first. */
const MAX_ADDRESSES = 10_000;

/** What is known of one address. Times are Unix ms. */
interface Guesser {
  readonly wrong: number;
  readonly seenAt: number;
  readonly pausedUntil: number;
  /** Whether OM_API_KEY was sent from there while no pause was on: 0 or 1. */
  readonly trusted: number;
}

/**
 * Slows down who guesses OM_API_KEY, the only secret that a person may have chosen. Keys that Cairn makes have 256
 * random bits, so a right one needs no protection and is never slowed. All processes of a data folder count together.
 * While their file cannot be written nobody is slowed, so that a full disk locks nobody out.
 */
export interface GuessLimit {
  /** Time for which wrong keys of an address are refused without a look, ms; 0 if they are looked at. */
  pauseMs(address: string): number;
  /** Counts a wrong key. Returns true if a pause began after a time without pauses: once for each burst. */
  noteWrong(address: string): boolean;
  /**
   * Says whether OM_API_KEY counts, which was sent by this address. During a pause it counts only for an address that
   * sent it before, so that a guesser cannot tell a right guess from a wrong one, and nobody at work is interrupted.
   */
  admitsRightKey(address: string): boolean;
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
 * Opens the limit. Its small file is made when the first key is refused or OM_API_KEY is used.
 * @param freeTries wrong keys of one address that are answered without a pause
 */
export function openGuessLimit(file: string, freeTries: number, clock: Clock): GuessLimit {
  let shared: ReturnType<typeof openCounterFile<keyof typeof TABLES.statements>> | undefined;
  /** Addresses that this process knows to be trusted, so that a request with OM_API_KEY need not read the file. */
  const trusted = new LRUCache<string, true>({ max: MAX_ADDRESSES, ttl: FORGET_MS });

  /** Reads what is known of an address, and keeps what `change` makes of it; `otherwise` if the file fails. */
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
      if (error instanceof EngineError) return otherwise;
      throw error;
    }
  }

  return {
    pauseMs: (address) => update(address, 0, ({ pausedUntil }, now) => ({ result: Math.max(0, pausedUntil - now) })),
    noteWrong: (address) =>
      update(address, false, (known, now) => {
        const wrong = (Math.abs(now - known.seenAt) > FORGET_MS ? 0 : known.wrong) + 1;
        const tooMany = wrong - freeTries;
        const pausedUntil =
          tooMany > 0 ? now + Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** (tooMany - 1)) : known.pausedUntil;
        return { result: tooMany === 1, next: { ...known, wrong, seenAt: now, pausedUntil } };
      }),
    admitsRightKey(address) {
      const place = networkOf(address);
      if (trusted.has(place)) return true;
      const isTrusted = update(address, true, (known, now) => {
        const trusts = known.trusted === 1 || known.pausedUntil <= now;
        return trusts ? { result: true, next: { ...known, trusted: 1, seenAt: now } } : { result: false };
      });
      if (isTrusted) trusted.set(place, true);
      return isTrusted;
    },
    close: () => shared?.close(),
  };
}
