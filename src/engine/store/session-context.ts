import type { MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';

/** Number of earlier memories of a session that make up a memory's context. */
export const CONTEXT_MEMORIES = 2;
/** Longest context, UTF-16 code units. */
const CONTEXT_CHARACTERS = 1_000;

/**
 * Position of a memory among those of its user and session. Chunks of documents stand apart: they overlap, so each
 * holds its own context, and a hidden chunk must not show in the words of other memories.
 */
export interface SessionPlace {
  readonly memoryNo: number;
  /** Whether a document brought the memory. */
  readonly isChunk: boolean;
  readonly userNo: number;
  readonly sessionId: string;
  readonly eventTime: number;
}

// The texts of the statements are made once, as every add uses them.
const SELECT_BEFORE = `SELECT m.content FROM memories m INDEXED BY memories_by_session
  CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) < (?, ?) AND d.generation_no IS NULL
  ORDER BY m.event_time DESC, m.seq DESC LIMIT ${CONTEXT_MEMORIES}`;
const SELECT_AFTER = `SELECT m.seq AS memoryNo FROM memories m INDEXED BY memories_by_session
  CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) > (?, ?) AND d.generation_no IS NULL
  ORDER BY m.event_time, m.seq LIMIT ${CONTEXT_MEMORIES}`;
const SELECT_LATEST = `SELECT m.seq AS memoryNo, m.content FROM memories m INDEXED BY memories_by_session
  CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.user_no = ? AND m.session_id = ? AND d.generation_no IS NULL
  ORDER BY m.event_time DESC, m.seq DESC LIMIT ${CONTEXT_MEMORIES + 1}`;

/**
 * Joins the texts of the two memories just before a memory in its session, earlier first, by a line feed, and keeps the
 * last 1,000 characters (UTF-16 code units); '' outside a session and for a memory of a document.
 */
export function contextOf(store: Store, place: SessionPlace): string {
  if (place.sessionId === '' || place.isChunk) return '';
  const { userNo, sessionId, eventTime, memoryNo } = place;
  return join(store.prepare(SELECT_BEFORE).all(userNo, sessionId, eventTime, memoryNo) as { content: string }[]);
}

/** Lists the numbers of the memories whose context includes this one: at most two, the next in its session. */
export function successorsOf(store: Store, place: SessionPlace): number[] {
  if (place.sessionId === '' || place.isChunk) return [];
  const { userNo, sessionId, eventTime, memoryNo } = place;
  const rows = store.prepare(SELECT_AFTER).all(userNo, sessionId, eventTime, memoryNo) as { memoryNo: number }[];
  return rows.map((row) => row.memoryNo);
}

/**
 * Returns what `contextOf` and `successorsOf` return for a memory that was just stored. Nearly always it is the latest
 * of its session, and one statement then tells both.
 */
export function neighboursOf(store: Store, place: SessionPlace): { context: string; successors: number[] } {
  if (place.sessionId === '' || place.isChunk) return { context: '', successors: [] };
  const [latest, ...before] = store.prepare(SELECT_LATEST).all(place.userNo, place.sessionId) as {
    memoryNo: number;
    content: string;
  }[];
  if (latest?.memoryNo === place.memoryNo) return { context: join(before), successors: [] };
  return { context: contextOf(store, place), successors: successorsOf(store, place) };
}

/** Joins the texts of memories, the latest first, as the context of the memory that follows them. */
function join(before: readonly { readonly content: string }[]): string {
  return before
    .map((row) => row.content)
    .reverse()
    .join('\n')
    .slice(-CONTEXT_CHARACTERS)
    .toWellFormed();
}

/** Returns the position of a stored memory in its session. */
export function placeOf(row: MemoryRow): SessionPlace {
  const { memoryNo, user_no: userNo, session_id: sessionId, event_time: eventTime } = row;
  return { memoryNo, userNo, sessionId, eventTime, isChunk: row.generation_no !== null };
}
