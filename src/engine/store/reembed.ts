import { sectorBits } from '../dynamics.ts';
import type { ReembedPhase } from '../types.ts';
import type { Store } from './open-store.ts';
import type { HeldJob } from './jobs.ts';
import { distinctModels, sectorsOfModel, type SectorModelNumbers, type SectorModels } from './live-model.ts';
import { deleteInfo, findInfo, putInfo } from './store-info.ts';

/**
 * A change of the embedding model, as the file knows it: how far it is, one job of the ledger that directs it (the director, without a
 * memory), and a window of jobs for memories that are to be embedded by the new model. It is under way while the director has not ended.
 *
 *   embed ──all have vectors of the new model──► link ──all waypoints are measured anew──► drop ──► done
 *              (the new model goes live)                 (what the old one made goes)
 */
export interface ReembedRecord {
  /** The model, or models by sector, that it changes to. */
  readonly target: SectorModelNumbers;
  readonly phase: ReembedPhase;
  /** embed, link: the memory that was seen to last; drop: the vector. */
  readonly cursor: number;
  /** Jobs that this pass over the memories made: a pass without any finds everything done. */
  readonly owed: number;
  /** From 1. */
  readonly pass: number;
  /** Unix ms; null before. */
  readonly wentLiveAt: number | null;
  /** For rate and remaining time: when the phase was begun or taken up again, and at which memory. */
  readonly since: { readonly at: number; readonly done: number };
}

const RECORD = 'reembed';
/** A memory that was erased leaves its job without one, too. */
const IS_DIRECTOR = `memory IS NULL AND step <> 'encode'`;
const UNFINISHED = `('queued', 'active', 'failed')`;

export function findReembed(store: Store): ReembedRecord | undefined {
  const found = findInfo(store, RECORD);
  return found === undefined ? undefined : (JSON.parse(found) as ReembedRecord);
}

/** Call inside a write. */
export function putReembed(store: Store, record: ReembedRecord): void {
  putInfo(store, RECORD, JSON.stringify(record));
}

export function deleteReembed(store: Store): void {
  deleteInfo(store, RECORD);
}

/** A memory behind this one is not linked anew yet; Infinity while no change of the model is at that. */
export function relinkedUpTo(store: Store): number {
  const record = findReembed(store);
  return record?.phase === 'link' ? record.cursor : Infinity;
}

export interface Director {
  readonly id: string;
  readonly state: string;
  readonly error: string | null;
}

/** The latest one, also one that has ended. */
export function findDirector(store: Store): Director | undefined {
  return store
    .prepare(`SELECT id, state, error FROM jobs WHERE kind = 'reembed' AND ${IS_DIRECTOR} ORDER BY seq DESC LIMIT 1`)
    .get() as Director | undefined;
}

