/**
 * Stores which reflections are still to be made on a user's memories, and up to which memory the last one has read. A
 * reflection is a memory that a language model concluded from others; it has automatic `derived_from` edges to them. A
 * memory whose add named memories from which it is derived has such edges, too, and counts as a reflection here.
 */

import { deleteEdge } from './edges.ts';
import type { CompiledFilter } from './filter.ts';
import { UNFINISHED } from './jobs.ts';
import type { Store } from './open-store.ts';
import { outerOrder } from './outer-order.ts';

/** The memories on which a reflection is made: all memories of a user, or those of one session of the user. */
export interface ReflectionScope {
  readonly userNo: number;
  /** The session; null for all memories of the user. */
  readonly sessionId: string | null;
}

/** Stores for a job on which memories it is to reflect. Call inside a write. */
export function insertReflection(store: Store, jobNo: number, { userNo, sessionId }: ReflectionScope): void {
  store.prepare('INSERT INTO reflections (user_no, session_id, job) VALUES (?, ?, ?)').run(userNo, sessionId, jobNo);
}

/** Finds the unfinished job that will make a reflection on exactly these memories; undefined if there is none. */
export function findUnfinishedReflection(
  store: Store,
  { userNo, sessionId }: ReflectionScope,
): { readonly id: string; readonly jobNo: number } | undefined {
  return store
    .prepare(
      `SELECT j.id, j.seq AS jobNo FROM reflections r JOIN jobs j ON j.seq = r.job
       WHERE r.user_no = ? AND r.session_id IS ? AND j.state IN ${UNFINISHED} LIMIT 1`,
    )
    .get(userNo, sessionId) as { id: string; jobNo: number } | undefined;
}

/**
 * Finds the memories on which a job is to reflect; undefined if the job has already reflected, or if the user has no
 * memories any more.
 */
export function findReflection(store: Store, jobNo: number): ReflectionScope | undefined {
  return store
    .prepare('SELECT user_no AS userNo, session_id AS sessionId FROM reflections WHERE job = ?')
    .get(jobNo) as ReflectionScope | undefined;
}

/**
 * Stores that a job has reflected. For a reflection on all memories of a user, it also stores how far the job has read,
 * in place of the earlier value; for one on a session it does not. Call inside a write.
 * @param upTo highest number of a memory that was in the file when the job read the memories
 */
export function finishReflection(store: Store, jobNo: number, upTo: number): void {
  const scope = findReflection(store, jobNo);
  if (scope?.sessionId !== null) {
    store.prepare('DELETE FROM reflections WHERE job = ?').run(jobNo);
    return;
  }
  store.prepare('DELETE FROM reflections WHERE user_no = ? AND up_to > 0').run(scope.userNo);
  store.prepare('UPDATE reflections SET job = NULL, up_to = ? WHERE job = ?').run(Math.max(1, upTo), jobNo);
}

/**
 * SQL condition that a memory is taken into reflections. Parts of documents are not, nor are memories that were
 * concluded, gathered or derived from others (automatic `derived_from` links).
 */
const IS_SAID = `d.generation_no IS NULL
  AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.src = m.seq AND e.type = 'derived_from' AND e.automatic = 1)`;

/** Greatest number of memories, latest first, that are examined to find those for a reflection. */
const MAX_LOOKED_AT = 5_000;

/**
 * Lists the numbers of the latest visible memories to reflect on, at most `limit` among the latest 5,000, in the order
 * of event times, earliest first.
 */
