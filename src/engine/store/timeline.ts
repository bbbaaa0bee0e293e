/**
 * Finds the memories before and after another memory. They are ordered by event time, ties by number, earlier first.
 */

import type { TimelineOptions, Timeline } from '../types.ts';
import { chunksAround } from './chunks.ts';
import { compileFilter, type CompiledFilter } from './filter.ts';
import { getMemoryRow, type MemoryRow, readMemories, toMemory } from './memories.ts';
import type { Store } from './open-store.ts';
import { outerOrder } from './outer-order.ts';
import { firstPassingWithin, listPassingOf } from './passing-memories.ts';
import { withinBytes } from './text-sizes.ts';

/**
 * Greatest number of memories, visible or not, that are examined before and after a memory. They are read in the order
 * of an index until enough are found. So only a memory that is surrounded by many invisible ones costs more: some 5 ms.
 */
const MAX_LOOKED_AT = 5_000;
/**
 * Greatest number of bytes that are read of the memories before, and of those after a memory, as `withinBytes` counts
 * them.
 */
const MAX_SIDE_BYTES = 3 * 1024 * 1024;

/**
 * Reads the memories before and after another one, of its user or only of its session, that are active, valid and not
 * expired, and have all `tags`. The memory itself may have any status and tags. If the texts, values and metadata
 * before or after it exceed 3 MiB, the farthest memories are left out. At most 5,000 memories on each side are
 * examined, fewer if their tags take long. `isCut` is true if one of these bounds may have left a memory out.
 * @param id id of the memory in the middle
 * @throws EngineError `not_found` for an unknown id, an expired memory and a part of a document that queries do not
 *   find
 */
export function readTimeline(
  store: Store,
  id: string,
  { before, after, sameSession, tags, now }: TimelineOptions & { readonly now: number },
): Timeline {
  return store.read(() => {
    const anchor = getMemoryRow(store, id, now);
    const visible = compileFilter({ tags }, now);
    const side = { anchor, sameSession, visible };
    const allEarlier = listBeside(store, { ...side, direction: 'before', limit: before });
    const allLater = listBeside(store, { ...side, direction: 'after', limit: after });
    const earlier = withinBytes(store, allEarlier.memoryNos, MAX_SIDE_BYTES).reverse();
    const later = withinBytes(store, allLater.memoryNos, MAX_SIDE_BYTES);
    const isCut =
      earlier.length + later.length < allEarlier.memoryNos.length + allLater.memoryNos.length ||
      allEarlier.isCut ||
      allLater.isCut;
    const memories = readMemories(store, [...earlier, ...later], now);
    const read = (memoryNos: readonly number[]) =>
      memoryNos.map((memoryNo) => memories.get(memoryNo)).filter((memory) => memory !== undefined);
    return { before: read(earlier), anchor: toMemory(anchor, now), after: read(later), isCut };
  });
}

interface Side {
  readonly anchor: MemoryRow;
  readonly sameSession: boolean;
  readonly visible: CompiledFilter;
  readonly direction: 'before' | 'after';
  readonly limit: number;
}

/**
 * Lists the numbers of the memories in one direction, before or after `anchor`, the memory in the middle; nearest
 * first.
 * @returns `isCut`: whether fewer than `limit` were found among the 5,000 nearest, although there are more; or among
 *   fewer, if their tags take long
 */
