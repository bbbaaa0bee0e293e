import type { EdgeType, MemoryFilter } from '../types.ts';
import { ROOT_INDEX } from './chunks.ts';
import { compileFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { writerOf } from './writers.ts';

/** How far an export goes: rows with these numbers at most, as they were at a time. */
export interface ExportBounds {
  /** Time at which the export began, Unix ms. */
  readonly at: number;
  readonly lastMemory: number;
  readonly lastDocument: number;
}

/** Reads how far an export that begins now goes. */
export function readExportBounds(store: Store, now: number): ExportBounds {
  const last = store.prepare(
    `SELECT coalesce((SELECT max(seq) FROM memories), 0) AS lastMemory,
       coalesce((SELECT max(document_no) FROM documents), 0) AS lastDocument`,
  );
  return { at: now, ...(last.get() as Omit<ExportBounds, 'at'>) };
}

/** What an export selects, as SQL. */
interface Selection {
  /** Source and condition of a selected memory `own`; a caller adds conditions on `own.seq`. */
  readonly sql: string;
  readonly parameters: readonly (string | number)[];
  /** Whether each row that is looked at takes time, because its tags or metadata are parsed. */
  readonly isSlow: boolean;
}

/**
 * Compiles what an export selects: memories that pass the filter, whatever their status and validity, without expired
 * ones, parts of readings that were not shown yet when the export began, and gathered memories, which repeat others. A
 * part of a document is judged by the document's root.
 */
function selectionOf(filter: MemoryFilter, now: number): Selection {
  const { sql, parameters, countsWork } = compileFilter(filter, now, { includeHidden: true });
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

/** Numbers of a slice of an export, and the number after which the next slice begins; null after the last slice. */
export interface NumberSlice {
  readonly numbers: readonly number[];
  readonly next: number | null;
}

/** Most memories that are looked at for one slice if that takes time. */
const LOOKED_AT_ONCE = 2_000;

/** Lists numbers of selected memories above `after`, ascending, `limit` at most. */
export function listExportedMemories(
  store: Store,
  filter: MemoryFilter,
  { bounds, after, limit }: { readonly bounds: ExportBounds; readonly after: number; readonly limit: number },
): NumberSlice {
  const { sql, parameters, isSlow } = selectionOf(filter, bounds.at);
  const upTo = isSlow ? Math.min(bounds.lastMemory, after + LOOKED_AT_ONCE) : bounds.lastMemory;
  const numbers = store
    .prepare(`SELECT own.seq ${sql} AND own.seq > ? AND own.seq <= ? ORDER BY own.seq LIMIT ?`)
    .pluck()
    .all(...parameters, after, upTo, limit) as number[];
  if (numbers.length === limit) return { numbers, next: numbers.at(-1)! };
  return { numbers, next: upTo < bounds.lastMemory ? upTo : null };
}

/**
 * Lists numbers of documents above `after` that queries find, ascending, `limit` at most. With a filter a document is
 * selected with its root memory, and one without text is not.
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

/** Number of things of a kind that no export holds. */
export interface LeftOut {
  /** Documents that nobody has read yet, or nobody could. */
  readonly documents_not_read: number;
  /** Webhooks, each of which is signed with a secret that its receiver knows. */
  readonly webhooks: number;
  /** Gathered memories, whose sources an export holds. */
  readonly consolidations: number;
}

/** Counts what no export holds, whatever its filter. */
export function countLeftOut(store: Store): LeftOut {
  const counts = store.prepare(
    `SELECT (SELECT count(*) FROM documents WHERE live_no IS NULL AND state <> 'deleting') AS documents_not_read,
       (SELECT count(*) FROM webhooks) AS webhooks,
       (SELECT count(memory) FROM consolidations) AS consolidations`,
  );
  return counts.get() as LeftOut;
}

/** A row of `edges` with the ids of its memories and of its writer. */
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

/** Lists the links from these memories to selected ones that were there when the export began. */
export function listExportedLinks(
  store: Store,
  filter: MemoryFilter,
  { bounds, from }: { readonly bounds: ExportBounds; readonly from: readonly number[] },
): LinkRow[] {
  const { sql, parameters } = selectionOf(filter, bounds.at);
  return store
    .prepare(
      `SELECT a.id AS src, b.id AS dst, e.type, e.similarity, e.weight, e.automatic, w.id AS winner, e.created_at,
         e.updated_at, ${writerOf('e.writer_no')} AS written_by
       FROM json_each(?) AS wanted CROSS JOIN edges e ON e.src = wanted.value
         CROSS JOIN memories a ON a.seq = e.src CROSS JOIN memories b ON b.seq = e.dst
         LEFT JOIN memories w ON w.seq = e.winner
       WHERE e.created_at <= ? AND e.dst <= ? AND EXISTS (SELECT 1 ${sql} AND own.seq = e.dst)
       ORDER BY e.src, e.dst, e.type`,
    )
    .all(JSON.stringify(from), bounds.at, bounds.lastMemory, ...parameters) as LinkRow[];
}

/** A place behind an item of a session log. */
export type LogPosition = readonly [logNo: number, position: number];

/** An item of a session log with the names of its log. */
export interface LogItemRow {
  readonly user_id: string;
  readonly session_id: string;
  readonly position: number;
  /** The item as JSON. */
  readonly item: string;
  readonly created_at: number;
  readonly written_by: string | null;
}

/** Tells whether a filter can select session logs: of what it may ask for they have a user and a session. */
export function selectsLogs({ userIds: _users, sessionIds: _sessions, ...others }: MemoryFilter): boolean {
  return Object.values(others).every((value) => value === undefined);
}

/**
 * Lists selected items of session logs behind a place, in their order, until they have `bytes` bytes of JSON.
 * @returns the items, and the place behind the last one that was looked at; null behind the last one of all
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
  const rows = store
    .prepare(
      `SELECT i.log_no AS logNo, i.position, l.user_id, l.session_id, i.created_at,
         ${writerOf('i.writer_no')} AS written_by,
         CASE WHEN l.user_id IS NOT NULL AND i.created_at <= ? ${isNamed} THEN i.item END AS item
       FROM session_log_items i CROSS JOIN session_logs l ON l.log_no = i.log_no
       WHERE (i.log_no, i.position) > (?, ?) ORDER BY i.log_no, i.position LIMIT ?`,
    )
    .iterate(asked.bounds.at, ...named.map(([, names]) => names), ...asked.after, LOOKED_AT_ONCE);
  const items: LogItemRow[] = [];
  let [looked, bytes] = [0, 0];
  for (const { logNo, item, ...row } of rows as IterableIterator<
    Omit<LogItemRow, 'item'> & { readonly logNo: number; readonly item: string | null }
  >) {
    looked += 1;
    if (item !== null) items.push({ ...row, item });
    bytes += item?.length ?? 0;
    if (looked === LOOKED_AT_ONCE || bytes >= asked.bytes) return { items, next: [logNo, row.position] };
  }
  return { items, next: null };
}