export function listRecent(
  store: Store,
  { userNo, sessionId }: ReflectionScope,
  { visible, limit }: { readonly visible: CompiledFilter; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT m.seq FROM (
         SELECT seq, event_time FROM memories WHERE user_no = ? ${sessionId === null ? '' : 'AND session_id = ?'}
         ORDER BY event_time DESC, seq DESC LIMIT ${MAX_LOOKED_AT}
       ) AS late CROSS JOIN memories m ON m.seq = late.seq CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE ${visible.sql} AND ${IS_SAID}${outerOrder(store, 'late.event_time DESC, late.seq DESC')} LIMIT ?`,
    )
    .pluck()
    .all(userNo, ...(sessionId === null ? [] : [sessionId]), ...visible.parameters, limit)
    .reverse() as number[];
}

/**
 * Lists the numbers of a user's visible reflections, highest first, at most `limit`. Memories that a consolidation made
 * are left out.
 */
export function listReflections(
  store: Store,
  userNo: number,
  { visible, limit }: { readonly visible: CompiledFilter; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT DISTINCT m.seq FROM edges e INDEXED BY edges_of_reflections CROSS JOIN memories m ON m.seq = e.src
         CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE e.type = 'derived_from' AND e.automatic = 1 AND m.user_no = ?
         AND NOT EXISTS (SELECT 1 FROM consolidations WHERE memory = m.seq) AND ${visible.sql}
       ORDER BY m.seq DESC LIMIT ?`,
    )
    .pluck()
    .all(userNo, ...visible.parameters, limit) as number[];
}

/** Number of characters of a source that `listSourceTexts` reads. */
const SOURCE_CHARACTERS = 1_000;

/** Lists the beginnings of the texts, titles included, from which a reflection is derived directly; at most `limit`. */
export function listSourceTexts(store: Store, reflection: number, limit: number): string[] {
  return store
    .prepare(
      `SELECT substr(m.title || ' ' || m.content, 1, ?) FROM edges e CROSS JOIN memories m ON m.seq = e.dst
       WHERE e.src = ? AND e.type = 'derived_from' AND e.automatic = 1 ORDER BY e.dst LIMIT ?`,
    )
    .pluck()
    .all(SOURCE_CHARACTERS, reflection, limit) as string[];
}

/**
 * SQL that selects a row if a memory has an automatic `derived_from` link (see `isReflection`); its parameter is the
 * number of the memory.
 */
export const SELECT_CONCLUDED = `SELECT 1 FROM edges
  WHERE src = ? AND type = 'derived_from' AND automatic = 1 LIMIT 1`;

/**
 * Tells whether a memory has an automatic `derived_from` link. Reflections have one, and so have memories that a
 * consolidation made, and those whose add named memories from which they are derived.
 */
export function isReflection(store: Store, memoryNo: number): boolean {
  return store.prepare(SELECT_CONCLUDED).get(memoryNo) !== undefined;
}

/**
 * Lists the numbers of the reflections and consolidations that are derived from at least one of these memories,
 * directly or through other reflections, each once, the farthest from them last. The sources of a consolidation are
 * read from its own table, since links to them may have been removed.
 */
export function listReflectionsOn(store: Store, sources: readonly number[]): number[] {
  return readReflectionsOn(store, sources, { broadest: Number.MAX_SAFE_INTEGER }).memoryNos;
}

/** Reflections that were found. */
interface FoundReflections {
  /** Numbers of the found reflections as memories, the farthest from the sources last. */
  readonly memoryNos: number[];
  /** Whether there may be further ones that were not looked for, because a bound was reached. */
  readonly isCut: boolean;
}

/**
 * Lists reflections as `listReflectionsOn` does, but reads at most `broadest` links from memories that are equally far
 * from `sources`, and none from memories that are `deepest` links away from them.
 */
