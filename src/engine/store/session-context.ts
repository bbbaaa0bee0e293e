import type { MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';

/** How many memories before a memory in its session are its context. */
export const CONTEXT_MEMORIES = 2;
const CONTEXT_CHARACTERS = 1_000;

/**
 * Where a memory stands among those of its user and session. Chunks of documents stand apart: they overlap, so that each holds its
 * own context, and what is hidden must not show in the words of others.
 */
export interface SessionPlace {
  readonly seq: number;
  readonly isChunk: boolean;
  readonly userNo: number;
  readonly sessionId: string;
  readonly eventTime: number;
}

/** The texts just before a memory in its session, oldest first, cut to their last 1,000 characters; '' outside a session. */
export function contextOf(store: Store, place: SessionPlace): string {
  if (place.sessionId === '' || place.isChunk) return '';
  const before = store
    .prepare(
      `SELECT m.content FROM memories m INDEXED BY memories_by_session CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) < (?, ?) AND d.generation_no IS NULL
       ORDER BY m.event_time DESC, m.seq DESC LIMIT ${CONTEXT_MEMORIES}`,
    )
    .all(place.userNo, place.sessionId, place.eventTime, place.seq) as { content: string }[];
  return before
    .map((row) => row.content)
    .reverse()
    .join('\n')
    .slice(-CONTEXT_CHARACTERS)
    .toWellFormed();
}

/** The memories whose context this one is part of. */
export function successorsOf(store: Store, place: SessionPlace): number[] {
  if (place.sessionId === '' || place.isChunk) return [];
  const rows = store
    .prepare(
      `SELECT m.seq FROM memories m INDEXED BY memories_by_session CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) > (?, ?) AND d.generation_no IS NULL
       ORDER BY m.event_time, m.seq LIMIT ${CONTEXT_MEMORIES}`,
    )
    .all(place.userNo, place.sessionId, place.eventTime, place.seq) as { seq: number }[];
  return rows.map((row) => row.seq);
}

/** The place of a stored memory in its session. */
export function placeOf(row: MemoryRow): SessionPlace {
  const { seq, user_no: userNo, session_id: sessionId, event_time: eventTime } = row;
  return { seq, userNo, sessionId, eventTime, isChunk: row.generation_no !== null };
}
