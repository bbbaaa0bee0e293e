/**
 * Deletes, in slices of bounded size, rows that belong to memories which are about to be erased: revisions, candidates
 * and feedback in the recall log, answers to standing queries, jobs and links. A memory may have any number of such
 * rows, too many for a single write.
 */

import { UNFINISHED } from './jobs.ts';
import type { EdgeKey } from './edges.ts';
import type { Store } from './open-store.ts';

/** The two memories of a link, by number. */
type Ends = Pick<EdgeKey, 'src' | 'dst'>;

/**
 * Deletes revisions of these memories, memory by memory and each memory's oldest first, if there are more than `most`
 * revisions or their values have more than `bytes` bytes. It then deletes at most `most` revisions of together at most
 * `bytes` bytes, but at least one. Otherwise it deletes none. Call inside a write.
 * @returns the number of deleted revisions
 */
export function deleteRevisionsSlice(
  store: Store,
  memoryNos: readonly number[],
  { most, bytes }: { readonly most: number; readonly bytes: number },
): number {
  const rows = store
    .prepare(
      `SELECT r.memory, r.version, octet_length(r.snapshot) AS bytes
       FROM json_each(?) AS w CROSS JOIN memory_revisions r ON r.memory = w.value
       ORDER BY r.memory, r.version LIMIT ?`,
    )
    .all(JSON.stringify(memoryNos), most + 1) as { memory: number; version: number; bytes: number }[];
  let left = bytes;
  const beyond = rows.findIndex((row) => (left -= row.bytes) < 0);
  if (rows.length <= most && beyond === -1) return 0;
  const taken = rows.slice(0, beyond === -1 ? most : Math.max(1, beyond));
  const remove = store.prepare('DELETE FROM memory_revisions WHERE memory = ? AND version = ?');
  for (const { memory, version } of taken) remove.run(memory, version);
  return taken.length;
}

/**
 * Deletes `most` + 1 rows of the recall log in which one of these memories is a candidate, if there are more than
 * `most`; and in the same way feedback on them. Otherwise it deletes none. Call inside a write.
 * @returns the number of deleted rows
 */
export function deleteRecallsSlice(store: Store, memoryNos: readonly number[], most: number): number {
  return (
    deleteSlice(store, { table: 'recall_candidates', keys: ['recall_no', 'place'] }, memoryNos, most) +
    deleteSlice(store, { table: 'recall_feedback', keys: ['recall_no', 'memory'] }, memoryNos, most)
  );
}

/**
 * Deletes `most` + 1 answers that these memories gave to standing queries, if there are more than `most`. Otherwise it
 * deletes none. Call inside a write.
 * @returns the number of deleted answers
 */
export function deleteAnswersSlice(store: Store, memoryNos: readonly number[], most: number): number {
  return deleteSlice(store, { table: 'standing_answers', keys: ['query_no', 'memory'] }, memoryNos, most);
}

/** Deletes `most` + 1 rows of a table whose column `memory` has one of these numbers, if there are more than `most`. */
function deleteSlice(
  store: Store,
  { table, keys: [first, second] }: { readonly table: string; readonly keys: readonly [string, string] },
  memoryNos: readonly number[],
  most: number,
): number {
  const rows = store
    .prepare(
      `SELECT c.${first} AS first, c.${second} AS second FROM json_each(?) AS w
       CROSS JOIN ${table} c ON c.memory = w.value LIMIT ?`,
    )
    .all(JSON.stringify(memoryNos), most + 1) as { first: number; second: number }[];
  if (rows.length <= most) return 0;
  const remove = store.prepare(`DELETE FROM ${table} WHERE ${first} = ? AND ${second} = ?`);
  for (const row of rows) remove.run(row.first, row.second);
  return rows.length;
}

/**
 * Removes the memory from `most` + 1 ended jobs of these memories, if they have more than `most` ended jobs. Otherwise
 * it changes nothing. Call inside a write.
 * @returns the number of changed jobs
 */
