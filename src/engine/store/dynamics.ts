/** Statements on `memory_dynamics`, the table of those values of a memory that change without a change of its text. */

import { RECALL_SALIENCE_BOOST, REINFORCE_STRENGTH_BOOST, sectorBits, STRENGTH_LAMBDA } from '../dynamics.ts';
import type { MemoryState, MemoryStatus, Sector } from '../types.ts';
import { appendStored } from './events.ts';
import { fadedSql } from './faded-sql.ts';
import type { Store } from './open-store.ts';

const SALIENCE_NOW = decayedSql('salience', 'salience_at', 'decay_lambda');
/**
 * Length of the periods within which the reinforcement of a memory is limited (ms). They are counted from the Unix
 * epoch.
 */
const HOUR_MS = 3_600_000;
/**
 * SQL for how much the salience of a memory may still rise in the present hour, of the limit `:perHour`. If the clock
 * was set back, the stored later hour continues.
 */
const LEFT = 'max(0.0, :perHour - CASE WHEN boost_hour >= :hour THEN boosted / 1000.0 ELSE 0.0 END)';
const GAIN = `min(:boost, ${LEFT})`;
const NOTE_GAIN = `
  boosted = CASE WHEN boost_hour >= :hour THEN boosted ELSE 0 END + CAST(round(1000 * ${GAIN}) AS INTEGER),
  boost_hour = max(coalesce(boost_hour, 0), :hour)`;
const STRENGTH_NOW = decayedSql('strength', 'strength_at', STRENGTH_LAMBDA);

/**
 * Inserts the row of a new memory in `memory_dynamics` (salience, state and others). It also appends the event
 * `memory.stored`, unless the memory is a part of a document. Call inside a write.
 */
export function insertDynamics(
  store: Store,
  { memoryNo, salience, decayLambda, generationNo = null, writerNo = null, now }: NewDynamics,
): void {
  store
    .prepare(
      `INSERT INTO memory_dynamics (seq, salience, salience_at, salience_now, decay_lambda, strength_at, last_seen_at,
         generation_no, writer_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(memoryNo, salience, now, salience, decayLambda, now, now, generationNo, writerNo);
  if (generationNo === null) appendStored(store, memoryNo, now);
}

/** Initial values of a memory's row in `memory_dynamics`. A new memory is `queued` and has no sectors (kinds) yet. */
export interface NewDynamics {
  readonly memoryNo: number;
  /** Initial salience (how present the memory is), 0..1. */
  readonly salience: number;
  /** Rate of decay of the salience, per day. */
  readonly decayLambda: number;
  /** Number of the document generation that the memory belongs to; null if it is no part of a document. */
  readonly generationNo?: number | null;
  /** Number of the writer (key), as `ensureWriter` returns it; null if no caller asked for the memory. */
  readonly writerNo?: number | null;
  readonly now: number;
}

/** The sectors (kinds of memory) that a memory was classified as. */
export interface Classified {
  readonly primary: Sector;
  readonly additional: readonly Sector[];
  /** How clearly the text belongs to the primary sector, 0..1. */
  readonly confidence: number;
}

/** SQL that selects the sectors (kinds) of a memory as bits; its parameter is the number of the memory. */
export const SELECT_SECTORS = 'SELECT sectors FROM memory_dynamics WHERE seq = ?';

/**
 * Stores a memory's sectors (kinds) and the decay rate λ (per day) of its primary sector. The first time,
 * `salienceGain` for its additional sectors is added to the initial salience, unless a caller stated the importance.
 * Later, nothing is added; if λ changes, the present salience is stored as of `now`, so that the time before keeps the
 * old λ. A memory that does not exist is ignored. Call inside a write.
 */
export function putSectors(
  store: Store,
  {
    memoryNo,
    sectors,
    decayLambda,
    salienceGain,
    now,
  }: { memoryNo: number; sectors: Classified; decayLambda: number; salienceGain: number; now: number },
): void {
  const first = store.prepare(SELECT_SECTORS).get(memoryNo) as { sectors: number } | undefined;
  if (first === undefined) return;
  const values = {
    memoryNo,
    now,
    primary: sectors.primary,
    bits: sectorBits([sectors.primary, ...sectors.additional]),
    confidence: sectors.confidence,
    lambda: decayLambda,
  };
  if (first.sectors === 0) {
    const gain = ':gain * (SELECT iif(importance IS NULL, 1, 0) FROM memories WHERE memories.seq = :memoryNo)';
    store
      .prepare(
        `UPDATE memory_dynamics SET primary_sector = :primary, sectors = :bits, sector_confidence = :confidence,
           decay_lambda = :lambda, salience = min(1.0, salience + ${gain}),
           salience_now = min(1.0, salience_now + ${gain})
         WHERE seq = :memoryNo`,
      )
      .run({
        memoryNo,
        primary: values.primary,
        bits: values.bits,
        confidence: values.confidence,
        lambda: decayLambda,
        gain: salienceGain,
      });
    return;
  }
  store
    .prepare(
      `UPDATE memory_dynamics SET primary_sector = :primary, sectors = :bits, sector_confidence = :confidence,
         salience = CASE decay_lambda WHEN :lambda THEN salience ELSE ${SALIENCE_NOW} END,
         salience_at = CASE decay_lambda WHEN :lambda THEN salience_at ELSE max(salience_at, :now) END,
         decay_lambda = :lambda
       WHERE seq = :memoryNo`,
    )
    .run(values);
}

/** Reads the primary sector (kind) of a memory; undefined if the memory does not exist. */
export function findPrimarySector(store: Store, memoryNo: number): Sector | undefined {
  return store.prepare('SELECT primary_sector FROM memory_dynamics WHERE seq = ?').pluck().get(memoryNo) as
    Sector | undefined;
}

/** SQL that selects the primary sectors of two memories; its parameters are their numbers. */
export const SELECT_PRIMARY_SECTORS = 'SELECT primary_sector FROM memory_dynamics WHERE seq IN (?, ?)';

/** Reads the primary sectors of two memories, in no certain order; a memory that does not exist is left out. */
export function listPrimarySectors(store: Store, memoryNo: number, otherNo: number): Sector[] {
  return store.prepare(SELECT_PRIMARY_SECTORS).pluck().all(memoryNo, otherNo) as Sector[];
}

/** SQL that selects a row if a memory is `ready`; its parameter is the number of the memory. */
export const SELECT_READY = `SELECT 1 FROM memory_dynamics WHERE seq = ? AND state = 'ready'`;

/** Tells whether a memory exists and has the state `ready`. */
export function isReady(store: Store, memoryNo: number): boolean {
  return store.prepare(SELECT_READY).get(memoryNo) !== undefined;
}

/**
 * Reads the contents of those of these memories that exist and do not have the state `ready`, in no certain order. The
 * state is no condition of the query, since PostgreSQL would then look among all memories that wait.
 */
export function listUnlinkedTexts(
  store: Store,
  memoryNos: readonly number[],
): { readonly memoryNo: number; readonly content: string }[] {
  if (memoryNos.length === 0) return [];
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.content, d.state FROM json_each(?) AS wanted
         CROSS JOIN memory_dynamics d ON d.seq = wanted.value CROSS JOIN memories m ON m.seq = wanted.value`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; content: string; state: string }[];
  return rows.filter(({ state }) => state !== 'ready');
}

