/**
 * Reads the memories that a run of consolidation may gather into a new memory, and the waypoints (links to the nearest
 * memory) between them.
 */

import { hash } from 'node:crypto';
import type { RunPlace } from './consolidations.ts';
import type { Store } from './open-store.ts';
import { ROW_BYTES, spendWork } from './work-budget.ts';

/**
 * Greatest size of a memory that may be gathered, title included, in bytes of UTF-8. The gathered memory could not
 * repeat what a longer text says.
 */
const MAX_SOURCE_BYTES = 1_500;

/**
 * Number of bytes of metadata after which no further memories are looked at. Metadata is parsed, sorted and hashed in
 * one turn: that of 1,000 memories, of 16 KiB each, took 2 s.
 */
const MAX_METADATA_BYTES = 1024 * 1024;

/** A memory that a consolidation may gather with others that have an equal `key`. */
export interface Gatherable {
  readonly memoryNo: number;
  /**
   * Writer, tags and metadata of the memory in one text. Memories with an equal key are visible to the same callers,
   * and a filter on these fields passes all of them or none.
   */
  readonly key: string;
}

/** Some memories of a user that a consolidation may gather, in the order of event times. */
export interface GatherableSlice {
  readonly memories: readonly Gatherable[];
  /** Position of the last examined memory, after which the next slice begins; null if the user has no more memories. */
  readonly next: RunPlace | null;
}

/**
 * SQL condition that a consolidation may gather a memory: it is active, of at most 1,500 bytes and without a stated
 * validity or expiry, was not derived from others, and neither supersedes, is superseded by, nor contradicts another.
 * Chunks of documents and items are excluded.
 */
const MAY_BE_GATHERED = `d.status = 'active' AND d.generation_no IS NULL AND d.chain_no IS NULL
  AND m.valid_from IS NULL AND m.valid_to IS NULL AND m.expires_at IS NULL
  AND octet_length(m.content) + octet_length(m.title) <= ${MAX_SOURCE_BYTES}
  AND NOT EXISTS (SELECT 1 FROM items WHERE memory = m.seq)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE src = m.seq AND (type = 'contradicts' OR type = 'derived_from'))
  AND NOT EXISTS (SELECT 1 FROM edges WHERE dst = m.seq AND type = 'contradicts')`;

/**
 * Reads those memories of a user after a position that a consolidation may gather, in the order of event times. Left
 * out are those that `MAY_BE_GATHERED` excludes, and sources of an earlier consolidation.
 * @param looked greatest number of memories that are examined; fewer if they have much metadata
 * @param again whether the sources of a consolidation that was undone or refused may be gathered again
 */
export function listGatherable(
  store: Store,
  place: RunPlace,
  { looked, again }: { readonly looked: number; readonly again: boolean },
): GatherableSlice {
  const taken = again ? 'AND c.memory > 0' : '';
  const found = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.event_time AS eventTime, octet_length(m.metadata) AS bytes,
         ${MAY_BE_GATHERED} AND NOT EXISTS (SELECT 1 FROM consolidation_sources s JOIN consolidations c
           ON c.consolidation_no = s.consolidation_no WHERE s.source = m.seq ${taken}) AS may
       FROM memories m INDEXED BY memories_by_time CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.event_time >= ? AND (m.event_time > ? OR m.seq > ?)
       ORDER BY m.event_time, m.seq LIMIT ?`,
    )
    .all(place.userNo, place.eventTime, place.eventTime, place.memoryNo, looked) as LookedAt[];
  const rows = withinBytes(found);
  spendWork(rows.reduce((sum, { bytes }) => sum + ROW_BYTES + bytes, 0));
  const last = found.length < looked && rows.length === found.length ? undefined : rows.at(-1);
  return {
    memories: readKeys(
      store,
      rows.filter(({ may }) => may === 1).map(({ memoryNo }) => memoryNo),
    ),
    next: last === undefined ? null : { ...place, eventTime: last.eventTime, memoryNo: last.memoryNo },
  };
}

/** A memory that was looked at: whether it may be gathered, and the size of its metadata. */
interface LookedAt {
  readonly memoryNo: number;
  readonly eventTime: number;
  readonly bytes: number;
  readonly may: 0 | 1;
}

/** Returns the first of these memories, up to and including the one with which their metadata reaches 1 MiB. */
function withinBytes(found: readonly LookedAt[]): readonly LookedAt[] {
  let bytes = 0;
  const end = found.findIndex((memory) => (bytes += memory.bytes) >= MAX_METADATA_BYTES);
  return end === -1 ? found : found.slice(0, end + 1);
}

/** Reads the keys of memories, in the order of `memoryNos`. */
function readKeys(store: Store, memoryNos: readonly number[]): Gatherable[] {
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.tags, m.metadata, d.writer_no AS writerNo FROM json_each(?) AS wanted
         CROSS JOIN memories m ON m.seq = wanted.value CROSS JOIN memory_dynamics d ON d.seq = m.seq
       ORDER BY wanted.key`,
    )
    .all(JSON.stringify(memoryNos)) as {
    memoryNo: number;
    tags: string;
    metadata: string;
    writerNo: number | null;
  }[];
  return rows.map(({ memoryNo, tags, metadata, writerNo }) => ({
    memoryNo,
    key: `${writerNo ?? ''} ${sorted(tags)} ${digestOf(metadata)}`,
  }));
}

function sorted(tags: string): string {
  return tags === '[]' ? tags : JSON.stringify([...new Set(JSON.parse(tags) as string[])].sort());
}

/** Makes a hash of metadata that is independent of the order of its keys; '' for empty metadata. */
function digestOf(metadata: string): string {
  if (metadata === '{}') return '';
  const inOrder = JSON.stringify(JSON.parse(metadata), (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return hash('sha256', inOrder, 'base64');
}

/** An automatic waypoint (link to the nearest memory) between two memories by number, with its cosine similarity. */
export interface Near {
  readonly src: number;
  readonly dst: number;
  readonly similarity: number;
}

/**
 * Lists the automatic waypoints (links to the nearest memory) that start from these memories, at most one of each, in
 * the order of `memoryNos`.
 */
export function listWaypointsOf(store: Store, memoryNos: readonly number[]): Near[] {
  return store
    .prepare(
      `SELECT e.src, e.dst, e.similarity FROM json_each(?) AS w CROSS JOIN edges e ON e.src = w.value
       WHERE e.type = 'waypoint' AND e.automatic = 1 ORDER BY w.key`,
    )
    .all(JSON.stringify(memoryNos)) as Near[];
}

/**
 * Lists at most `limit` memories of a user, by number, that a consolidation made and that are outdated: a source was
 * changed, superseded or contradicted since, or the made memory is not active.
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