export function detachJobsSlice(store: Store, memoryNos: readonly number[], most: number): number {
  const jobNos = store
    .prepare(
      `SELECT j.seq FROM json_each(?) AS w CROSS JOIN jobs j ON j.memory = w.value
       WHERE j.state NOT IN ${UNFINISHED} LIMIT ?`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos), most + 1) as number[];
  if (jobNos.length <= most) return 0;
  return store
    .prepare('UPDATE jobs SET memory = NULL WHERE seq IN (SELECT value FROM json_each(?))')
    .run(JSON.stringify(jobNos)).changes;
}

/**
 * Deletes `most` + 1 links of these memories, if they have more than `most` links whose loss affects no other memory.
 * Otherwise it deletes none. These are all links except supersessions, contradictions that the memories won, automatic
 * `derived_from` links, and automatic waypoints that lead to the memories. Call inside a write.
 * @returns the number of deleted links
 */
export function deleteLinksSlice(store: Store, memoryNos: readonly number[], most: number): number {
  const free = `e.type <> 'supersedes' AND NOT (e.type = 'contradicts' AND coalesce(e.winner, -1) = w.value)
    AND NOT (e.type = 'derived_from' AND e.automatic = 1)`;
  const wanted = JSON.stringify(memoryNos);
  const rows = store
    .prepare(
      `SELECT e.src, e.dst, e.type FROM json_each(?) AS w CROSS JOIN edges e ON e.src = w.value WHERE ${free}
       UNION ALL
       SELECT e.src, e.dst, e.type FROM json_each(?) AS w CROSS JOIN edges e ON e.dst = w.value
       WHERE ${free} AND NOT (e.type = 'waypoint' AND e.automatic = 1) LIMIT ?`,
    )
    .all(wanted, wanted, most + 1) as EdgeKey[];
  return rows.length <= most ? 0 : deleteEdges(store, rows);
}

/**
 * Deletes at most `slice` automatic waypoints that lead to these memories, but keeps `most` of them. Call inside a
 * write.
 * @returns the number of deleted waypoints
 */
export function deleteWaypointsSlice(
  store: Store,
  memoryNos: readonly number[],
  { most, slice }: { readonly most: number; readonly slice: number },
): number {
  const rows = store
    .prepare(
      `SELECT e.src, e.dst, e.type FROM json_each(?) AS w
       CROSS JOIN edges e ON e.dst = w.value AND e.type = 'waypoint' WHERE e.automatic = 1 LIMIT ?`,
    )
    .all(JSON.stringify(memoryNos), most + slice) as EdgeKey[];
  return deleteEdges(store, rows.slice(most));
}

function deleteEdges(store: Store, keys: readonly EdgeKey[]): number {
  const remove = store.prepare('DELETE FROM edges WHERE src = ? AND dst = ? AND type = ?');
  for (const { src, dst, type } of keys) remove.run(src, dst, type);
  return keys.length;
}

/** Lists at most `limit` links by which these memories supersede memories that are not among them. */
export function listOwnSupersessions(store: Store, memoryNos: readonly number[], limit: number): Ends[] {
  const wanted = JSON.stringify(memoryNos);
  return store
    .prepare(
      `SELECT e.src, e.dst FROM json_each(?) AS w
       CROSS JOIN edges e ON e.src = w.value AND e.type = 'supersedes'
       WHERE e.dst NOT IN (SELECT value FROM json_each(?)) LIMIT ?`,
    )
    .all(wanted, wanted, limit) as Ends[];
}

/** Lists at most `limit` contradictions that were decided in favour of one of these memories, `winner`. */
export function listWonContradictions(
  store: Store,
  memoryNos: readonly number[],
  limit: number,
): (Ends & { readonly winner: number })[] {
  const wanted = JSON.stringify(memoryNos);
  return store
    .prepare(
      `SELECT e.src, e.dst, e.winner FROM json_each(?) AS w CROSS JOIN edges e ON e.src = w.value
       WHERE e.type = 'contradicts' AND e.winner = w.value
       UNION ALL
       SELECT e.src, e.dst, e.winner FROM json_each(?) AS w CROSS JOIN edges e ON e.dst = w.value
       WHERE e.type = 'contradicts' AND e.winner = w.value LIMIT ?`,
    )
    .all(wanted, wanted, limit) as (Ends & { winner: number })[];
}
