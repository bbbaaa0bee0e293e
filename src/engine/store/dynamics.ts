import { DAY_MS, RECALL_SALIENCE_BOOST, REINFORCE_STRENGTH_BOOST, sectorBits, STRENGTH_LAMBDA } from '../dynamics.ts';
import type { MemoryState, MemoryStatus, Sector } from '../types.ts';
import type { Store } from './open-store.ts';

/** Statements over `memory_dynamics`: what changes about a memory without its text changing. */

const SALIENCE_NOW = decayedSql('salience', 'salience_at', 'decay_lambda');
const STRENGTH_NOW = decayedSql('strength', 'strength_at', STRENGTH_LAMBDA);

export function insertDynamics(
  store: Store,
  { seq, salience, decayLambda, generationNo = null, now }: NewDynamics,
): void {
  store
    .prepare(
      `INSERT INTO memory_dynamics (seq, salience, salience_at, salience_now, decay_lambda, strength_at, last_seen_at, generation_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(seq, salience, now, salience, decayLambda, now, now, generationNo);
}

export interface NewDynamics {
  readonly seq: number;
  readonly salience: number;
  readonly decayLambda: number;
  /** Of the document that brings it. */
  readonly generationNo?: number | null;
  readonly now: number;
}

export interface Classified {
  readonly primary: Sector;
  readonly additional: readonly Sector[];
  readonly confidence: number;
}

/**
 * Writes a memory's sectors. The first time, the salience it started with grows by what its additional sectors are worth
 * (`salienceGain`, nothing where an importance was stated) without moving the anchor; later a changed λ moves the anchor to `now`, so that the past keeps the old λ.
 */
export function putSectors(
  store: Store,
  {
    seq,
    sectors,
    decayLambda,
    salienceGain,
    now,
  }: { seq: number; sectors: Classified; decayLambda: number; salienceGain: number; now: number },
): void {
  const first = store.prepare('SELECT sectors FROM memory_dynamics WHERE seq = ?').get(seq) as
    { sectors: number } | undefined;
  if (first === undefined) return;
  const values = {
    seq,
    now,
    primary: sectors.primary,
    bits: sectorBits([sectors.primary, ...sectors.additional]),
    confidence: sectors.confidence,
    lambda: decayLambda,
  };
  if (first.sectors === 0) {
    const gain = ':gain * (SELECT importance IS NULL FROM memories WHERE memories.seq = :seq)';
    store
      .prepare(
        `UPDATE memory_dynamics SET primary_sector = :primary, sectors = :bits, sector_confidence = :confidence,
           decay_lambda = :lambda, salience = min(1.0, salience + ${gain}), salience_now = min(1.0, salience_now + ${gain})
         WHERE seq = :seq`,
      )
      .run({
        seq,
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
       WHERE seq = :seq`,
    )
    .run(values);
}

/** The primary sector of a memory; undefined for one that is gone. */
export function findPrimarySector(store: Store, seq: number): Sector | undefined {
  return store.prepare('SELECT primary_sector FROM memory_dynamics WHERE seq = ?').pluck().get(seq) as
    Sector | undefined;
}

/** The primary sectors of two memories in the order of their numbers; without those of memories that are gone. */
export function listPrimarySectors(store: Store, one: number, other: number): Sector[] {
  return store
    .prepare('SELECT primary_sector FROM memory_dynamics WHERE seq IN (?, ?)')
    .pluck()
    .all(one, other) as Sector[];
}

/** Whether a memory is there and encoded and linked. */
export function isReady(store: Store, seq: number): boolean {
  return store.prepare(`SELECT 1 FROM memory_dynamics WHERE seq = ? AND state = 'ready'`).get(seq) !== undefined;
}

/** What decays of an active memory. */
export interface ActiveDynamics {
  readonly seq: number;
  readonly primary_sector: Sector;
  readonly salience: number;
  readonly salience_at: number;
  readonly decay_lambda: number;
}

