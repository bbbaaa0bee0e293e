/** The recall log (migrations/0007-recalls.sql): what was asked and answered, without any text of a memory. */
import type {
  ErasureFilter,
  FeedbackVerdict,
  KeptCandidate,
  MemoryFilter,
  RecallFeedback,
  RecallHead,
  RecallRecord,
} from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/** A recall on its way to the log. Its parts are JSON, since they pass two threads, and a text passes fastest. */
export interface RecallToKeep extends Pick<RecallHead, 'recallId' | 'at'> {
  /** The users and sessions that the query named. */
  readonly asked: Pick<MemoryFilter, 'userIds' | 'sessionIds'>;
  /** A `RecallHead`. */
  readonly head: string;
  /** A `KeptCandidate` each, hits first. */
  readonly candidates: readonly { readonly memoryNo: number; readonly data: string }[];
  /** Numbers of superseded memories that matched and gave way; they serve a comparison and are not logged. */
  readonly supersededNos: readonly number[];
}

/** Bytes that rows and index entries take beside their texts, about: of a recall, and of one of its candidates. */
const ROW_BYTES = { recall: 150, candidate: 40 };

/**
 * Adds a recall to the end of the log. A candidate whose memory was erased since the answer is left out. Call inside a
 * write.
 */
export function appendRecall(store: Store, { recallId, at, asked, head, candidates }: RecallToKeep): void {
  const bytes = candidates.reduce(
    (sum, { data }) => sum + Buffer.byteLength(data) + ROW_BYTES.candidate,
    Buffer.byteLength(head) + ROW_BYTES.recall,
  );
  const recallNo = store
    .prepare('INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes) VALUES (?, ?, ?, ?, ?, ?)')
    .run(
      recallId,
      at,
      JSON.stringify(asked.userIds ?? []),
      JSON.stringify(asked.sessionIds ?? []),
      head,
      bytes,
    ).lastInsertRowid;
  const insert = store.prepare(
    `INSERT INTO recall_candidates (recall_no, place, memory, data)
     SELECT ?, ?, seq, ? FROM memories WHERE seq = ?`,
  );
  for (const [place, { memoryNo, data }] of candidates.entries()) insert.run(recallNo, place, data, memoryNo);
}

/** Deletes the oldest recalls until the rest take at most this many bytes. Call inside a write. */
export function trimRecalls(store: Store, maxBytes: number): void {
  const total = () => store.prepare('SELECT bytes FROM recall_total').pluck().get() as number;
  while (total() > maxBytes) {
    const { changes } = store
      .prepare('DELETE FROM recalls WHERE recall_no = (SELECT min(recall_no) FROM recalls)')
      .run();
    if (changes === 0) return;
  }
}

