/**
 * A change of the embedding model, as a tenant's file records it: its progress; one job, the controller, which controls
 * it and has no memory; and jobs for some of the memories that the new model has yet to embed. The change is in
 * progress until the controller has ended.
 *
 *   embed ──all have vectors of the new model──► link ──all waypoints are measured anew──► drop ──► done
 *              (the new model goes live)                 (the old model's vectors are deleted)
 */

import { sectorBits } from '../dynamics.ts';
import type { ReembedPhase } from '../types.ts';
import type { Store } from './open-store.ts';
import { UNFINISHED, UUID, type HeldJob } from './jobs.ts';
import { distinctModels, sectorsOfModel, type SectorModelNumbers, type SectorModels } from './live-model.ts';
import { deleteInfo, findInfo, putInfo } from './store-info.ts';

/** Recorded progress of a change of the embedding model. */
export interface ReembedRecord {
  /** Number of the new model; a list of numbers if each sector (kind of memory) has its own model. */
  readonly target: SectorModelNumbers;
  readonly phase: ReembedPhase;
  /** Number of the last memory that was processed in the phases `embed` and `link`; of the last vector in `drop`. */
  readonly cursor: number;
  /**
   * Number of jobs that were added in this pass over the memories. After a pass that adds none, every memory with a
   * text has its new vectors or a dead job that was to make them.
   */
  readonly owed: number;
  /** Number of the pass over the memories, from 1. */
  readonly pass: number;
  /** Time at which the new model went live (queries began to use its vectors), Unix ms; null before that. */
  readonly wentLiveAt: number | null;
  /** Whether a caller decided that the new model goes live, even if it refused to embed some memories. */
  readonly withoutRefused?: boolean;
  /** Whether a caller decided that the new model goes live even if a guarded evaluation set gets worse results. */
  readonly unguarded?: boolean;
  /** Progress of the trial of both models with the guarded evaluation sets; absent before the trial begins. */
  readonly trial?: ReembedTrial | undefined;
  /**
   * Time (Unix ms) at which the phase began or was resumed, and the number of memories or vectors that were done then.
   * Speed and remaining time are computed from them.
   */
  readonly since: { readonly at: number; readonly done: number };
}

/** Progress of running the guarded evaluation sets by the old and by the new model. */
export interface ReembedTrial {
  /** Hash of the sets and their items. If it changes, the trial begins again. */
  readonly sets: string;
  /** Number of queries that were run so far. */
  readonly asked: number;
  /** Sums of the results so far, by set. */
  readonly sums: Readonly<Record<string, TrialSums>>;
}

/** Sums over the items of a set so far, each as `[old model, new model, number of items]`. */
export interface TrialSums {
  readonly recall: readonly [number, number, number];
  readonly rightlyEmpty: readonly [number, number, number];
  /** Numbers of items with a forbidden hit; absent if an earlier version of Cairn began the trial. */
  readonly forbidden?: readonly [number, number, number];
}

/**
 * Records with which models a file was last maintained, and when, so that processes with different settings do not undo
 * each other's work.
 */
export interface Tending {
  /** Models that the settings name; null with `OM_EMBEDDINGS=none`. */
  readonly target: SectorModelNumbers | null;
  /** Time of the maintenance, Unix ms. */
  readonly at: number;
}

const RECORD = 'reembed';
const TENDING = 'reembed_tended';
/**
 * SQL condition that a `reembed` job is a controller, which controls a change of the model. A job whose memory was
 * erased has no memory either, but has the step `encode`.
 */
export const IS_CONTROLLER = `memory IS NULL AND step <> 'encode'`;

/** Reads the recorded progress of the latest change of the model; undefined if there is no record. */
export function findReembed(store: Store): ReembedRecord | undefined {
  const value = findInfo(store, RECORD);
  return value === undefined ? undefined : (JSON.parse(value) as ReembedRecord);
}

/** Stores the progress of a change of the model, in place of the record before. Call inside a write. */
export function putReembed(store: Store, record: ReembedRecord): void {
  putInfo(store, RECORD, JSON.stringify(record));
}

/** Deletes the record of the latest change of the model, in whichever phase it is. Call inside a write. */
export function deleteReembed(store: Store): void {
  deleteInfo(store, RECORD);
}

/** Reads with which models this file was last maintained, and when; undefined if it never was. */
export function findTending(store: Store): Tending | undefined {
  const value = findInfo(store, TENDING);
  return value === undefined ? undefined : (JSON.parse(value) as Tending);
}