export function isUnderWay(store: Store): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM jobs WHERE kind = 'reembed' AND ${IS_DIRECTOR} AND state IN ${UNFINISHED} LIMIT 1`)
      .get() !== undefined
  );
}

/** It takes the place of a link, which every worker does, behind whatever is interactive. */
export function insertDirector(store: Store, { id, now }: { readonly id: string; readonly now: number }): void {
  insert(store, { id, memory: null, step: 'link', now });
}

/** Unless the memory went meanwhile. */
export function insertReembedJob(
  store: Store,
  job: { readonly id: string; readonly memory: number; readonly now: number },
): void {
  const isThere = store.prepare('SELECT 1 FROM memory_dynamics WHERE seq = ?').get(job.memory);
  if (isThere !== undefined) insert(store, { ...job, step: 'encode' });
}

function insert(
  store: Store,
  { id, memory, step, now }: { id: string; memory: number | null; step: 'encode' | 'link'; now: number },
): void {
  store
    .prepare(
      `INSERT INTO jobs (id, kind, memory, step, state, priority, run_at, created_at, updated_at, timeline)
       VALUES (?, 'reembed', ?, ?, 'queued', 1, ?, ?, ?, ?)`,
    )
    .run(id, memory, step, now, now, now, `["queued",${now}]`);
}

/** Ends the director without a word, and what it had put into the ledger. @returns the first memory whose job went */
export function withdrawJobs(store: Store): number | undefined {
  const rows = store
    .prepare(`DELETE FROM jobs WHERE kind = 'reembed' AND state IN ${UNFINISHED} RETURNING memory`)
    .all() as { memory: number | null }[];
  const memories = rows.flatMap(({ memory }) => (memory === null ? [] : [memory]));
  return memories.length === 0 ? undefined : Math.min(...memories);
}

/** Hands the director back after a slice of its work. A slice that came to its end clears it of every suspicion. */
export function yieldDirector(store: Store, held: HeldJob, runAt: number, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', suspect = 0, crashes = 0, attempts = 0, run_at = ?, lease_owner = NULL, lease_until = NULL,
         updated_at = ? WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(runAt, now, held.seq, held.epoch);
}

/** A memory that has its new vectors needs no row: they say so themselves, and a million rows more would say nothing. */
export function removeReembedJob(store: Store, held: HeldJob): void {
  store.prepare('DELETE FROM jobs WHERE seq = ? AND lease_epoch = ?').run(held.seq, held.epoch);
}

/** Memories that wait to be embedded, and those that were given up. */
export function countReembedJobs(store: Store): { readonly waiting: number; readonly dead: number } {
  return store
    .prepare(
      `SELECT count(*) FILTER (WHERE state IN ${UNFINISHED}) AS waiting, count(*) FILTER (WHERE state = 'dead') AS dead
       FROM jobs INDEXED BY jobs_of_reembed WHERE kind = 'reembed' AND memory > 0`,
    )
    .get() as { waiting: number; dead: number };
}

export interface OwedMemories {
  readonly seqs: readonly number[];
  /** How far was looked; the end of the memories where it is Infinity. */
  readonly upTo: number;
}

/** What was never classified counts as semantic. */
const SECTORS_HELD = `CASE d.sectors WHEN 0 THEN ${sectorBits(['semantic'])} ELSE d.sectors END`;

/**
 * Memories behind `after` of which a model of their sectors has no vectors, and that nobody is at work on. A dead job is not made again: that is for
 * whoever reads why it died.
 */
export function listOwed(
  store: Store,
  {
    models,
    after,
    within,
    limit,
  }: {
    readonly models: SectorModels<{ readonly modelNo: number }>;
    readonly after: number;
    readonly within: number;
    readonly limit: number;
  },
): OwedMemories {
  const VECTORLESS = `NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = d.seq AND v.model_no = ? AND v.sector = '')`;
  const owing = distinctModels(models).map(({ modelNo }) =>
    models.length === 1
      ? { sql: VECTORLESS, parameters: [modelNo] }
      : {
          sql: `((${SECTORS_HELD}) & ? <> 0 AND ${VECTORLESS})`,
          parameters: [sectorBits(sectorsOfModel(models, modelNo)), modelNo],
        },
  );
  const looked = store
    .prepare('SELECT seq FROM memory_dynamics WHERE seq > ? ORDER BY seq LIMIT 1 OFFSET ?')
    .pluck()
    .get(after, within - 1) as number | undefined;
  const upTo = looked ?? Infinity;
  const seqs = store
    .prepare(
      `SELECT d.seq FROM memory_dynamics d WHERE d.seq > ? AND d.seq <= ?
         AND (${owing.map(({ sql }) => sql).join(' OR ')})
         AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.memory = d.seq AND j.state IN ('queued', 'active', 'failed', 'dead')
                           AND j.step <> 'link')
       ORDER BY d.seq LIMIT ?`,
    )
    .pluck()
    .all(after, looked ?? Number.MAX_SAFE_INTEGER, ...owing.flatMap(({ parameters }) => parameters), limit) as number[];
  return { seqs, upTo: seqs.length === limit ? seqs.at(-1)! : upTo };
}

/** Vectors that stand for no sector of their memory, of `within` behind `after`. */
export interface SurplusVectors {
  readonly vectors: readonly { readonly vectorNo: number; readonly modelNo: number }[];
  /** How far was looked; the end of the vectors where it is Infinity. */
  readonly upTo: number;
}

export function listSurplus(
  store: Store,
  { models, after, within }: { readonly models: SectorModels; readonly after: number; readonly within: number },
): SurplusVectors {
  const last = store.prepare('SELECT coalesce(max(vector_no), 0) FROM vectors').pluck().get() as number;
  const upTo = after + within;
  const bits = distinctModels(models).map(({ modelNo }) => ({
    modelNo,
    bits: sectorBits(sectorsOfModel(models, modelNo)),
  }));
  const vectors = store
    .prepare(
      `SELECT v.vector_no AS vectorNo, v.model_no AS modelNo
       FROM vectors v CROSS JOIN memory_dynamics d ON d.seq = v.memory
         CROSS JOIN json_each(?) n ON n.value ->> 'modelNo' = v.model_no
       WHERE v.vector_no > ? AND v.vector_no <= ? AND (${SECTORS_HELD}) & (n.value ->> 'bits') = 0`,
    )
    .all(JSON.stringify(bits), after, upTo) as { vectorNo: number; modelNo: number }[];
  return { vectors, upTo: upTo >= last ? Infinity : upTo };
}

/** Memories up to a number, or all. */
export function countUpTo(store: Store, seq = Infinity): number {
  const most = Number.isFinite(seq) ? seq : Number.MAX_SAFE_INTEGER;
  return store.prepare('SELECT count(*) FROM memory_dynamics WHERE seq <= ?').pluck().get(most) as number;
}

/** The next memories in order of number, with their users. */
export function listMemoriesAfter(
  store: Store,
  after: number,
  limit: number,
): { readonly memory: number; readonly userNo: number }[] {
  return store
    .prepare('SELECT seq AS memory, user_no AS userNo FROM memories WHERE seq > ? ORDER BY seq LIMIT ?')
    .all(after, limit) as { memory: number; userNo: number }[];
}