/** Deletes at most `limit` recalls from before a time, Unix ms. Call inside a write. @returns their number */
export function purgeRecalls(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM recalls WHERE recall_no IN
         (SELECT recall_no FROM recalls WHERE asked_at < ? ORDER BY asked_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}

/**
 * Deletes at most `limit` recalls whose query named one of the users, or sessions, of a filter by nothing else. Call
 * inside a write.
 * @returns their number
 */
export function eraseRecalls(store: Store, filter: ErasureFilter, limit: number): number {
  const { userIds, sessionIds, tags = [], withinTags = [], files, writtenBy } = filter;
  if (tags.length + withinTags.length > 0 || files !== undefined || writtenBy !== undefined) return 0;
  const conditions: string[] = [];
  const values: string[] = [];
  for (const [column, names] of [
    ['users', userIds],
    ['sessions', sessionIds],
  ] as const) {
    if (names === undefined) continue;
    conditions.push(`EXISTS (SELECT 1 FROM json_each(${column}) n JOIN json_each(?) w ON w.value = n.value)`);
    values.push(JSON.stringify(names));
  }
  if (conditions.length === 0) return 0;
  return store
    .prepare(
      `DELETE FROM recalls WHERE recall_no IN
         (SELECT recall_no FROM recalls WHERE ${conditions.join(' AND ')} LIMIT ?)`,
    )
    .run(...values, limit).changes;
}

/** Lists the heads of recalls after a number, of all or of those whose query named a user. */
export function listRecallsAfter(
  store: Store,
  {
    userId = null,
    after,
    limit,
  }: { readonly userId: string | undefined | null; readonly after: number; readonly limit: number },
): { readonly recallNo: number; readonly head: RecallHead }[] {
  const rows = store
    .prepare(
      `SELECT recall_no AS recallNo, head FROM recalls
       WHERE recall_no > :after AND (:userId IS NULL OR EXISTS (SELECT 1 FROM json_each(users) WHERE value = :userId))
       ORDER BY recall_no LIMIT :limit`,
    )
    .all({ userId, after, limit }) as { readonly recallNo: number; readonly head: string }[];
  return rows.map(({ recallNo, head }) => ({ recallNo, head: parseStored(head) as RecallHead }));
}

/** Deletes a recall from the log with its candidates and feedback. Call inside a write. */
export function deleteRecall(store: Store, recallNo: number): void {
  store.prepare('DELETE FROM recalls WHERE recall_no = ?').run(recallNo);
}

/** Reads a recall with its feedback; undefined if none is kept under this id. */
export function findRecall(store: Store, recallId: string): RecallRecord | undefined {
  const row = store.prepare('SELECT recall_no AS recallNo, head FROM recalls WHERE recall_id = ?').get(recallId) as
    { readonly recallNo: number; readonly head: string } | undefined;
  if (row === undefined) return undefined;
  const head = parseStored(row.head) as RecallHead;
  const candidates = (
    store
      .prepare('SELECT data FROM recall_candidates WHERE recall_no = ? ORDER BY place')
      .pluck()
      .all(row.recallNo) as string[]
  ).map((data) => parseStored(data) as KeptCandidate);
  const there = new Set(candidates.map(({ id }) => id));
  return {
    ...head,
    candidates,
    missing: head.hitIds.filter((id) => !there.has(id)),
    feedback: readFeedback(store, row.recallNo),
  };
}

/**
 * Lists the heads of recalls, the newest first.
 * @param asked.userId only recalls whose query named this user; undefined for all
 * @param asked.memoryNo only recalls that weighed this memory; undefined for all
 * @param asked.before number of a recall, only older ones; undefined for the newest
 */
export function listRecallHeads(
  store: Store,
  asked: {
    readonly userId: string | undefined;
    readonly memoryNo: number | undefined;
    readonly before: number | undefined;
    readonly limit: number;
  },
): { readonly recallNo: number; readonly head: RecallHead }[] {
  const { userId = null, memoryNo = null, before = Number.MAX_SAFE_INTEGER, limit } = asked;
  const rows = store
    .prepare(
      `SELECT r.recall_no AS recallNo, r.head FROM recalls r
       WHERE r.recall_no < :before
         AND (:memory IS NULL OR r.recall_no IN (SELECT recall_no FROM recall_candidates WHERE memory = :memory))
         AND (:user IS NULL OR EXISTS (SELECT 1 FROM json_each(r.users) WHERE value = :user))
       ORDER BY r.recall_no DESC LIMIT :limit`,
    )
    .all({ user: userId, memory: memoryNo, before, limit }) as { readonly recallNo: number; readonly head: string }[];
  return rows.map(({ recallNo, head }) => ({ recallNo, head: parseStored(head) as RecallHead }));
}

/** Reads the newest recalls with feedback, at most `limit`, the newest first. */
export function listJudgedRecalls(store: Store, limit: number): RecallRecord[] {
  const ids = store
    .prepare(
      `SELECT recall_id FROM recalls WHERE recall_no IN (SELECT DISTINCT recall_no FROM recall_feedback)
       ORDER BY recall_no DESC LIMIT ?`,
    )
    .pluck()
    .all(limit) as string[];
  return ids.flatMap((id) => findRecall(store, id) ?? []);
}

function readFeedback(store: Store, recallNo: number): RecallFeedback[] {
  return store
    .prepare(
      `SELECT m.id AS memoryId, f.verdict, f.given_at AS at
       FROM recall_feedback f JOIN memories m ON m.seq = f.memory WHERE f.recall_no = ? ORDER BY f.memory`,
    )
    .all(recallNo) as RecallFeedback[];
}

/**
 * Keeps a verdict on memories of a recall, in place of earlier ones. Call inside a write.
 * @param memoryNos memories that the recall returned
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
