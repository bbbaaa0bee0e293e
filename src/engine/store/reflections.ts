import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';

/**
 * Reflecting on the memories of a user: what is owed, and how far the last one had read. A reflection, which is a memory, is known by its
 * automatic `derived_from` edges.
 */

/** What one reflecting is about. */
export interface ReflectionScope {
  readonly userNo: number;
  /** null for all of them. */
  readonly sessionId: string | null;
}

/** Owes a reflecting to a job that was put into the ledger for it. Call inside a write. */
export function insertReflection(store: Store, job: number, { userNo, sessionId }: ReflectionScope): void {
  store.prepare('INSERT INTO reflections (user_no, session_id, job) VALUES (?, ?, ?)').run(userNo, sessionId, job);
}

/** The unfinished job that will reflect on just this; undefined if there is none. */
export function findOwedReflection(
  store: Store,
  { userNo, sessionId }: ReflectionScope,
): { readonly id: string; readonly seq: number } | undefined {
  return store
    .prepare(
      `SELECT j.id, j.seq FROM reflections r JOIN jobs j ON j.seq = r.job
       WHERE r.user_no = ? AND r.session_id IS ? AND j.state IN ('queued', 'active', 'failed') LIMIT 1`,
    )
    .get(userNo, sessionId) as { id: string; seq: number } | undefined;
}

/** What a job is to reflect on; undefined once the user has no memories left. */
export function findReflection(store: Store, job: number): ReflectionScope | undefined {
  return store.prepare('SELECT user_no AS userNo, session_id AS sessionId FROM reflections WHERE job = ?').get(job) as
    ReflectionScope | undefined;
}

/** Notes how far a reflecting on all of a user's memories has read, in place of what was noted before. Call inside a write. */
export function finishReflection(store: Store, job: number, upTo: number): void {
  const scope = findReflection(store, job);
  if (scope?.sessionId !== null) {
    store.prepare('DELETE FROM reflections WHERE job = ?').run(job);
    return;
  }
  store.prepare('DELETE FROM reflections WHERE user_no = ? AND up_to > 0').run(scope.userNo);
  store.prepare('UPDATE reflections SET job = NULL, up_to = ? WHERE job = ?').run(Math.max(1, upTo), job);
}

export function lastMemory(store: Store): number {
  return store.prepare('SELECT coalesce(max(seq), 0) FROM memories').pluck().get() as number;
}

/** Nobody reflects on parts of documents, which speak for the document, nor on what was concluded. */
const IS_SAID = `d.generation_no IS NULL
  AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.src = m.seq AND e.type = 'derived_from' AND e.automatic = 1)`;

/** Memories that are looked at on the way to those that are wanted. */
const LOOKED_AT_MOST = 5_000;

/** The latest memories to reflect on, in order of time. */
export function listRecent(
  store: Store,
  { userNo, sessionId }: ReflectionScope,
  { visible, limit }: { readonly visible: CompiledFilter; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT m.seq FROM (
         SELECT seq FROM memories WHERE user_no = ? ${sessionId === null ? '' : 'AND session_id = ?'}
         ORDER BY event_time DESC, seq DESC LIMIT ${LOOKED_AT_MOST}
       ) AS late CROSS JOIN memories m ON m.seq = late.seq CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE ${visible.sql} AND ${IS_SAID} LIMIT ?`,
    )
    .pluck()
    .all(userNo, ...(sessionId === null ? [] : [sessionId]), ...visible.parameters, limit)
    .reverse() as number[];
}

/** The latest reflections of a user, newest first. */
export function listReflections(
  store: Store,
  userNo: number,
  { visible, limit }: { readonly visible: CompiledFilter; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT DISTINCT m.seq FROM edges e INDEXED BY edges_of_reflections CROSS JOIN memories m ON m.seq = e.src
         CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE e.type = 'derived_from' AND e.automatic = 1 AND m.user_no = ? AND ${visible.sql} ORDER BY m.seq DESC LIMIT ?`,
    )
    .pluck()
    .all(userNo, ...visible.parameters, limit) as number[];
}

export function isReflection(store: Store, memory: number): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM edges WHERE src = ? AND type = 'derived_from' AND automatic = 1 LIMIT 1`)
      .get(memory) !== undefined
  );
}

/** Reflections that rest on one of these memories at least. */
export function listReflectionsOn(store: Store, sources: readonly number[]): number[] {
  return store
    .prepare(
      `SELECT DISTINCT e.src FROM json_each(?) AS s CROSS JOIN edges e ON e.dst = s.value AND e.type = 'derived_from'
       WHERE e.automatic = 1`,
    )
    .pluck()
    .all(JSON.stringify(sources)) as number[];
}

/** Whether a reflection rests on all of these memories already, each named once. */
export function hasReflectionOnAll(store: Store, sources: readonly number[]): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM json_each(?) AS s CROSS JOIN edges e ON e.dst = s.value AND e.type = 'derived_from'
         WHERE e.automatic = 1 GROUP BY e.src HAVING count(*) = ? LIMIT 1`,
      )
      .get(JSON.stringify(sources), sources.length) !== undefined
  );
}

/** A page of users by number, and which of them have so many memories to reflect on that none has read. */
export function listUnreflected(
  store: Store,
  { after, limit, atLeast }: { readonly after: number; readonly limit: number; readonly atLeast: number },
): { readonly due: readonly number[]; readonly last: number | undefined } {
  const users = store
    .prepare(
      `SELECT u.user_no AS userNo, coalesce((SELECT max(up_to) FROM reflections r WHERE r.user_no = u.user_no), 0) AS upTo
       FROM users u WHERE u.user_no > ? ORDER BY u.user_no LIMIT ?`,
    )
    .all(after, limit) as { userNo: number; upTo: number }[];
  const count = store.prepare(
    `SELECT count(*) FROM (
       SELECT 1 FROM memories m INDEXED BY memories_by_time CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.seq > ? AND ${IS_SAID} LIMIT ?)`,
  );
  const due = users.filter(({ userNo, upTo }) => (count.pluck().get(userNo, upTo, atLeast) as number) >= atLeast);
  return { due: due.map(({ userNo }) => userNo), last: users.at(-1)?.userNo };
}

/** The number of a user; undefined for one without memories. */
export function findUserNo(store: Store, userId: string): number | undefined {
  return store.prepare('SELECT user_no AS userNo FROM users WHERE user_id = ?').pluck().get(userId) as
    number | undefined;
}
