/**
 * Stores the recall log (migrations/0007-recalls.sql): the queries that were answered, with the ids and scores of the
 * memories that were considered, but without the text of any memory.
 */

import type {
  ErasureFilter,
  FeedbackVerdict,
  LoggedCandidate,
  MemoryFilter,
  RecallFeedback,
  RecallHead,
  RecallRecord,
} from '../types.ts';
import { decodeCandidate } from './logged-candidates.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';
import { spendWork } from './work-budget.ts';

/**
 * An answered query (recall) to be logged. Its parts are JSON texts, since texts pass fastest from thread to thread.
 */
export interface RecallToKeep extends Pick<RecallHead, 'recallId' | 'at'> {
  /** Users and sessions that the query's filter named. */
  readonly asked: Pick<MemoryFilter, 'userIds' | 'sessionIds'>;
  /** A `RecallHead` as JSON. */
  readonly head: string;
  /** The candidates (memories that the query considered), hits first; `data` is the result of `encodeCandidate`. */
  readonly candidates: readonly { readonly memoryNo: number; readonly id: string; readonly data: string }[];
  /**
   * Numbers of superseded memories that matched the query and were replaced by their successors. They are used for a
   * comparison and are not logged.
   */
  readonly supersededNos: readonly number[];
}

/**
 * Approximate number of bytes that a row takes with its index entries, without its texts: the row of a recall, and that
 * of one candidate.
 */
const ROW_BYTES = { recall: 150, candidate: 40 };

/**
 * Adds a recall (an answered query) to the log. A candidate whose memory was erased since the answer is left out. Call
 * inside a write.
 * @returns the number of bytes that it takes
 */
export function appendRecall(store: Store, { recallId, at, asked, head, candidates }: RecallToKeep): number {
  const [users, sessions] = [JSON.stringify(asked.userIds ?? []), JSON.stringify(asked.sessionIds ?? [])];
  const bytes = candidates.reduce(
    (sum, { data }) => sum + Buffer.byteLength(data) + ROW_BYTES.candidate,
    [head, users, sessions].reduce((sum, text) => sum + Buffer.byteLength(text), ROW_BYTES.recall),
  );
  const recallNo = store
    .prepare('INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes) VALUES (?, ?, ?, ?, ?, ?)')
    .run(recallId, at, users, sessions, head, bytes).lastInsertRowid;
  const insert = store.prepare(
    `INSERT INTO recall_candidates (recall_no, place, memory, data)
     SELECT ?, ?, seq, ? FROM memories WHERE seq = ?`,
  );
  for (const [place, { memoryNo, data }] of candidates.entries()) insert.run(recallNo, place, data, memoryNo);
  return bytes;
}

/**
 * Deletes the oldest recalls until those that are left take at most `maxBytes` bytes: in one call at most `limit`
 * recalls, and no further one once the deleted ones have `most` bytes together (no such bound if left out). Call inside
 * a write.
 * @returns the number of deleted recalls. If it is `limit`, there may be more to delete; with `most`, there may be also
 *   after fewer
 */
export function trimRecalls(
  store: Store,
  { maxBytes, limit, most = Infinity }: { readonly maxBytes: number; readonly limit: number; readonly most?: number },
): number {
  let excess = (store.prepare('SELECT bytes FROM recall_total').pluck().get() as number) - maxBytes;
  if (excess <= 0) return 0;
  const oldest = store
    .prepare(
      `SELECT recall_no AS recallNo, bytes, octet_length(users) + octet_length(sessions) AS names
       FROM recalls ORDER BY recall_no LIMIT ?`,
    )
    .all(limit) as { readonly recallNo: number; readonly bytes: number; readonly names: number }[];
  // Earlier versions did not count the names among the bytes, so that those are counted for the commit in any case.
  let left = most;
  const enough = oldest.findIndex(({ bytes, names }) => (excess -= bytes) <= 0 || (left -= bytes + names) <= 0);
  const going = enough === -1 ? oldest : oldest.slice(0, enough + 1);
  store.prepare('DELETE FROM recalls WHERE recall_no <= ?').run(going.at(-1)?.recallNo ?? 0);
  return going.length;
}

/**
 * Deletes at most `limit` recalls older than `before` (Unix ms), oldest first. Call inside a write.
 * @returns the number of deleted recalls
 */
