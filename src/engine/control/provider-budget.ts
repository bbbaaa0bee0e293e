import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { retryWhileBusy, sqliteCode, storageError } from '../store/open-store.ts';
import { createPrivateFile } from '../store/private-file.ts';
import { readLimits, type ToldLimit, type ToldLimits } from './read-limits.ts';

/**
 * What a provider may still be asked, shared by every process and thread of a data folder: requests and tokens a minute, a gap between
 * calls, what its replies say is left, the pause it asked for, and a breaker for when it is down.
 *
 * It lives in a small SQLite file beside the data rather than in Redis: all who share it are on this machine anyway, it is the same with
 * and without Redis, and a Redis that is flushed does not forget what the last minute held. A file that is lost or damaged begins anew.
 */
export interface ProviderBudget {
  /**
   * Returns when a call of so many tokens may start, and counts it.
   * @throws EngineError `rate_limited` with `retryAfterMs` while the provider is left alone, so that nobody holds jobs meanwhile;
   *         `unavailable` when `signal` aborts; `storage_full`
   */
  acquire(tokens: number, options: AcquireOptions): Promise<ProviderPermit>;
  /** Of the provider's tokens a minute, as its replies to this process said last; undefined where they do not say. */
  toldTokensPerMinute(): number | undefined;
  /** True while the provider is left alone or probed because it failed so often; false where that cannot be read. */
  isBreakerOpen(): boolean;
  close(): void;
}

