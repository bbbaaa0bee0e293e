/**
 * Consolidations (migrations/0017-consolidations.sql): which similar memories were gathered into one new memory, and
 * the progress of the runs that do so. `gatherable.ts` reads which memories a run may gather.
 */

import { EngineError } from '../errors.ts';
import type { Consolidation, ConsolidationMethod, ConsolidationPage } from '../types.ts';
import { UNFINISHED } from './jobs.ts';
import { lastMemory } from './memory-counts.ts';
import type { Store } from './open-store.ts';

/**
 * Position that a run of consolidation has reached: the last memory that it has gone through. Memories are ordered by
 * user, then event time (Unix ms), then number.
 */
export interface RunPlace {
  readonly userNo: number;
  readonly eventTime: number;
  readonly memoryNo: number;
}

/** Returns the position before the first memory of a user. */
export const startOfUser = (userNo: number): RunPlace => ({ userNo, eventTime: Number.MIN_SAFE_INTEGER, memoryNo: 0 });

/**
 * A run of consolidation: a job that goes through the memories of one user or of all users, and gathers similar
 * memories into a new one.
 */
export interface ConsolidationRun {
  /** Number of the user whose memories the run is about; null for all users. */
  readonly userNo: number | null;
  /** Whether the run may gather memories whose earlier consolidation was undone. */
  readonly again: boolean;
  readonly place: RunPlace;
  /** Number of bytes of text that the run has read so far. */
  readonly bytes: number;
  /** Number of consolidations that the run has made so far. */
  readonly made: number;
}

/** Finds the unfinished run for exactly this user, or for all users (`userNo` null); undefined if there is none. */
export function findUnfinishedRun(
  store: Store,
  userNo: number | null,
): { readonly id: string; readonly jobNo: number; readonly again: boolean } | undefined {
  const row = store
    .prepare(
      `SELECT j.id, j.seq AS jobNo, r.again FROM consolidation_runs r JOIN jobs j ON j.seq = r.job
       WHERE r.user_no IS ? AND j.state IN ${UNFINISHED} LIMIT 1`,
    )
    .get(userNo) as { id: string; jobNo: number; again: 0 | 1 } | undefined;
  return row && { ...row, again: row.again === 1 };
}

/**
 * Stores the run of a job that was just added. If the last run for the same user (or all users) stopped early at a
 * limit, the new run begins where it stopped, otherwise at the first memory. The rows of ended runs for the same user
 * are deleted. Call inside a write.
 */
