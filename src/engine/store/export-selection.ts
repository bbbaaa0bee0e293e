import type { EdgeType, MemoryFilter } from '../types.ts';
import { ROOT_INDEX } from './chunks.ts';
import { compileFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { parsedAtOnce } from './passing-memories.ts';
import { writerOf } from './writers.ts';

/**
 * Limits of an export: the time at which it began, and the highest numbers of rows that existed then. Later rows are
 * not exported.
 */
export interface ExportBounds {
  /** Time at which the export began, Unix ms. */
  readonly at: number;
  readonly lastMemory: number;
  readonly lastDocument: number;
}

/** Reads the bounds of an export that begins at `now` (Unix ms). */
export function readExportBounds(store: Store, now: number): ExportBounds {
  const last = store.prepare(
    `SELECT coalesce((SELECT max(seq) FROM memories), 0) AS lastMemory,
       coalesce((SELECT max(document_no) FROM documents), 0) AS lastDocument`,
  );
  return { at: now, ...(last.get() as Omit<ExportBounds, 'at'>) };
}

/** The SQL that selects the memories of an export. */
interface Selection {
  /**
   * The `FROM` and `WHERE` parts of a statement over selected memories, with the alias `own`. Callers append conditions
   * on `own.seq`.
   */
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
  /** Whether tags, metadata or values of each examined row are parsed, so that a slice must examine fewer rows. */
  readonly isSlow: boolean;
}

/**
 * Compiles the selection of an export: memories that passed the filter when the export began, as they are written as
 * they were then, whatever their validity, and whatever their status unless the filter names statuses. Only sectors,
 * whose earlier values are not kept, are the present ones, and so is the rest of a filter that names some. Left out are
 * expired memories, memories that a consolidation made, since their sources are exported, and parts of document
 * versions that queries did not find when the export began or do not find now: once a document was read anew during the
 * export, the parts of both versions are left out. A part of a document is selected if the document's root memory
 * passes the filter.
 */
function selectionOf(filter: MemoryFilter, now: number): Selection {
  const asOf = filter.sectors === undefined ? { recorded: now } : undefined;
  const { sql, parameters, countsWork } = compileFilter(filter, now, { includeHidden: true, asOf });
  return {
    sql: `FROM memories own CROSS JOIN memory_dynamics od ON od.seq = own.seq
      CROSS JOIN memories m ON m.seq = coalesce((SELECT c.memory FROM chunks c
        WHERE c.generation_no = od.generation_no AND c.chunk_index = ${ROOT_INDEX}), own.seq)
      CROSS JOIN memory_dynamics d ON d.seq = m.seq
      WHERE (od.generation_no IS NULL OR EXISTS (SELECT 1 FROM document_generations g
          WHERE g.generation_no = od.generation_no AND g.hidden = 0 AND g.shown_at <= ?))
        AND (own.expires_at IS NULL OR own.expires_at > ?)
        AND NOT EXISTS (SELECT 1 FROM consolidations WHERE memory = own.seq) AND ${sql}`,
    parameters: [now, now, ...parameters],
    isSlow: countsWork,
  };
}

/**
 * The numbers in one slice of an export, and the number after which the next slice begins; `next` is null after the
 * last slice.
 */
export interface NumberSlice {
  readonly numbers: readonly number[];
  readonly next: number | null;
}

/** Greatest number of items of session logs that are examined for one slice. */
const LOOKED_AT_ONCE = 2_000;

/**
 * Lists numbers of selected memories above `after`, ascending, at most `limit`. A slice may have fewer although more
 * slices follow.
 */
export function listExportedMemories(
  store: Store,
  filter: MemoryFilter,
  { bounds, after, limit }: { readonly bounds: ExportBounds; readonly after: number; readonly limit: number },
): NumberSlice {
  const { sql, parameters, isSlow } = selectionOf(filter, bounds.at);
  const upTo = isSlow ? Math.min(bounds.lastMemory, after + parsedAtOnce(store)) : bounds.lastMemory;
  const numbers = store
    .prepare(`SELECT own.seq ${sql} AND own.seq > ? AND own.seq <= ? ORDER BY own.seq LIMIT ?`)
    .pluck()
    .all(...parameters, after, upTo, limit) as number[];
  if (numbers.length === limit) return { numbers, next: numbers.at(-1)! };
  return { numbers, next: upTo < bounds.lastMemory ? upTo : null };
}

/**
 * Lists numbers of documents above `after` that queries find, ascending, at most `limit`. A document that was read anew
 * since the export began is left out. With a filter, a document is selected if its root memory passes, so a document
 * without text is left out.
 */
export function listExportedDocuments(
  store: Store,
  filter: MemoryFilter,
  { bounds, after, limit }: { readonly bounds: ExportBounds; readonly after: number; readonly limit: number },
): NumberSlice {
  const hasFilter = Object.values(filter).some((value) => value !== undefined);
  const { sql, parameters } = selectionOf(filter, bounds.at);
  const root = `(SELECT c.memory FROM chunks c WHERE c.generation_no = o.live_no AND c.chunk_index = ${ROOT_INDEX})`;
  const selected = hasFilter ? `AND EXISTS (SELECT 1 ${sql} AND own.seq = ${root})` : '';
  const numbers = store
    .prepare(
      `SELECT o.document_no FROM documents o CROSS JOIN document_generations g ON g.generation_no = o.live_no
       WHERE o.document_no > ? AND o.document_no <= ? AND o.state <> 'deleting' AND g.hidden = 0 AND g.shown_at <= ?
         AND (g.expires_at IS NULL OR g.expires_at > ?) ${selected} ORDER BY o.document_no LIMIT ?`,
    )
    .pluck()
    .all(after, bounds.lastDocument, bounds.at, bounds.at, ...(hasFilter ? parameters : []), limit) as number[];
  return { numbers, next: numbers.length === limit ? numbers.at(-1)! : null };
}

/** How many things of each kind an export leaves out. */
export interface LeftOut {
  /** Number of documents that queries do not find in any version: not read yet, unreadable, or cancelled. */
  readonly documents_not_read: number;
  /** Number of webhooks, whose secrets must not leave the file. */
  readonly webhooks: number;
  /** Number of memories that a consolidation made of others; those others, its sources, are exported. */
  readonly consolidations: number;
}

/** Counts what every export leaves out, whatever its filter is. */
export function countLeftOut(store: Store): LeftOut {
  const counts = store.prepare(
    `SELECT (SELECT count(*) FROM documents WHERE live_no IS NULL AND state <> 'deleting') AS documents_not_read,
       (SELECT count(*) FROM webhooks) AS webhooks,
       (SELECT count(memory) FROM consolidations) AS consolidations`,
  );
  return counts.get() as LeftOut;
}

/** A row of `edges`, with the ids of its memories and the public id of its writer. */
export interface LinkRow {
  readonly src: string;
  readonly dst: string;
  readonly type: EdgeType;
  readonly similarity: number | null;
  readonly weight: number;
  readonly automatic: number;
  readonly winner: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly written_by: string | null;
}

/** Position of a link of one memory. A list continues with the links of this memory after it, by `dst` and type. */
export interface LinkPlace {
  readonly memoryNo: number;
  readonly dst: number;
  readonly type: string;
}

/** Links of an export, and the position after which more links of the last memory may follow; null if none do. */
export interface LinkPart {
  readonly rows: readonly LinkRow[];
  readonly end: LinkPlace | null;
}

/** Greatest number of links that are examined for one slice: a memory can have any number of them. */
const SLICE_LINKS = 2_000;

/**
 * Returns as many of the first memories as have at most `SLICE_LINKS` links to others together; at least the first
 * one.
 * @param memoryNos numbers of memories, ascending
 */
export function withFewLinks(store: Store, memoryNos: readonly number[]): readonly number[] {
  const counts = store
    .prepare(
      `SELECT (SELECT count(*)
         FROM (SELECT 1 FROM edges e WHERE e.src = wanted.value LIMIT ${SLICE_LINKS + 1}) AS first)
       FROM json_each(?) AS wanted ORDER BY wanted.value`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos)) as number[];
  let left = SLICE_LINKS;
  const beyond = counts.findIndex((count, place) => {
    left -= count;
    return place > 0 && left < 0;
  });
  return beyond === -1 ? memoryNos : memoryNos.slice(0, beyond);
}

