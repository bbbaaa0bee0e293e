/** Memories that a run of consolidating may gather, and the waypoints between them. */
import { hash } from 'node:crypto';
import type { RunPlace } from './consolidations.ts';
import type { Store } from './open-store.ts';
import { ROW_BYTES, spendWork } from './work-budget.ts';

/** Longest text of a source, in bytes with its title: a long text says more than a gathered one could repeat. */
const MAX_SOURCE_BYTES = 1_500;

/** A memory that may be gathered with others that have an equal `key`. */
export interface Gatherable {
  readonly memoryNo: number;
  /**
   * Its writer, tags and metadata: whoever may see one memory of a key may see all of them, and a filter on these lets
   * all of them pass or none.
   */
  readonly key: string;
}

/** Some memories of a user, in the order of time. */
export interface GatherableSlice {
  readonly memories: readonly Gatherable[];
  /** Place behind the last memory that was looked at; null if the user has no more. */
  readonly next: RunPlace | null;
}

/**
 * SQL condition for a memory that may be gathered: one that people said, that holds without an end, and that nothing
 * replaces, contradicts or expires. Parts of documents, items and what was concluded stay apart.
 */
const MAY_BE_GATHERED = `d.status = 'active' AND d.generation_no IS NULL AND d.chain_no IS NULL
  AND m.valid_from IS NULL AND m.valid_to IS NULL AND m.expires_at IS NULL
  AND octet_length(m.content) + octet_length(m.title) <= ${MAX_SOURCE_BYTES}
  AND NOT EXISTS (SELECT 1 FROM items WHERE memory = m.seq)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE src = m.seq AND (type = 'contradicts' OR type = 'derived_from'))
  AND NOT EXISTS (SELECT 1 FROM edges WHERE dst = m.seq AND type = 'contradicts')`;

/**
 * Reads the memories behind a place, of the user of that place.
 * @param looked most memories that are looked at
 * @param again  whether memories whose consolidation was undone may be gathered
 */
export function listGatherable(
  store: Store,
  place: RunPlace,
  { looked, again }: { readonly looked: number; readonly again: boolean },
): GatherableSlice {
  const taken = again ? 'AND c.memory > 0' : '';
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.event_time AS eventTime, m.tags, m.metadata, d.writer_no AS writerNo,
         ${MAY_BE_GATHERED} AND NOT EXISTS (SELECT 1 FROM consolidation_sources s JOIN consolidations c
           ON c.consolidation_no = s.consolidation_no WHERE s.source = m.seq ${taken}) AS may
       FROM memories m INDEXED BY memories_by_time CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.event_time >= ? AND (m.event_time > ? OR m.seq > ?)
       ORDER BY m.event_time, m.seq LIMIT ?`,
    )
    .all(place.userNo, place.eventTime, place.eventTime, place.memoryNo, looked) as {
    memoryNo: number;
    eventTime: number;
    tags: string;
    metadata: string;
    writerNo: number | null;
    may: 0 | 1;
  }[];
  spendWork(rows.reduce((sum, { metadata }) => sum + ROW_BYTES + metadata.length, 0));
  const last = rows.length < looked ? undefined : rows.at(-1);
  return {
    memories: rows
      .filter(({ may }) => may === 1)
      .map(({ memoryNo, tags, metadata, writerNo }) => ({
        memoryNo,
        key: `${writerNo ?? ''} ${sorted(tags)} ${digestOf(metadata)}`,
      })),
    next: last === undefined ? null : { ...place, eventTime: last.eventTime, memoryNo: last.memoryNo },
  };
}

function sorted(tags: string): string {
  return tags === '[]' ? tags : JSON.stringify([...new Set(JSON.parse(tags) as string[])].sort());
}

/** Digests metadata, in whatever order their keys stand. */
function digestOf(metadata: string): string {
  if (metadata === '{}') return '';
  const inOrder = JSON.stringify(JSON.parse(metadata), (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return hash('sha256', inOrder, 'base64');
}

/** A waypoint between two memories, by number. */
export interface Near {
  readonly src: number;
  readonly dst: number;
  readonly similarity: number;
}

/** Lists the automatic waypoints that leave these memories. */
export function listWaypointsOf(store: Store, memoryNos: readonly number[]): Near[] {
  return store
    .prepare(
      `SELECT e.src, e.dst, e.similarity FROM json_each(?) AS w CROSS JOIN edges e ON e.src = w.value
       WHERE e.type = 'waypoint' AND e.automatic = 1`,
    )
    .all(JSON.stringify(memoryNos)) as Near[];
}

/**
 * Lists at most `limit` gathered memories of a user that no longer stand for their sources: one of these was changed,
 * replaced or contradicted, or the gathered memory is not active.
 */
export function listOutdatedGathered(store: Store, userNo: number, limit: number): number[] {
  return store
    .prepare(
      `SELECT c.memory FROM consolidations c CROSS JOIN memory_dynamics g ON g.seq = c.memory
       WHERE c.user_no = ? AND c.memory > 0 AND (g.status <> 'active' OR EXISTS (
         SELECT 1 FROM consolidation_sources s CROSS JOIN memories m ON m.seq = s.source
           CROSS JOIN memory_dynamics d ON d.seq = s.source
         WHERE s.consolidation_no = c.consolidation_no
           AND (m.updated_at > c.created_at OR d.status IN ('superseded', 'contradicted')))) LIMIT ?`,
    )
    .pluck()
    .all(userNo, limit) as number[];
}