export function readReflectionsOn(
  store: Store,
  sources: readonly number[],
  { broadest, deepest = Number.MAX_SAFE_INTEGER }: { readonly broadest: number; readonly deepest?: number },
): FoundReflections {
  // A level at a time: PostgreSQL takes one reference to itself in a recursive query, and here there would be two.
  const select = store
    .prepare(
      `SELECT e.src FROM json_each(?) AS s CROSS JOIN edges e ON e.dst = s.value AND e.type = 'derived_from'
       WHERE e.automatic = 1
       UNION ALL
       SELECT c.memory FROM json_each(?) AS w CROSS JOIN consolidation_sources s ON s.source = w.value
         CROSS JOIN consolidations c ON c.consolidation_no = s.consolidation_no WHERE c.memory > 0 LIMIT ?`,
    )
    .pluck();
  const found = new Set<number>();
  let isCut = false;
  let depth = 0;
  for (let level = [...sources]; level.length > 0; depth += 1) {
    if (depth === deepest) return { memoryNos: [...found], isCut: true };
    const list = JSON.stringify(level);
    const read = select.all(list, list, broadest) as number[];
    isCut ||= read.length === broadest;
    level = [...new Set(read)].filter((memoryNo) => !found.has(memoryNo));
    for (const memoryNo of level) found.add(memoryNo);
  }
  return { memoryNos: [...found], isCut };
}

/** Shows that a memory was drawn from another one, its source; both by number. */
export interface DrawnFrom {
  readonly memory: number;
  readonly source: number;
  /** Number of the consolidation that made the memory of the source; null for an automatic `derived_from` link. */
  readonly consolidationNo: number | null;
}

/**
 * Lists the reflections and consolidations that are derived directly from these memories, each with the memory from
 * which it is.
 * @param options.except memories that are left out as reflections
 * @param options.limit greatest length of the list
 */
export function listDrawnFrom(
  store: Store,
  sources: readonly number[],
  { except, limit }: { readonly except: readonly number[]; readonly limit: number },
): DrawnFrom[] {
  const [list, known] = [JSON.stringify(sources), JSON.stringify(except)];
  return store
    .prepare(
      `SELECT e.src AS memory, e.dst AS source, NULL AS consolidationNo FROM json_each(?) AS s
         CROSS JOIN edges e ON e.dst = s.value AND e.type = 'derived_from'
       WHERE e.automatic = 1 AND e.src NOT IN (SELECT value FROM json_each(?))
       UNION ALL
       SELECT c.memory, s.source, c.consolidation_no FROM json_each(?) AS w
         CROSS JOIN consolidation_sources s ON s.source = w.value
         CROSS JOIN consolidations c ON c.consolidation_no = s.consolidation_no
       WHERE c.memory > 0 AND c.memory NOT IN (SELECT value FROM json_each(?)) LIMIT ?`,
    )
    .all(list, known, list, known, limit) as DrawnFrom[];
}

/**
 * Makes reflections and consolidations derived from other memories than before, for sources that are about to be erased
 * alone. Nothing is known any more of the consolidations, as if their sources were erased. Call inside a write.
 * @param sourceOf returns the number of the memory from which the one of a link is derived from now on; null for none
 */
export function drawFromOthers(
  store: Store,
  links: readonly DrawnFrom[],
  sourceOf: (link: DrawnFrom) => number | null,
  { weight, now }: { readonly weight: number; readonly now: number },
): void {
  const ofEdges = links.filter(({ consolidationNo }) => consolidationNo === null);
  for (const { memory, source } of ofEdges) deleteEdge(store, { src: memory, dst: source, type: 'derived_from' });
  const forget = store.prepare('DELETE FROM consolidations WHERE consolidation_no = ?');
  for (const no of new Set(links.map(({ consolidationNo }) => consolidationNo))) if (no !== null) forget.run(no);
  const put = store.prepare(
    `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
     VALUES (?, ?, 'derived_from', NULL, ?, 1, ?, ?) ON CONFLICT (src, dst, type) DO UPDATE SET automatic = 1`,
  );
  for (const link of links) {
    const source = sourceOf(link);
    if (source !== null) put.run(link.memory, source, weight, now, now);
  }
}