/** The fields from which the decay of a memory with the status `active` is computed. */
export interface ActiveDynamics {
  readonly memoryNo: number;
  readonly primary_sector: Sector;
  /** Salience at the time `salience_at`, 0..1. */
  readonly salience: number;
  /** Time of `salience`, Unix ms. */
  readonly salience_at: number;
  /** Rate of decay of the salience, per day. */
  readonly decay_lambda: number;
}

/**
 * Iterates over all memories with the status `active`, by ascending number. The connection cannot write until the
 * iteration has ended.
 */
export function iterateActive(store: Store): IterableIterator<ActiveDynamics> {
  return store
    .prepare(
      `SELECT seq AS memoryNo, primary_sector, salience, salience_at, decay_lambda FROM memory_dynamics
       WHERE status = 'active' ORDER BY seq`,
    )
    .iterate() as IterableIterator<ActiveDynamics>;
}

/** Sets the state of a memory: `queued`, `ready` or `failed`. Call inside a write. */
export function setState(store: Store, memoryNo: number, state: MemoryState): void {
  store.prepare('UPDATE memory_dynamics SET state = ? WHERE seq = ?').run(state, memoryNo);
}

/** Sets the status of a memory without keeping a revision, which `replaceMemory` does. Call inside a write. */
export function setStatus(store: Store, memoryNo: number, status: MemoryStatus): void {
  store.prepare('UPDATE memory_dynamics SET status = ? WHERE seq = ?').run(status, memoryNo);
}

/** Sets the salience of a memory (0..1), such as a stated importance, as of `now` (Unix ms). Call inside a write. */
export function setSalience(store: Store, memoryNo: number, salience: number, now: number): void {
  store
    .prepare('UPDATE memory_dynamics SET salience = ?, salience_now = ?, salience_at = ? WHERE seq = ?')
    .run(salience, salience, now, memoryNo);
}

/** Sets the time at which a memory was last seen (Unix ms), from which its recency is computed. Call inside a write. */
export function setLastSeen(store: Store, memoryNo: number, lastSeenAt: number): void {
  store.prepare('UPDATE memory_dynamics SET last_seen_at = ? WHERE seq = ?').run(lastSeenAt, memoryNo);
}

/**
 * Reinforces a memory that a query returned: its salience as of `now` rises by 0.1 (RECALL_SALIENCE_BOOST), to at most
 * 1, the access is counted, and the memory is last seen at `now`. All reinforcements of a memory together raise its
 * salience by at most `perHour` in one hour of the clock. Call inside a write.
 */