export function purgeRecalls(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM recalls WHERE recall_no IN
         (SELECT recall_no FROM recalls WHERE asked_at < ? ORDER BY asked_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}

/** Greatest number of recalls that one call of `eraseRecalls` examines. */
const LOOKED_AT_ONCE = 2_000;
/**
 * Greatest number of bytes that the users and sessions of the recalls have together which one call of `eraseRecalls`
 * examines, unless it examines a single recall: a query may name 100 of each, which take up to 154 kB.
 */
const LOOKED_AT_BYTES = 512 * 1024;
/** Greatest number of recalls that one call of `eraseRecalls` deletes, each with its candidates. */
const ERASED_AT_ONCE = 10;

/**
 * Result of one call of `eraseRecalls`: the number of deleted recalls, and where the next call begins; null at the end.
 */
export interface ErasedRecalls {
  readonly recalls: number;
  readonly next: number | null;
}

/**
 * Whether a delete by this filter erases recalls (answered queries): it names users or sessions, and no tags, files or
 * writers.
 */
export function erasesRecalls(filter: ErasureFilter): boolean {
  const { userIds, sessionIds, tags = [], withinTags = [], files, writtenBy } = filter;
  if (tags.length + withinTags.length > 0 || files !== undefined || writtenBy !== undefined) return false;
  return userIds !== undefined || sessionIds !== undefined;
}

/**
 * Deletes some of the recalls (answered queries) with numbers above `after` whose query named a user of the filter and,
 * if the filter names sessions, one of these sessions; a filter may also name sessions alone. A filter by tags, files
 * or writers deletes none. One call examines at most 2,000 recalls, fewer if they name many users and sessions, and
 * deletes at most 10. Call inside a write, repeatedly until `next` is null, with `next` as the following `after`.
 */
export function eraseRecalls(store: Store, filter: ErasureFilter, after: number): ErasedRecalls {
  const { userIds, sessionIds } = filter;
  const ended = { recalls: 0, next: null };
  if (!erasesRecalls(filter)) return ended;
  const conditions: string[] = [];
  const values: string[] = [];
  for (const [column, names] of [
    ['users', userIds],
    ['sessions', sessionIds],
  ] as const) {
    if (names === undefined) continue;
    // An `IN` reads the wanted names once, a join would read them for each name of each recall.
    conditions.push(`EXISTS (SELECT 1 FROM json_each(${column}) WHERE value IN (SELECT value FROM json_each(?)))`);
    values.push(JSON.stringify(names));
  }
  const last = store
    .prepare(
      `SELECT max(recall_no) FROM (
         SELECT recall_no, bytes, sum(bytes) OVER (ORDER BY recall_no) AS so_far
         FROM (SELECT recall_no, octet_length(users) + octet_length(sessions) AS bytes
               FROM recalls WHERE recall_no > ? ORDER BY recall_no LIMIT ?) AS near) AS summed
       WHERE so_far <= ? OR so_far = bytes`,
    )
    .pluck()
    .get(after, LOOKED_AT_ONCE, LOOKED_AT_BYTES) as number | null;
  if (last === null) return ended;
  const found = store
    .prepare(
      `SELECT recall_no FROM recalls WHERE recall_no > ? AND recall_no <= ? AND ${conditions.join(' AND ')}
       ORDER BY recall_no LIMIT ?`,
    )
    .pluck()
    .all(after, last, ...values, ERASED_AT_ONCE) as number[];
  for (const recallNo of found) deleteRecall(store, recallNo);
  return { recalls: found.length, next: found.length === ERASED_AT_ONCE ? found.at(-1)! : last };
}

/**
 * Lists at most `limit` recalls (answered queries) with numbers above `after`, ascending, without their candidates: all
 * of them, or with `userId` only those whose query named this user.
 */
export function listRecallsAfter(
  store: Store,
  {
    userId = null,
    after,
    limit,
  }: { readonly userId: string | undefined | null; readonly after: number; readonly limit: number },
): NumberedRecall[] {
  const rows = store
    .prepare(
      `SELECT recall_no AS recallNo, head FROM recalls
       WHERE recall_no > :after AND (:userId IS NULL OR EXISTS (SELECT 1 FROM json_each(users) WHERE value = :userId))
       ORDER BY recall_no LIMIT :limit`,
    )
    .all({ userId, after, limit }) as { readonly recallNo: number; readonly head: string }[];
  return rows.map(({ recallNo, head }) => ({ recallNo, head: parseStored(head) as RecallHead }));
}

/** Deletes a recall (an answered query) from the log, with its candidates and feedback. Call inside a write. */
export function deleteRecall(store: Store, recallNo: number): void {
  store.prepare('DELETE FROM recalls WHERE recall_no = ?').run(recallNo);
}

/**
 * Reads a recall (an answered query) with its feedback, by its id; undefined if it is not in the log. `missing` lists
 * hits that were erased since.
 */
export function findRecall(store: Store, recallId: string): RecallRecord | undefined {
  const row = store.prepare('SELECT recall_no AS recallNo, head FROM recalls WHERE recall_id = ?').get(recallId) as
    { readonly recallNo: number; readonly head: string } | undefined;
  if (row === undefined) return undefined;
  const head = parseStored(row.head) as RecallHead;
  const candidates = readCandidates(store, row.recallNo);
  const there = new Set(candidates.map(({ id }) => id));
  return {
    ...head,
    candidates,
    missing: head.hitIds.filter((id) => !there.has(id)),
    feedback: readFeedback(store, row.recallNo),
  };
}

/** A recall (an answered query) without its candidates, and its number in the log. */
export interface NumberedRecall {
  readonly recallNo: number;
  readonly head: RecallHead;
}

/**
 * Lists recalls (answered queries) without their candidates, newest first, at most `limit`. Their lengths count
 * as work.
 * @param asked.userId lists only recalls whose query named this user; undefined for all
 * @param asked.memoryNo lists only recalls that have this memory among their kept candidates; undefined for all
 * @param asked.before lists only recalls with a lower number
 */
export function listRecallHeads(
  store: Store,
  asked: {
    readonly userId: string | undefined;
    readonly memoryNo: number | undefined;
    readonly before: number;
    readonly limit: number;
  },
): NumberedRecall[] {
  const { userId = null, memoryNo = null, before, limit } = asked;
  const rows = store
    .prepare(
      `SELECT r.recall_no AS recallNo, r.head FROM recalls r
       WHERE r.recall_no < :before
         AND (:memory IS NULL OR r.recall_no IN (SELECT recall_no FROM recall_candidates WHERE memory = :memory))
         AND (:user IS NULL OR EXISTS (SELECT 1 FROM json_each(r.users) WHERE value = :user))
       ORDER BY r.recall_no DESC LIMIT :limit`,
    )
    .all({ user: userId, memory: memoryNo, before, limit }) as { readonly recallNo: number; readonly head: string }[];
  spendWork(rows.reduce((sum, { head }) => sum + head.length, 0));
  return rows.map(({ recallNo, head }) => ({ recallNo, head: parseStored(head) as RecallHead }));
}

/** Reads the candidates (memories that a query considered) of a recall, hits first, without those erased since. */
export function readCandidates(store: Store, recallNo: number): LoggedCandidate[] {
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.id, c.data FROM recall_candidates c JOIN memories m ON m.seq = c.memory
       WHERE c.recall_no = ? ORDER BY c.place`,
    )
    .all(recallNo) as RecallToKeep['candidates'];
  return rows.map(({ data, ...memory }) => decodeCandidate(data, memory));
}

/** Reads the feedback on a recall (answered query), without that on memories erased since. */
export function readFeedback(store: Store, recallNo: number): RecallFeedback[] {
  return store
    .prepare(
      `SELECT m.id AS memoryId, f.verdict, f.given_at AS at
       FROM recall_feedback f JOIN memories m ON m.seq = f.memory WHERE f.recall_no = ? ORDER BY f.memory`,
    )
    .all(recallNo) as RecallFeedback[];
}

/**
 * Stores a judgement of memories that a recall returned, in place of earlier judgements of them. Does nothing for an
 * unknown recall. Call inside a write.
 * @param memoryNos numbers of memories that the recall returned
 */
export function putFeedback(
  store: Store,
  recallId: string,
  {
    memoryNos,
    verdict,
    now,
  }: {
    readonly memoryNos: readonly number[];
    readonly verdict: FeedbackVerdict;
    readonly now: number;
  },
): void {
  const put = store.prepare(
    `INSERT OR REPLACE INTO recall_feedback (recall_no, memory, verdict, given_at)
     SELECT recall_no, ?, ?, ? FROM recalls WHERE recall_id = ?`,
  );
  for (const memoryNo of memoryNos) put.run(memoryNo, verdict, now, recallId);
}