/**
 * Lists the reflections that are derived from a memory, directly or through other reflections, and have a number above
 * `after`. It looks up the sources of all such reflections of the file, so that its cost does not grow with the number
 * of older reflections on the memory; but it reads at most `broadest` links of memories that are equally far from them,
 * and none of memories that are `deepest` links away. If there are more (`isCut`), it lists none.
 */
export function readNewReflectionsOn(
  store: Store,
  source: number,
  { after, broadest, deepest }: { readonly after: number; readonly broadest: number; readonly deepest: number },
): FoundReflections {
  type Link = { readonly src: number; readonly dst: number };
  const cut = { memoryNos: [], isCut: true };
  const select = store.prepare(
    `SELECT e.src, e.dst FROM json_each(?) AS s CROSS JOIN edges e ON e.src = s.value AND e.type = 'derived_from'
     WHERE e.automatic = 1 LIMIT ?`,
  );
  let links = store
    .prepare(
      `SELECT src, dst FROM edges INDEXED BY edges_of_reflections
       WHERE type = 'derived_from' AND automatic = 1 AND src > ? ORDER BY src LIMIT ?`,
    )
    .all(after, broadest) as Link[];
  const seen = new Set(links.map(({ src }) => src));
  const drawnFrom = new Map<number, number[]>();
  for (let depth = 1; links.length > 0; depth += 1) {
    if (links.length === broadest || depth === deepest) return cut;
    for (const { src, dst } of links) drawnFrom.set(dst, [...(drawnFrom.get(dst) ?? []), src]);
    const level = [...new Set(links.map(({ dst }) => dst))].filter((memoryNo) => !seen.has(memoryNo));
    for (const memoryNo of level) seen.add(memoryNo);
    links = select.all(JSON.stringify(level), broadest) as Link[];
  }
  const reached = new Set([source]);
  for (const memoryNo of reached) for (const next of drawnFrom.get(memoryNo) ?? []) reached.add(next);
  return { memoryNos: [...reached].filter((memoryNo) => memoryNo > after && memoryNo !== source), isCut: false };
}

/**
 * Tells whether there is one reflection that is derived from all of these memories, and perhaps from further ones. One
 * that Cairn archived because the text of a memory below it was changed does not count.
 * @param sources numbers of memories, at least one, each once
 * @param options.heavierThan weight up to which a link does not count
 */
export function hasReflectionOnAll(
  store: Store,
  sources: readonly number[],
  { heavierThan }: { readonly heavierThan: number },
): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM (
           SELECT e.src AS seq FROM json_each(?) AS s CROSS JOIN edges e ON e.dst = s.value AND e.type = 'derived_from'
           WHERE e.automatic = 1 AND e.weight > ? AND NOT EXISTS (SELECT 1 FROM consolidations WHERE memory = e.src)
           GROUP BY e.src HAVING count(*) = ?) AS r
         CROSS JOIN memory_dynamics d ON d.seq = r.seq
         WHERE d.status <> 'archived' OR coalesce((
           SELECT by_link FROM memory_revisions WHERE memory = r.seq AND status = 'active' AND fields = 'status'
           ORDER BY version DESC LIMIT 1), 0) = 0 LIMIT 1`,
      )
      .get(JSON.stringify(sources), heavierThan, sources.length) !== undefined
  );
}

/**
 * Examines a page of users for due reflections: the first `limit` users with numbers above `after`.
 * @returns `due`: numbers of the users with at least `atLeast` memories that were added since the last reflection on
 *   all their memories, where parts of documents and conclusions do not count; `last`: number of the last user of the
 *   page, due or not, undefined if no user is left
 */
export function listUnreflected(
  store: Store,
  { after, limit, atLeast }: { readonly after: number; readonly limit: number; readonly atLeast: number },
): { readonly due: readonly number[]; readonly last: number | undefined } {
  const users = store
    .prepare(
      `SELECT u.user_no AS userNo,
         coalesce((SELECT max(up_to) FROM reflections r WHERE r.user_no = u.user_no), 0) AS upTo
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