/** All active memories in the order of their numbers, one at a time. */
export function iterateActive(store: Store): IterableIterator<ActiveDynamics> {
  return store
    .prepare(
      `SELECT seq, primary_sector, salience, salience_at, decay_lambda FROM memory_dynamics
       WHERE status = 'active' ORDER BY seq`,
    )
    .iterate() as IterableIterator<ActiveDynamics>;
}

export function setState(store: Store, seq: number, state: MemoryState): void {
  store.prepare('UPDATE memory_dynamics SET state = ? WHERE seq = ?').run(state, seq);
}

export function setStatus(store: Store, seq: number, status: MemoryStatus): void {
  store.prepare('UPDATE memory_dynamics SET status = ? WHERE seq = ?').run(status, seq);
}

/** A stated importance is the salience from now on. */
export function setSalience(store: Store, seq: number, salience: number, now: number): void {
  store
    .prepare('UPDATE memory_dynamics SET salience = ?, salience_now = ?, salience_at = ? WHERE seq = ?')
    .run(salience, salience, now, seq);
}

/** What one recall does to a memory that it returned. */
export function recallMemory(store: Store, seq: number, now: number): void {
  store
    .prepare(
      `UPDATE memory_dynamics SET salience = min(1.0, ${SALIENCE_NOW} + ${RECALL_SALIENCE_BOOST}),
         salience_now = min(1.0, ${SALIENCE_NOW} + ${RECALL_SALIENCE_BOOST}), salience_at = max(salience_at, :now),
         access_count = access_count + 1, last_seen_at = max(last_seen_at, :now)
       WHERE seq = :seq`,
    )
    .run({ seq, now });
}

/** An explicit reinforcement: salience + boost, strength + 0.1, both at most 1. */
export function reinforceMemory(store: Store, seq: number, boost: number, now: number): void {
  store
    .prepare(
      `UPDATE memory_dynamics SET salience = min(1.0, ${SALIENCE_NOW} + :boost), salience_now = min(1.0, ${SALIENCE_NOW} + :boost),
         salience_at = max(salience_at, :now), strength = min(1.0, ${STRENGTH_NOW} + ${REINFORCE_STRENGTH_BOOST}),
         strength_at = max(strength_at, :now), last_seen_at = max(last_seen_at, :now)
       WHERE seq = :seq`,
    )
    .run({ seq, boost, now });
}

/** Refreshes the cache of one slice of rows. @returns the highest `seq` looked at, or undefined after the last */
export function refreshSalience(
  store: Store,
  afterSeq: number,
  limit: number,
  now: number,
): { last: number; changed: number } | undefined {
  const last = sliceEnd(store, afterSeq, limit);
  if (last === undefined) return undefined;
  const result = store
    .prepare(`UPDATE memory_dynamics SET salience_now = ${SALIENCE_NOW} WHERE seq > :after AND seq <= :last`)
    .run({ now, after: afterSeq, last });
  return { last, changed: result.changes };
}

/** Moves the anchors of one slice to a λ that the settings changed. */
export function reanchorLambda(
  store: Store,
  {
    afterSeq,
    last,
    sector,
    decayLambda,
    now,
  }: { afterSeq: number; last: number; sector: Sector; decayLambda: number; now: number },
): number {
  return store
    .prepare(
      `UPDATE memory_dynamics SET salience = ${SALIENCE_NOW}, salience_at = max(salience_at, :now), decay_lambda = :lambda
       WHERE seq > :after AND seq <= :last AND primary_sector = :sector AND decay_lambda <> :lambda`,
    )
    .run({ now, lambda: decayLambda, sector, after: afterSeq, last }).changes;
}

export function sliceEnd(store: Store, afterSeq: number, limit: number): number | undefined {
  const row = store
    .prepare('SELECT max(seq) AS last FROM (SELECT seq FROM memory_dynamics WHERE seq > ? ORDER BY seq LIMIT ?)')
    .get(afterSeq, limit) as { last: number | null };
  return row.last ?? undefined;
}

/** The same as `decayed`, for statements over many rows. `:now` is bound by the caller. */
function decayedSql(value: string, at: string, lambda: string | number): string {
  return `min(1.0, max(0.0, ${value} * exp(-${lambda} * max(0, :now - ${at}) / ${DAY_MS}.0)))`;
}
