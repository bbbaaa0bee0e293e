import type { TimelineOptions, Timeline } from '../types.ts';
import { chunksAround } from './documents.ts';
import { compileFilter, type CompiledFilter } from './filter.ts';
import { getMemoryRow, type MemoryRow, readMemories, toMemory } from './memories.ts';
import type { Store } from './open-store.ts';
import { listPassingOf } from './search.ts';

/** What stood around a memory in time: in the order of (event_time, seq), the earlier first. */

/**
 * Memories that are looked at on each side before the look around ends, hidden ones among them. They come in the order of an index and
 * none is read after the last one that is wanted, so that only who is surrounded by hidden ones pays for it: some 5 ms.
 */
const LOOKED_AT_MOST = 5_000;

/**
 * Memories around one, of its user or only of its session, that are active, valid and not expired. The anchor may be anything but
 * expired.
 * @throws EngineError `not_found`
 */
export function readTimeline(
  store: Store,
  id: string,
  { before, after, sameSession, now }: TimelineOptions & { readonly now: number },
): Timeline {
  return store.read(() => {
    const anchor = getMemoryRow(store, id, now);
    const visible = compileFilter({}, now);
    const side = { anchor, sameSession, visible };
    const earlier = listBeside(store, { ...side, direction: 'before', limit: before }).reverse();
    const later = listBeside(store, { ...side, direction: 'after', limit: after });
    const memories = readMemories(store, [...earlier, ...later], now);
    const read = (seqs: readonly number[]) =>
      seqs.map((seq) => memories.get(seq)).filter((memory) => memory !== undefined);
    return { before: read(earlier), anchor: toMemory(anchor, now), after: read(later) };
  });
}

interface Side {
  readonly anchor: MemoryRow;
  readonly sameSession: boolean;
  readonly visible: CompiledFilter;
  readonly direction: 'before' | 'after';
  readonly limit: number;
}

/** Numbers, nearest first. */
function listBeside(store: Store, { anchor, sameSession, visible, direction, limit }: Side): number[] {
  const [comparison, order] = direction === 'before' ? ['<', ' DESC'] : ['>', ''];
  const rows = store
    .prepare(
      `SELECT m.seq FROM (
         SELECT seq FROM memories WHERE user_no = ? ${sameSession ? 'AND session_id = ?' : ''}
           AND (event_time, seq) ${comparison} (?, ?)
         ORDER BY event_time${order}, seq${order} LIMIT ?
       ) AS near CROSS JOIN memories m ON m.seq = near.seq CROSS JOIN memory_dynamics d ON d.seq = near.seq
       WHERE ${visible.sql} LIMIT ?`,
    )
    .all(
      anchor.user_no,
      ...(sameSession ? [anchor.session_id] : []),
      anchor.event_time,
      anchor.seq,
      LOOKED_AT_MOST,
      ...visible.parameters,
      limit,
    ) as { seq: number }[];
  return rows.map(({ seq }) => seq);
}

export interface Neighbours {
  /** Earlier first. */
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** The least that is looked at beside one of many. */
const LOOKED_AT_EACH = 50;

/**
 * The visible memories just before and after each of these, at most `each` a side: of a chunk in its document, of others in their
 * session; none outside both.
 */
export function neighboursOf(
  store: Store,
  seqs: readonly number[],
  { visible, each }: { readonly visible: CompiledFilter; readonly each: number },
): Map<number, Neighbours> {
  // All of them together look as far as one does.
  const lookedAt = Math.max(LOOKED_AT_EACH, Math.floor(LOOKED_AT_MOST / Math.max(1, seqs.length)));
  const beside = (comparison: string, order: string) => `(
    SELECT json_group_array(seq) FROM (
      SELECT m.seq FROM (
        SELECT s.seq FROM memories s
        WHERE s.user_no = hit.user_no AND s.session_id = hit.session_id
          AND (s.event_time, s.seq) ${comparison} (hit.event_time, hit.seq)
        ORDER BY s.event_time${order}, s.seq${order} LIMIT ?
      ) AS near CROSS JOIN memories m ON m.seq = near.seq CROSS JOIN memory_dynamics d ON d.seq = near.seq
      WHERE ${visible.sql} LIMIT ?))`;
  const rows = store
    .prepare(
      `SELECT hit.seq, ${beside('<', ' DESC')} AS before, ${beside('>', '')} AS after
       FROM json_each(?) AS wanted CROSS JOIN memories hit ON hit.seq = wanted.value
       WHERE hit.session_id <> '' AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.memory = hit.seq)`,
    )
    .all(
      ...[lookedAt, ...visible.parameters, each],
      ...[lookedAt, ...visible.parameters, each],
      JSON.stringify(seqs),
    ) as {
    seq: number;
    before: string;
    after: string;
  }[];
  const inSession = rows.map(({ seq, before, after }): [number, Neighbours] => [
    seq,
    { before: (JSON.parse(before) as number[]).reverse(), after: JSON.parse(after) as number[] },
  ]);
  return new Map([...inSession, ...neighboursInDocument(store, seqs, { visible, each })]);
}

function neighboursInDocument(
  store: Store,
  seqs: readonly number[],
  { visible, each }: { readonly visible: CompiledFilter; readonly each: number },
): [number, Neighbours][] {
  const rows = chunksAround(store, seqs, each);
  const passing = new Set(listPassingOf(store, visible, [...new Set(rows.map(({ memory }) => memory))]));
  const bySeq = Map.groupBy(
    rows.filter(({ memory }) => passing.has(memory)),
    ({ seq }) => seq,
  );
  return [...bySeq].map(([seq, near]) => [
    seq,
    {
      before: near.filter(({ distance }) => distance < 0).map(({ memory }) => memory),
      after: near.filter(({ distance }) => distance > 0).map(({ memory }) => memory),
    },
  ]);
}