export interface AcquireOptions {
  /** Waits for room in the minute. A query does not, since it has words to go on with. */
  readonly patient: boolean;
  /** There is somebody else to ask, so nobody waits here for a probe of the breaker. */
  readonly hasOther?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Leave for one call. */
export interface ProviderPermit {
  /** Says what came with a reply; of several the last counts. Taken into account by `end`. */
  heard(headers: Headers): void;
  /** Says what became of the call. */
  end(outcome: CallOutcome): void;
}

export type CallOutcome =
  | { readonly kind: 'answered' }
  /** It asked for a pause. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  /** Down, slow, or replied with nonsense; some servers that are down say for how long. */
  | { readonly kind: 'failed'; readonly retryAfterMs?: number | undefined }
  /** It does not take what it was asked, which may be its own fault or the text's: the next call tells. */
  | { readonly kind: 'refused' }
  /** Nobody wanted to know any more. */
  | { readonly kind: 'abandoned' };

/** Why a call had to wait or was put off. */
export type WaitReason = 'budget' | 'gap' | 'told' | 'pause' | 'breaker';

export interface BudgetOptions {
  readonly file: string;
  /** Who is asked, for errors: 'embedding provider'. */
  readonly role?: string | undefined;
  /** Least time between the starts of two calls. */
  readonly gapMs?: number | undefined;
  /** 0 for no limit. */
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  readonly clock: Clock;
  /** Told of each call that was held back; `ms` is how long it waited in place, 0 if it was put off. */
  readonly onHeldBack?: ((reason: WaitReason, ms: number) => void) | undefined;
}

/** Failures in a row that open the breaker. */
export const FAILURES_MOST = 5;

/** A minute, and a second more: calls do not all take the same time to reach the provider, who counts when they arrive. */
const WINDOW_MS = 61_000;
/** Calls are counted by slots, which bounds what is kept of a minute. */
const SLOT_MS = 100;
/** Share of the minute that is kept for those who do not wait: an import that takes all it can get must not blind every query. */
const QUERY_SHARE = 0.02;
const OPEN_LEAST_MS = 1_000;
const OPEN_MOST_MS = 30_000;
/** A probe that never reports, since its process died, is given up after so long. */
const PROBE_MS = 60_000;
/** A wait is cut into pieces, as others may give room sooner. */
const WAIT_MOST_MS = 250;

/** Times are in the past, so that a clock that was set back shows; `probe_at` is 0 while no probe is out. */
interface BreakerRow {
  readonly failures: number;
  readonly opened_at: number;
  readonly open_ms: number;
  readonly probe_at: number;
}

interface Go {
  readonly kind: 'go';
  readonly isProbe: boolean;
  readonly flight: number;
}

type Verdict =
  | Go
  /** Worth waiting for in place. */
  | { readonly kind: 'wait'; readonly reason: WaitReason; readonly ms: number }
  | { readonly kind: 'put_off'; readonly reason: WaitReason; readonly ms: number };

export function openProviderBudget(options: BudgetOptions): ProviderBudget {
  const { clock, onHeldBack, role = 'embedding provider' } = options;
  const shared = openSharedFile(options.file);
  let toldTokens: number | undefined;

  const ask = (tokens: number, patient: boolean): Verdict =>
    shared.write((statements) => judge(statements, options, { tokens, patient, now: clock.now() }));

  return {
    async acquire(tokens, { patient, hasOther = false, signal }) {
      let waitedFor: WaitReason | undefined;
      const startedAt = performance.now();
      const tell = () => {
        if (waitedFor !== undefined) onHeldBack?.(waitedFor, performance.now() - startedAt);
      };
      for (;;) {
        if (signal?.aborted) {
          tell();
          throw new EngineError('unavailable', 'the call was given up by its caller');
        }
        const verdict = ask(tokens, patient);
        if (verdict.kind === 'go') {
          tell();
          return createPermit(verdict);
        }
        if (!isWorthWaiting(verdict, { patient, hasOther })) {
          onHeldBack?.(verdict.reason, 0);
          throw new EngineError('rate_limited', `the ${role} is being left alone`, {
            retryAfterMs: verdict.ms,
          });
        }
        waitedFor = verdict.reason;
        await pause(Math.min(verdict.ms, WAIT_MOST_MS), undefined, signal ? { signal } : {}).catch(() => {});
      }
    },
    toldTokensPerMinute: () => toldTokens,
    isBreakerOpen() {
      let isOpen = false;
      shared.note((statements) => void (isOpen = breakerOf(statements).failures >= FAILURES_MOST));
      return isOpen;
    },
    close: () => shared.close(),
  };

  function createPermit({ isProbe, flight }: Go): ProviderPermit {
    let told: ToldLimits = {};
    return {
      heard(headers) {
        told = readLimits(headers, clock.now());
        toldTokens = told.tokens?.limit ?? toldTokens;
      },
      end: (outcome) =>
        shared.note((statements) => {
          const now = clock.now();
          statements.land.run({ flight });
          learn(statements, outcome, { isProbe, now });
          noteTold(statements, told, { isLimited: outcome.kind === 'limited', now });
        }),
    };
  }
}

interface Asked {
  readonly tokens: number;
  readonly patient: boolean;
  readonly now: number;
}

function isWorthWaiting(
  { kind, reason }: Exclude<Verdict, Go>,
  { patient, hasOther }: { patient: boolean; hasOther: boolean },
): boolean {
  if (kind === 'put_off') return false;
  if (reason === 'gap') return true; // It is short, and a query's own time limit is heard.
  return patient && !(hasOther && reason === 'breaker');
}

/** Whether a call may start; if so, it is counted. */
function judge(
  statements: Statements,
  limits: Pick<BudgetOptions, 'requestsPerMinute' | 'tokensPerMinute' | 'gapMs'>,
  asked: Asked,
): Verdict {
  const { now } = asked;
  // What was written before the clock was set back happened just now, as far as anyone can tell.
  statements.rebaseBreaker.run({ now });
  const breaker = breakerOf(statements);
  const isOpen = breaker.failures >= FAILURES_MOST;
  const openMs = breaker.opened_at + breaker.open_ms - now;
  if (openMs > 0) return { kind: 'put_off', reason: isOpen ? 'breaker' : 'pause', ms: openMs };
  const probeMs = isOpen && breaker.probe_at > 0 ? breaker.probe_at + PROBE_MS - now : 0;
  if (probeMs > 0) return { kind: 'wait', reason: 'breaker', ms: probeMs };
  const toldMs = untilTold(statements, asked);
  // Whoever waits holds jobs, so nobody waits in place for longer than for the minute.
  if (toldMs > 0) return { kind: toldMs > WINDOW_MS ? 'put_off' : 'wait', reason: 'told', ms: toldMs };
  const gapMs = untilGap(statements, limits.gapMs ?? 0, now);
  if (gapMs > 0) return { kind: 'wait', reason: 'gap', ms: gapMs };
  const roomMs = untilRoom(statements, limits, asked);
  if (roomMs > 0) return { kind: 'wait', reason: 'budget', ms: roomMs };
  if (isOpen) statements.probe.run({ now });
  return { kind: 'go', isProbe: isOpen, flight: start(statements, asked) };
}

/** @returns the number of the call while it is under way */
function start(statements: Statements, { tokens, now }: Asked): number {
  statements.setStarted.run({ now });
  for (const [kind, cost] of costsOf(tokens)) statements.spend.run({ kind, cost });
  // What never ended belonged to a process that died; after a minute the provider has counted it in any case.
  statements.forgetFlights.run({ before: now - WINDOW_MS, now });
  return Number(statements.depart.run({ tokens, now }).lastInsertRowid);
}

type Kind = keyof ToldLimits;

const costsOf = (tokens: number): readonly (readonly [Kind, number])[] => [
  ['requests', 1],
  ['tokens', tokens],
];

/** How long until what the provider said is left begins anew, if it is too little for this call (ms). Queries have a share of their own. */
function untilTold(statements: Statements, { tokens, patient, now }: Asked): number {
  statements.rebaseTold.run({ now });
  const rows = statements.told.all({ now }) as { kind: Kind; remaining: number; reserve: number; reset_at: number }[];
  const costs = new Map(costsOf(tokens));
  const short = rows.filter(({ kind, remaining, reserve }) => remaining - costs.get(kind)! < (patient ? reserve : 0));
  return Math.max(0, ...short.map((row) => row.reset_at - now));
}

/**
 * Takes over what a reply says is left, less what is under way, which the provider may not have counted yet. Until the limit begins anew
 * only what is less than was known counts: replies overtake each other. That nothing is left for longer than a minute is believed of
 * replies that refuse a call: the others contradict it, and some servers say so for ever.
 */
function noteTold(
  statements: Statements,
  told: ToldLimits,
  { isLimited, now }: { readonly isLimited: boolean; readonly now: number },
): void {
  const underWay = statements.underWay.get() as Counted;
  for (const kind of ['requests', 'tokens'] as const) {
    const limit: ToldLimit | undefined = told[kind];
    if (limit === undefined || (limit.resetMs > WINDOW_MS && !isLimited)) continue;
    const remaining = limit.remaining - underWay[kind];
    const reserve = reserveOf(limit.limit ?? 0);
    statements.setTold.run({ kind, remaining, reserve, now, resetMs: limit.resetMs });
  }
}

function untilGap(statements: Statements, gapMs: number, now: number): number {
  if (gapMs === 0) return 0;
  statements.rebaseStarted.run({ now });
  return Math.max(0, (statements.started.get() as { at: number }).at + gapMs - now);
}

/** How long until enough calls have left the last minute (ms); 0 counts this one. A call beyond the budget passes when it is empty. */
function untilRoom(
  statements: Statements,
  { requestsPerMinute, tokensPerMinute }: Pick<BudgetOptions, 'requestsPerMinute' | 'tokensPerMinute'>,
  { tokens, patient, now }: Asked,
): number {
  if (requestsPerMinute === 0 && tokensPerMinute === 0) return 0;
  const slot = Math.floor(now / SLOT_MS);
  statements.rebaseSlots.run({ slot });
  statements.forgetSlots.run({ slot, last: Math.floor((now - WINDOW_MS) / SLOT_MS) - 1 });
  const requestsMost = limitFor(requestsPerMinute, patient);
  const tokensMost = limitFor(tokensPerMinute, patient);
  let { requests, tokens: sum } = statements.totals.get() as Counted;
  const fits = () => requests + 1 <= requestsMost && sum + tokens <= tokensMost;
  let waitMs = 0;
  if (!fits()) {
    for (const gone of statements.slots.iterate() as IterableIterator<Counted & { slot: number }>) {
      requests -= gone.requests;
      sum -= gone.tokens;
      waitMs = (gone.slot + 1) * SLOT_MS + WINDOW_MS - now;
      if (fits()) break;
    }
  }
  if (waitMs <= 0) statements.count.run({ slot, tokens });
  return Math.max(0, waitMs);
}

interface Counted {
  readonly requests: number;
  readonly tokens: number;
}

function limitFor(perMinute: number, patient: boolean): number {
  if (perMinute === 0) return Infinity;
  return patient ? perMinute - reserveOf(perMinute) : perMinute;
}

/** One call at least, where documents have one left then. */
function reserveOf(perMinute: number): number {
  return perMinute < 2 ? 0 : Math.max(1, Math.floor(perMinute * QUERY_SHARE));
}

/** What a call's end says about the provider. While the breaker is open only the probe can say that it still fails. */
function learn(
  statements: Statements,
  outcome: CallOutcome,
  { isProbe, now }: { isProbe: boolean; now: number },
): void {
  const { failures, opened_at, open_ms, probe_at } = breakerOf(statements);
  const isOpen = failures >= FAILURES_MOST;
  const leftMs = Math.max(0, Math.min(open_ms, opened_at + open_ms - now));
  const set = (row: BreakerRow) => statements.setBreaker.run({ ...row });
  switch (outcome.kind) {
    case 'answered':
      // A pause that it asked for meanwhile stays.
      if (failures > 0) set({ failures: 0, opened_at: now, open_ms: isOpen ? 0 : leftMs, probe_at: 0 });
      return;
    case 'limited': {
      const pauseMs = Math.max(isOpen ? 0 : leftMs, outcome.retryAfterMs);
      set({ failures: 0, opened_at: now, open_ms: pauseMs, probe_at: 0 });
      return;
    }
    case 'failed': {
      if (isOpen && !isProbe) return;
      const count = failures + 1;
      const openMs = count < FAILURES_MOST ? 0 : OPEN_LEAST_MS * 2 ** Math.min(10, count - FAILURES_MOST);
      set({
        failures: count,
        opened_at: now,
        open_ms: Math.max(leftMs, Math.min(OPEN_MOST_MS, openMs), outcome.retryAfterMs ?? 0),
        probe_at: 0,
      });
      return;
    }
    case 'refused':
    case 'abandoned':
      if (isProbe && probe_at > 0) set({ failures, opened_at, open_ms, probe_at: 0 });
      return;
  }
}

function breakerOf(statements: Statements): BreakerRow {
  return statements.breaker.get() as BreakerRow;
}

type Statements = ReturnType<typeof prepare>;

/** The file, opened again when another process replaced it, and begun anew when it is damaged. */
interface SharedFile {
  write<T>(work: (statements: Statements) => T): T;
  /** The same if it can be done; what a call taught may be lost. */
  note(work: (statements: Statements) => void): void;
  close(): void;
}

interface OpenFile {
  readonly db: Database.Database;
  readonly transact: Database.Transaction<(work: (statements: Statements) => unknown) => unknown>;
  readonly inode: number;
}

function openSharedFile(file: string): SharedFile {
  let open: OpenFile | undefined;
  let isClosed = false;

  const current = () => {
    if (open !== undefined && fs.statSync(file, { throwIfNoEntry: false })?.ino === open.inode) return open;
    open?.db.close();
    open = undefined;
    const db = connect(file);
    const statements = prepare(db);
    const transact = db.transaction((work: (statements: Statements) => unknown) => work(statements));
    return (open = { db, transact, inode: fs.statSync(file).ino });
  };
  const startAnew = () => {
    open?.db.close();
    open = undefined;
    for (const name of [file, `${file}-wal`, `${file}-shm`]) fs.rmSync(name, { force: true });
  };
  const write = <T>(work: (statements: Statements) => T): T => {
    const attempt = () => {
      const { transact } = current();
      return retryWhileBusy(() => transact.immediate(work) as T);
    };
    if (isClosed) throw new EngineError('unavailable', 'the budget of the provider is closed');
    try {
      return attempt();
    } catch (error) {
      if (!isDamage(error)) throw storageError(error);
      startAnew();
      return attempt();
    }
  };
  write(() => {});
  return {
    write,
    note(work) {
      try {
        if (!isClosed) write(work);
      } catch (error) {
        // The call itself went as it went; the next one asks the file again.
        if (!(error instanceof EngineError)) throw error;
      }
    },
    close() {
      isClosed = true;
      open?.db.close();
      open = undefined;
    },
  };
}

/** A file that is no database, a page that makes no sense, or tables that are not ours. */
function isDamage(error: unknown): boolean {
  return /^SQLITE_(?:CORRUPT|NOTADB|ERROR|SCHEMA|CONSTRAINT|MISMATCH)/.test(sqliteCode(error) ?? '');
}

function connect(file: string): Database.Database {
  createPrivateFile(file);
  const db = new Database(file, { timeout: 0 });
  try {
    retryWhileBusy(() => db.pragma('journal_mode = WAL'));
    // What the last minute held is not worth an fsync.
    db.pragma('synchronous = OFF');
    retryWhileBusy(() =>
      db.exec(
        `CREATE TABLE IF NOT EXISTS slots (slot INTEGER PRIMARY KEY, requests INTEGER NOT NULL, tokens INTEGER NOT NULL) STRICT;
         CREATE TABLE IF NOT EXISTS breaker (
           one INTEGER PRIMARY KEY CHECK (one = 1), failures INTEGER NOT NULL, opened_at INTEGER NOT NULL,
           open_ms INTEGER NOT NULL, probe_at INTEGER NOT NULL
         ) STRICT;
         INSERT INTO breaker VALUES (1, 0, 0, 0, 0) ON CONFLICT DO NOTHING;
         CREATE TABLE IF NOT EXISTS started (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL) STRICT;
         INSERT INTO started VALUES (1, 0) ON CONFLICT DO NOTHING;
         CREATE TABLE IF NOT EXISTS flights (
           flight INTEGER PRIMARY KEY AUTOINCREMENT, tokens INTEGER NOT NULL, at INTEGER NOT NULL
         ) STRICT;
         CREATE TABLE IF NOT EXISTS told (
           kind TEXT PRIMARY KEY, remaining INTEGER NOT NULL, reserve INTEGER NOT NULL, at INTEGER NOT NULL, reset_ms INTEGER NOT NULL
         ) STRICT;`,
      ),
    );
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function prepare(db: Database.Database) {
  return {
    breaker: db.prepare('SELECT failures, opened_at, open_ms, probe_at FROM breaker'),
    setBreaker: db.prepare(
      'UPDATE breaker SET failures = :failures, opened_at = :opened_at, open_ms = :open_ms, probe_at = :probe_at',
    ),
    probe: db.prepare('UPDATE breaker SET probe_at = :now'),
    rebaseBreaker: db.prepare(
      `UPDATE breaker SET opened_at = min(opened_at, :now), probe_at = min(probe_at, :now)
       WHERE opened_at > :now OR probe_at > :now`,
    ),
    started: db.prepare('SELECT at FROM started'),
    rebaseStarted: db.prepare('UPDATE started SET at = :now WHERE at > :now'),
    setStarted: db.prepare('UPDATE started SET at = :now'),
    depart: db.prepare('INSERT INTO flights (tokens, at) VALUES (:tokens, :now)'),
    land: db.prepare('DELETE FROM flights WHERE flight = :flight'),
    forgetFlights: db.prepare('DELETE FROM flights WHERE at < :before OR at > :now'),
    underWay: db.prepare('SELECT count(*) AS requests, coalesce(sum(tokens), 0) AS tokens FROM flights'),
    told: db.prepare('SELECT kind, remaining, reserve, at + reset_ms AS reset_at FROM told WHERE at + reset_ms > :now'),
    rebaseTold: db.prepare('UPDATE told SET at = :now WHERE at > :now'),
    spend: db.prepare('UPDATE told SET remaining = remaining - :cost WHERE kind = :kind'),
    setTold: db.prepare(
      `INSERT INTO told VALUES (:kind, :remaining, :reserve, :now, :resetMs) ON CONFLICT (kind) DO UPDATE
       SET remaining = excluded.remaining, reserve = excluded.reserve, at = excluded.at, reset_ms = excluded.reset_ms
       WHERE excluded.remaining < remaining OR at + reset_ms <= excluded.at`,
    ),
    /** Adds what lies in the future to the present. */
    rebaseSlots: db.prepare(
      `INSERT INTO slots SELECT :slot, sum(requests), sum(tokens) FROM slots WHERE slot > :slot HAVING count(*) > 0
       ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens`,
    ),
    forgetSlots: db.prepare('DELETE FROM slots WHERE slot <= :last OR slot > :slot'),
    totals: db.prepare('SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(tokens), 0) AS tokens FROM slots'),
    slots: db.prepare('SELECT slot, requests, tokens FROM slots ORDER BY slot'),
    count: db.prepare(
      `INSERT INTO slots VALUES (:slot, 1, :tokens)
       ON CONFLICT DO UPDATE SET requests = requests + 1, tokens = tokens + excluded.tokens`,
    ),
  };
}