/**
 * Reads the links from memories to other selected memories, in the order of the memories' numbers. Both the links and
 * the memories existed when the export began.
 * @param from the memories by number, ascending, as `withFewLinks` returns them; or a position, for the links of its
 *   memory that follow, of which at most `SLICE_LINKS` are examined
 */
export function readLinkRows(
  store: Store,
  filter: MemoryFilter,
  { bounds, from }: { readonly bounds: ExportBounds; readonly from: readonly number[] | LinkPlace },
): LinkPart {
  if (!('dst' in from) && from.length === 1) {
    return readLinkRows(store, filter, { bounds, from: { memoryNo: from[0]!, dst: 0, type: '' } });
  }
  const source =
    'dst' in from
      ? `(SELECT * FROM edges WHERE src = ? AND (dst, type) > (?, ?) ORDER BY dst, type LIMIT ${SLICE_LINKS}) AS e`
      : 'json_each(?) AS wanted CROSS JOIN edges e ON e.src = wanted.value';
  const place = 'dst' in from ? [from.memoryNo, from.dst, from.type] : [JSON.stringify(from)];
  const { sql, parameters } = selectionOf(filter, bounds.at);
  const examined = store
    .prepare(
      `SELECT a.id AS src, b.id AS dst, e.type, e.similarity, e.weight, e.automatic, w.id AS winner, e.created_at,
         e.updated_at, ${writerOf('e.writer_no')} AS written_by, e.dst AS dst_no,
         CASE WHEN e.created_at <= ? AND e.dst <= ? AND EXISTS (SELECT 1 ${sql} AND own.seq = e.dst)
           THEN 1 ELSE 0 END AS selected
       FROM ${source} CROSS JOIN memories a ON a.seq = e.src CROSS JOIN memories b ON b.seq = e.dst
         LEFT JOIN memories w ON w.seq = e.winner
       ORDER BY e.src, e.dst, e.type`,
    )
    .all(bounds.at, bounds.lastMemory, ...parameters, ...place) as (LinkRow & { dst_no: number; selected: number })[];
  const rows = examined.filter(({ selected }) => selected === 1);
  const last = examined.at(-1);
  if (!('dst' in from) || last === undefined || examined.length < SLICE_LINKS) return { rows, end: null };
  return { rows, end: { memoryNo: from.memoryNo, dst: last.dst_no, type: last.type } };
}

