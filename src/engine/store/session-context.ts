import type { MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';

/** Number of memories just before a memory in its session, by event time, whose texts form its context. */
export const CONTEXT_MEMORIES = 2;
/** Greatest length of a context, in UTF-16 code units. */
const CONTEXT_CHARACTERS = 1_000;

/**
 * Position of a memory among the memories of its user and session. Chunks of documents have no context: their texts
 * overlap already, and the words of a chunk that queries do not find must not be indexed for other memories.
 */
export interface SessionPlace {
  readonly memoryNo: number;
  /** Whether the memory is a part of a document. */
  readonly isChunk: boolean;
  readonly userNo: number;
  readonly sessionId: string;
  readonly eventTime: number;
}

/**
 * SQL that is true if a memory has a session and is no part of a document; parts that earlier versions of Cairn stored
 * are known by their generation.
 */
const IS_TURN = "m.is_part = 0 AND m.session_id <> '' AND d.generation_no IS NULL";
// The texts of the statements are made once, as every add uses them.
const SELECT_BEFORE = `SELECT m.content FROM memories m INDEXED BY memories_by_turn
  CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) < (?, ?) AND ${IS_TURN}
  ORDER BY m.event_time DESC, m.seq DESC LIMIT ${CONTEXT_MEMORIES}`;
const SELECT_AFTER = `SELECT m.seq AS memoryNo FROM memories m INDEXED BY memories_by_turn
  CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) > (?, ?) AND ${IS_TURN}
  ORDER BY m.event_time, m.seq LIMIT ${CONTEXT_MEMORIES}`;
const SELECT_LATEST = `SELECT m.seq AS memoryNo, m.content FROM memories m INDEXED BY memories_by_turn
  CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.user_no = ? AND m.session_id = ? AND ${IS_TURN}
  ORDER BY m.event_time DESC, m.seq DESC LIMIT ${CONTEXT_MEMORIES + 1}`;

/**
 * SQL that selects the three latest memories of a session, latest first, without parts of documents; its parameters are
 * the number of the user and the id of the session.
 */
export const SELECT_LATEST_WITH_TIME = SELECT_LATEST.replace('m.content', 'm.content, m.event_time AS eventTime');

/**
 * Returns the context of a memory: the texts of the two memories just before it in its session, earlier first, joined
 * by a line feed and cut to the last 1,000 UTF-16 code units; '' for a memory outside of sessions or in a document.
 */
export function contextOf(store: Store, place: SessionPlace): string {
  if (place.sessionId === '' || place.isChunk) return '';
  const { userNo, sessionId, eventTime, memoryNo } = place;
  return join(store.prepare(SELECT_BEFORE).all(userNo, sessionId, eventTime, memoryNo) as { content: string }[]);
}

/**
 * Lists the numbers of the memories whose context is made from the text of this one, among others: the next memories in
 * its session, at most two. Empty for a memory outside of sessions or in a document.
 */
export function inContextOf(store: Store, place: SessionPlace): number[] {
  if (place.sessionId === '' || place.isChunk) return [];
  const { userNo, sessionId, eventTime, memoryNo } = place;
  const rows = store.prepare(SELECT_AFTER).all(userNo, sessionId, eventTime, memoryNo) as { memoryNo: number }[];
  return rows.map((row) => row.memoryNo);
}

/**
 * Lists for the number of each of these memories the next memories in its session, as `inContextOf` does. In
 * PostgreSQL this takes one round trip, inside a transaction.
 */
export function inContextOfEach(store: Store, rows: readonly MemoryRow[]): Map<number, readonly number[]> {
  const readings = rows.map((row) => () => inContextOf(store, placeOf(row)));
  store.ahead?.readSpeculatively(...readings);
  return new Map(rows.map(({ memoryNo }, n) => [memoryNo, readings[n]!()]));
}

/**
 * Returns the context of a memory that was just stored, and the next memories in its session, as `contextOf` and
 * `inContextOf` do. If it is the latest of its session, as nearly always, one statement is enough.
 */
export function contextAndFollowers(store: Store, place: SessionPlace): { context: string; followers: number[] } {
  if (place.sessionId === '' || place.isChunk) return { context: '', followers: [] };
  const [latest, ...before] = store.prepare(SELECT_LATEST).all(place.userNo, place.sessionId) as {
    memoryNo: number;
    content: string;
  }[];
  if (latest?.memoryNo === place.memoryNo) return { context: join(before), followers: [] };
  return { context: contextOf(store, place), followers: inContextOf(store, place) };
}

/** A memory of a session. */
interface SessionMemory {
  readonly memoryNo: number;
  readonly content: string;
  readonly eventTime: number;
}

/**
 * In PostgreSQL, reads the three latest memories of a session before a new memory is stored there, latest first, from
 * prefetched answers (see `Foresight`).
 * @returns undefined for a SQLite file, outside of a session, and for a chunk of a document
 */
export function latestOf(
  store: Store,
  { sessionId, isChunk, userNo }: Omit<SessionPlace, 'memoryNo'>,
): readonly SessionMemory[] | undefined {
  if (store.ahead === null || sessionId === '' || isChunk) return undefined;
  return store.prepare(SELECT_LATEST_WITH_TIME).all(userNo, sessionId) as SessionMemory[];
}

/**
 * Returns what `contextAndFollowers` returns. If the new memory is now the latest of its session, that is computed from
 * `latest`, the result of `latestOf`, and the prefetched answer gets the new memory.
 */
export function contextAndFollowersAmong(
  store: Store,
  place: SessionPlace,
  { latest, content }: { readonly latest: readonly SessionMemory[]; readonly content: string },
): { context: string; followers: number[] } {
  const { memoryNo, eventTime, userNo, sessionId } = place;
  if (latest[0] !== undefined && latest[0].eventTime > eventTime) return contextAndFollowers(store, place);
  const rows = [{ memoryNo, content, eventTime }, ...latest].slice(0, CONTEXT_MEMORIES + 1);
  store.ahead?.answer(SELECT_LATEST_WITH_TIME, [userNo, sessionId], rows);
  return { context: join(latest.slice(0, CONTEXT_MEMORIES)), followers: [] };
}

/** Joins the texts of memories, given latest first, to the context of the memory that follows them. */
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