function listBeside(
  store: Store,
  { anchor, sameSession, visible, direction, limit }: Side,
): { readonly memoryNos: number[]; readonly isCut: boolean } {
  const [comparison, order] = direction === 'before' ? ['<', ' DESC'] : ['>', ''];
  const near = `SELECT seq, event_time FROM memories WHERE user_no = ? ${sameSession ? 'AND session_id = ?' : ''}
           AND (event_time, seq) ${comparison} (?, ?)
         ORDER BY event_time${order}, seq${order} LIMIT ?`;
  const whose = [anchor.user_no, ...(sameSession ? [anchor.session_id] : []), anchor.event_time, anchor.memoryNo];
  const hasMore = () => store.prepare(`${near} OFFSET ?`).get(...whose, 1, MAX_LOOKED_AT) !== undefined;
  if (visible.countsWork) {
    const numbers = store
      .prepare(near)
      .pluck()
      .all(...whose, MAX_LOOKED_AT) as number[];
    const nearest = numbers.map((memoryNo) => ({ memoryNo }));
    const { looked, passing } = firstPassingWithin(store, visible, nearest, limit);
    const isCut = passing.length < limit && (looked.length < nearest.length || hasMore());
    return { memoryNos: passing.map(({ memoryNo }) => memoryNo), isCut };
  }
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo FROM (
         ${near}
       ) AS near CROSS JOIN memories m ON m.seq = near.seq CROSS JOIN memory_dynamics d ON d.seq = near.seq
       WHERE ${visible.sql}${outerOrder(store, `near.event_time${order}, near.seq${order}`)} LIMIT ?`,
    )
    .all(...whose, MAX_LOOKED_AT, ...visible.parameters, limit) as { memoryNo: number }[];
  return { memoryNos: rows.map(({ memoryNo }) => memoryNo), isCut: rows.length < limit && hasMore() };
}

/**
 * Numbers of the memories just before and just after a memory; both lists are in the order of time, or of the
 * document's text.
 */
export interface Neighbours {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/**
 * Least number of memories that may be examined before and after each memory, however many memories a call is about.
 */
const LOOKED_AT_EACH = 50;

/**
 * Finds the visible memories just before and just after each of these, at most `each` in each direction. For a chunk
 * they are the chunks around it in its document; for other memories, the memories around it in its session, by event
 * time.
 * @returns neighbours by memory number. A memory outside of documents and sessions is left out, and so are a document's
 *   root memory and a chunk without visible chunks around it
 */
export function neighboursOf(
  store: Store,
  memoryNos: readonly number[],
  { visible, each }: { readonly visible: CompiledFilter; readonly each: number },
): Map<number, Neighbours> {
  store.ahead?.readSpeculatively(() => chunksAround(store, memoryNos, each));
  // All of them together look at no more memories than a single timeline does.
  const lookedAt = Math.max(LOOKED_AT_EACH, Math.floor(MAX_LOOKED_AT / Math.max(1, memoryNos.length)));
  const beside = (comparison: string, order: string) => `(
    SELECT json_group_array(seq) FROM (
      SELECT m.seq FROM (
        SELECT s.seq, s.event_time FROM memories s
        WHERE s.user_no = hit.user_no AND s.session_id = hit.session_id
          AND (s.event_time, s.seq) ${comparison} (hit.event_time, hit.seq)
        ORDER BY s.event_time${order}, s.seq${order} LIMIT ?
      ) AS near CROSS JOIN memories m ON m.seq = near.seq CROSS JOIN memory_dynamics d ON d.seq = near.seq
      WHERE ${visible.sql}${outerOrder(store, `near.event_time${order}, near.seq${order}`)} LIMIT ?))`;
  const rows = store
    .prepare(
      `SELECT hit.seq AS memoryNo, ${beside('<', ' DESC')} AS before, ${beside('>', '')} AS after
       FROM json_each(?) AS wanted CROSS JOIN memories hit ON hit.seq = wanted.value
       WHERE hit.session_id <> '' AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.memory = hit.seq)`,
    )
    .all(lookedAt, ...visible.parameters, each, lookedAt, ...visible.parameters, each, JSON.stringify(memoryNos)) as {
    memoryNo: number;
    before: string;
    after: string;
  }[];
  const inSession = rows.map(({ memoryNo, before, after }): [number, Neighbours] => [
    memoryNo,
    { before: (JSON.parse(before) as number[]).reverse(), after: JSON.parse(after) as number[] },
  ]);
  return new Map([...inSession, ...neighboursInDocument(store, memoryNos, { visible, each })]);
}

function neighboursInDocument(
  store: Store,
  memoryNos: readonly number[],
  { visible, each }: { readonly visible: CompiledFilter; readonly each: number },
): [number, Neighbours][] {
  const rows = chunksAround(store, memoryNos, each);
  const passing = new Set(listPassingOf(store, visible, [...new Set(rows.map(({ nearNo }) => nearNo))]));
  const byMemoryNo = Map.groupBy(
    rows.filter(({ nearNo }) => passing.has(nearNo)),
    ({ memoryNo }) => memoryNo,
  );
  return [...byMemoryNo].map(([memoryNo, near]) => [
    memoryNo,
    {
      before: near.filter(({ distance }) => distance < 0).map(({ nearNo }) => nearNo),
      after: near.filter(({ distance }) => distance > 0).map(({ nearNo }) => nearNo),
    },
  ]);
}