export function insertRun(
  store: Store,
  jobNo: number,
  { userNo, again }: Pick<ConsolidationRun, 'userNo' | 'again'>,
): void {
  const last = store
    .prepare(
      `DELETE FROM consolidation_runs WHERE user_no IS ? AND ended IS NOT NULL
       RETURNING job, ended, at_user AS userNo, at_time AS eventTime, at_memory AS memoryNo`,
    )
    .all(userNo) as ({ job: number; ended: string } & RunPlace)[];
  const cut = last.sort((a, b) => b.job - a.job)[0];
  const from = cut?.ended === 'cut' ? cut : startOfUser(userNo ?? 0);
  store
    .prepare(
      `INSERT INTO consolidation_runs (job, user_no, again, at_user, at_time, at_memory, up_to)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(jobNo, userNo, again ? 1 : 0, from.userNo, from.eventTime, from.memoryNo, lastMemory(store));
}

/** Finds the run of a job; undefined once the run has ended, or if its user has no memories any more. */
export function findRun(store: Store, jobNo: number): ConsolidationRun | undefined {
  const row = store
    .prepare(
      `SELECT user_no AS userNo, again, at_user, at_time, at_memory, bytes, made FROM consolidation_runs
       WHERE job = ? AND ended IS NULL`,
    )
    .get(jobNo) as
    | (Pick<ConsolidationRun, 'userNo' | 'bytes' | 'made'> & {
        readonly again: number;
        readonly at_user: number;
        readonly at_time: number;
        readonly at_memory: number;
      })
    | undefined;
  if (row === undefined) return undefined;
  const { userNo, bytes, made } = row;
  const place = { userNo: row.at_user, eventTime: row.at_time, memoryNo: row.at_memory };
  return { userNo, again: row.again === 1, place, bytes, made };
}

/**
 * Stores the position that a run has reached, and adds the bytes that it has read since the last call. Call inside a
 * write.
 */
export function moveRun(store: Store, jobNo: number, place: RunPlace, read: { readonly bytes: number }): void {
  store
    .prepare('UPDATE consolidation_runs SET at_user = ?, at_time = ?, at_memory = ?, bytes = bytes + ? WHERE job = ?')
    .run(place.userNo, place.eventTime, place.memoryNo, read.bytes, jobNo);
}

/**
 * Stores how a run has ended: `complete` after the last memory, or `cut` early at a limit, so that the next run for the
 * same user (or all users) continues at the position of this one. Call inside a write.
 */
export function endRun(store: Store, jobNo: number, ended: 'complete' | 'cut'): void {
  store.prepare('UPDATE consolidation_runs SET ended = ? WHERE job = ?').run(ended, jobNo);
}

/**
 * Tells whether a run over all users has something to do: memories were added since the last such run began, that run
 * was cut or is unfinished, or there was none.
 */
export function isRunWanted(store: Store): boolean {
  const last = store
    .prepare('SELECT ended, up_to AS upTo FROM consolidation_runs WHERE user_no IS NULL ORDER BY job DESC LIMIT 1')
    .get() as { ended: string | null; upTo: number } | undefined;
  return last === undefined || last.ended !== 'complete' || last.upTo < lastMemory(store);
}

/** Returns the lowest number of a user above `userNo`; undefined if there is none. */
export function nextUserNo(store: Store, userNo: number): number | undefined {
  return store.prepare('SELECT user_no FROM users WHERE user_no > ? ORDER BY user_no LIMIT 1').pluck().get(userNo) as
    number | undefined;
}

/** A consolidation to store: a memory that was made of several similar memories, its sources. */
export interface NewConsolidation {
  readonly id: string;
  readonly runId: string;
  readonly userNo: number;
  /** `memoryNo` of the memory that was made; null if the privacy policy refused its text. */
  readonly memoryNo: number | null;
  readonly sources: readonly number[];
  readonly method: ConsolidationMethod;
}

/**
 * Stores a consolidation, and adds it to the count of the job's run. Consolidations without a memory (undone ones, and
 * those whose text was refused) that have a source in common with it are deleted. It is stored as of `now`, or of the
 * latest change of a source if the clock was set back since: earlier it would be outdated. Call inside a write.
 */
export function insertConsolidation(store: Store, made: NewConsolidation, jobNo: number, now: number): void {
  store
    .prepare(
      `DELETE FROM consolidations WHERE memory IS NULL AND consolidation_no IN
         (SELECT consolidation_no FROM consolidation_sources WHERE source IN (SELECT value FROM json_each(?)))`,
    )
    .run(JSON.stringify(made.sources));
  const changedAt = store
    .prepare('SELECT max(updated_at) FROM memories WHERE seq IN (SELECT value FROM json_each(?))')
    .pluck()
    .get(JSON.stringify(made.sources)) as number;
  const { lastInsertRowid } = store
    .prepare('INSERT INTO consolidations (id, run_id, user_no, memory, method, created_at) VALUES (?, ?, ?, ?, ?, ?)')
    .run(made.id, made.runId, made.userNo, made.memoryNo, made.method, Math.max(now, changedAt));
  const put = store.prepare('INSERT INTO consolidation_sources (source, consolidation_no) VALUES (?, ?)');
  for (const source of made.sources) put.run(source, lastInsertRowid);
  store.prepare('UPDATE consolidation_runs SET made = made + 1 WHERE job = ?').run(jobNo);
}

/**
 * Tells whether the file has a consolidation with a memory: one that was not undone and whose text was not refused. If
 * it has none, further lookups of consolidations are unnecessary.
 */
export function hasConsolidations(store: Store): boolean {
  return store.prepare('SELECT 1 FROM consolidations WHERE memory > 0 LIMIT 1').get() !== undefined;
}

/**
 * Makes a function that tells whether a memory was made by a consolidation. Use the function only on the snapshot on
 * which it was made.
 */
export function createGatheredTest(store: Store): (memoryNo: number) => boolean {
  if (!hasConsolidations(store)) return () => false;
  const find = store.prepare('SELECT 1 FROM consolidations WHERE memory = ?');
  return (memoryNo) => find.get(memoryNo) !== undefined;
}

/** A memory that a consolidation made, and one of the memories that it was made of, both by number. */
export interface GatheredSource {
  readonly gathered: number;
  readonly source: number;
}

/**
 * Lists the sources of those of these memories that were made by a consolidation.
 * @returns one pair for each made memory and source; none for other memories
 */
export function listGatheredAmong(store: Store, memoryNos: readonly number[]): GatheredSource[] {
  return store
    .prepare(
      `SELECT c.memory AS gathered, s.source FROM json_each(?) AS w CROSS JOIN consolidations c ON c.memory = w.value
         CROSS JOIN consolidation_sources s ON s.consolidation_no = c.consolidation_no`,
    )
    .all(JSON.stringify(memoryNos)) as GatheredSource[];
}

/** Tells whether `source` is one of the memories of which a consolidation made `gathered`. */
export function isGatheredFrom(store: Store, { gathered, source }: GatheredSource): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM consolidation_sources s JOIN consolidations c ON c.consolidation_no = s.consolidation_no
         WHERE s.source = ? AND c.memory = ?`,
      )
      .get(source, gathered) !== undefined
  );
}