/** Position of an item of a session log. A list continues with the items after it. */
export type LogPosition = readonly [logNo: number, position: number];

/** An item of a session log, with the user and session of its log. */
export interface LogItemRow {
  readonly user_id: string;
  readonly session_id: string;
  readonly position: number;
  /** The item as JSON. */
  readonly item: string;
  readonly created_at: number;
  readonly written_by: string | null;
}

/**
 * Tells whether a filter can select session logs. A log has a user and a session only, so any other condition excludes
 * all logs.
 */
export function selectsLogs({ userIds: _users, sessionIds: _sessions, ...others }: MemoryFilter): boolean {
  return Object.values(others).every((value) => value === undefined);
}

/**
 * Lists the selected items of session logs after a position, ordered by log and position. It stops when they have at
 * least `bytes` of JSON, or when 2,000 items were examined. No further item is read, since each may have 256 KiB.
 * @returns the items, and the position of the last examined item, after which there may be more; null if there are
 *   none
 */
export function listExportedLogItems(
  store: Store,
  { userIds, sessionIds }: MemoryFilter,
  asked: { readonly bounds: ExportBounds; readonly after: LogPosition; readonly bytes: number },
): { readonly items: readonly LogItemRow[]; readonly next: LogPosition | null } {
  const named = [
    ...(userIds === undefined ? [] : [['user_id', JSON.stringify(userIds)] as const]),
    ...(sessionIds === undefined ? [] : [['session_id', JSON.stringify(sessionIds)] as const]),
  ];
  const isNamed = named.map(([column]) => `AND l.${column} IN (SELECT value FROM json_each(?))`).join(' ');
  const isSelected = `l.user_id IS NOT NULL AND i.created_at <= ? ${isNamed}`;
  const selected = [asked.bounds.at, ...named.map(([, names]) => names)];
  const places = store
    .prepare(
      `SELECT i.log_no AS logNo, i.position, CASE WHEN ${isSelected} THEN octet_length(i.item) ELSE 0 END AS bytes
       FROM session_log_items i CROSS JOIN session_logs l ON l.log_no = i.log_no
       WHERE (i.log_no, i.position) > (?, ?) ORDER BY i.log_no, i.position LIMIT ?`,
    )
    .all(...selected, ...asked.after, LOOKED_AT_ONCE) as { logNo: number; position: number; bytes: number }[];
  let bytes = 0;
  const filling = places.find((place) => (bytes += place.bytes) >= asked.bytes);
  const last = filling ?? places.at(-1);
  if (last === undefined) return { items: [], next: null };
  const end = [last.logNo, last.position] as const;
  const items = store
    .prepare(
      `SELECT l.user_id, l.session_id, i.position, i.item, i.created_at, ${writerOf('i.writer_no')} AS written_by
       FROM session_log_items i CROSS JOIN session_logs l ON l.log_no = i.log_no
       WHERE (i.log_no, i.position) > (?, ?) AND (i.log_no, i.position) <= (?, ?) AND ${isSelected}
       ORDER BY i.log_no, i.position`,
    )
    .all(...asked.after, ...end, ...selected) as LogItemRow[];
  return { items, next: filling !== undefined || places.length === LOOKED_AT_ONCE ? end : null };
}