export function recallMemory(
  store: Store,
  memoryNo: number,
  { now, perHour }: { readonly now: number; readonly perHour: number },
): void {
  store
    .prepare(
      `UPDATE memory_dynamics SET salience = min(1.0, ${SALIENCE_NOW} + ${GAIN}),
         salience_now = min(1.0, ${SALIENCE_NOW} + ${GAIN}), ${NOTE_GAIN}, salience_at = max(salience_at, :now),
         access_count = access_count + 1, last_seen_at = max(last_seen_at, :now)
       WHERE seq = :memoryNo`,
    )
    .run({ memoryNo, now, perHour, boost: RECALL_SALIENCE_BOOST, hour: Math.floor(now / HOUR_MS) });
}

/**
 * Reinforces a memory on request: its salience as of `now` rises by `boost` and its strength by 0.1
 * (REINFORCE_STRENGTH_BOOST), both to at most 1. All reinforcements of a memory together raise its salience by at most
 * `perHour` in one hour; once that is reached, the strength does not rise either. A boost of 0 only sets the time at
 * which the memory was last seen. Call inside a write.
 */
export function reinforceMemory(
  store: Store,
  memoryNo: number,
  { boost, now, perHour }: { readonly boost: number; readonly now: number; readonly perHour: number },
): void {
  store
    .prepare(
      `UPDATE memory_dynamics SET salience = min(1.0, ${SALIENCE_NOW} + ${GAIN}),
         salience_now = min(1.0, ${SALIENCE_NOW} + ${GAIN}), ${NOTE_GAIN},
         salience_at = max(salience_at, :now),
         strength = min(1.0, ${STRENGTH_NOW} + ${REINFORCE_STRENGTH_BOOST} * iif(:boost > 0 AND ${LEFT} > 0, 1, 0)),
         strength_at = max(strength_at, :now), last_seen_at = max(last_seen_at, :now)
       WHERE seq = :memoryNo`,
    )
    .run({ memoryNo, boost, now, perHour, hour: Math.floor(now / HOUR_MS) });
}

/**
 * Recomputes the cached salience (`salience_now`) of the first `limit` memories with numbers above `afterMemoryNo`.
 * Call inside a write.
 * @returns `last`: highest number of the slice, to pass as `afterMemoryNo` next time; `changed`: number of memories in
 *   the slice; undefined if no memory is left
 */
export function refreshSalience(
  store: Store,
  afterMemoryNo: number,
  limit: number,
  now: number,
): { last: number; changed: number } | undefined {
  const last = sliceEnd(store, afterMemoryNo, limit);
  if (last === undefined) return undefined;
  const result = store
    .prepare(`UPDATE memory_dynamics SET salience_now = ${SALIENCE_NOW} WHERE seq > :after AND seq <= :last`)
    .run({ now, after: afterMemoryNo, last });
  return { last, changed: result.changes };
}

/**
 * Sets the decay rate (`decayLambda`, per day) of the memories of one primary sector in a slice: the numbers above
 * `afterMemoryNo` up to `last`, included. Where the rate changes, the present salience is stored as of `now`, so that
 * the new rate applies from now on only. Call inside a write.
 * @returns the number of memories whose rate changed
 */
export function reanchorLambda(
  store: Store,
  {
    afterMemoryNo,
    last,
    sector,
    decayLambda,
    now,
  }: { afterMemoryNo: number; last: number; sector: Sector; decayLambda: number; now: number },
): number {
  return store
    .prepare(
      `UPDATE memory_dynamics
       SET salience = ${SALIENCE_NOW}, salience_at = max(salience_at, :now), decay_lambda = :lambda
       WHERE seq > :after AND seq <= :last AND primary_sector = :sector AND decay_lambda <> :lambda`,
    )
    .run({ now, lambda: decayLambda, sector, after: afterMemoryNo, last }).changes;
}

/** Returns the highest number of the first `limit` memories above `afterMemoryNo`; undefined if there are none. */
export function sliceEnd(store: Store, afterMemoryNo: number, limit: number): number | undefined {
  const row = store
    .prepare('SELECT max(seq) AS last FROM (SELECT seq FROM memory_dynamics WHERE seq > ? ORDER BY seq LIMIT ?)')
    .get(afterMemoryNo, limit) as { last: number | null };
  return row.last ?? undefined;
}

/**
 * Returns SQL that computes a decayed value like the function `decayed`, for statements over many rows. The caller
 * binds `:now` (Unix ms).
 * @param value SQL expression for the value at the time `at` (Unix ms)
 * @param lambda decay rate per day
 */
function decayedSql(value: string, at: string, lambda: string | number): string {
  return `min(1.0, max(0.0, ${fadedSql(value, at, lambda, ':now')}))`;
}