/**
 * Stores the models that the settings of this process name, with the present time (see `Tending`). Call inside a write.
 */
export function putTending(store: Store, tending: Tending): void {
  putInfo(store, TENDING, JSON.stringify(tending));
}

/** Number of the last memory that has got its new waypoint in the phase `link`; Infinity outside of that phase. */
export function relinkedUpTo(store: Store): number {
  const record = findReembed(store);
  return record?.phase === 'link' ? record.cursor : Infinity;
}

/** The job that controls a change of the embedding model. */
export interface ReembedController {
  readonly id: string;
  /** State of the job, one of JOB_STATES. */
  readonly state: string;
  /** Message of the last failed attempt; null if none failed. */
  readonly error: string | null;
}

/** Finds the controller (job that controls a change) that was added last, even an ended one; undefined without one. */
export function findReembedController(store: Store): ReembedController | undefined {
  return store
    .prepare(`SELECT id, state, error FROM jobs WHERE kind = 'reembed' AND ${IS_CONTROLLER} ORDER BY seq DESC LIMIT 1`)
    .get() as ReembedController | undefined;
}

/** Tells whether a change of the embedding model is in progress in this file: its controller is unfinished. */
export function isUnderWay(store: Store): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM jobs WHERE kind = 'reembed' AND ${IS_CONTROLLER} AND state IN ${UNFINISHED} LIMIT 1`)
      .get() !== undefined
  );
}

/**
 * Adds a controller, which controls a change of the model: a bulk job at the step `link`, run by any worker. Call
 * inside a write.
 */
export function insertReembedController(
  store: Store,
  { id, now }: { readonly id: string; readonly now: number },
): void {
  insert(store, { id, memory: null, step: 'link', now });
}

/**
 * Adds a bulk job that embeds a memory by the new model, unless the memory was erased meanwhile. Call inside a write.
 */
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

/** Deletes all unfinished and dead controllers (jobs that control a change of the model). Call inside a write. */
export function withdrawReembedController(store: Store): void {
  store
    .prepare(`DELETE FROM jobs WHERE kind = 'reembed' AND ${IS_CONTROLLER} AND state NOT IN ('done', 'cancelled')`)
    .run();
}

/**
 * Deletes the unfinished jobs that embed memories by the new model. Call inside a write.
 * @returns the lowest number of a memory whose job was deleted; undefined if there was none
 */
export function withdrawReembedJobs(store: Store): number | undefined {
  const rows = store
    .prepare(
      `DELETE FROM jobs
       WHERE kind = 'reembed' AND NOT (${IS_CONTROLLER}) AND state IN ${UNFINISHED} RETURNING memory`,
    )
    .all() as { memory: number | null }[];
  const memories = rows.flatMap(({ memory }) => (memory === null ? [] : [memory]));
  return memories.length === 0 ? undefined : Math.min(...memories);
}

/**
 * Deletes the job of a memory that has got its new vectors. It is not kept as done, since the vectors show that, and a
 * million such jobs would be useless. Only the epoch of the claim is checked: call `holdsLease` before, in the same
 * write.
 */
export function removeReembedJob(store: Store, held: HeldJob): void {
  store.prepare('DELETE FROM jobs WHERE seq = ? AND lease_epoch = ?').run(held.jobNo, held.epoch);
}

/** Counts the unfinished jobs that embed memories by the new model. */
export function countReembedJobs(store: Store): number {
  return store
    .prepare(
      `SELECT count(*) FROM jobs INDEXED BY jobs_of_reembed
       WHERE kind = 'reembed' AND state IN ${UNFINISHED} AND memory > 0`,
    )
    .pluck()
    .get() as number;
}

/** A slice of the memories that a model has yet to embed and that have no job for it. */
export interface UnembeddedMemories {
  /** Numbers of the memories, ascending. */
  readonly memoryNos: readonly number[];
  /** Number of the last memory that was examined, to pass as `after` next time; Infinity if no memory is left. */
  readonly upTo: number;
}

/** SQL for the sectors (kinds) of a memory as bits. A memory that was not classified yet counts as semantic. */
const SECTORS_HELD = `CASE d.sectors WHEN 0 THEN ${sectorBits(['semantic'])} ELSE d.sectors END`;
/** SQL condition that the memory has an unfinished or dead job that was to embed it. */
const IS_SEEN_TO = `EXISTS (SELECT 1 FROM jobs j
  WHERE j.memory = d.seq AND j.state IN ('queued', 'active', 'failed', 'dead')
    AND j.step NOT IN ('link', 'reason'))`;

type ModelNumbers = SectorModels<{ readonly modelNo: number }>;

/** Returns the SQL condition that a memory with a text lacks vectors of a model of one of its sectors (kinds). */
function lacksVectors(models: ModelNumbers): { readonly sql: string; readonly parameters: readonly number[] } {
  const lacks = `NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = d.seq AND v.model_no = ? AND v.sector = '')
    AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.seq = d.seq AND m.content = '' AND m.title = '')`;
  if (models.length === 1) return { sql: lacks, parameters: [models[0].modelNo] };
  const used = distinctModels(models);
  return {
    sql: `(${used.map(() => `((${SECTORS_HELD}) & ? <> 0 AND ${lacks})`).join(' OR ')})`,
    parameters: used.flatMap(({ modelNo }) => [sectorBits(sectorsOfModel(models, modelNo)), modelNo]),
  };
}

/**
 * Lists the memories with numbers above `after`, ascending, that lack vectors of a model of their sectors and have no
 * job to make them. A memory with a dead job is left out, since a person should look at its error first, and so is one
 * without title and text, which gets no vectors.
 * @param within number of memories to examine, at least 1
 * @param limit greatest number of memories listed
 */
export function listUnembedded(
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
): UnembeddedMemories {
  const { sql, parameters } = lacksVectors(models);
  const looked = store
    .prepare('SELECT seq FROM memory_dynamics WHERE seq > ? ORDER BY seq LIMIT 1 OFFSET ?')
    .pluck()
    .get(after, within - 1) as number | undefined;
  const upTo = looked ?? Infinity;
  const memoryNos = store
    .prepare(
      `SELECT d.seq FROM memory_dynamics d WHERE d.seq > ? AND d.seq <= ? AND ${sql} AND NOT ${IS_SEEN_TO}
       ORDER BY d.seq LIMIT ?`,
    )
    .pluck()
    .all(after, looked ?? Number.MAX_SAFE_INTEGER, ...parameters, limit) as number[];
  return { memoryNos, upTo: memoryNos.length === limit ? memoryNos.at(-1)! : upTo };
}

/**
 * Counts the memories that lack vectors of a model of their sectors (`lacking`), and those of them that have no job to
 * make the vectors, not even a dead one (`owed`). Each memory is looked up, which takes 0.3 s for a million.
 */
export function countLacking(store: Store, models: ModelNumbers): { readonly lacking: number; readonly owed: number } {
  const { sql, parameters } = lacksVectors(models);
  return store
    .prepare(
      `SELECT count(*) AS lacking, count(*) FILTER (WHERE NOT ${IS_SEEN_TO}) AS owed
       FROM memory_dynamics d WHERE ${sql}`,
    )
    .get(...parameters) as { lacking: number; owed: number };
}

/** A slice of the vectors whose model embeds none of the sectors of their memory. */
export interface SurplusVectors {
  readonly vectors: readonly { readonly vectorNo: number; readonly modelNo: number }[];
  /** Number of the last vector that was examined, to pass as `after` next time; Infinity if no vector is left. */
  readonly upTo: number;
}

/**
 * Lists vectors that no query uses any more: their model is live, but only for sectors that their memory does not have.
 * It examines the vectors with numbers from `after + 1` to `after + within`, so it may find few or none.
 * @param models the live model of each sector
 */
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
         CROSS JOIN json_each(?) n ON CAST(n.value ->> 'modelNo' AS INTEGER) = v.model_no
       WHERE v.vector_no > ? AND v.vector_no <= ? AND (${SECTORS_HELD}) & CAST(n.value ->> 'bits' AS INTEGER) = 0`,
    )
    .all(JSON.stringify(bits), after, upTo) as { vectorNo: number; modelNo: number }[];
  return { vectors, upTo: upTo >= last ? Infinity : upTo };
}

/** Counts the memories with numbers up to `memoryNo`, included; all if it is left out. */
export function countUpTo(store: Store, memoryNo = Infinity): number {
  const last = Number.isFinite(memoryNo) ? memoryNo : Number.MAX_SAFE_INTEGER;
  return store.prepare('SELECT count(*) FROM memory_dynamics WHERE seq <= ?').pluck().get(last) as number;
}
