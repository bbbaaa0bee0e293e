import { sectorBits } from '../dynamics.ts';
import type { ReembedPhase } from '../types.ts';
import type { Store } from './open-store.ts';
import { CRASH, UUID, type HeldJob } from './jobs.ts';
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
  /** Somebody decided that it goes live however many memories it has no vectors of, since they were refused. */
  readonly withoutRefused?: boolean;
  /** For rate and remaining time: when the phase was begun or taken up again, and at which memory. */
  readonly since: { readonly at: number; readonly done: number };
}

/** By which settings a file was last looked after, so that processes with different ones do not undo each other's work. */
export interface Tending {
  /** The models that they ask for; null for `OM_EMBEDDINGS=none`. */
  readonly target: SectorModelNumbers | null;
  /** Unix ms. */
  readonly at: number;
}

const RECORD = 'reembed';
const TENDING = 'reembed_tended';
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

export function findTending(store: Store): Tending | undefined {
  const found = findInfo(store, TENDING);
  return found === undefined ? undefined : (JSON.parse(found) as Tending);
}

/** Call inside a write. */
export function putTending(store: Store, tending: Tending): void {
  putInfo(store, TENDING, JSON.stringify(tending));
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
      `INSERT INTO jobs (uuid, kind, memory, step, state, priority, run_at, created_at, updated_at)
       VALUES (${UUID}, 'reembed', ?, ?, 'queued', 1, ?, ?, ?)`,
    )
    .run(id, memory, step, now, now, now);
}

/** Ends the director without a word, also one that failed. */
export function withdrawDirector(store: Store): void {
  store
    .prepare(`DELETE FROM jobs WHERE kind = 'reembed' AND ${IS_DIRECTOR} AND state NOT IN ('done', 'cancelled')`)
    .run();
}

/** Takes out of the ledger what the director had put there. @returns the first memory whose job went */
export function withdrawMemories(store: Store): number | undefined {
  const rows = store
    .prepare(
      `DELETE FROM jobs WHERE kind = 'reembed' AND NOT (${IS_DIRECTOR}) AND state IN ${UNFINISHED} RETURNING memory`,
    )
    .all() as { memory: number | null }[];
  const memories = rows.flatMap(({ memory }) => (memory === null ? [] : [memory]));
  return memories.length === 0 ? undefined : Math.min(...memories);
}

/** Forgets which memories were given up: a model that refused a text says nothing about another. */
export function deleteRefusals(store: Store): void {
  store
    .prepare(
      `DELETE FROM jobs WHERE kind = 'reembed' AND NOT (${IS_DIRECTOR}) AND state = 'dead' AND error_code <> '${CRASH}'`,
    )
    .run();
}

/** Jobs of new memories that were given up before they had vectors. What killed its workers stays where it is. */
export function listRefusedAdds(store: Store): string[] {
  return store
    .prepare(
      `SELECT id FROM jobs j INDEXED BY jobs_by_end
       WHERE state = 'dead' AND finished_at > 0 AND kind = 'memory' AND step = 'encode' AND memory > 0 AND error_code <> '${CRASH}'
         AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.memory = j.memory AND o.kind <> 'contradictions' AND o.state IN ${UNFINISHED})`,
    )
    .pluck()
    .all() as string[];
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

/** Memories that the director put into the ledger and that have yet to be embedded. */
export function countReembedJobs(store: Store): number {
  return store
    .prepare(
      `SELECT count(*) FROM jobs INDEXED BY jobs_of_reembed WHERE kind = 'reembed' AND state IN ${UNFINISHED} AND memory > 0`,
    )
    .pluck()
    .get() as number;
}

/** Memories whose embedding was given up, as dead letters tell, and how many of them did not kill their workers. */
export function countGivenUp(store: Store): { readonly givenUp: number; readonly refused: number } {
  return store
    .prepare(
      `SELECT count(DISTINCT memory) AS givenUp, count(DISTINCT memory) FILTER (WHERE error_code <> '${CRASH}') AS refused
       FROM jobs INDEXED BY jobs_by_end WHERE state = 'dead' AND finished_at > 0 AND step = 'encode' AND memory > 0`,
    )
    .get() as { givenUp: number; refused: number };
}

export interface OwedMemories {
  readonly seqs: readonly number[];
  /** How far was looked; the end of the memories where it is Infinity. */
  readonly upTo: number;
}

/** What was never classified counts as semantic. */
const SECTORS_HELD = `CASE d.sectors WHEN 0 THEN ${sectorBits(['semantic'])} ELSE d.sectors END`;
/** Somebody is at work on the memory, or gave it up. */
const IS_SEEN_TO = `EXISTS (SELECT 1 FROM jobs j WHERE j.memory = d.seq AND j.state IN ('queued', 'active', 'failed', 'dead')
                             AND j.step NOT IN ('link', 'reason'))`;

type ModelNumbers = SectorModels<{ readonly modelNo: number }>;

/** That a model of the memory's sectors has no vectors of it. */
function lacksVectors(models: ModelNumbers): { readonly sql: string; readonly parameters: readonly number[] } {
  const lacks = `NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = d.seq AND v.model_no = ? AND v.sector = '')`;
  if (models.length === 1) return { sql: lacks, parameters: [models[0].modelNo] };
  const used = distinctModels(models);
  return {
    sql: `(${used.map(() => `((${SECTORS_HELD}) & ? <> 0 AND ${lacks})`).join(' OR ')})`,
    parameters: used.flatMap(({ modelNo }) => [sectorBits(sectorsOfModel(models, modelNo)), modelNo]),
  };
}

/**
 * Memories behind `after` of which a model of their sectors has no vectors, and that nobody is at work on. A dead job is not made again: that
 * is for whoever reads why it died, or starts anew.
 */
export function listOwed(
  store: Store,
  {
    models,
    after,
    within,
    limit,
  }: {
    readonly models: ModelNumbers;
    readonly after: number;
    readonly within: number;
    readonly limit: number;
  },
): OwedMemories {
  const { sql, parameters } = lacksVectors(models);
  const looked = store
    .prepare('SELECT seq FROM memory_dynamics WHERE seq > ? ORDER BY seq LIMIT 1 OFFSET ?')
    .pluck()
    .get(after, within - 1) as number | undefined;
  const upTo = looked ?? Infinity;
  const seqs = store
    .prepare(
      `SELECT d.seq FROM memory_dynamics d WHERE d.seq > ? AND d.seq <= ? AND ${sql} AND NOT ${IS_SEEN_TO}
       ORDER BY d.seq LIMIT ?`,
    )
    .pluck()
    .all(after, looked ?? Number.MAX_SAFE_INTEGER, ...parameters, limit) as number[];
  return { seqs, upTo: seqs.length === limit ? seqs.at(-1)! : upTo };
}

/**
 * Memories that lack vectors of a model of their sectors, and how many of them nobody sees to. Looks each memory up, which took 0.3 s of one
 * core for a million.
 */
export function countLacking(store: Store, models: ModelNumbers): { readonly lacking: number; readonly owed: number } {
  const { sql, parameters } = lacksVectors(models);
  return store
    .prepare(
      `SELECT count(*) AS lacking, count(*) FILTER (WHERE NOT ${IS_SEEN_TO}) AS owed FROM memory_dynamics d WHERE ${sql}`,
    )
    .get(...parameters) as { lacking: number; owed: number };
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

/** The next memories in order of number. */
export function listMemoriesAfter(store: Store, after: number, limit: number): number[] {
  return store
    .prepare('SELECT seq FROM memories WHERE seq > ? ORDER BY seq LIMIT ?')
    .pluck()
    .all(after, limit) as number[];
}