/** Lists the numbers of the memories that a consolidation made of at least one of these memories, each once. */
export function listGatheredOf(store: Store, sources: readonly number[]): number[] {
  return store
    .prepare(
      `SELECT DISTINCT c.memory FROM json_each(?) AS w CROSS JOIN consolidation_sources s ON s.source = w.value
         CROSS JOIN consolidations c ON c.consolidation_no = s.consolidation_no WHERE c.memory > 0`,
    )
    .pluck()
    .all(JSON.stringify(sources)) as number[];
}

/**
 * Deletes the records of the consolidations that made these memories, as if they had never taken place, so that their
 * sources may be gathered again. Call inside a write.
 */
export function forgetConsolidations(store: Store, gathered: readonly number[]): void {
  store
    .prepare('DELETE FROM consolidations WHERE memory IN (SELECT value FROM json_each(?))')
    .run(JSON.stringify(gathered));
}

/**
 * Lists at most `limit` memories, by number, that one consolidation or the run of one job made.
 * @param id id of a consolidation, or of the job of a run
 * @param userId lists only memories of this user; undefined for those of all users
 * @throws EngineError `not_found` if no consolidation and no run (of this user) has the id
 */
export function listGatheredBy(
  store: Store,
  id: string,
  { userId, limit }: { readonly userId: string | undefined; readonly limit: number },
): number[] {
  const parameters = { id, user: userId ?? null };
  const sql = `FROM consolidations c WHERE (c.id = :id OR c.run_id = :id) AND ${ofUser}`;
  if (store.prepare(`SELECT 1 ${sql} LIMIT 1`).get(parameters) === undefined && !isRun(store, id, userId))
    throw new EngineError('not_found', 'no consolidation and no run of consolidating has this id');
  return store
    .prepare(`SELECT c.memory ${sql} AND c.memory > 0 LIMIT :limit`)
    .pluck()
    .all({ ...parameters, limit }) as number[];
}

const ofUser = '(:user IS NULL OR c.user_no = (SELECT user_no FROM users WHERE user_id = :user))';

/**
 * Tells whether the job with this id is a run of consolidation. An ended run is forgotten when the next one for the
 * same user (or all users) is stored.
 * @param userId counts only a run for this user alone; undefined for any run
 * @param options.unfinished whether the job must be unfinished
 */
export function isRun(
  store: Store,
  id: string,
  userId: string | undefined,
  { unfinished = false }: { readonly unfinished?: boolean } = {},
): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs j JOIN consolidation_runs c ON c.job = j.seq
         WHERE j.uuid = unhex(:id, '-') AND ${ofUser} ${unfinished ? `AND j.state IN ${UNFINISHED}` : ''}`,
      )
      .get({ id, user: userId ?? null }) !== undefined
  );
}

/**
 * Lists consolidations, newest first, undone ones included.
 * @throws EngineError `invalid` if no consolidation, or none of the user `userId`, has the id `before`
 */
export function listConsolidations(store: Store, page: ConsolidationPage): Consolidation[] {
  const { userId, runId, before, limit } = page;
  const from =
    before === undefined
      ? Number.MAX_SAFE_INTEGER
      : (store
          .prepare(`SELECT c.consolidation_no FROM consolidations c WHERE c.id = :before AND ${ofUser}`)
          .pluck()
          .get({ before, user: userId ?? null }) as number | undefined);
  if (from === undefined) throw new EngineError('invalid', 'before: no consolidation has this id');
  const rows = store
    .prepare(
      `SELECT c.consolidation_no AS no, c.id, c.run_id AS runId, u.user_id AS userId, m.id AS memoryId, c.method,
         c.created_at AS createdAt
       FROM consolidations c JOIN users u ON u.user_no = c.user_no LEFT JOIN memories m ON m.seq = c.memory
       WHERE c.consolidation_no < :from AND (:run IS NULL OR c.run_id = :run) AND ${ofUser}
       ORDER BY c.consolidation_no DESC LIMIT :limit`,
    )
    .all({ from, run: runId ?? null, user: userId ?? null, limit }) as (Omit<Consolidation, 'sourceIds'> & {
    readonly no: number;
  })[];
  const sources = store
    .prepare(
      `SELECT m.id FROM consolidation_sources s CROSS JOIN memories m ON m.seq = s.source
       WHERE s.consolidation_no = ? ORDER BY m.event_time, m.seq`,
    )
    .pluck();
  return rows.map(({ no, ...row }) => ({ ...row, sourceIds: sources.all(no) as string[] }));
}
